//! A recorded chain with planted tokens: events at the end of blocks, and contracts that reply calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chain::{U256, evm::abi};
use ingest::{Config, Ingest, Verify};
use replay::Recording;
use replay::answers::{HttpReply, Service};
use schema::rich::{Address, Balances, Erc20, Erc20s};
use serde_json::{Value, json};
use store::{MemStore, Message, Order, Store};
use testkit::indexed;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use tokio::sync::watch;

/// A call of a contract.
pub(crate) struct ContractCall {
    pub(crate) to: Address,
    pub(crate) data: Vec<u8>,
    pub(crate) height: u64,
}

impl ContractCall {
    /// The account whose balance is asked for.
    pub(crate) fn account(&self) -> Option<Address> {
        let word = self.data.strip_prefix(&abi::balance_of([0; 20])[..4])?;
        word.get(12..)?.try_into().ok()
    }

    pub(crate) fn is_supply(&self) -> bool {
        self.data == abi::total_supply()
    }
}

/// The reply of a contract.
#[derive(Clone, Copy)]
pub(crate) enum ContractReply {
    Amount(U256),
    Reverted,
    /// What is recorded.
    Recorded,
}

impl From<Option<u64>> for ContractReply {
    fn from(amount: Option<u64>) -> Self {
        amount.map_or(Self::Reverted, |amount| Self::Amount(U256::from(amount)))
    }
}

/// Events by height.
pub(crate) type Events = BTreeMap<u64, Vec<Value>>;

/// Plays `recording` with `events`; `reply` answers calls of contracts.
pub(crate) async fn node(
    recording: Arc<Recording>,
    events: Events,
    reply: impl Fn(&ContractCall) -> ContractReply + Send + Sync + 'static,
) -> OverriddenNode {
    node_with(recording, events, reply, ("", "")).await
}

/// The same, with the first text of `renamed` replaced by the second in all replies.
pub(crate) async fn node_with(
    recording: Arc<Recording>,
    events: Events,
    reply: impl Fn(&ContractCall) -> ContractReply + Send + Sync + 'static,
    renamed: (&'static str, &'static str),
) -> OverriddenNode {
    let alter = move |mut exchange: RecordedExchange<'_>| -> HttpReply {
        if !renamed.0.is_empty() {
            let text = String::from_utf8_lossy(&exchange.answer.body).replace(renamed.0, renamed.1);
            exchange.answer.body = text.into();
        }
        let uri = exchange.request.uri();
        if exchange.service == Service::Comet && uri.path() == "/block_results" {
            let height = uri.query().and_then(|query| query.strip_prefix("height=")?.parse().ok());
            let Some(planted) = height.and_then(|height: u64| events.get(&height)) else {
                return exchange.answer;
            };
            return exchange.with_change(|results| {
                let mut of_block = results["finalize_block_events"].as_array().cloned().unwrap_or_default();
                of_block.extend(planted.iter().cloned());
                results["finalize_block_events"] = of_block.into();
            });
        }
        match call(exchange.request.body()).map(|call| reply(&call)) {
            Some(ContractReply::Amount(amount)) => exchange.with_result(&format!("0x{amount:064x}").into()),
            Some(ContractReply::Reverted) => exchange.with_error(3, "execution reverted"),
            Some(ContractReply::Recorded) | None => exchange.answer,
        }
    };
    OverriddenNode::start(recording, alter).await.unwrap()
}

fn call(body: &[u8]) -> Option<ContractCall> {
    let call: Value = serde_json::from_slice(body).ok()?;
    let text = |value: &Value| value.as_str().map(|text| text.trim_start_matches("0x").to_owned());
    let params = call["params"].as_array().filter(|_| call["method"] == "eth_call")?;
    Some(ContractCall {
        to: hex::decode(text(&params[0]["to"])?).ok()?.try_into().ok()?,
        data: hex::decode(text(&params[0]["data"]).or_else(|| text(&params[0]["input"]))?).ok()?,
        height: u64::from_str_radix(&text(&params[1])?, 16).ok()?,
    })
}

