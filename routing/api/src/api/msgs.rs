//! Endpoint for the transactions of a route, ready to sign.
//!
//! A route in a request is untrusted: the service plans it again, and the result must be the same.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use messages::slippage::Slippage;
use messages::{BuildRequest, BuiltTxs, SignedHook};
use planner::{Operation, Plan, Request, operations, same_route};
use registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::amounts::{self, Planned, RequestedAmount};
use super::json;
use super::msgs_response::MsgsResponse;
use super::price_warning;
use super::route::{self, RouteOptions, RouteQuery};
use super::swap_limits::{self, SLIPPAGE_PERCENT};
use super::swap_options::{self, AllowedVenue, SmartSwapOptions, SwapOptions};
use super::wire::Free;
use crate::body::{
    self, Amount, DENOM, Decimal, Expected, NoAffiliates, NoFee, Object, Text, TimeoutSeconds, Unsupported,
    check_length,
};
use crate::errors;
use crate::quotes::QuoteSet;
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/msgs",
        tag: "Fungible",
        summary: "The transactions of a route, to be signed and broadcast by the client.",
        params: &[Param::Body(schema::of::<MsgsRequest>())],
        response: schema::of::<MsgsResponse<'_>>(),
        handler: Handler::Async(msgs),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/msgs_direct",
        tag: "Fungible",
        summary: "A route and its transactions at once.",
        params: &[Param::Body(schema::of::<MsgsDirectRequest>())],
        response: schema::of::<MsgsDirectResponse<'_>>(),
        handler: Handler::Async(msgs_direct),
        cache: MaxAge::LIST,
    },
];

/// A route, and the addresses of sender and receiver.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.MsgsRequest")]
struct MsgsRequest {
    /// As in the route.
    amount_in: Amount,
    /// As in the route. A plan that gives less than it, by more than the slippage, is refused.
    amount_out: Option<Expected>,
    /// The same.
    estimated_amount_out: Option<Expected>,
    /// As in the route.
    #[schemars(regex(pattern = DENOM))]
    source_asset_denom: Text,
    /// As in the route.
    source_asset_chain_id: Text,
    /// As in the route.
    #[schemars(regex(pattern = DENOM))]
    dest_asset_denom: Text,
    /// As in the route.
    dest_asset_chain_id: Text,
    /// One for each of the route's `required_chain_addresses`, or of its `chain_ids`: first the signer, last the
    /// receiver.
    #[schemars(required)]
    address_list: Option<Vec<String>>,
    /// The route's.
    #[schemars(with = "Vec<Free>")]
    operations: Vec<Operation>,
    /// 0 to 100, decimal; 1.
    slippage_tolerance_percent: Option<Decimal>,
    /// For IBC transfers, 1 to 86400; 300.
    timeout_seconds: Option<TimeoutSeconds>,
    /// The messages of /op-hook, signed.
    signed_op_hook: Option<SignedOpHook>,
    #[expect(dead_code, reason = "another value does not parse")]
    cumulative_affiliate_fee_bps: Option<NoFee>,
    #[schemars(with = "Option<Free>")]
    #[expect(dead_code, reason = "another value does not parse")]
    chain_ids_to_affiliates: Option<NoAffiliates>,
    /// As for a route.
    allow_unsafe: Option<bool>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a value does not parse")]
    post_route_handler: Option<Unsupported>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct SignedOpHook {
    signer: String,
    /// The signed transaction in base64.
    hook: String,
}

/// The members of fungible.RouteRequest and of fungible.MsgsRequest, with addresses by chain.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.MsgsDirectRequest")]
struct MsgsDirectRequest {
    /// As for a route.
    amount_in: Option<Amount>,
    /// As for a route; beside amount_in, as for messages.
    amount_out: Option<Expected>,
    /// As for messages.
    estimated_amount_out: Option<Expected>,
    /// As for a route.
    #[schemars(regex(pattern = DENOM))]
    source_asset_denom: Text,
    /// As for a route.
    source_asset_chain_id: Text,
    /// As for a route.
    #[schemars(regex(pattern = DENOM))]
    dest_asset_denom: Text,
    /// As for a route.
    dest_asset_chain_id: Text,
    /// As for a route.
    allow_multi_tx: Option<bool>,
    /// As for a route.
    is_op_withdraw: Option<bool>,
    /// As for a route.
    bridges: Option<Vec<String>>,
    /// The user's address by chain id. A value for a chain that the route does not need has no effect, whatever it is.
    chain_ids_to_addresses: BTreeMap<String, serde_json::Value>,
    /// 0 to 100, decimal; 1.
    slippage_tolerance_percent: Option<Decimal>,
    /// For IBC transfers, 1 to 86400; 300.
    timeout_seconds: Option<TimeoutSeconds>,
    /// As for a route.
    allow_unsafe: Option<bool>,
    /// As for a route.
    allow_swaps: Option<bool>,
    /// As for a route.
    swap_venues: Option<Vec<Object<AllowedVenue>>>,
    /// As for a route.
    swap_venue: Option<Object<AllowedVenue>>,
    /// As for a route.
    smart_swap_options: Option<Object<SmartSwapOptions>>,
    #[expect(dead_code, reason = "another value does not parse")]
    cumulative_affiliate_fee_bps: Option<NoFee>,
    #[schemars(with = "Option<Free>")]
    #[expect(dead_code, reason = "another value does not parse")]
    chain_ids_to_affiliates: Option<NoAffiliates>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a value does not parse")]
    post_route_handler: Option<Unsupported>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a value does not parse: the route is planned here")]
    operations: Option<Unsupported>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a value does not parse: addresses are given by chain")]
    address_list: Option<Unsupported>,
    #[schemars(skip)]
    #[expect(dead_code, reason = "a value does not parse: the routes need no hook")]
    signed_op_hook: Option<Unsupported>,
}

/// Members that real clients send and that have no effect here: warnings about gas, and who pays fees on Solana.
const WITHOUT_EFFECT: &[&str] = &["enable_gas_warnings", "fee_payer_address"];

/// Members of a route request that its operations stand for.
const OF_OPERATIONS: &[&str] = &["allow_swaps", "swap_venue", "swap_venues", "smart_swap_options"];

/// Used if the client gives none.
const TIMEOUT_SECONDS: u64 = 300;

/// A route and its transactions: the members of fungible.MsgsResponse, and `route`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.MsgsDirectResponse")]
struct MsgsDirectResponse<'a> {
    #[serde(flatten)]
    msgs: MsgsResponse<'a>,
    route: route::Answer<'a>,
}

