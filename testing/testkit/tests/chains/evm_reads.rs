//! What a node replied to JSON-RPC requests about a recorded chain, and what the index replies, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;

use chain::evm::dialect::Dialect;
use chain::evm::log_filter::LogFilter;
use ingest::{Config, Ingest};
use query::Indexer;
use query::evm::{Error, EvmView, LogLimits};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::evm_block::BLOCKS;
use schema::logs::LOGS;
use serde_json::Value;
use store::{MemStore, Store};
use testkit::{indexed, recording};
use tokio::sync::watch;

/// Indexes a recorded chain with the optional indexes that JSON-RPC needs.
async fn index(name: &str) -> (Arc<dyn Store>, Indexer) {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&BLOCKS, &LOGS],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&recording).unwrap()
    };
    let last = recording.last();
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let done = async {
        let height =
            |index: &schema::index::Index| index.state(&*store.snapshot().unwrap()).unwrap().unwrap().height;
        // Headers arrive after their blocks: there is no channel to wait on.
        while height(&BLOCKS) < last || height(&LOGS) < last {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(stopped), done);
    outcome.unwrap();
    let indexer = indexed::indexer(Arc::clone(&store)).unwrap();
    (store, indexer)
}

/// The recorded requests of a chain with their replies.
fn goldens(name: &str) -> impl Iterator<Item = Value> {
    let file = std::fs::File::open(recording(name).join("rpc-goldens.ndjson.zst")).unwrap();
    let mut plain = zstd::stream::read::Decoder::new(file).unwrap();
    plain.window_log_max(27).unwrap();
    BufReader::new(plain).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

fn number(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn bytes<const N: usize>(value: &Value) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(value.as_str()?.strip_prefix("0x")?, &mut bytes).ok()?;
    Some(bytes)
}

fn several<const N: usize>(value: &Value) -> Option<Vec<[u8; N]>> {
    match value {
        Value::Null => Some(Vec::new()),
        // A null among topics is any.
        Value::Array(all) if all.iter().any(Value::is_null) => Some(Vec::new()),
        Value::Array(all) => all.iter().map(bytes).collect(),
        one => Some(vec![bytes(one)?]),
    }
}

/// The filter of `eth_getLogs` and its heights; `None` for one that a node refuses, or whose blocks are not by number.
fn filter(param: &Value, head: u64) -> Option<(LogFilter, u64, u64)> {
    let param = param.as_object()?;
    if param.contains_key("blockHash") {
        return None;
    }
    // Height 0 is the first block.
    let height = |name| param.get(name).map_or(Some(head), number).map(|height| height.max(1));
    let topics = param
        .get("topics")
        .map_or(Some(Vec::new()), |topics| topics.as_array()?.iter().map(several).collect());
    let addresses = param.get("address").map_or(Some(Vec::new()), several);
    Some((LogFilter::new(addresses?, topics?), height("fromBlock")?, height("toBlock")?))
}

/// The reply of the index, and `None` to a request that is not asked of it.
fn reply(view: &EvmView<'_>, method: &str, params: &[Value]) -> Option<Vec<u8>> {
    let null = |found: Result<Option<Vec<u8>>, Error>| found.unwrap().unwrap_or_else(|| b"null".to_vec());
    let quoted = |bytes: Vec<u8>| format!("\"0x{}\"", hex::encode(bytes)).into_bytes();
    let of_number = || number(params.first()?).filter(|height| *height > 0);
    let of_hash = || view.height_of(&bytes(params.first()?)?).unwrap();
    let place = || params.get(1).and_then(number);
    Some(match method {
        "eth_getBlockByNumber" => null(view.block(of_number()?, params.get(1)?.as_bool()?)),
        "eth_getBlockByHash" => null(view.block(of_hash()?, params.get(1)?.as_bool()?)),
        "eth_getBlockReceipts" => {
            null(view.receipts(of_number().filter(|height| *height < 1 << 32).or_else(of_hash)?))
        }
        "eth_getBlockTransactionCountByNumber" => {
            format!("\"{:#x}\"", view.tx_count(of_number()?).unwrap()?).into_bytes()
        }
        "eth_getTransactionByHash" => null(view.tx(&bytes(params.first()?)?)),
        "eth_getTransactionReceipt" => null(view.receipt(&bytes(params.first()?)?)),
        "eth_getRawTransactionByHash" => quoted(view.raw_tx(&bytes(params.first()?)?).unwrap()?),
        "eth_getTransactionByBlockNumberAndIndex" => null(view.tx_at(of_number()?, place()?)),
        "eth_getTransactionByBlockHashAndIndex" => null(view.tx_at(of_hash()?, place()?)),
        "cosmos_cosmosTxHashByTxHash" => {
            let hash = view.cosmos_hash(&bytes(params.first()?)?).unwrap()?;
            assert_eq!(view.evm_hash(&hash).unwrap(), bytes(params.first()?));
            format!("\"{}\"", hex::encode(hash)).into_bytes()
        }
        "eth_getLogs" if params.len() == 1 => {
            let (filter, from, to) = filter(params.first()?, view.head())?;
            let limits = LogLimits { logs: u64::MAX, bytes: usize::MAX };
            view.logs(&filter, from..=to, limits).unwrap()
        }
        _ => return None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_reply_of_a_node_is_reproduced() {
    let (_store, indexer) = index("evm-fees").await;
    let view = indexer.evm(Dialect::Node).unwrap();
    let (mut equal, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    let head = view.head();
    for golden in goldens("evm-fees") {
        let set = golden["set"].as_str().unwrap();
        let (Some(method), Some(params)) = (golden["method"].as_str(), golden["params"].as_array()) else {
            continue;
        };
        // Other sets are of other states of the chain, or of odd parameters, which are the listener's.
        if !["blocks", "txs", "logs", "places", "restart"].contains(&set)
            || golden["at"].as_u64().is_some_and(|at| at != head)
        {
            continue;
        }
        // Once it has a block in its cache a node counts its places from 0, and still prints them from 1.
        let is_fresh = golden["note"].as_str().is_some_and(|note| note.starts_with("right after a restart"));
        if set == "places" || set == "restart" && !is_fresh {
            continue;
        }
        let body = golden["body"].as_str().unwrap().trim_end();
        let Some(expected) =
            body.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#).and_then(|body| body.strip_suffix('}'))
        else {
            continue;
        };
        let Some(reply) = reply(&view, method, params) else { continue };
        if reply == expected.as_bytes() {
            *equal.entry(format!("{set} {method}")).or_default() += 1;
        } else if wrong.len() < 10 {
            let reply = String::from_utf8_lossy(&reply).into_owned();
            let at = reply.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
            let around = |text: &str| {
                text.get(at.saturating_sub(60)..).unwrap_or_default().chars().take(160).collect::<String>()
            };
            wrong.push(format!(
                "{set} {method} {} at {at}:\n  {}\n  {}",
                golden["params"],
                around(&reply),
                around(expected)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let total: usize = equal.values().sum();
    println!("{total} {equal:?}");
    assert!(total > 9_000, "{equal:?}");
}
