//! Malformed replies that some nodes give but no recorded node gave, as far as they concern the
//! block lane.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ingest::{Config, Error, Ingest, Verify};
use node::{Limits, Node};
use replay::answers::{HttpReply, Service};
use replay::{Options, Recording};
use schema::block::Blocks;
use schema::digest::TableDigest;
use schema::meta::{self, BlockLane};
use serde_json::{Value, json};
use store::{MemStore, Message, Store};
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};
use tokio::sync::OnceCell;
use web::app::App;

/// A height of the EVM scenario with one transaction, an EVM transaction, and the last height of these tests.
pub(crate) const HEIGHT: u64 = 7;
pub(crate) const LAST: u64 = 40;

pub(crate) fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

pub(crate) async fn undisturbed() -> &'static [TableDigest] {
    static DIGEST: OnceCell<Vec<TableDigest>> = OnceCell::const_new();
    let index = || async {
        let store = Arc::new(MemStore::new());
        let options = Options { up_to: Some(LAST), ..Options::default() };
        indexed::index(evm(), options, Arc::<MemStore>::clone(&store)).await.unwrap();
        indexed::digest(&*store).unwrap()
    };
    DIGEST.get_or_init(index).await
}

/// The hash checks would reject the overridden answer; these tests are about its interpretation.
pub(crate) fn config() -> Config {
    Config { verify: Verify::Off, ..indexed::config(&evm()).unwrap() }
}

/// The recording cut off at [`LAST`]: `/status` reports it, and no height above it is requested.
pub(crate) fn ending(exchange: RecordedExchange<'_>) -> HttpReply {
    if exchange.service == Service::Comet && exchange.request.uri().path() == "/status" {
        return exchange
            .with_change(|status| status["sync_info"]["latest_block_height"] = LAST.to_string().into());
    }
    exchange.answer
}

/// Indexes from a node with overridden answers and returns the database.
pub(crate) async fn indexed_with(
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) -> Arc<MemStore> {
    let node = OverriddenNode::start(evm(), override_answer).await.unwrap();
    let store = Arc::new(MemStore::new());
    let clients = node.clients().unwrap();
    indexed::index_from(clients, config(), Arc::<MemStore>::clone(&store), LAST).await.unwrap();
    store
}

/// Indexes from a node with overridden answers until that fails; returns the error, and the last height.
async fn failure_with(
    override_answer: impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) -> (Error, u64) {
    let node = OverriddenNode::start(evm(), override_answer).await.unwrap();
    let store = Arc::new(MemStore::new());
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config(), clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    let error = indexed::failure(&ingest).await.unwrap();
    let lane: BlockLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap_or_default();
    (error, lane.height)
}

/// The permanent error of a node that ended an ingest.
fn node_error(error: Error) -> (u64, node::Error) {
    match error {
        Error::Node { height, source, .. } => {
            assert_eq!(source.kind(), node::Kind::Permanent);
            (height, *source)
        }
        other => panic!("{other:?}"),
    }
}