fn msgs<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let request: MsgsRequest = body::read(
            &service.config,
            call,
            &[WITHOUT_EFFECT, OF_OPERATIONS, route::WITHOUT_EFFECT].concat(),
        )?;
        let addresses = request.address_list.unwrap_or_default();
        check_length("address_list", addresses.len())?;
        let count = request.operations.len();
        if !(1..=planner::MAX_HOPS).contains(&count) {
            let why = format!("{count} entries, must be those of the route");
            return Err(errors::invalid("operations", &why));
        }
        let mut world = service.world();
        let mut query = RouteQuery::new(
            &world.registry,
            [request.source_asset_denom, request.source_asset_chain_id],
            [request.dest_asset_denom, request.dest_asset_chain_id],
        )?;
        query.request.amount_in = request.amount_in.0;
        world.facts = service.with_contract(&world, query.request.to).await;
        let slippage = request.slippage_tolerance_percent;
        let expected = [request.amount_out, request.estimated_amount_out];
        let (mut plan, quotes) =
            planned_again(service, &world, query.request.clone(), &request.operations, &expected).await?;
        let first = &request.operations[0].amount_in;
        if !first.is_empty() && *first != request.amount_in.0.to_string() {
            let why = format!("it is {}, and that of the first operation {first}", request.amount_in.0);
            return Err(errors::invalid("amount_in", &why));
        }
        price_warning::check(&world, &query.request, &plan, request.allow_unsafe)?;
        let hook = request.signed_op_hook.map(|SignedOpHook { signer, hook }| SignedHook { signer, hook });
        swap_limits::check(&plan, slippage.as_ref(), request.allow_unsafe)?;
        check_expected(expected, &plan, slippage.as_ref())?;
        swap_limits::check_amount_in(&plan, request.amount_in.0, slippage.as_ref())?;
        swap_limits::keep_expected(&mut plan, expected);
        let built = build(&world, &plan, &addresses, request.timeout_seconds, slippage, hook.as_ref())?;
        json(&MsgsResponse::new(&world, &quotes, &plan, built))
    })
}

fn msgs_direct<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let without_effect = [WITHOUT_EFFECT, route::WITHOUT_EFFECT].concat();
        let request: MsgsDirectRequest = body::read(&service.config, call, &without_effect)?;
        check_length("chain_ids_to_addresses", request.chain_ids_to_addresses.len())?;
        let wanted = request.amount_out.and_then(|expected| expected.0).map(Amount);
        let amount = RequestedAmount::of(request.amount_in, wanted.filter(|_| request.amount_in.is_none()))?;
        let world = service.world();
        let mut query = RouteQuery::new(
            &world.registry,
            [request.source_asset_denom, request.source_asset_chain_id],
            [request.dest_asset_denom, request.dest_asset_chain_id],
        )?;
        query.request.op_hook = false;
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
        let plan = &planned.plans[0];
        let addresses = addresses_of(&request.chain_ids_to_addresses, &world.registry, plan)?;
        let (timeout, slippage) = (request.timeout_seconds, request.slippage_tolerance_percent);
        swap_limits::check(plan, slippage.as_ref(), request.allow_unsafe)?;
        check_expected([request.amount_out, request.estimated_amount_out], plan, slippage.as_ref())?;
        let built = build(&world, plan, &addresses, timeout, slippage, None)?;
        let route = query.answer(&world, &planned);
        json(&MsgsDirectResponse { msgs: MsgsResponse::new(&world, &planned.quotes, plan, built), route })
    })
}

