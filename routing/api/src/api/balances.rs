//! Account balances, queried from the nodes of their chains.
//!
//! If a chain does not answer, only its own balances are missing: the wallet widget queries all chains at once and
//! times out after 10 s.

use std::collections::BTreeMap;

use chain::U256;
use futures_util::future::{BoxFuture, join_all};
use planner::usd;
use registry::{AssetRef, Chain, ChainKind, ChainRef, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;
use tracker::ChainClients;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::json;
use crate::body::{self, check_length};
use crate::errors;
use crate::meter;
use crate::refresh::{self, escaped, text};
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/v2/info/balances",
    tag: "Info",
    summary: "Balances of accounts.",
    params: &[Param::Body(schema::of::<BalancesRequest>())],
    response: schema::of::<BalancesResponse<'_>>(),
    handler: Handler::Async(balances),
    cache: MaxAge::LIST,
}];

/// Accounts by chain id.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "info.BalancesRequest")]
struct BalancesRequest {
    /// None, if it is absent.
    chains: Option<BTreeMap<String, AccountRequest>>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct AccountRequest {
    address: String,
    /// All that are not zero, if it is absent or empty.
    denoms: Option<Vec<String>>,
}

/// Balances by chain id. A chain that did not answer has none.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "info.BalancesResponse")]
struct BalancesResponse<'a> {
    chains: BTreeMap<&'a str, Account<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Account<'a> {
    address: &'a str,
    /// By denomination.
    denoms: BTreeMap<String, Entry>,
}

/// A balance.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Entry {
    /// Base units.
    amount: String,
    decimals: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EntryError>,
    formatted_amount: String,
    price: Option<String>,
    price_usd: Option<String>,
    value_usd: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct EntryError {
    message: String,
}

/// Denominations that are named in one request.
const MAX_DENOMS: usize = 1024;
/// Pages of an account's balances that are read: 1,000 balances each.
const MAX_PAGES: usize = 3;

/// One chain's part of a request.
struct AccountQuery<'a> {
    chain: ChainRef,
    address: &'a str,
    /// In the client's spelling; empty selects all.
    denoms: &'a [String],
}

fn balances<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let request: BalancesRequest = body::read(&service.config, call, &[])?;
        let accounts = request.chains.unwrap_or_default();
        check_length("chains", accounts.len())?;
        let world = service.world();
        let registry = &*world.registry;
        // A chain that the registry does not have is skipped.
        let queries = accounts.iter().filter_map(|(id, AccountRequest { address, denoms })| {
            let chain = super::chain_by_key(registry, id)?;
            Some(AccountQuery { chain, address, denoms: denoms.as_deref().unwrap_or_default() })
        });
        let queries: Vec<_> = queries.collect();
        if queries.iter().map(|query| query.denoms.len()).sum::<usize>() > MAX_DENOMS {
            return Err(errors::invalid("chains", &format!("it names over {MAX_DENOMS} denoms")));
        }
        let chains = queries.iter().map(async |query| {
            let denoms = entries(service, &world, query).await;
            (registry[query.chain].id.as_str(), Account { address: query.address, denoms })
        });
        json(&BalancesResponse { chains: join_all(chains).await.into_iter().collect() })
    })
}

/// Balances by denomination; a requested denomination without an answer has an error.
async fn entries(service: &Service, world: &World, query: &AccountQuery<'_>) -> BTreeMap<String, Entry> {
    let registry = &*world.registry;
    let chain = &registry[query.chain];
    let limit = service.config.query_timeout;
    let balances = async {
        match chain.kind {
            ChainKind::Cosmos => of_cosmos(service, chain, query).await,
            ChainKind::Evm => of_evm(service, registry, query).await,
        }
    };
    // One limit for all pages, tokens and nodes.
    let outcome = timeout(limit, balances).await;
    let outcome =
        outcome.unwrap_or_else(|_| Err(format!("chain `{}` did not answer within {limit:?}", chain.id)));
    meter::count_balances(outcome.is_ok());
    let amounts = outcome.unwrap_or_else(|error| {
        // No line of a higher level: a client asks for all chains at once, and some never answer.
        tracing::debug!(chain = chain.id, error, "balance query failed");
        query.denoms.iter().map(|denom| (denom.clone(), Err(error.clone()))).collect()
    });
    let entry = |(denom, amount): (String, _)| {
        let entry = entry(world, registry.asset(query.chain, &denom), amount);
        (denom, entry)
    };
    amounts.into_iter().map(entry).collect()
}

type Amounts = Vec<(String, Result<U256, String>)>;

/// A cosmos account: all of its balances; if there are too many, the named ones one by one.
async fn of_cosmos(service: &Service, chain: &Chain, query: &AccountQuery<'_>) -> Result<Amounts, String> {
    let account = chain::Account::parse(query.address, &chain.bech32_prefix)
        .ok_or_else(|| format!("`{}` is no address of chain `{}`", query.address, chain.id))?;
    let address = account.to_bech32(&chain.bech32_prefix);
    let (all, whole) = all_of(service.clients(), chain, &address).await?;
    if query.denoms.is_empty() {
        let owned = all.into_iter().filter(|(_, amount)| !amount.is_zero());
        return Ok(owned.map(|(denom, amount)| (denom, Ok(amount))).collect());
    }
    let named = query.denoms.iter().map(async |denom| {
        let found = all.iter().find(|(other, _)| same(other, denom)).map(|(_, amount)| *amount);
        let amount = match found {
            Some(amount) => Ok(amount),
            None if whole => Ok(U256::ZERO),
            None => one_of(service, chain, &address, denom).await,
        };
        (denom.clone(), amount)
    });
    Ok(join_all(named).await)
}

