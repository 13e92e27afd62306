//! Filters that clients poll, over an index that grows and is rolled back.

use std::sync::Arc;

use chain::evm::log_filter::LogFilter;
use evm_rpc::{Dialect, EvmRpc};
use schema::rewind::rewind;
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::indexed;
use web::app::App;

use super::subscriptions::{index, played};
use super::{over, text};

/// Before the first block of the test.
const BEFORE: u64 = 537;

async fn call(app: &App<EvmRpc>, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    serde_json::from_str(&text(app, &body.to_string()).await).unwrap()
}

async fn result(app: &App<EvmRpc>, method: &str, params: &Value) -> Value {
    let reply = call(app, method, params).await;
    assert!(reply.get("result").is_some(), "{method}: {reply}");
    reply["result"].clone()
}

async fn changes(app: &App<EvmRpc>, id: &Value) -> Vec<Value> {
    result(app, "eth_getFilterChanges", &json!([id])).await.as_array().unwrap().clone()
}

fn number(json: &Value) -> u64 {
    u64::from_str_radix(&json.as_str().unwrap()[2..], 16).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_has_what_is_new_since_the_last_one_and_a_filter_ends_when_it_is_removed() {
    let (node, store) = (played(BEFORE).await, Arc::new(MemStore::new()) as Arc<dyn Store>);
    index(&node, BEFORE, &store).await;
    let rpc = over(indexed::indexer(Arc::clone(&store)).unwrap(), Dialect::Fixed).with_filters(true);
    let app = rpc.app().unwrap();
    let logs = result(&app, "eth_newFilter", &json!([{}])).await;
    let blocks = result(&app, "eth_newBlockFilter", &json!([])).await;
    let txs = result(&app, "eth_newPendingTransactionFilter", &json!([])).await;
    let one = result(
        &app,
        "eth_newFilter",
        &json!([{ "fromBlock": format!("{:#x}", BEFORE + 2), "toBlock": format!("{:#x}", BEFORE + 2) }]),
    )
    .await;
    for id in [&logs, &blocks, &txs, &one] {
        assert!(changes(&app, id).await.is_empty(), "nothing is new");
    }
    node.show(BEFORE + 5).unwrap();
    index(&node, BEFORE + 5, &store).await;
    let (mut hashes, mut in_blocks, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let view = indexed::indexer(Arc::clone(&store)).unwrap();
    let view = view.evm(Dialect::Fixed).unwrap();
    for height in BEFORE + 1..=BEFORE + 5 {
        let block: Value = serde_json::from_slice(&view.block(height, false).unwrap().unwrap()).unwrap();
        hashes.push(block["hash"].clone());
        in_blocks.extend(block["transactions"].as_array().unwrap().clone());
        let logs = view.block_logs(&LogFilter::default(), height).unwrap();
        expected.extend(logs.iter().map(|log| serde_json::from_slice::<Value>(log).unwrap()));
    }
    assert!(!expected.is_empty() && !in_blocks.is_empty());
    assert_eq!(changes(&app, &logs).await, expected);
    assert_eq!(changes(&app, &blocks).await, hashes);
    assert_eq!(changes(&app, &txs).await, in_blocks);
    let of_one: Vec<_> =
        expected.iter().filter(|log| number(&log["blockNumber"]) == BEFORE + 2).cloned().collect();
    assert_eq!(changes(&app, &one).await, of_one);
    for id in [&logs, &blocks, &txs, &one] {
        assert!(changes(&app, id).await.is_empty(), "it was polled");
    }

    rewind(&*store, BEFORE + 3).unwrap();
    let removed: Vec<_> =
        expected.iter().filter(|log| number(&log["blockNumber"]) > BEFORE + 3).cloned().collect();
    let mut backward = removed.clone();
    backward.reverse();
    for log in &mut backward {
        log["removed"] = true.into();
    }
    assert!(!removed.is_empty());
    assert_eq!(changes(&app, &logs).await, backward);
    index(&node, BEFORE + 5, &store).await;
    assert_eq!(changes(&app, &logs).await, removed);
    assert!(changes(&app, &blocks).await.is_empty(), "it has seen these blocks, and not that they were away");

    assert_eq!(result(&app, "eth_uninstallFilter", &json!([blocks])).await, true);
    assert_eq!(result(&app, "eth_uninstallFilter", &json!([blocks])).await, false);
    let unknown = json!({ "code": -32000, "message": "filter not found" });
    for (method, id) in [
        ("eth_getFilterChanges", &blocks),
        ("eth_getFilterChanges", &json!("0x1")),
        ("eth_getFilterLogs", &txs),
        ("eth_getFilterLogs", &blocks),
    ] {
        assert_eq!(call(&app, method, &json!([id])).await["error"], unknown, "{method} {id}");
    }
    // Deeper than a filter remembers: it is no more, and says so.
    rewind(&*store, BEFORE - 30).unwrap();
    assert_eq!(call(&app, "eth_getFilterChanges", &json!([logs])).await["error"], unknown);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_logs_of_a_filter_are_those_of_its_query_and_malformed_ones_are_refused_as_everywhere() {
    let app = super::rpc(Dialect::Fixed).await.with_filters(true).app().unwrap();
    let query = json!([{ "fromBlock": "0x1", "toBlock": "0x40" }]);
    let id = result(&app, "eth_newFilter", &query).await;
    let logs = result(&app, "eth_getFilterLogs", &json!([id])).await;
    assert_eq!(logs, result(&app, "eth_getLogs", &query).await);
    assert!(!logs.as_array().unwrap().is_empty());
    for (params, message) in [
        (json!([]), "missing value for required argument 0"),
        (json!([{ "fromBlock": "0x5", "toBlock": "0x4" }]), "invalid block range params"),
        (json!([{ "address": "0x12" }]), "invalid argument 0: invalid address"),
    ] {
        let error = call(&app, "eth_newFilter", &params).await["error"]["message"].clone();
        assert!(error.as_str().unwrap().starts_with(message), "{params}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_have_a_bound() {
    let app = super::rpc(Dialect::Fixed).await.with_filters(true).app().unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{}]}"#;
    let batch = format!("[{}]", vec![call; 1000].join(","));
    for _ in 0..10 {
        let replies: Vec<Value> = serde_json::from_str(&text(&app, &batch).await).unwrap();
        assert!(replies.iter().all(|reply| reply["result"].is_string()), "{}", replies[999]);
    }
    let refused = text(&app, call).await;
    assert!(refused.contains("-32005") && refused.contains("too many filters are open"), "{refused}");
}
