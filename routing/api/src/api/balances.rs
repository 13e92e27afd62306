//! Account balances, queried from the nodes of their chains.
//!
//! A chain that does not answer only loses its own balances: the wallet widget queries all chains at once and times out
//! after 10 s (`router-api.md` §5.3).

use std::sync::Arc;

use chain::{Account, U256};
use futures_util::future::{BoxFuture, join_all};
use planner::usd;
use registry::{AssetRef, Chain, ChainKind, ChainRef, Registry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::json;
use crate::body::{Body, wrong};
use crate::errors;
use crate::refresh::escaped;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/v2/info/balances",
    tag: "Info",
    summary: "What accounts have.",
    params: &[Param::Body(&REQUEST)],
    response: &RESPONSE,
    handler: Handler::Later(balances),
    cache: Freshness::LIST,
}];

static REQUEST: Schema = Schema {
    name: "info.BalancesRequest",
    doc: "Accounts by chain id.",
    fields: &[Field::new(
        "chains",
        Kind::Free,
        "By chain id: `address`, and `denoms`; without those, all that are not zero.",
    )],
};

static RESPONSE: Schema = Schema {
    name: "info.BalancesResponse",
    doc: "Balances by chain id. A chain that did not answer has none.",
    fields: &[Field::new(
        "chains",
        Kind::Free,
        "By chain id: `address`, and `denoms` by denomination: `amount`, `decimals`, `formatted_amount`, `price`, \
         `price_usd`, `value_usd`, `error`.",
    )],
};

/// Denominations that are named in one request.
const MAX_DENOMS: usize = 1024;
/// Pages of an account's balances that are read: 1,000 balances each.
const MAX_PAGES: usize = 3;

/// One chain's part of a request.
struct Asked<'a> {
    chain: ChainRef,
    address: &'a str,
    /// As the client spells them; empty is all.
    denoms: Vec<&'a str>,
}

#[derive(Serialize)]
struct Entry {
    amount: String,
    decimals: Option<u8>,
    formatted_amount: String,
    price: Option<String>,
    price_usd: Option<String>,
    value_usd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

#[derive(Serialize)]
struct Fault {
    message: String,
}

fn balances<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, Refusal>> {
    Box::pin(async {
        let body = Body::read(call, &["chains"])?;
        let none = Map::new();
        let world = service.world();
        let registry = &*world.registry;
        let asked = body.object("chains")?.unwrap_or(&none);
        let asked = asked.iter().filter_map(|(id, value)| read(registry, id, value).transpose());
        let asked = asked.collect::<Result<Vec<_>, _>>()?;
        if asked.iter().map(|asked| asked.denoms.len()).sum::<usize>() > MAX_DENOMS {
            return Err(errors::invalid("chains", &format!("it names over {MAX_DENOMS} denoms")));
        }
        let told = asked.iter().map(async |asked| (asked, tell(service, registry, asked).await));
        let mut chains = Map::new();
        for (asked, denoms) in join_all(told).await {
            let chain = &registry[asked.chain];
            let denoms = serde_json::to_value(denoms).map_err(errors::internal)?;
            chains
                .insert(chain.id.clone(), serde_json::json!({ "address": asked.address, "denoms": denoms }));
        }
        json(&serde_json::json!({ "chains": chains }))
    })
}

/// One chain's part; `None` for a chain that the registry does not have.
fn read<'a>(registry: &Registry, id: &str, value: &'a Value) -> Result<Option<Asked<'a>>, Refusal> {
    let Some(chain) = super::chain_by_key(registry, id) else { return Ok(None) };
    let name = format!("chains.{id}");
    let object =
        value.as_object().ok_or_else(|| wrong(&name, value, "an object with `address` and `denoms`"))?;
    let address = match object.get("address") {
        Some(Value::String(address)) => address,
        other => return Err(wrong(&format!("{name}.address"), other.unwrap_or(&Value::Null), "a string")),
    };
    let denoms = match object.get("denoms") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(denoms)) => denoms
            .iter()
            .map(|denom| denom.as_str().ok_or_else(|| wrong(&format!("{name}.denoms"), denom, "a string")))
            .collect::<Result<_, _>>()?,
        Some(other) => {
            return Err(wrong(&format!("{name}.denoms"), other, "a list of strings"));
        }
    };
    Ok(Some(Asked { chain, address, denoms }))
}

