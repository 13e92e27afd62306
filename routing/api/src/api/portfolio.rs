//! What an account has on all chains of Initia, in the form that Initia's wallet widget reads (its `minityUrl`).
//!
//! # Invariants
//!
//! * Only nodes of the registry's chains are asked, and not even these about a chain that this process indexes; at most [`AT_ONCE`] at once for a client, each within the time of a query.
//! * Balances of the chain that is indexed here are sent again after movements of the account.
//! * A chain that does not answer sends an error and no balances: what is unknown is never shown as nothing. It never ends
//!   the stream, nor another chain.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chain::{Account, U256};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use planner::usd;
use registry::{Chain, ChainRef, Registry};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::Serialize;
use tokio::time::timeout;
use tracker::Tracker;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param};
use web::event::{Event, EventStream};
use web::http_error::HttpError;
use web::openapi::schema::{self, Object};
use web::reply::Reply;

use super::{CATALOGUE, balances, json, pointed};
use crate::errors;
use crate::local_index::LocalIndex;
use crate::meter;
use crate::service::{Service, World};

/// Chains that are asked at once for one client.
const AT_ONCE: usize = 8;

/// Movements after which balances are sent once.
const CHANGES_AT_ONCE: usize = 1024;

const ADDRESS: Param = Param::path("address", "The account: bech32 or hex.");

const NAME: Param = Param::path("name", "The name of a chain, as `/v1/supported-chains` has it.");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    get(
        "/v1/chain/all/{address}",
        "What an account has on each chain of Initia, as server-sent events without a name: one of the type `balances` and one \
         of the type `positions` a chain, or one of the type `error` with the reason. The stream stays open.",
        &[ADDRESS],
        schema::of::<Message<'_>>(),
        Handler::Stream(all),
    ),
    get(
        "/v1/chain/{name}/{address}/balances",
        "What an account has on a chain; 503 if no node of it answers.",
        &[NAME, ADDRESS],
        schema::of::<Vec<Balance>>(),
        Handler::Async(of_chain),
    ),
    get(
        "/v1/chain/{name}/{address}/positions",
        "Always empty: no protocol is read.",
        &[NAME, ADDRESS],
        schema::of::<Vec<Position>>(),
        Handler::Sync(positions),
    ),
    get(
        "/v1/supported-chains",
        "The names of the chains of Initia in the registry.",
        &[],
        schema::of::<Vec<String>>(),
        Handler::Sync(supported),
    ),
    get(
        "/v1/prices",
        "Symbols of tokens with their prices in US dollars, where one is known.",
        &[],
        schema::of::<Vec<Price>>(),
        Handler::Sync(prices),
    ),
];

const fn get(
    path: &'static str,
    summary: &'static str,
    params: &'static [Param],
    response: &'static dyn Object,
    handler: Handler<Service>,
) -> Endpoint<Service> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Portfolio",
        summary,
        params,
        response,
        handler,
        cache: CATALOGUE,
    }
}

/// What a chain says of an account: `balances`, `positions` or `error`. A later message replaces an earlier one of its chain
/// and type.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "portfolio.Message")]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    r#type: &'static str,
    /// The chain's name.
    chain: &'a str,
    chain_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Balance>")]
    balances: Option<Vec<Balance>>,
    /// There are none: no protocol is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Position>")]
    positions: Option<Vec<Position>>,
    /// Why the balances are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    error: Option<String>,
}

/// A balance that is not zero: `asset`, of a token of the registry, or `unknown`, of another one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "portfolio.Balance")]
#[serde(rename_all = "camelCase")]
struct Balance {
    r#type: &'static str,
    denom: String,
    /// Base units.
    amount: String,
    #[serde(flatten)]
    known: Option<Known>,
}

/// What the registry says of a token, and the balance in whole tokens.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "camelCase")]
struct Known {
    symbol: String,
    /// US dollars; absent without a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    value: Option<f64>,
    /// Whole tokens, rounded.
    formatted_amount: f64,
    decimals: u8,
}