/// Compares without case: the case of an address is only a checksum.
fn same(denom: &str, requested: &str) -> bool {
    denom == requested || (denom.starts_with("evm/") && denom.eq_ignore_ascii_case(requested))
}

/// The account's balances, and whether the list is complete.
pub(super) async fn all_of(
    clients: &ChainClients,
    chain: &Chain,
    address: &str,
) -> Result<(Vec<(String, U256)>, bool), String> {
    let first = format!("/cosmos/bank/v1beta1/balances/{address}?pagination.limit=1000");
    let (mut all, mut path) = (Vec::new(), first.clone());
    for _ in 0..MAX_PAGES {
        let answer = refresh::get(clients, chain, &path).await;
        let Some(answer) = answer.map_err(|error| not_given(chain, &error))? else {
            return Ok((all, true));
        };
        let coins = answer["balances"].as_array().ok_or_else(|| format!("{path}: no balances"))?;
        for coin in coins {
            all.push((text(coin, "/denom")?, amount(coin)?));
        }
        match answer.pointer("/pagination/next_key").and_then(Value::as_str).filter(|key| !key.is_empty()) {
            None => return Ok((all, true)),
            Some(key) => path = format!("{first}&pagination.key={}", escaped(key)),
        }
    }
    Ok((all, false))
}

async fn one_of(service: &Service, chain: &Chain, address: &str, denom: &str) -> Result<U256, String> {
    let path = format!("/cosmos/bank/v1beta1/balances/{address}/by_denom?denom={}", escaped(denom));
    let answer =
        refresh::get(service.clients(), chain, &path).await.map_err(|error| not_given(chain, &error))?;
    answer.map_or(Ok(U256::ZERO), |answer| amount(&answer["balance"]))
}

fn amount(coin: &Value) -> Result<U256, String> {
    let amount = text(coin, "/amount")?;
    U256::from_str_radix(&amount, 10).map_err(|_| "the node's balance is no amount".to_owned())
}

/// An EVM account: the coin and every ERC-20 of the registry, or the named ones.
async fn of_evm(service: &Service, registry: &Registry, query: &AccountQuery<'_>) -> Result<Amounts, String> {
    let chain = &registry[query.chain];
    let holder: [u8; 20] = evm_address(query.address)
        .ok_or_else(|| format!("`{}` is no address of chain `{}`", query.address, chain.id))?;
    let clients = service.clients().of(chain);
    let evm = clients.evm().map_err(|error| error.to_string())?;
    let here = registry.assets().filter(|(_, asset)| asset.chain == query.chain);
    let denoms = match query.denoms {
        [] => here.map(|(_, asset)| asset.denom.clone()).collect(),
        named => named.to_vec(),
    };
    let balances = denoms.into_iter().map(async |denom| {
        let balance = evm_balance(evm, chain, holder, &denom).await;
        (denom, balance)
    });
    let mut balances: Amounts = join_all(balances).await;
    if query.denoms.is_empty() {
        balances.retain(|(_, amount)| amount.as_ref().is_ok_and(|amount| !amount.is_zero()));
    }
    Ok(balances)
}

async fn evm_balance(evm: &node::Evm, chain: &Chain, holder: [u8; 20], denom: &str) -> Result<U256, String> {
    let zero =
        denom.strip_prefix("0x").is_some_and(|hex| hex.len() == 40 && hex.bytes().all(|byte| byte == b'0'));
    if zero || chain.native.as_ref().is_some_and(|coin| coin.denom == denom) {
        return evm.balance(holder).await.map_err(|error| not_given(chain, &error));
    }
    let contract =
        evm_address(denom).ok_or_else(|| format!("`{denom}` is no token of chain `{}`", chain.id))?;
    let answer = evm.call(contract, &chain::evm::abi::balance_of(holder), None).await;
    let answer = answer.map_err(|error| not_given(chain, &error))?;
    chain::evm::abi::read_uint(&answer).ok_or_else(|| format!("`{denom}` gives no balance"))
}

/// The message for the client of a node's failure, which has the node's address and text: those are for the log.
fn not_given(chain: &Chain, error: &impl std::fmt::Display) -> String {
    tracing::debug!(chain = chain.id, %error, "balance query failed");
    format!("no node of chain `{}` gave the balance", chain.id)
}

fn evm_address(text: &str) -> Option<[u8; 20]> {
    chain::Account::from_hex_literal(text)?.as_bytes().try_into().ok()
}

fn entry(world: &World, asset: Option<AssetRef>, amount: Result<U256, String>) -> Entry {
    let (registry, facts) = (&*world.registry, &*world.facts);
    let about = asset.map(|asset| &registry[asset]);
    let decimals = about.map(|asset| asset.decimals);
    let (amount, error) = match amount {
        Ok(amount) => (amount, None),
        Err(message) => (U256::ZERO, Some(EntryError { message })),
    };
    let price = asset.and_then(|asset| usd::price(registry, facts, asset)).map(str::to_owned);
    Entry {
        amount: amount.to_string(),
        decimals,
        formatted_amount: super::pointed(&amount.to_string(), decimals.unwrap_or(0)),
        price: price.clone(),
        price_usd: price,
        value_usd: asset.and_then(|asset| usd::of(registry, facts, asset, amount)),
        error,
    }
}