/// Balances by denomination; a requested denomination without an answer has an error.
async fn tell(service: &Service, registry: &Registry, asked: &Asked<'_>) -> Map<String, Value> {
    let chain = &registry[asked.chain];
    let limit = service.config.ask;
    let asking = async {
        match chain.kind {
            ChainKind::Cosmos => of_cosmos(service, chain, asked).await,
            ChainKind::Evm => of_evm(service, registry, asked).await,
        }
    };
    // However many pages, tokens and nodes there are.
    let outcome = timeout(limit, asking).await;
    let outcome =
        outcome.unwrap_or_else(|_| Err(format!("chain `{}` did not tell within {limit:?}", chain.id)));
    let mut entries = Map::new();
    let mut put = |denom: &str, amount: Result<U256, String>| {
        let asset = registry.asset(asked.chain, denom);
        if let Ok(entry) = serde_json::to_value(entry(registry, asset, amount)) {
            entries.insert(denom.to_owned(), entry);
        }
    };
    match outcome {
        Ok(amounts) => amounts.into_iter().for_each(|(denom, amount)| put(&denom, amount)),
        Err(error) => {
            tracing::warn!(chain = chain.id, error, "balances were not told");
            asked.denoms.iter().for_each(|denom| put(denom, Err(error.clone())));
        }
    }
    entries
}

type Amounts = Vec<(String, Result<U256, String>)>;

/// A cosmos account: all of its balances, and where that is too many, the named ones one by one.
async fn of_cosmos(service: &Service, chain: &Chain, asked: &Asked<'_>) -> Result<Amounts, String> {
    let account = Account::parse(asked.address, &chain.bech32_prefix)
        .ok_or_else(|| format!("`{}` is no address of chain `{}`", asked.address, chain.id))?;
    let address = account.to_bech32(&chain.bech32_prefix);
    let (all, whole) = all_of(service, chain, &address).await?;
    if asked.denoms.is_empty() {
        return Ok(all
            .into_iter()
            .filter(|(_, amount)| !amount.is_zero())
            .map(|(d, a)| (d, Ok(a)))
            .collect());
    }
    let named = asked.denoms.iter().map(async |denom| {
        let found = all.iter().find(|(other, _)| same(other, denom)).map(|(_, amount)| *amount);
        let amount = match found {
            Some(amount) => Ok(amount),
            None if whole => Ok(U256::ZERO),
            None => one_of(service, chain, &address, denom).await,
        };
        ((*denom).to_owned(), amount)
    });
    Ok(join_all(named).await)
}

/// Checksums have no meaning in a question.
fn same(denom: &str, asked: &str) -> bool {
    denom == asked || (denom.starts_with("evm/") && denom.eq_ignore_ascii_case(asked))
}

#[derive(Deserialize)]
struct Coin {
    denom: String,
    amount: String,
}

impl Coin {
    fn read(self) -> Result<(String, U256), String> {
        let amount =
            U256::from_str_radix(&self.amount, 10).map_err(|_| format!("`{}` is no amount", self.amount))?;
        Ok((self.denom, amount))
    }
}

/// The account's balances, and whether that is all of them.
async fn all_of(
    service: &Service,
    chain: &Chain,
    address: &str,
) -> Result<(Vec<(String, U256)>, bool), String> {
    #[derive(Deserialize)]
    struct Answer {
        balances: Vec<Coin>,
        #[serde(default)]
        pagination: Pagination,
    }
    #[derive(Deserialize, Default)]
    struct Pagination {
        next_key: Option<String>,
    }
    let first = format!("/cosmos/bank/v1beta1/balances/{address}?pagination.limit=1000");
    let (mut all, mut path) = (Vec::new(), first.clone());
    for _ in 0..MAX_PAGES {
        let answer: Option<Answer> = crate::refresh::get(&service.nodes, chain, &path).await?;
        let Some(Answer { balances, pagination }) = answer else { return Ok((all, true)) };
        all.extend(balances.into_iter().map(Coin::read).collect::<Result<Vec<_>, _>>()?);
        match pagination.next_key.filter(|key| !key.is_empty()) {
            None => return Ok((all, true)),
            Some(key) => path = format!("{first}&pagination.key={}", escaped(&key)),
        }
    }
    Ok((all, false))
}