/// Plans the client's route again. A messages request lacks the flags of its route request, so the plans without a flag
/// and with each flag are compared.
async fn planned_again<'a>(
    service: &Service,
    world: &'a World,
    request: Request,
    echoed: &[Operation],
    expected: &[Option<Expected>; 2],
) -> Result<(Plan, QuoteSet<'a>), HttpError> {
    let rules = swap_options::rules_of(echoed);
    let wanted = expected.iter().flatten().find_map(|expected| expected.0);
    let is_out = swap_options::sets_amount_out(echoed);
    if is_out && wanted.is_none() {
        return Err(errors::invalid(
            "amount_out",
            "it is missing, and the operations are those of a requested amount",
        ));
    }
    let wanted = wanted.filter(|_| is_out);
    let withdraw = Request { op_withdraw: true, ..request.clone() };
    let several = Request { multi_tx: true, ..request.clone() };
    let mut refusal = None;
    for request in [request, withdraw, several] {
        let found = if let Some(wanted) = wanted {
            let amount = RequestedAmount::Out(wanted);
            amounts::plans(service, world, &request, rules.as_ref(), amount).await
        } else {
            let found = amounts::search(service, world, &request, rules.as_ref()).await;
            found.map_err(|reason| errors::no_route(&reason))
        };
        let Planned { plans, quotes, .. } = match found {
            Ok(found) => found,
            Err(why) => {
                refusal.get_or_insert(why);
                continue;
            }
        };
        let view = planner::World { registry: &world.registry, facts: &world.facts, quotes: &quotes };
        for plan in plans {
            match same_route(&operations(view, &plan), echoed) {
                Ok(()) => return Ok((plan, quotes)),
                Err(mismatch) => {
                    let message = format!("invalid operations: {mismatch}; ask for the route again");
                    // The best plan of the plain request gives the most helpful mismatch.
                    refusal.get_or_insert_with(|| HttpError::bad_request(message));
                }
            }
        }
    }
    Err(refusal.unwrap_or_else(|| errors::internal("no plan and no reason")))
}

/// Refuses a plan that gives less than the client expects (`amount_out`, `estimated_amount_out`), by more than the slippage
/// that it accepts.
fn check_expected(
    expected: [Option<Expected>; 2],
    plan: &Plan,
    slippage: Option<&Decimal>,
) -> Result<(), HttpError> {
    let percent = slippage.map_or(SLIPPAGE_PERCENT, |percent| &percent.0);
    let slippage = Slippage::parse(percent).map_err(|error| HttpError::bad_request(error.to_string()))?;
    let amount = plan.amount_out();
    for (name, expected) in ["amount_out", "estimated_amount_out"].into_iter().zip(expected) {
        if let Some(expected) = expected.and_then(|expected| expected.0)
            && amount < slippage.least(expected)
        {
            let why = format!("it is {expected}, and the route gives {amount}; ask for the route again");
            return Err(errors::invalid(name, &why));
        }
    }
    Ok(())
}

/// Selects the addresses that a plan needs from those of the client.
fn addresses_of(
    offered: &BTreeMap<String, serde_json::Value>,
    registry: &Registry,
    plan: &Plan,
) -> Result<Vec<String>, HttpError> {
    let of = |chain| {
        let offer = offered.iter().find(|(key, _)| super::chain_by_key(registry, key) == Some(chain));
        let Some((key, address)) = offer else {
            let why = format!("no address for chain `{}`", registry[chain].id);
            return Err(errors::invalid("chain_ids_to_addresses", &why));
        };
        let member = || format!("chain_ids_to_addresses.{key}");
        let address = address.as_str().ok_or_else(|| errors::invalid(&member(), "it must be a string"))?;
        Ok(address.to_owned())
    };
    plan.required_chains(registry).into_iter().map(of).collect()
}

fn build(
    world: &World,
    plan: &Plan,
    addresses: &[String],
    timeout: Option<TimeoutSeconds>,
    slippage: Option<Decimal>,
    signed_hook: Option<&SignedHook>,
) -> Result<BuiltTxs, HttpError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(errors::internal)?;
    let request = BuildRequest {
        registry: &world.registry,
        facts: &world.facts,
        plan,
        addresses,
        now_nanos: u64::try_from(now.as_nanos()).map_err(errors::internal)?,
        timeout_seconds: timeout.map_or(TIMEOUT_SECONDS, |timeout| timeout.0),
        slippage_percent: slippage.as_ref().map_or(SLIPPAGE_PERCENT, |percent| &percent.0),
        signed_hook,
    };
    messages::transactions(&request).map_err(|error| HttpError::bad_request(error.to_string()))
}
