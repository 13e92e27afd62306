//! Quote endpoint: how an asset gets from one chain to another, and the amount out.
//!
//! The same request gives the same response, byte for byte, while registry, facts and quotes stay the same: the wallet
//! widget repeats the request before it lets the user sign, and compares.

use futures_util::future::BoxFuture;
use planner::{Operation, Plan, Request, operations, plan, usd};
use registry::{BridgeKind, Registry};
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::fees::{Fee, fees, warnings};
use super::json;
use super::pair::Pair;
use crate::body::Body;
use crate::errors;
use crate::quotes::QuoteSet;
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/v2/fungible/route",
    tag: "Fungible",
    summary: "The best way for an asset to another chain, and what arrives.",
    params: &[Param::Body(&REQUEST)],
    response: &ROUTE,
    handler: Handler::Later(route),
    cache: Freshness::LIST,
}];

static REQUEST: Schema = Schema {
    name: "fungible.RouteRequest",
    doc: "A transfer that somebody wants to make. Members of Skip's interface that do not matter here are accepted and \
          without effect; unknown ones are refused.",
    fields: &[
        Field::new("amount_in", Kind::String, "Base units of the source asset, decimal digits."),
        Field::new("source_asset_denom", Kind::String, "What is sent."),
        Field::new("source_asset_chain_id", Kind::String, "From where."),
        Field::new("dest_asset_denom", Kind::String, "What is to arrive."),
        Field::new("dest_asset_chain_id", Kind::String, "Where."),
        Field::optional(
            "allow_multi_tx",
            Kind::Boolean,
            "Whether the user would sign several transactions; false.",
        ),
        Field::optional(
            "is_op_withdraw",
            Kind::Boolean,
            "Only by the optimistic bridge's withdrawal; false.",
        ),
        Field::optional("bridges", Kind::Array(&Kind::String), "Only these kinds of bridges; all."),
    ],
};

/// The answer, which `msgs_direct` gives too.
pub(crate) static ROUTE: Schema = Schema {
    name: "fungible.RouteResponse",
    doc: "A route.",
    fields: &[
        Field::new("source_asset_denom", Kind::String, "As asked."),
        Field::new("source_asset_chain_id", Kind::String, "As asked."),
        Field::new("dest_asset_denom", Kind::String, "As asked."),
        Field::new("dest_asset_chain_id", Kind::String, "As asked."),
        Field::new("amount_in", Kind::String, "As asked."),
        Field::new("amount_out", Kind::String, "What arrives, exactly."),
        Field::new("operations", Kind::Array(&Kind::Free), "One for each hop, joined."),
        Field::new("chain_ids", Kind::Array(&Kind::String), "All chains, in order."),
        Field::new(
            "required_chain_addresses",
            Kind::Array(&Kind::String),
            "Chains of `address_list`, in order.",
        ),
        Field::new("does_swap", Kind::Boolean, "Always false."),
        Field::new("estimated_amount_out", Kind::String, "`amount_out` once more."),
        Field::new("swap_venues", Kind::Array(&Kind::Free), "Always empty."),
        Field::new("txs_required", Kind::Integer, "Transactions that the user signs."),
        Field::optional("usd_amount_in", Kind::String, "In US dollars, if the registry has a price."),
        Field::optional("usd_amount_out", Kind::String, "In US dollars, if the registry has a price."),
        Field::nullable("swap_price_impact_percent", Kind::String, "Always null."),
        Field::nullable("warning", Kind::Free, "Always null."),
        Field::new(
            "estimated_fees",
            Kind::Array(&Kind::Free),
            "What is kept on the way, and what is paid on top.",
        ),
        Field::new("estimated_route_duration_seconds", Kind::Integer, "How long it usually takes."),
        Field::new(
            "required_op_hook",
            Kind::Boolean,
            "Whether `msgs` needs a `signed_op_hook`: see /op-hook.",
        ),
        Field::new("extra_infos", Kind::Array(&Kind::String), "For the user."),
        Field::new("extra_warnings", Kind::Array(&Kind::String), "For the user."),
        Field::new(
            "alternatives",
            Kind::Array(&Kind::Free),
            "Other ways, the best first: `amount_out`, `operations`, `txs_required`, \
             `estimated_route_duration_seconds`, `required_op_hook`.",
        ),
    ],
};

/// Members that real clients send and that matter here.
const MEMBERS: &[&str] = &[
    "amount_in",
    "amount_out",
    "source_asset_denom",
    "source_asset_chain_id",
    "dest_asset_denom",
    "dest_asset_chain_id",
    "allow_multi_tx",
    "is_op_withdraw",
    "bridges",
];

/// Members that real clients send and that change nothing here: there are no swaps, no relayers of our own.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "allow_unsafe",
    "allow_swaps",
    "smart_relay",
    "go_fast",
    "fast_transfer",
    "swap_venue",
    "swap_venues",
    "smart_swap_options",
    "experimental_features",
    "cumulative_affiliate_fee_bps",
    "ignore_blacklist",
    "unsafe",
    "client_id",
];

/// Parsed route request, with the names as the client spells them.
pub(super) struct Asked {
    pub(super) request: Request,
    pair: Pair,
}

