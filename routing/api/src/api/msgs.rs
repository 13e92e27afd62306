//! Endpoint for the transactions of a route, ready to sign.
//!
//! A route in a request is untrusted: the service plans it again, and the result must be the same.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use messages::{BuildRequest, BuiltTxs, SignedHook, Tx};
use planner::{Operation, Plan, Request, operations, same_route};
use registry::Registry;
use serde::Serialize;
use serde_json::Value;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::fees::{Fee, fees};
use super::json;
use super::route::{self, Asked};
use super::wire::WireMsg;
use crate::body::{Body, wrong};
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
        params: &[Param::Body(&REQUEST)],
        response: &RESPONSE,
        handler: Handler::Later(msgs),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/msgs_direct",
        tag: "Fungible",
        summary: "A route and its transactions at once.",
        params: &[Param::Body(&DIRECT)],
        response: &DIRECT_RESPONSE,
        handler: Handler::Later(msgs_direct),
        cache: Freshness::LIST,
    },
];

static REQUEST: Schema = Schema {
    name: "fungible.MsgsRequest",
    doc: "A route, and who sends and receives.",
    fields: &[
        Field::new("amount_in", Kind::String, "As in the route."),
        Field::new("amount_out", Kind::String, "As in the route."),
        Field::new("source_asset_denom", Kind::String, "As in the route."),
        Field::new("source_asset_chain_id", Kind::String, "As in the route."),
        Field::new("dest_asset_denom", Kind::String, "As in the route."),
        Field::new("dest_asset_chain_id", Kind::String, "As in the route."),
        Field::new(
            "address_list",
            Kind::Array(&Kind::String),
            "One for each of the route's `required_chain_addresses`, or of its `chain_ids`: first the signer, last the \
             receiver.",
        ),
        Field::new("operations", Kind::Array(&Kind::Free), "The route's."),
        Field::optional("slippage_tolerance_percent", Kind::String, "0 to 100, decimal; 1."),
        Field::optional("timeout_seconds", Kind::String, "For IBC transfers, 1 to 86400; 300."),
        Field::optional(
            "signed_op_hook",
            Kind::Free,
            "`signer`, and `hook`: the signed transaction in base64.",
        ),
    ],
};

static DIRECT: Schema = Schema {
    name: "fungible.MsgsDirectRequest",
    doc: "The members of fungible.RouteRequest and of fungible.MsgsRequest, with addresses by chain.",
    fields: &[
        Field::new("amount_in", Kind::String, "As for a route; so are the other members."),
        Field::new("chain_ids_to_addresses", Kind::Free, "The user's address by chain id."),
    ],
};

static RESPONSE: Schema =
    Schema { name: "fungible.MsgsResponse", doc: "Transactions to sign, in order.", fields: MSGS_FIELDS };

static DIRECT_RESPONSE: Schema = Schema {
    name: "fungible.MsgsDirectResponse",
    doc: "A route and its transactions: the members of fungible.MsgsResponse, and `route`.",
    fields: &[
        Field::new("txs", Kind::Array(&Kind::Free), "As in fungible.MsgsResponse; so are the other members."),
        Field::new("route", Kind::Object(&route::ROUTE), ""),
    ],
};

const MSGS_FIELDS: &[Field] = &[
    Field::new("msgs", Kind::Array(&Kind::Free), "The old form: one entry for each message."),
    Field::new("txs", Kind::Array(&Kind::Free), "`cosmos_tx` or `evm_tx`, and `operations_indices`."),
    Field::new("min_amount_out", Kind::String, "What arrives at least."),
    Field::new("estimated_fees", Kind::Array(&Kind::Free), "As in the route."),
];

const MEMBERS: &[&str] = &[
    "amount_in",
    "amount_out",
    "estimated_amount_out",
    "source_asset_denom",
    "source_asset_chain_id",
    "dest_asset_denom",
    "dest_asset_chain_id",
    "address_list",
    "operations",
    "slippage_tolerance_percent",
    "timeout_seconds",
    "signed_op_hook",
    "chain_ids_to_affiliates",
    "post_route_handler",
    "enable_gas_warnings",
    "fee_payer_address",
    "client_id",
];

/// Seconds until an IBC transfer may be refunded, if the client does not say; and the most that it may say.
const TIMEOUT_SECONDS: u64 = 300;
const MAX_TIMEOUT_SECONDS: u64 = 86_400;
/// Skip's default.
const SLIPPAGE_PERCENT: &str = "1";

#[derive(Serialize)]
struct Answer<'a> {
    msgs: Vec<OldMsg<'a>>,
    txs: Vec<WireTx<'a>>,
    min_amount_out: String,
    estimated_fees: Vec<Fee<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<route::Answer<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum OldMsg<'a> {
    MultiChainMsg {
        chain_id: &'a str,
        path: Vec<&'a str>,
        #[serde(flatten)]
        msg: WireMsg,
    },
    EvmTx(EvmTx<'a>),
}