/// None is ever read.
type Position = serde_json::Map<String, serde_json::Value>;

/// A symbol and its price.
#[derive(Serialize)]
struct Price(String, f64);

impl JsonSchema for Price {
    fn schema_name() -> Cow<'static, str> {
        "portfolio.Price".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({ "type": "array", "items": {}, "minItems": 2, "maxItems": 2, "description": "A symbol and its price." })
    }
}

/// Where the balances of an account are from: the index of this process, or the nodes of each chain.
#[derive(Clone)]
struct Sources {
    local: Option<Arc<dyn LocalIndex>>,
    tracker: Arc<Tracker>,
    limit: Duration,
}

impl Sources {
    fn of(service: &Service) -> Self {
        let (local, tracker) = (service.local.clone(), Arc::clone(service.tracker()));
        Self { local, tracker, limit: service.config.query_timeout }
    }

    /// What the account has on a chain, by denom, or the reason why that is unknown.
    async fn balances(&self, chain: &Chain, account: Account) -> Result<Vec<(String, U256)>, String> {
        if let Some(known) = self.local.as_ref().and_then(|local| local.balances(&chain.id, account)) {
            return Ok(known);
        }
        let (address, limit) = (account.to_bech32(&chain.bech32_prefix), self.limit);
        let queried = timeout(limit, balances::all_of(self.tracker.clients(), chain, &address)).await;
        let outcome = match queried {
            Ok(Ok((all, true))) => Ok(all),
            Ok(Ok((all, false))) => Err(format!(
                "the account has over {} balances on chain `{}`, more than are read",
                all.len(),
                chain.id
            )),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(format!("chain `{}` did not answer within {limit:?}", chain.id)),
        };
        meter::count_balances(outcome.is_ok());
        outcome
    }

    /// An item after movements of the account on a chain that is indexed here.
    fn changes(&self, chain: &Chain, account: Account) -> Option<BoxStream<'static, ()>> {
        self.local.as_ref()?.changes(&chain.id, account)
    }
}

/// The chains of Initia, where an address is the same account, by their names in lower case; one whose name another chain
/// has by its id.
fn chains(registry: &Registry) -> Vec<(String, ChainRef)> {
    let mut taken = BTreeSet::new();
    let of_initia = registry.chains().filter(|(_, chain)| chain.initia);
    let named = of_initia.map(|(reference, chain)| {
        let name = chain.name.to_lowercase();
        let name = if taken.insert(name.clone()) { name } else { chain.id.to_lowercase() };
        (name, reference)
    });
    named.collect()
}

/// The account of a request.
fn account(registry: &Registry, call: &Call<'_>) -> Result<Account, HttpError> {
    let text = call.text("address");
    let prefixes: BTreeSet<&str> = registry
        .chains()
        .filter(|(_, chain)| chain.initia)
        .map(|(_, chain)| chain.bech32_prefix.as_str())
        .collect();
    let parsed = prefixes.iter().find_map(|prefix| Account::parse(text, prefix));
    parsed.ok_or_else(|| {
        let shown = chain::truncated(text, 80);
        errors::invalid("address", &format!("`{shown}` is no bech32 or hex address of a chain of Initia"))
    })
}

fn chain_of(registry: &Registry, call: &Call<'_>) -> Result<ChainRef, HttpError> {
    let name = call.text("name").to_lowercase();
    let found = chains(registry).into_iter().find(|(other, _)| *other == name);
    found.map(|(_, chain)| chain).ok_or_else(|| {
        let shown = chain::truncated(&name, 80);
        HttpError::not_found(format!("no chain of Initia in the registry has the name `{shown}`"))
    })
}

