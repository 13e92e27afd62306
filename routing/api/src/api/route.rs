//! Quote endpoint: the best route from one asset to another, and its exact amount out.
//!
//! The same request gives the same response, byte for byte, while registry, facts and quotes stay the same: the wallet
//! widget repeats the request before it lets the user sign, and compares.

use chain::{Timestamp, U256};
use futures_util::future::BoxFuture;
use planner::operation::SwapVenue;
use planner::{Operation, OperationKind, Plan, Request, Step, operations, usd};
use registry::{BridgeKind, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::amounts::{self, Planned, RequestedAmount};
use super::fees::{Fee, fees, warnings};
use super::json;
use super::pair::Pair;
use super::price_warning::{self, PriceWarning};
use super::swap_options::{AllowedVenue, SmartSwapOptions, SwapOptions};
use super::wire::Free;
use crate::body::{self, Amount, DENOM, NoFee, Object, Text, check_length};
use crate::errors;
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/v2/fungible/route",
    tag: "Fungible",
    summary: "The best route of an asset to another chain, and the amount out.",
    params: &[Param::Body(schema::of::<RouteRequest>())],
    response: schema::of::<Answer<'_>>(),
    handler: Handler::Async(route),
    cache: MaxAge::LIST,
}];

/// A requested transfer. Members of Skip's interface that have no meaning here, and unknown ones, are without effect.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.RouteRequest", extend("oneOf" = [{ "required": ["amount_in"] }, { "required": ["amount_out"] }]))]
struct RouteRequest {
    /// Base units of the source asset, decimal digits. A remainder that a wrapper would refuse stays out: the answer has
    /// the amount of the route.
    amount_in: Option<Amount>,
    /// Base units of the destination asset that must arrive at least, in place of amount_in.
    amount_out: Option<Amount>,
    /// Denomination of the source asset.
    #[schemars(regex(pattern = DENOM))]
    source_asset_denom: Text,
    /// Chain that the transfer starts on.
    source_asset_chain_id: Text,
    /// Denomination of the destination asset.
    #[schemars(regex(pattern = DENOM))]
    dest_asset_denom: Text,
    /// Chain that the transfer ends on.
    dest_asset_chain_id: Text,
    /// Whether the user would sign several transactions; false.
    allow_multi_tx: Option<bool>,
    /// Only by the optimistic bridge's withdrawal; false.
    is_op_withdraw: Option<bool>,
    /// Only these kinds of bridges; all.
    bridges: Option<Vec<String>>,
    /// Whether a route may lose more than a tenth of the value, which is a warning then; true.
    allow_unsafe: Option<bool>,
    /// Whether the route may swap; true.
    allow_swaps: Option<bool>,
    /// Only these venues; all.
    swap_venues: Option<Vec<Object<AllowedVenue>>>,
    /// The old form, of one venue.
    swap_venue: Option<Object<AllowedVenue>>,
    /// How swaps may be made.
    smart_swap_options: Option<Object<SmartSwapOptions>>,
    #[expect(dead_code, reason = "another value does not parse")]
    cumulative_affiliate_fee_bps: Option<NoFee>,
}

/// Members that real clients send and that have no effect here: they permit or limit relayers, and there are none.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "smart_relay",
    "go_fast",
    "fast_transfer",
    "experimental_features",
    "ignore_blacklist",
    "unsafe",
    "client_id",
];

/// Members of a request that decide which routes it allows.
pub(super) struct RouteOptions {
    pub(super) multi_tx: Option<bool>,
    pub(super) op_withdraw: Option<bool>,
    pub(super) bridges: Option<Vec<String>>,
    pub(super) allow_unsafe: Option<bool>,
    pub(super) swaps: SwapOptions,
}

/// Parsed route request, with the names as the client spells them.
pub(super) struct RouteQuery {
    pub(super) request: Request,
    pair: Pair,
}