async fn one_of(service: &Service, chain: &Chain, address: &str, denom: &str) -> Result<U256, String> {
    #[derive(Deserialize)]
    struct Answer {
        balance: Coin,
    }
    let path = format!("/cosmos/bank/v1beta1/balances/{address}/by_denom?denom={}", escaped(denom));
    let answer: Option<Answer> = crate::refresh::get(&service.nodes, chain, &path).await?;
    answer.map_or(Ok(U256::ZERO), |answer| answer.balance.read().map(|(_, amount)| amount))
}

/// An EVM account: the coin and every ERC-20 of the registry, or the named ones.
async fn of_evm(service: &Service, registry: &Registry, asked: &Asked<'_>) -> Result<Amounts, String> {
    let chain = &registry[asked.chain];
    let account =
        Account::from_hex_literal(asked.address).and_then(|account| account.as_bytes().try_into().ok());
    let holder: [u8; 20] =
        account.ok_or_else(|| format!("`{}` is no address of chain `{}`", asked.address, chain.id))?;
    let evm = service.nodes.evm(chain).map_err(|error| error.to_string())?;
    let all: Vec<&str>;
    let denoms = if asked.denoms.is_empty() {
        let here = registry.assets().filter(|(_, asset)| asset.chain == asked.chain);
        all = here.map(|(_, asset)| asset.denom.as_str()).collect();
        &all
    } else {
        &asked.denoms
    };
    let told =
        denoms.iter().map(async |denom| ((*denom).to_owned(), evm_balance(&evm, chain, holder, denom).await));
    let mut told: Amounts = join_all(told).await;
    if asked.denoms.is_empty() {
        told.retain(|(_, amount)| amount.as_ref().is_ok_and(|amount| !amount.is_zero()));
    }
    Ok(told)
}

async fn evm_balance(
    evm: &Arc<node::Evm>,
    chain: &Chain,
    holder: [u8; 20],
    denom: &str,
) -> Result<U256, String> {
    let zero =
        denom.strip_prefix("0x").is_some_and(|hex| hex.len() == 40 && hex.bytes().all(|byte| byte == b'0'));
    if zero || chain.native.as_ref().is_some_and(|coin| coin.denom == denom) {
        return evm.balance(holder).await.map_err(|error| error.to_string());
    }
    let contract = Account::from_hex_literal(denom).and_then(|account| account.as_bytes().try_into().ok());
    let contract: [u8; 20] =
        contract.ok_or_else(|| format!("`{denom}` is no token of chain `{}`", chain.id))?;
    let answer =
        evm.call(contract, &chain::abi::balance_of(holder), None).await.map_err(|error| error.to_string())?;
    chain::abi::read_uint(&answer).ok_or_else(|| format!("`{denom}` gives no balance"))
}

fn entry(registry: &Registry, asset: Option<AssetRef>, amount: Result<U256, String>) -> Entry {
    let about = asset.map(|asset| &registry[asset]);
    let decimals = about.map(|asset| asset.decimals);
    let (amount, error) = match amount {
        Ok(amount) => (amount, None),
        Err(message) => (U256::ZERO, Some(Fault { message })),
    };
    let price = about.and_then(|asset| asset.price_usd.clone());
    Entry {
        amount: amount.to_string(),
        decimals,
        formatted_amount: pointed(&amount.to_string(), decimals.unwrap_or(0)),
        price: price.clone(),
        price_usd: price,
        value_usd: asset.and_then(|asset| usd::of(registry, asset, amount)),
        error,
    }
}

/// Base units as whole units with exactly `decimals` fraction digits.
fn pointed(amount: &str, decimals: u8) -> String {
    let places = usize::from(decimals);
    if places == 0 {
        return amount.to_owned();
    }
    let padded = format!("{amount:0>width$}", width = places + 1);
    let (whole, fraction) = padded.split_at(padded.len() - places);
    format!("{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_pointed_to_exactly_their_decimals() {
        for (amount, decimals, expected) in [
            ("25000000", 6, "25.000000"),
            ("1", 6, "0.000001"),
            ("0", 2, "0.00"),
            ("7", 0, "7"),
            ("123", 3, "0.123"),
        ] {
            assert_eq!(pointed(amount, decimals), expected);
        }
    }
}