/// A route's answer.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    source_asset_denom: &'a str,
    source_asset_chain_id: &'a str,
    dest_asset_denom: &'a str,
    dest_asset_chain_id: &'a str,
    amount_in: String,
    pub(super) amount_out: String,
    pub(super) operations: Vec<Operation>,
    chain_ids: Vec<&'a str>,
    required_chain_addresses: Vec<&'a str>,
    does_swap: bool,
    estimated_amount_out: String,
    swap_venues: [(); 0],
    txs_required: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_amount_in: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_amount_out: Option<String>,
    swap_price_impact_percent: Option<String>,
    warning: Option<()>,
    pub(super) estimated_fees: Vec<Fee<'a>>,
    estimated_route_duration_seconds: u64,
    required_op_hook: bool,
    extra_infos: Vec<String>,
    extra_warnings: Vec<String>,
    alternatives: Vec<Alternative>,
}

#[derive(Serialize)]
struct Alternative {
    amount_out: String,
    operations: Vec<Operation>,
    txs_required: usize,
    estimated_route_duration_seconds: u64,
    required_op_hook: bool,
}

fn route<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, Refusal>> {
    Box::pin(async {
        let body = Body::read(call, &[MEMBERS, WITHOUT_EFFECT].concat())?;
        let world = service.world();
        if body.value("amount_out").is_some() {
            // gRPC's UNIMPLEMENTED.
            return Err(Refusal::bad_request("amount_out is not supported, give amount_in").with_code(12));
        }
        let asked = Asked::read(&body, &world.registry, true)?;
        let (plans, known) = plans(service, &world, &asked.request).await?;
        json(&asked.answer(&world, &known, &plans))
    })
}

impl Asked {
    /// The members that every request for a route has. `op_hook`: whether the client can be asked to sign one.
    pub(super) fn read(body: &Body, registry: &Registry, op_hook: bool) -> Result<Self, Refusal> {
        let amount_in = body.amount("amount_in")?;
        let pair = Pair::read(body, registry)?;
        let request = Request {
            from: pair.source.asset,
            to: pair.dest.asset,
            amount_in,
            op_withdraw: body.boolean("is_op_withdraw", false)?,
            multi_tx: body.boolean("allow_multi_tx", false)?,
            op_hook,
            bridges: bridges(body)?,
        };
        Ok(Self { request, pair })
    }

    /// The answer for plans, of which there is one at least.
    pub(super) fn answer<'a>(
        &'a self,
        world: &'a World,
        known: &'a QuoteSet<'a>,
        plans: &[Plan],
    ) -> Answer<'a> {
        let registry = &*world.registry;
        let seen = planner::World { registry, facts: &world.facts, quotes: known };
        let best = &plans[0];
        let alternative = |plan: &Plan| Alternative {
            amount_out: plan.amount_out().to_string(),
            operations: operations(seen, plan),
            txs_required: plan.txs(),
            estimated_route_duration_seconds: plan.seconds(registry),
            required_op_hook: plan.required_op_hook(),
        };
        Answer {
            source_asset_denom: &self.pair.source.denom,
            source_asset_chain_id: &self.pair.source.chain_id,
            dest_asset_denom: &self.pair.dest.denom,
            dest_asset_chain_id: &self.pair.dest.chain_id,
            amount_in: best.amount_in().to_string(),
            amount_out: best.amount_out().to_string(),
            operations: operations(seen, best),
            chain_ids: best.chain_ids(registry),
            required_chain_addresses: best.required_chain_addresses(registry),
            does_swap: false,
            estimated_amount_out: best.amount_out().to_string(),
            swap_venues: [],
            txs_required: best.txs(),
            usd_amount_in: usd::of(registry, self.request.from, best.amount_in()),
            usd_amount_out: usd::of(registry, self.request.to, best.amount_out()),
            swap_price_impact_percent: None,
            warning: None,
            estimated_fees: fees(registry, best),
            estimated_route_duration_seconds: best.seconds(registry),
            required_op_hook: best.required_op_hook(),
            extra_infos: Vec::new(),
            extra_warnings: warnings(world, best),
            alternatives: plans[1..].iter().map(alternative).collect(),
        }
    }
}

/// All plans for a request, the best first, with the quotes that they rest on.
pub(super) async fn plans<'a>(
    service: &Service,
    world: &'a World,
    request: &Request,
) -> Result<(Vec<Plan>, QuoteSet<'a>), Refusal> {
    let registry = &*world.registry;
    let mut known = QuoteSet::nothing(registry);
    // Answers change which amounts the hops behind are asked about, so each round settles one hop at least.
    for _ in 0..=planner::MAX_HOPS {
        let seen = planner::World { registry, facts: &world.facts, quotes: &known };
        let outcome = plan(&world.graph, seen, request);
        if !known.complete(&service.quoter, &service.nodes).await {
            return outcome.map(|plans| (plans, known)).map_err(|reason| errors::no_route(&reason));
        }
    }
    Err(errors::no_route(&planner::NoRoute::NoQuote("LayerZero".to_owned())))
}

/// The kinds of bridges that are allowed; those of the interface that do not exist here are none of ours.
fn bridges(body: &Body) -> Result<Option<Vec<BridgeKind>>, Refusal> {
    const OTHERS: [&str; 6] = ["AXELAR", "CCTP", "HYPERLANE", "GO_FAST", "STARGATE", "EUREKA"];
    let names = body.texts("bridges")?;
    if names.is_empty() {
        return Ok(None);
    }
    let mut kinds = Vec::new();
    for name in &names {
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