/// A route.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.RouteResponse")]
pub(super) struct Answer<'a> {
    /// As query.
    source_asset_denom: &'a str,
    /// As query.
    source_asset_chain_id: &'a str,
    /// As query.
    dest_asset_denom: &'a str,
    /// As query.
    dest_asset_chain_id: &'a str,
    /// As query, without a remainder that a wrapper would refuse.
    amount_in: String,
    /// Exact amount out, base units.
    amount_out: String,
    /// One for each hop, joined.
    #[schemars(with = "Vec<Free>")]
    operations: Vec<Operation>,
    /// All chains, in order.
    chain_ids: Vec<&'a str>,
    /// Chains of `address_list`, in order.
    required_chain_addresses: Vec<&'a str>,
    /// Whether an operation swaps in pools.
    does_swap: bool,
    /// `amount_out` once more.
    estimated_amount_out: String,
    /// Where it swaps.
    #[schemars(with = "Vec<Free>")]
    swap_venues: Vec<SwapVenue>,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Free>")]
    swap_venue: Option<SwapVenue>,
    /// Transactions that the user signs.
    txs_required: usize,
    /// In US dollars, if there is a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_amount_in: Option<String>,
    /// In US dollars, if there is a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_amount_out: Option<String>,
    /// How much worse the swap is than its pools' price, fees apart; null without a swap.
    swap_price_impact_percent: Option<String>,
    /// The block whose pools the swap is computed with; absent without a swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    quoted_at: Option<QuotedAt<'a>>,
    /// If less than nine tenths of the value arrives, or a swap cannot be compared for want of prices.
    warning: Option<PriceWarning>,
    /// Fees deducted in transit, and fees paid in addition.
    estimated_fees: Vec<Fee<'a>>,
    /// Usual duration.
    estimated_route_duration_seconds: u64,
    /// Whether `msgs` needs a `signed_op_hook`: see /op-hook.
    required_op_hook: bool,
    /// For the user.
    extra_infos: Vec<String>,
    /// For the user.
    extra_warnings: Vec<String>,
    /// Other ways, the best first.
    alternatives: Vec<Alternative>,
}

/// A block with pools.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct QuotedAt<'a> {
    chain_id: &'a str,
    height: u64,
    /// Of the block, RFC 3339.
    time: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Alternative {
    amount_out: String,
    #[schemars(with = "Vec<Free>")]
    operations: Vec<Operation>,
    txs_required: usize,
    estimated_route_duration_seconds: u64,
    required_op_hook: bool,
}

fn route<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let request: RouteRequest = body::read(&service.config, call, WITHOUT_EFFECT)?;
        let amount = RequestedAmount::of(request.amount_in, request.amount_out)?;
        let world = service.world();
        let mut query = RouteQuery::new(
            &world.registry,
            [request.source_asset_denom, request.source_asset_chain_id],
            [request.dest_asset_denom, request.dest_asset_chain_id],
        )?;
        let options = RouteOptions {
            multi_tx: request.allow_multi_tx,
            op_withdraw: request.is_op_withdraw,
            bridges: request.bridges,
            allow_unsafe: request.allow_unsafe,
            swaps: SwapOptions {
                are_allowed: request.allow_swaps,
                venues: request.swap_venues,
                venue: request.swap_venue,
                smart: request.smart_swap_options,
            },
        };
        let planned = query.plans(service, &world, options, amount).await?;
        json(&query.answer(&world, &planned))
    })
}

impl RouteQuery {
    /// A request for a route between two assets, each by denomination and chain id; its amount is set later.
    pub(super) fn new(registry: &Registry, source: [Text; 2], dest: [Text; 2]) -> Result<Self, HttpError> {
        let pair = Pair::find(registry, source, dest)?;
        let request = Request {
            from: pair.source.asset,
            to: pair.dest.asset,
            amount_in: U256::ZERO,
            op_withdraw: false,
            multi_tx: false,
            op_hook: true,
            bridges: None,
        };
        Ok(Self { request, pair })
    }