#[derive(Serialize)]
struct WireTx<'a> {
    #[serde(flatten)]
    tx: EitherTx<'a>,
    operations_indices: Vec<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::enum_variant_names, reason = "the names of the wire")]
enum EitherTx<'a> {
    CosmosTx { chain_id: &'a str, path: Vec<&'a str>, signer_address: String, msgs: Vec<WireMsg> },
    EvmTx(EvmTx<'a>),
}

#[derive(Serialize, Clone)]
struct EvmTx<'a> {
    chain_id: &'a str,
    to: String,
    value: String,
    data: String,
    required_erc20_approvals: Vec<WireApproval>,
    signer_address: String,
}

#[derive(Serialize, Clone)]
struct WireApproval {
    token_contract: String,
    spender: String,
    amount: String,
}

fn msgs<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, Refusal>> {
    Box::pin(async {
        let body = Body::read(call, &[MEMBERS, route::WITHOUT_EFFECT].concat())?;
        let mut world = service.world();
        let asked = Asked::read(&body, &world.registry, true)?;
        let addresses = body.texts("address_list")?;
        let echoed = echoed(&body)?;
        let signed_hook = signed_hook(&body)?;
        world.facts = service.with_contract(&world, asked.request.to).await;
        let (plan, known) = planned_again(service, &world, asked.request, &echoed).await?;
        let made = make(&world, &body, &plan, &addresses, signed_hook.as_ref())?;
        json(&answer(&world, &known, &plan, made, None))
    })
}

fn msgs_direct<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, Refusal>> {
    Box::pin(async {
        let more = ["chain_ids_to_addresses", "allow_multi_tx", "is_op_withdraw", "bridges"];
        let body = Body::read(call, &[MEMBERS, route::WITHOUT_EFFECT, &more].concat())?;
        let world = service.world();
        let asked = Asked::read(&body, &world.registry, false)?;
        let (plans, known) = route::plans(service, &world, &asked.request).await?;
        let plan = &plans[0];
        let addresses = addresses_of(&body, &world.registry, plan)?;
        let made = make(&world, &body, plan, &addresses, None)?;
        let route = asked.answer(&world, &known, &plans);
        json(&answer(&world, &known, plan, made, Some(route)))
    })
}

/// The plan that the client was given, found again. The flags of the route request are not sent with the messages', so
/// every plan that could have been given is compared.
async fn planned_again<'a>(
    service: &Service,
    world: &'a World,
    request: Request,
    echoed: &[Operation],
) -> Result<(Plan, QuoteSet<'a>), Refusal> {
    let withdraw = Request { op_withdraw: true, ..request.clone() };
    let several = Request { multi_tx: true, ..request.clone() };
    let mut refusal = None;
    for request in [request, withdraw, several] {
        let (plans, known) = match route::plans(service, world, &request).await {
            Ok(found) => found,
            Err(no_route) => {
                refusal.get_or_insert(no_route);
                continue;
            }
        };
        let seen = planner::World { registry: &world.registry, facts: &world.facts, quotes: &known };
        for plan in plans {
            match same_route(&operations(seen, &plan), echoed) {
                Ok(()) => return Ok((plan, known)),
                Err(mismatch) => {
                    let message = format!("invalid operations: {mismatch}; ask for the route again");
                    // The best plan of the plain request gives the most helpful mismatch.
                    refusal.get_or_insert_with(|| Refusal::bad_request(message));
                }
            }
        }
    }
    Err(refusal.unwrap_or_else(|| errors::internal("no plan and no reason")))
}

fn echoed(body: &Body) -> Result<Vec<Operation>, Refusal> {
    let value = body.value("operations").ok_or_else(|| errors::invalid("operations", "it is missing"))?;
    let Value::Array(items) = value else { return Err(wrong("operations", value, "the route's list")) };
    if items.is_empty() || items.len() > planner::MAX_HOPS {
        return Err(errors::invalid(
            "operations",
            &format!("{} entries, must be those of the route", items.len()),
        ));
    }
    let read = |(index, item): (usize, &Value)| {
        serde_json::from_value(item.clone())
            .map_err(|error| errors::invalid(&format!("operations[{index}]"), &error.to_string()))
    };
    items.iter().enumerate().map(read).collect()
}

fn signed_hook(body: &Body) -> Result<Option<SignedHook>, Refusal> {
    let Some(hook) = body.object("signed_op_hook")? else { return Ok(None) };
    let text = |name: &str| match hook.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(wrong(&format!("signed_op_hook.{name}"), other.unwrap_or(&Value::Null), "a string")),
    };
    Ok(Some(SignedHook { signer: text("signer")?, hook: text("hook")? }))
}

