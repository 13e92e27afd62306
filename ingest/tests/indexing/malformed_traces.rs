//! Malformed traces that some nodes give but no recorded node gave, as far as they concern the
//! internal-transaction lane.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ingest::Ingest;
use replay::answers::HttpReply;
use schema::meta::{self, CallLane};
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::indexed;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use web::app::App;

use crate::malformed_answers::{HEIGHT, LAST, at_first, config, ending, evm, indexed_with, undisturbed};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_trace_delays_only_the_traces() {
    let node = OverriddenNode::start(evm(), |exchange| {
        if exchange.is_rpc("debug_traceBlockByNumber", "") {
            return exchange.with_error(-32601, "the method debug_traceBlockByNumber does not exist");
        }
        ending(exchange)
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config(), clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    assert!(ingest.has_calls());
    let progress = ingest.progress();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let reached = async {
        progress.blocks.clone().wait_for(|progress| progress.height >= LAST).await.unwrap();
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, reached);
    let calls: CallLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap_or_default();
    assert!(calls.height < HEIGHT && calls.calls == 0, "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_fails_to_trace_within_its_block_is_traced_by_itself() {
    let is_overridden =
        |exchange: &RecordedExchange<'_>| exchange.is_rpc("debug_traceBlockByNumber", "\"0x7\"");
    let store = indexed_with(at_first(2, is_overridden, |n, exchange| {
        exchange.with_change(|traces| match n {
            // Too few entries.
            0 => drop(traces.as_array_mut().unwrap().pop()),
            _ => untrace(&mut traces[0]),
        })
    }))
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_traced_by_itself_after_any_outage() {
    let refusals = AtomicU64::new(0);
    let store = indexed_with(move |exchange| {
        if exchange.is_rpc("debug_traceBlockByNumber", "\"0x7\"") {
            return exchange.with_change(|traces| untrace(&mut traces[0]));
        }
        if exchange.is_rpc("debug_traceTransaction", "") && refusals.fetch_add(1, Ordering::Relaxed) < 5 {
            return HttpReply { status: http::StatusCode::BAD_GATEWAY, body: "<html>".into() };
        }
        ending(exchange)
    })
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

fn untrace(entry: &mut Value) {
    *entry = json!({"txHash": entry["txHash"], "error": "execution timeout"});
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_cannot_be_traced_is_indexed_without_frames_and_the_lane_continues() {
    // The last one: no later frame could be mistaken for its own.
    let last = format!("\"{LAST:#x}\"");
    let store = indexed_with(move |exchange| {
        if exchange.is_rpc("debug_traceBlockByNumber", &last) {
            return exchange.with_change(|traces| untrace(&mut traces[0]));
        }
        if exchange.is_rpc("debug_traceTransaction", "") {
            return exchange.with_error(-32000, "execution timeout");
        }
        ending(exchange)
    })
    .await;
    let recording = evm();
    let receipts = recording.height(LAST).unwrap().eth_receipts.unwrap();
    let receipts: Value = serde_json::from_slice(&receipts).unwrap();
    let hash = receipts[0]["transactionHash"].as_str().unwrap();
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let total = |path: &str| -> u64 {
        let response = app.get(&format!("/indexer/tx/v1/{path}?pagination.limit=1000"));
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(response.status(), 200, "{path}: {body}");
        body["pagination"]["total"].as_str().unwrap().parse().unwrap()
    };
    assert_eq!(total(&format!("evm-internal-txs/{hash}")), 0);
    let heights = (1..=LAST).map(|height| total(&format!("evm-internal-txs/by_height/{height}")));
    assert_eq!(heights.sum::<u64>(), total("evm-internal-txs"));
    assert_eq!(total("evm-txs"), 33);
}