/// Alters the first `times` answers to each of some requests, with `invalid`.
pub(crate) fn at_first(
    times: u64,
    is_asked: impl Fn(&RecordedExchange<'_>) -> bool + Send + Sync + 'static,
    invalid: impl Fn(u64, RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static,
) -> impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static {
    let requests = AtomicU64::new(0);
    move |exchange| {
        if !is_asked(&exchange) {
            return ending(exchange);
        }
        match requests.fetch_add(1, Ordering::Relaxed) {
            n if n < times => invalid(n, exchange),
            _ => ending(exchange),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_receipts_and_errors_are_requested_again_until_there_are_receipts() {
    let is_overridden = |exchange: &RecordedExchange<'_>| exchange.is_rpc("eth_getBlockReceipts", "\"0x7\"");
    let store = indexed_with(at_first(4, is_overridden, |n, exchange| match n {
        0 | 1 => exchange.with_result(&Value::Null),
        2 => exchange.with_error(-32603, "internal error"),
        // The receipts of the block are not available yet.
        _ => exchange.with_change(|receipts| drop(receipts.as_array_mut().unwrap().pop())),
    }))
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn pruned_receipts_are_an_error_and_not_an_empty_block() {
    let (error, reached) = failure_with(|exchange| {
        if exchange.is_rpc("eth_getBlockReceipts", "\"0x7\"") {
            exchange.with_result(&json!([]))
        } else if exchange.is_rpc("eth_getBlockByNumber", "\"0x7\"") {
            exchange.with_result(&Value::Null)
        } else {
            ending(exchange)
        }
    })
    .await;
    assert!(matches!(error, Error::ReceiptsPruned { height: HEIGHT, tip: 226 }), "{error:?}");
    assert!(reached < HEIGHT);
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_that_one_endpoint_has_pruned_are_taken_from_another() {
    let pruned = OverriddenNode::start(evm(), |exchange| {
        if exchange.is_rpc("eth_getBlockReceipts", "") {
            exchange.with_result(&json!([]))
        } else if exchange.is_rpc("eth_getBlockByNumber", "") {
            exchange.with_result(&Value::Null)
        } else {
            ending(exchange)
        }
    });
    let (pruned, whole) = (pruned.await.unwrap(), OverriddenNode::start(evm(), ending).await.unwrap());
    let mut endpoints = whole.endpoints().unwrap();
    endpoints.json_rpc.extend(pruned.endpoints().unwrap().json_rpc);
    let (node, store) = (Node::new(endpoints, Limits::default()).unwrap(), Arc::new(MemStore::new()));
    indexed::index_from(node, config(), Arc::<MemStore>::clone(&store), LAST).await.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_looks_like_an_empty_block_does_not_hide_its_transactions() {
    let store = indexed_with(|exchange| {
        if !exchange.is_comet("block", HEIGHT) {
            return ending(exchange);
        }
        let text = String::from_utf8(exchange.answer.body.to_vec()).unwrap();
        let invalid = text.replacen(r#""result":{"#, r#""result":{"more":{"txs":[]},"#, 1);
        assert_ne!(invalid, text);
        HttpReply { status: exchange.answer.status, body: invalid.into() }
    })
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_that_are_missing_short_or_of_another_block_are_requested_again() {
    let is_overridden = |exchange: &RecordedExchange<'_>| exchange.is_comet("block_results", HEIGHT);
    let store = indexed_with(at_first(4, is_overridden, |n, exchange| {
        exchange.with_change(|results| match n {
            0 => results["txs_results"] = Value::Null,
            1 => results["txs_results"].as_array_mut().unwrap().push(json!({"code": 0})),
            2 => results["height"] = "5".into(),
            _ => *results = Value::Null,
        })
    }))
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_is_null_or_another_one_is_requested_again() {
    let is_overridden = |exchange: &RecordedExchange<'_>| exchange.is_comet("block", HEIGHT);
    let store = indexed_with(at_first(3, is_overridden, |n, exchange| {
        exchange.with_change(|block| match n {
            0 => block["block"] = Value::Null,
            1 => block["block"]["header"]["height"] = "8".into(),
            _ => block["block"]["data"]["txs"][0] = "not base64!".into(),
        })
    }))
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn pruned_results_far_below_the_tip_are_an_error() {
    let gone = |exchange: RecordedExchange<'_>| {
        if exchange.is_comet("block_results", HEIGHT) {
            return exchange.with_error(-32603, "could not find results for height #7");
        }
        ending(exchange)
    };
    let (error, reached) = failure_with(gone).await;
    let (height, source) = node_error(error);
    assert!(matches!(source, node::Error::ResultsMissing { tip: LAST, .. }), "{source:?}");
    assert_eq!((height, reached < HEIGHT), (HEIGHT, true));

    // Unless another endpoint has them.
    let (without, with) = (
        OverriddenNode::start(evm(), gone).await.unwrap(),
        OverriddenNode::start(evm(), ending).await.unwrap(),
    );
    let mut endpoints = without.endpoints().unwrap();
    endpoints.comet.extend(with.endpoints().unwrap().comet);
    let (node, store) = (Node::new(endpoints, Limits::default()).unwrap(), Arc::new(MemStore::new()));
    indexed::index_from(node, config(), Arc::<MemStore>::clone(&store), LAST).await.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_was_pruned_meanwhile_is_an_error() {
    let (error, reached) = failure_with(|exchange| {
        if exchange.is_comet("block", HEIGHT) {
            return exchange.with_error(-32603, "height 7 is not available, lowest height is 30");
        }
        ending(exchange)
    })
    .await;
    let (height, source) = node_error(error);
    assert!(matches!(source, node::Error::Pruned { lowest: Some(30), .. }), "{source:?}");
    assert_eq!((height, reached < HEIGHT), (HEIGHT, true));
}

fn proposers(store: &MemStore) -> Vec<Value> {
    let snapshot = store.snapshot().unwrap();
    let proposer = |height| {
        let Message(block) = store::table::read::<Blocks>(&*snapshot, &height).unwrap().unwrap();
        serde_json::from_slice::<Value>(&block.json).unwrap()["proposer"].take()
    };
    (1..=LAST).map(proposer).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_indexed_without_proposer_names_until_rest_lists_the_validators() {
    let is_repaired = Arc::new(AtomicBool::new(false));
    let repaired = Arc::clone(&is_repaired);
    let node = OverriddenNode::start(evm(), move |exchange| {
        let is_list =
            exchange.request.uri().path().ends_with("/validators") && exchange.service == Service::Rest;
        if is_list && !repaired.load(Ordering::Relaxed) {
            return HttpReply { status: http::StatusCode::BAD_GATEWAY, body: "<html>".into() };
        }
        ending(exchange)
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config(), clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    let mut progress = ingest.progress();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let steps = async {
        while progress.done() < LAST {
            progress.moved().await;
        }
        assert!(proposers(&store).iter().all(|proposer| proposer["moniker"] == ""));
        let app = App::new(indexed::indexer(Arc::clone(&store) as _).unwrap(), query::ENDPOINTS).unwrap();
        let status: Value = serde_json::from_slice(app.get("/status").body()).unwrap();
        assert_eq!(status["metadata_missing_from"], 1, "{status}");
        is_repaired.store(true, Ordering::Relaxed);
        while indexed::has_questions(&*store).unwrap() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop.send_replace(true);
    };
    // Far longer than the wait for the list.
    let all = async { tokio::join!(ingest.run(stopped), steps) };
    tokio::time::timeout(Duration::from_mins(1), all).await.unwrap().0.unwrap();
    assert!(proposers(&store).iter().all(|proposer| proposer["moniker"] != ""));
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_receipts_is_an_error_with_the_method() {
    let (error, _) = failure_with(|exchange| {
        if exchange.is_rpc("eth_getBlockReceipts", "") {
            return exchange
                .with_error(-32601, "the method eth_getBlockReceipts does not exist/is not available");
        }
        ending(exchange)
    })
    .await;
    let (_, source) = node_error(error);
    assert!(matches!(source, node::Error::MethodMissing { .. }), "{source:?}");
    assert!(source.to_string().contains("eth_getBlockReceipts"), "{source}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_continues_when_its_node_is_repaired() {
    // Twice, so that a second failure of the same kind is covered too.
    let override_answer = at_first(
        2,
        |exchange| exchange.is_rpc("eth_getBlockReceipts", ""),
        |_, exchange| exchange.with_error(-32601, "the method eth_getBlockReceipts does not exist"),
    );
    let node = OverriddenNode::start(evm(), override_answer);
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let config = Config { keep_trying: Some(Duration::from_millis(50)), ..config() };
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config, clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    let mut progress = ingest.progress();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let reached = async {
        while progress.done() < LAST {
            progress.moved().await;
        }
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, reached);
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_history_stops_the_index_before_it_is_mixed_in() {
    let (error, reached) = failure_with(|exchange| {
        if exchange.is_comet("block", HEIGHT) {
            return exchange.with_change(|block| {
                block["block"]["header"]["last_block_id"]["hash"] = "AB".repeat(32).into();
            });
        }
        ending(exchange)
    })
    .await;
    let Error::Fork { height: HEIGHT, parent, stored, .. } = error else { panic!("{error:?}") };
    assert_eq!(parent, "AB".repeat(32));
    assert!(stored != parent && reached < HEIGHT, "{stored} {reached}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_another_chain_behind_the_same_address_stops_the_index() {
    let (error, reached) = failure_with(|exchange| {
        if exchange.is_comet("block", HEIGHT) {
            return exchange.with_change(|block| block["block"]["header"]["chain_id"] = "other-1".into());
        }
        ending(exchange)
    })
    .await;
    let text = error.to_string();
    assert!(text.contains("`other-1`") && text.contains("`e2e-evm-1`") && text.contains("block 7"), "{text}");
    assert!(reached < HEIGHT);
}

/// A transaction with one message of an unknown type, base64: body, auth info, one signature.
const OF_UNKNOWN_TYPE: &str = "ChUKEwoML25vLnN1Y2guTXNnEgMKAUESABoBAA==";

#[tokio::test(flavor = "multi_thread")]
async fn an_undecodable_transaction_is_stored_opaque_and_never_stops_the_chain() {
    // A height with several transactions; the first becomes random text and the second gets an unknown type.
    let recording = evm();
    let at = recording.heights().iter().find(|height| height.raw_txs().unwrap().len() >= 3).unwrap();
    let (height, txs) = (at.height, at.raw_txs().unwrap().len());
    let refused: Arc<Mutex<HashSet<String>>> = Arc::default();
    let requested = Arc::clone(&refused);
    let node = OverriddenNode::start(Arc::clone(&recording), move |exchange| {
        if exchange.is_comet("block", height) {
            return exchange.with_change(|block| {
                block["block"]["data"]["txs"][0] = "Z2FyYmFnZQ==".into();
                block["block"]["data"]["txs"][1] = OF_UNKNOWN_TYPE.into();
            });
        }
        if exchange.request.uri().path() == "/cosmos/tx/v1beta1/decode" {
            let body = String::from_utf8_lossy(exchange.request.body()).into_owned();
            requested.lock().unwrap().insert(body);
            let body = r#"{"code":2,"message":"unable to resolve type URL /no.such.Msg: tx parse error","details":[]}"#;
            return HttpReply { status: http::StatusCode::INTERNAL_SERVER_ERROR, body: body.into() };
        }
        exchange.answer
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let last = recording.last();
    indexed::index_from(node.clients().unwrap(), config(), Arc::<MemStore>::clone(&store), last)
        .await
        .unwrap();

    let row = store::table::read::<Blocks>(&*store.snapshot().unwrap(), &height).unwrap();
    assert_eq!(row.map(|Message(block)| block.txs), Some(txs as u64));
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let path =
        format!("/indexer/tx/v1/txs/by_height/{height}?pagination.reverse=false&pagination.limit=1000");
    let body: Value = serde_json::from_slice(app.get(&path).body()).unwrap();
    let listed = body["txs"].as_array().unwrap();
    assert_eq!(listed.len(), txs);
    let rest: Value = serde_json::from_slice(at.rest_txs.as_deref().unwrap()).unwrap();
    // Each is at its own position, with its own hash, and the transactions after the opaque ones have the right JSON.
    for (i, raw) in ["garbage".as_bytes(), &unknown()].into_iter().enumerate() {
        let hash = chain::hash::to_hex(&chain::hash::tx_hash(raw)).to_uppercase();
        assert_eq!(listed[i]["txhash"], hash.as_str(), "{}", listed[i]);
        let by_hash = app.get(&format!("/indexer/tx/v1/txs/{hash}"));
        assert_eq!(by_hash.status(), 200);
    }
    for i in 2..txs {
        let mut tx = listed[i]["tx"].clone();
        tx.as_object_mut().unwrap().remove("@type");
        assert_eq!(tx, rest[i]);
    }
    // The node was queried once, for the one that is a transaction; random text needs no query.
    assert_eq!(refused.lock().unwrap().len(), 1);
    assert!(refused.lock().unwrap().iter().all(|body| body.contains(OF_UNKNOWN_TYPE)));
}

fn unknown() -> Vec<u8> {
    let body = [&b"\x0a\x15\x0a\x13\x0a\x0c/no.such.Msg\x12\x03\x0a\x01A"[..], b"\x12\x00", b"\x1a\x01\x00"];
    body.concat()
}