/// The addresses that a plan needs, out of those that the client offers.
fn addresses_of(body: &Body, registry: &Registry, plan: &Plan) -> Result<Vec<String>, Refusal> {
    let name = "chain_ids_to_addresses";
    let offered = body.object(name)?.ok_or_else(|| errors::invalid(name, "it is missing"))?;
    let of = |chain| {
        let offer = offered.iter().find(|(key, _)| super::chain_by_key(registry, key) == Some(chain));
        match offer {
            Some((_, Value::String(address))) => Ok(address.clone()),
            Some((key, other)) => Err(wrong(&format!("{name}.{key}"), other, "a string")),
            None => Err(errors::invalid(name, &format!("no address for chain `{}`", registry[chain].id))),
        }
    };
    plan.required_chains(registry).into_iter().map(of).collect()
}

fn make(
    world: &World,
    body: &Body,
    plan: &Plan,
    addresses: &[String],
    signed_hook: Option<&SignedHook>,
) -> Result<BuiltTxs, Refusal> {
    for unsupported in ["post_route_handler"] {
        if let Some(value) = body.value(unsupported) {
            return Err(wrong(unsupported, value, "left out: it is not supported"));
        }
    }
    let timeout_seconds = body.number("timeout_seconds")?.unwrap_or(TIMEOUT_SECONDS);
    if !(1..=MAX_TIMEOUT_SECONDS).contains(&timeout_seconds) {
        let why = format!("{timeout_seconds} must be 1 to {MAX_TIMEOUT_SECONDS}");
        return Err(errors::invalid("timeout_seconds", &why));
    }
    let slippage = body.value("slippage_tolerance_percent").map(|value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(wrong("slippage_tolerance_percent", other, "a decimal number in a string, 0 to 100")),
    });
    let slippage = slippage.transpose()?.unwrap_or_else(|| SLIPPAGE_PERCENT.to_owned());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(errors::internal)?;
    let ask = BuildRequest {
        registry: &world.registry,
        facts: &world.facts,
        plan,
        addresses,
        now_nanos: u64::try_from(now.as_nanos()).map_err(errors::internal)?,
        timeout_seconds,
        slippage_percent: &slippage,
        signed_hook,
    };
    messages::transactions(&ask).map_err(|refused| Refusal::bad_request(refused.to_string()))
}

fn answer<'a>(
    world: &'a World,
    known: &QuoteSet<'_>,
    plan: &Plan,
    made: BuiltTxs,
    route: Option<route::Answer<'a>>,
) -> Answer<'a> {
    let registry = &*world.registry;
    let seen = planner::World { registry, facts: &world.facts, quotes: known };
    let operations = operations(seen, plan);
    let (mut msgs, mut txs) = (Vec::new(), Vec::new());
    for (index, tx) in made.txs.into_iter().enumerate() {
        let of_tx = operations.iter().enumerate().filter(|(_, operation)| operation.tx_index == index);
        let operations_indices = of_tx.map(|(index, _)| index).collect();
        let tx = wire(registry, tx);
        match &tx {
            EitherTx::CosmosTx { chain_id, path, msgs: several, .. } => {
                let old =
                    |msg: &WireMsg| OldMsg::MultiChainMsg { chain_id, path: path.clone(), msg: msg.clone() };
                msgs.extend(several.iter().map(old));
            }
            EitherTx::EvmTx(tx) => msgs.push(OldMsg::EvmTx(tx.clone())),
        }
        txs.push(WireTx { tx, operations_indices });
    }
    let estimated_fees = fees(registry, plan);
    Answer { msgs, txs, min_amount_out: made.min_amount_out.to_string(), estimated_fees, route }
}

fn wire(registry: &Registry, tx: Tx) -> EitherTx<'_> {
    match tx {
        Tx::Cosmos { chain, path, signer, msgs, .. } => EitherTx::CosmosTx {
            chain_id: &registry[chain].id,
            path: path.into_iter().map(|chain| registry[chain].id.as_str()).collect(),
            signer_address: signer,
            msgs: msgs.into_iter().map(WireMsg::from).collect(),
        },
        Tx::Evm { chain, to, value, data, approvals, signer, .. } => EitherTx::EvmTx(EvmTx {
            chain_id: &registry[chain].id,
            to,
            value: value.to_string(),
            data,
            required_erc20_approvals: approvals
                .into_iter()
                .map(|approval| WireApproval {
                    token_contract: approval.token,
                    spender: approval.spender,
                    amount: approval.amount.to_string(),
                })
                .collect(),
            signer_address: signer,
        }),
    }
}