fn all(service: &Service, call: &Call<'_>) -> Result<EventStream, HttpError> {
    let world = service.world();
    let account = account(&world.registry, call)?;
    let sources = Sources::of(service);
    // Before the balances are read, so that no movement is missed.
    let changes = chains(&world.registry).into_iter().filter_map(|(name, reference)| {
        let changes = sources.changes(&world.registry[reference], account)?;
        let (world, sources) = (world.clone(), sources.clone());
        Some(changes.ready_chunks(CHANGES_AT_ONCE).then(move |_| {
            let (world, sources, name) = (world.clone(), sources.clone(), name.clone());
            async move { messages(&world, &sources, &name, reference, account).await }
        }))
    });
    let again = stream::select_all(changes.map(futures_util::StreamExt::boxed).collect::<Vec<_>>());
    let queries = stream::iter(chains(&world.registry)).map(move |(name, reference)| {
        let (world, sources) = (world.clone(), sources.clone());
        async move { messages(&world, &sources, &name, reference, account).await }
    });
    // A client does not connect again to a server that has closed the stream.
    let first = queries.buffer_unordered(AT_ONCE).chain(stream::pending());
    Ok(stream::select(first, again).flat_map(stream::iter).boxed())
}

async fn messages(
    world: &World,
    sources: &Sources,
    name: &str,
    reference: ChainRef,
    account: Account,
) -> Vec<Event> {
    let Chain { id, .. } = &world.registry[reference];
    let of =
        |r#type| Message { r#type, chain: name, chain_id: id, balances: None, positions: None, error: None };
    let messages = match sources.balances(&world.registry[reference], account).await {
        Ok(amounts) => vec![
            Message { balances: Some(shown(world, reference, amounts)), ..of("balances") },
            Message { positions: Some(Vec::new()), ..of("positions") },
        ],
        Err(error) => vec![Message { error: Some(error), ..of("error") }],
    };
    messages
        .iter()
        .filter_map(|message| serde_json::to_vec(message).ok())
        .map(|it| Event::unnamed(&it))
        .collect()
}

fn of_chain<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let world = service.world();
        let account = account(&world.registry, call)?;
        let reference = chain_of(&world.registry, call)?;
        let amounts = Sources::of(service).balances(&world.registry[reference], account).await;
        json(&shown(&world, reference, amounts.map_err(HttpError::unavailable)?))
    })
}

fn positions(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let world = service.world();
    account(&world.registry, call)?;
    chain_of(&world.registry, call)?;
    json(&Vec::<Position>::new())
}

fn supported(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let names = chains(&service.world().registry).into_iter().map(|(name, _)| name);
    json(&names.collect::<Vec<_>>())
}

/// One price a symbol: that of the first asset with it.
fn prices(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let World { registry, facts, .. } = service.world();
    let mut taken = BTreeSet::new();
    let priced = registry.assets().filter(|(_, asset)| registry[asset.chain].initia);
    let priced = priced.filter_map(|(reference, asset)| {
        let price: f64 = usd::price(&registry, &facts, reference)?.parse().ok()?;
        taken.insert(asset.symbol.clone()).then(|| Price(asset.symbol.clone(), price))
    });
    json(&priced.collect::<Vec<_>>())
}

/// The balances that are not zero.
fn shown(world: &World, chain: ChainRef, amounts: Vec<(String, U256)>) -> Vec<Balance> {
    let owned = amounts.into_iter().filter(|(_, amount)| !amount.is_zero());
    owned.map(|(denom, amount)| balance(world, chain, denom, amount)).collect()
}

fn balance(world: &World, chain: ChainRef, denom: String, amount: U256) -> Balance {
    let (registry, facts) = (&*world.registry, &*world.facts);
    let amount = amount.to_string();
    let known = registry.asset(chain, &denom).map(|reference| {
        let asset = &registry[reference];
        // Digits and a point are a number.
        let formatted_amount: f64 = pointed(&amount, asset.decimals).parse().unwrap_or_default();
        let price: Option<f64> = usd::price(registry, facts, reference).and_then(|price| price.parse().ok());
        let value = price.map(|price| price * formatted_amount);
        Known { symbol: asset.symbol.clone(), value, formatted_amount, decimals: asset.decimals }
    });
    Balance { r#type: if known.is_some() { "asset" } else { "unknown" }, denom, amount, known }
}