    /// The plans for an amount that the client's options allow, best first and at least one.
    pub(super) async fn plans<'a>(
        &mut self,
        service: &Service,
        world: &'a World,
        options: RouteOptions,
        amount: RequestedAmount,
    ) -> Result<Planned<'a>, HttpError> {
        self.request.multi_tx = options.multi_tx == Some(true);
        self.request.op_withdraw = options.op_withdraw == Some(true);
        self.request.bridges = bridges(&options.bridges.unwrap_or_default())?;
        let rules = options.swaps.rules(world)?;
        let planned = amounts::plans(service, world, &self.request, rules.as_ref(), amount).await?;
        price_warning::check(world, &self.request, &planned.plans[0], options.allow_unsafe)?;
        Ok(planned)
    }

    /// The response for plans; there is at least one.
    pub(super) fn answer<'a>(&'a self, world: &'a World, planned: &'a Planned<'a>) -> Answer<'a> {
        let registry = &*world.registry;
        let Planned { plans, quotes, infos } = planned;
        let view = planner::World { registry, facts: &world.facts, quotes };
        let best = &plans[0];
        let alternative = |plan: &Plan| Alternative {
            amount_out: plan.amount_out().to_string(),
            operations: operations(view, plan),
            txs_required: plan.txs(),
            estimated_route_duration_seconds: plan.seconds(registry),
            required_op_hook: plan.required_op_hook(),
        };
        let usd_amount_in = usd::of(registry, &world.facts, self.request.from, best.amount_in());
        let usd_amount_out = usd::of(registry, &world.facts, self.request.to, best.amount_out());
        let warning = PriceWarning::of(best, usd_amount_in.as_deref(), usd_amount_out.as_deref());
        let best_operations = operations(view, best);
        let swap_venues = swap_venues(best, &best_operations);
        Answer {
            source_asset_denom: &self.pair.source.denom,
            source_asset_chain_id: &self.pair.source.chain_id,
            dest_asset_denom: &self.pair.dest.denom,
            dest_asset_chain_id: &self.pair.dest.chain_id,
            amount_in: best.amount_in().to_string(),
            amount_out: best.amount_out().to_string(),
            operations: best_operations,
            chain_ids: best.chain_ids(registry),
            required_chain_addresses: best.required_chain_addresses(registry),
            does_swap: best.swap.is_some(),
            estimated_amount_out: best.amount_out().to_string(),
            swap_venue: swap_venues.first().cloned(),
            swap_venues,
            txs_required: best.txs(),
            usd_amount_in,
            usd_amount_out,
            swap_price_impact_percent: best.swap.as_ref().and_then(|swap| swap.price_impact_percent.clone()),
            quoted_at: QuotedAt::of(world, best),
            warning,
            estimated_fees: fees(world, best),
            estimated_route_duration_seconds: best.seconds(registry),
            required_op_hook: best.required_op_hook(),
            extra_infos: infos.clone(),
            extra_warnings: warnings(world, best),
            alternatives: plans[1..].iter().map(alternative).collect(),
        }
    }
}

impl<'a> QuotedAt<'a> {
    fn of(world: &'a World, plan: &Plan) -> Option<Self> {
        let swap = plan.hops.iter().find(|hop| hop.step == Step::Swap)?;
        let registry = &*world.registry;
        let market = &world.markets.get(&registry[registry[swap.from].chain].id)?.market;
        let nanos = i64::try_from(market.time).ok()?.checked_mul(1_000_000_000)?;
        let time = Timestamp::from_unix_nanos(nanos).seconds();
        Some(Self { chain_id: &market.chain, height: market.height, time })
    }
}

/// The venues of a plan's swap in pools.
fn swap_venues(plan: &Plan, operations: &[Operation]) -> Vec<SwapVenue> {
    let venues = operations.iter().filter_map(|operation| match &operation.kind {
        OperationKind::Swap(swap) if plan.swap.is_some() => Some(swap.swap_venues.clone()),
        _ => None,
    });
    venues.flatten().collect()
}

/// The allowed kinds of bridges; kinds of Skip's interface that this service lacks are dropped.
fn bridges(names: &[String]) -> Result<Option<Vec<BridgeKind>>, HttpError> {
    const OTHERS: [&str; 7] = ["AXELAR", "CCTP", "CCTP_V2", "HYPERLANE", "GO_FAST", "STARGATE", "EUREKA"];
    check_length("bridges", names.len())?;
    if names.is_empty() {
        return Ok(None);
    }
    let mut kinds = Vec::new();
    for name in names {
        match BridgeKind::ALL.into_iter().find(|kind| kind.id() == name) {
            Some(kind) => kinds.push(kind),
            None if OTHERS.contains(&name.as_str()) => {}
            None => {
                return Err(errors::invalid(
                    "bridges",
                    &format!("`{name}` is no kind of bridge, see /v2/info/bridges"),
                ));
            }
        }
    }
    Ok(Some(kinds))
}
