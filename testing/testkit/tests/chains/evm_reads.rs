//! What a node replied to JSON-RPC requests about a recorded chain, and what the index replies, byte for byte.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;

use chain::evm::dialect::Dialect;
use chain::evm::log_filter::LogFilter;
use query::Indexer;
use query::evm::{Error, EvmView, LogLimits};
use replay::Recording;
use schema::evm_block::{BLOCKS, EvmBlocks};
use schema::index::State;
use schema::meta::Meta;
use serde_json::Value;
use store::key::Text;
use store::{Durability, Message, Store, Value as _};
use testkit::{indexed, recording};

/// The index of a recorded chain, with what JSON-RPC reads.
pub(crate) async fn index(name: &str) -> (Arc<dyn Store>, Indexer) {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store = indexed::index_for_json_rpc(recording, false).await.unwrap();
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
            match view.logs(&filter, from..=to, limits) {
                // The recording begins later than the chain.
                Err(Error::Pruned { .. }) => return None,
                logs => logs.unwrap(),
            }
        }
        _ => return None,
    })
}

/// Compares the replies of a node about the chain `name` with those of its index; the number of equal ones by set and method.
async fn compare(name: &str) -> BTreeMap<String, usize> {
    let (_store, indexer) = index(name).await;
    let view = indexer.evm(Dialect::Node).unwrap();
    let (mut equal, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    let head = view.head();
    for golden in goldens(name) {
        let set = golden["set"].as_str().unwrap();
        let (Some(method), Some(params)) = (golden["method"].as_str(), golden["params"].as_array()) else {
            continue;
        };
        // Other sets are of other states of the chain, or of odd parameters, which are the listener's.
        let is_of_head = golden["at"].as_u64().is_none_or(|at| at == head);
        if set != "log0" && !(["blocks", "txs", "logs", "restart"].contains(&set) && is_of_head) {
            continue;
        }
        // Once it has a block in its cache a node counts its places from 0, and still prints them from 1.
        let is_fresh = golden["note"].as_str().is_some_and(|note| note.starts_with("right after a restart"));
        if set == "restart" && !is_fresh {
            continue;
        }
        let body = golden["body"].as_str().unwrap().trim_end();
        let result = body.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#);
        let Some(expected) = result.and_then(|body| body.strip_suffix('}')) else { continue };
        let Some(reply) = reply(&view, method, params) else { continue };
        if reply == expected.as_bytes() {
            *equal.entry(format!("{set} {method}")).or_default() += 1;
            continue;
        }
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let at = reply.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
        let around = |text: &str| text.chars().skip(at.saturating_sub(60)).take(160).collect::<String>();
        let (ours, theirs) = (around(&reply), around(expected));
        wrong.push(format!("{set} {method} {} at {at}:\n  {ours}\n  {theirs}", golden["params"]));
    }
    assert!(wrong.is_empty(), "{} wrong: {}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    equal
}

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_reply_of_a_node_is_reproduced() {
    let equal = compare("evm-fees").await;
    let total: usize = equal.values().sum();
    assert!(total == 9_275, "{total} {equal:?}");
}

/// Also of a block whose receipts the node can never read again: they are derived from its results.
#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_replies_about_a_log_without_topics_are_reproduced() {
    let equal = compare("evm-log0").await;
    assert!(
        equal["log0 eth_getTransactionByHash"] == 1 && equal["txs eth_getTransactionByHash"] == 6,
        "{equal:?}"
    );
}

fn json(bytes: Vec<u8>) -> Value {
    serde_json::from_slice(&bytes).unwrap()
}

/// What clients take for granted, and a node of v1.2 violates.
#[tokio::test(flavor = "multi_thread")]
async fn in_the_fixed_form_a_log_has_one_place_and_every_transaction_the_id_of_the_chain() {
    for name in ["evm-fees", "evm-scenario"] {
        let (_store, indexer) = index(name).await;
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let all =
            json(view.logs(&LogFilter::default(), view.first()..=view.head(), LogLimits::default()).unwrap());
        let logs = all.as_array().unwrap();
        let mut places: Vec<_> =
            logs.iter().map(|log| (number(&log["blockNumber"]), number(&log["logIndex"]))).collect();
        assert!(places.len() > 500 && places.is_sorted(), "{name}");
        places.dedup();
        assert_eq!(places.len(), logs.len(), "{name}: two logs have one place");

        let (mut from_receipts, mut kinds, mut created) = (Vec::new(), BTreeMap::<String, usize>::new(), 0);
        for height in view.first()..=view.head() {
            let block = json(view.block(height, true).unwrap().unwrap());
            let receipts = json(view.receipts(height).unwrap().unwrap());
            let (txs, receipts) = (block["transactions"].as_array().unwrap(), receipts.as_array().unwrap());
            assert_eq!(
                (txs.len(), block["number"].clone()),
                (receipts.len(), Value::from(format!("{height:#x}")))
            );
            for (tx, receipt) in txs.iter().zip(receipts) {
                assert_eq!(number(&tx["chainId"]), Some(view.chain_id()), "{tx}");
                assert_eq!((&tx["hash"], &tx["blockHash"]), (&receipt["transactionHash"], &block["hash"]));
                assert_eq!(tx["transactionIndex"], receipt["transactionIndex"]);
                assert_eq!(receipt["to"].is_null(), tx["to"].is_null());
                *kinds.entry(tx["type"].as_str().unwrap().to_owned()).or_default() += 1;
                assert_eq!(tx["authorizationList"].is_array(), tx["type"] == "0x4");
                from_receipts.extend(receipt["logs"].as_array().unwrap().iter().cloned());
                if let Some(contract) = bytes(&receipt["contractAddress"]) {
                    created += 1;
                    let creations = view.creations(contract).unwrap();
                    let hash = bytes(&tx["hash"]);
                    let evm = creations.iter().map(|creation| view.evm_hash(&creation.cosmos_hash).unwrap());
                    assert!(evm.into_iter().any(|evm| evm == hash), "{tx} {creations:?}");
                }
            }
        }
        assert_eq!(*logs, from_receipts, "{name}: the logs of all receipts");
        assert!(kinds.len() >= 3 && created > 5, "{name}: {kinds:?} {created}");
    }
}

/// The headers of the blocks up to `height` only, as while they are fetched.
fn keep_headers(store: &dyn Store, height: u64, head: u64) {
    let state = BLOCKS.state(&*store.snapshot().unwrap()).unwrap().unwrap();
    store::commit_rows(store, Durability::Buffered, |txn| {
        txn.put::<Meta>(&Text("index/blocks".to_owned()), &Message(State { height, ..state }).encoded());
        (height + 1..=head).for_each(|gone| txn.delete::<EvmBlocks>(&gone));
        Ok::<(), store::Error>(())
    })
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_lag_hide_no_block_that_was_shown_and_are_no_absent_blocks() {
    let (store, indexer) = index("evm-scenario").await;
    let (head, hash, tx) = {
        let view = indexer.evm(Dialect::Fixed).unwrap();
        let has_txs = |height: &u64| view.tx_count(*height).unwrap() > Some(0);
        let head = (1..=view.head()).rev().find(has_txs).unwrap();
        let block: Value = serde_json::from_slice(&view.block(head, false).unwrap().unwrap()).unwrap();
        let hash = |member: &Value| {
            <[u8; 32]>::try_from(hex::decode(&member.as_str().unwrap()[2..]).unwrap()).unwrap()
        };
        (head, hash(&block["hash"]), hash(&block["transactions"][0]))
    };
    schema::rewind::rewind(&*store, head).unwrap();
    keep_headers(&*store, head - 1, head);
    let begun = indexed::indexer(Arc::clone(&store)).unwrap();
    let view = begun.evm(Dialect::Fixed).unwrap();
    assert_eq!(view.head(), head - 1, "the block waits for its header");
    assert!(view.receipt(&tx).unwrap().is_none() && view.tx(&tx).unwrap().is_none(), "above the head");
    drop(view);

    keep_headers(&*store, 10, head);
    let begun = indexed::indexer(Arc::clone(&store)).unwrap();
    for headers in [10, 10, head - 1] {
        keep_headers(&*store, headers, head);
        let view = begun.evm(Dialect::Fixed).unwrap();
        assert_eq!(view.head(), head, "headers up to {headers}");
        assert!(view.receipt(&tx).unwrap().is_some());
        assert!(matches!(view.block(head, false), Err(Error::Behind { .. })), "headers up to {headers}");
        assert!(matches!(view.height_of(&hash), Err(Error::Behind { .. })), "headers up to {headers}");
    }
}