/// An event at the end of a block.
fn event(kind: &str, key: &str, value: &str) -> Value {
    let attributes = [(key, value), ("mode", "EndBlock")];
    json!({ "type": kind, "attributes": attributes.map(|(key, value)| json!({ "key": key, "value": value })) })
}

pub(crate) fn hex_of(bytes: &[u8]) -> String {
    format!("0x{}", hex::encode(bytes))
}

/// The creation of a contract.
pub(crate) fn created(contract: Address) -> Value {
    event("contract_created", "contract", &hex_of(&contract))
}

/// A call of a contract.
pub(crate) fn called(contract: Address) -> Value {
    event("call", "contract", &hex_of(&contract))
}

/// A log of a contract; `topics` in hex.
pub(crate) fn log(contract: Address, topics: &[String], data: &[[u8; 32]]) -> Value {
    let log = json!({ "address": hex_of(&contract), "topics": topics, "data": hex_of(&data.concat()) });
    event("evm", "log", &log.to_string())
}

/// A word with an address.
pub(crate) fn word_of(account: Address) -> [u8; 32] {
    let mut word = [0; 32];
    word[12..].copy_from_slice(&account);
    word
}

/// A word with a number.
pub(crate) fn word(number: u64) -> [u8; 32] {
    U256::from(number).to_be_bytes()
}

/// `Transfer(address,address,uint256)`.
pub(crate) const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// A transfer in the form of the standard.
pub(crate) fn transfer(contract: Address, from: Address, to: Address, amount: u64) -> Value {
    let topics = [TRANSFER.to_owned(), hex_of(&word_of(from)), hex_of(&word_of(to))];
    log(contract, &topics, &[word(amount)])
}

/// Indexes all of `recording` from `node`, reconciles at this pause, and goes on until `done`.
pub(crate) async fn index(
    recording: &Recording,
    node: &OverriddenNode,
    reconcile_every: Option<Duration>,
    done: impl Fn(&MemStore) -> bool,
) -> Arc<MemStore> {
    // Planted events do not follow from the recorded headers.
    let config = Config { reconcile_every, verify: Verify::Off, ..indexed::config(recording).unwrap() };
    index_as(config, recording, node, done).await
}

/// The same, with this configuration.
pub(crate) async fn index_as(
    config: Config,
    recording: &Recording,
    node: &OverriddenNode,
    done: impl Fn(&MemStore) -> bool,
) -> Arc<MemStore> {
    let store = Arc::new(MemStore::new());
    let shared = Arc::<MemStore>::clone(&store);
    let ingest = Ingest::prepare(config, Arc::new(node.clients().unwrap()), shared).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let mut progress = ingest.progress();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let watching = async {
        while progress.done() < recording.last() {
            progress.moved().await;
        }
        // Commits without a block send no notification.
        while !done(&store) {
            looks.tick().await;
        }
        stop.send_replace(true);
    };
    let all = async { tokio::join!(async { ingest.run(stopped).await.unwrap() }, watching) };
    tokio::time::timeout(Duration::from_mins(2), all).await.unwrap();
    store
}

/// The row of a token.
pub(crate) fn token(store: &dyn Store, contract: Address) -> Option<Erc20> {
    let row = store::table::read::<Erc20s>(&*store.snapshot().unwrap(), &contract).unwrap();
    row.map(|Message(token)| token)
}

/// The balances of a token that are not zero.
pub(crate) fn balances(store: &dyn Store, contract: Address) -> BTreeMap<Address, U256> {
    let snapshot = store.snapshot().unwrap();
    let rows = store::table::rows::<Balances>(&*snapshot, &contract, Order::Asc, usize::MAX).unwrap();
    let held = rows.into_iter().map(|((_, account), amount)| (account, U256::from_be_slice(&amount)));
    held.filter(|(_, amount)| !amount.is_zero()).collect()
}
