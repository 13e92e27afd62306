//! Replies that a node can never give for one block, because of what a user sent to the chain: the block is indexed all the
//! same, and equals what the node gives where it can.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ingest::{Config, Error, Ingest, Verify};
use prost::Message as _;
use proto::descriptor::FileDescriptorSet;
use replay::answers::HttpReply;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::meta::{self, CallLane};
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use testkit::{indexed, recording};
use web::app::App;

use crate::malformed_answers::{HEIGHT, LAST, config, ending, evm, indexed_with, undisturbed};

fn recorded(name: &str) -> Arc<Recording> {
    Arc::new(Recording::open(&recording(name)).unwrap())
}

fn get(store: &Arc<MemStore>, path: &str) -> Value {
    let app = App::new(indexed::indexer(Arc::clone(store) as _).unwrap(), query::ENDPOINTS).unwrap();
    let response = app.get(path);
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(response.status(), 200, "{path}: {body}");
    body
}

/// The node of this recording refuses the receipts of block 587, which has a log without topics.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_topics_does_not_stop_the_index() {
    for verify in [Verify::Hashes, Verify::Off] {
        let (chain, store) = (recorded("evm-log0"), Arc::new(MemStore::new()));
        let config = Config { verify, ..indexed::config(&chain).unwrap() };
        indexed::index_as(config, chain, Options::default(), Arc::clone(&store) as _).await.unwrap();
        let hash = "0x5a342655ecfba5f04bad72a5aa6273ae0e0bc850d78f0e364033b7d27a12fb3f";
        let tx = get(&store, &format!("/indexer/tx/v1/evm-txs/{hash}"))["tx"].clone();
        let topics: Vec<usize> = tx["logs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|log| log["topics"].as_array().unwrap().len())
            .collect();
        assert_eq!((topics, &tx["status"]), (vec![3, 0, 3], &json!("0x1")));
        let frames = get(&store, &format!("/indexer/tx/v1/evm-internal-txs/{hash}"));
        assert!(frames["internal_txs"].as_array().unwrap().len() > 1, "its trace can be had");
        assert_eq!(get(&store, "/indexer/tx/v1/evm-txs")["pagination"]["total"], "6");
    }
}

/// A node that refuses, hangs up on, or cannot write the receipts of one block, or has too few of them for ever.
#[tokio::test(flavor = "multi_thread")]
async fn receipts_of_one_block_that_no_attempt_gives_are_derived() {
    type Spoil = fn(RecordedExchange<'_>) -> HttpReply;
    let spoils: [Spoil; 6] = [
        |exchange| exchange.with_error(-32603, "internal jsonrpc error: failed to get block receipts"),
        |exchange| exchange.with_error(3, "execution reverted"),
        |_| HttpReply { status: http::StatusCode::INTERNAL_SERVER_ERROR, body: "<html>".into() },
        |_| HttpReply {
            status: http::StatusCode::OK,
            body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[{".into(),
        },
        |exchange| exchange.with_change(|receipts| receipts[0]["logs"] = json!("?")),
        |exchange| exchange.with_result(&json!([])),
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let node = OverriddenNode::start(evm(), move |exchange| {
            if exchange.is_rpc("eth_getBlockReceipts", "\"0x7\"") {
                spoil(exchange)
            } else {
                ending(exchange)
            }
        });
        let node = node.await.unwrap();
        let config = Config { believe_after: Duration::from_millis(300), ..indexed::config(&evm()).unwrap() };
        let store = Arc::new(MemStore::new());
        indexed::index_from(node.clients().unwrap(), config, Arc::clone(&store) as _, LAST).await.unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await, "{number}");
    }
}

/// A version of the node that forms receipts and hashes in an unknown way.
#[tokio::test(flavor = "multi_thread")]
async fn receipts_that_mismatch_and_cannot_be_derived_are_accepted() {
    let node = OverriddenNode::start(evm(), |exchange| {
        if exchange.is_rpc("eth_getBlockReceipts", "") {
            return exchange.with_change(|receipts| {
                for receipt in receipts.as_array_mut().into_iter().flatten() {
                    receipt["effectiveGasPrice"] = "0x1".into();
                }
            });
        }
        if exchange.is_rpc("eth_getBlockByNumber", "") {
            return exchange.with_change(|block| block["transactions"] = json!([]));
        }
        ending(exchange)
    });
    let node = node.await.unwrap();
    let config = Config { believe_after: Duration::from_millis(300), ..indexed::config(&evm()).unwrap() };
    let store = Arc::new(MemStore::new());
    indexed::index_from(node.clients().unwrap(), config, Arc::clone(&store) as _, LAST).await.unwrap();
    let tx = get(&store, &format!("/indexer/tx/v1/evm-txs/by_height/{HEIGHT}"))["txs"][0].clone();
    assert_eq!((&tx["effectiveGasPrice"], &tx["status"]), (&json!("0x1"), &json!("0x1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_evm_index_is_pruned_is_an_error_although_its_transactions_pay_fees() {
    for verify in [Verify::Hashes, Verify::Off] {
        let (chain, store) = (recorded("evm-pruned"), Arc::new(MemStore::new()));
        let played =
            ReplayNode::start(Arc::clone(&chain), Addresses::default(), Options::default()).await.unwrap();
        let clients = Arc::new(indexed::clients(&played).unwrap());
        let config =
            Config { verify, internal_txs: false, rich_list: false, ..indexed::config(&chain).unwrap() };
        let ingest = Ingest::prepare(config, clients, Arc::clone(&store) as _).await.unwrap();
        let error = indexed::failure(&ingest).await.unwrap();
        assert!(matches!(error, Error::ReceiptsPruned { tip: 200, .. }), "{error:?}");
    }
}

/// Whatever the reason, the transactions of a block whose traces cannot be had together are traced one by one.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_cannot_be_traced_as_a_whole_is_traced_by_transaction() {
    type Spoil = fn(RecordedExchange<'_>) -> HttpReply;
    let spoils: [Spoil; 3] = [
        |exchange| exchange.with_error(-32000, "execution timeout"),
        |exchange| exchange.with_error(3, "tracing failed"),
        |exchange| exchange.with_change(|traces| traces[0]["result"]["from"] = json!("nobody")),
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let store = indexed_with(move |exchange| {
            if exchange.is_rpc("debug_traceBlockByNumber", "\"0x7\"") {
                spoil(exchange)
            } else {
                ending(exchange)
            }
        })
        .await;
        assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_cannot_be_traced_is_shown_in_the_status() {
    let store = indexed_with(|exchange| {
        let is_spoiled = exchange.is_rpc("debug_traceBlockByNumber", "\"0x7\"")
            || exchange.is_rpc("debug_traceTransaction", "");
        if is_spoiled { exchange.with_error(-32000, "execution timeout") } else { ending(exchange) }
    })
    .await;
    assert_eq!(get(&store, "/status")["internal_tx_untraced"], json!([HEIGHT]));
    let lane: CallLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
    assert_eq!((lane.height, &lane.untraced[..]), (LAST, &[HEIGHT][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_is_traced_later_when_the_node_traces_it() {
    let (is_repaired, last) = (Arc::new(AtomicBool::new(false)), format!("\"{LAST:#x}\""));
    let repaired = Arc::clone(&is_repaired);
    let node = OverriddenNode::start(evm(), move |exchange| {
        let is_spoiled = exchange.is_rpc("debug_traceBlockByNumber", &last)
            || exchange.is_rpc("debug_traceTransaction", "");
        if is_spoiled && !repaired.load(Ordering::Relaxed) {
            return exchange.with_error(-32000, "execution timeout");
        }
        ending(exchange)
    });
    let (node, store) = (node.await.unwrap(), Arc::new(MemStore::new()));
    let clients = Arc::new(node.clients().unwrap());
    let ingest = Ingest::prepare(config(), clients, Arc::<MemStore>::clone(&store)).await.unwrap();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut progress = ingest.progress();
    let lane = || meta::read::<CallLane>(&*store.snapshot().unwrap()).unwrap().unwrap();
    let traced = async {
        while progress.done() < LAST {
            progress.moved().await;
        }
        assert_eq!(lane().untraced, [LAST]);
        is_repaired.store(true, Ordering::Relaxed);
        while !lane().untraced.is_empty() || lane().height < LAST {
            progress.calls.changed().await.unwrap();
        }
        stop.send_replace(true);
    };
    let all = async { tokio::join!(ingest.run(stopped), traced) };
    tokio::time::timeout(Duration::from_mins(1), all).await.unwrap().0.unwrap();
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

/// A tracer that fails on everything for a time has not failed because of a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_tracer_leaves_no_transaction_without_frames() {
    let failures = AtomicU64::new(0);
    let store = indexed_with(move |exchange| {
        let traces =
            exchange.is_rpc("debug_traceBlockByNumber", "") || exchange.is_rpc("debug_traceTransaction", "");
        if traces && failures.fetch_add(1, Ordering::Relaxed) < 200 {
            return exchange.with_error(-32000, "the tracer is out of memory");
        }
        ending(exchange)
    })
    .await;
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
    let lane: CallLane = meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
    assert!(lane.untraced.is_empty());
}

/// Neither the descriptors nor the node's REST know the type of creations.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_that_the_node_fails_to_decode_every_time_are_stored_with_their_bytes() {
    let store = indexed_with(|exchange| {
        let target = exchange.request.uri().to_string();
        if target.contains("FileDescriptors") {
            return exchange.with_change(without_creations);
        }
        if target.contains("/cosmos/tx/v1beta1/decode") {
            let body = r#"{"code":2,"message":"panic: out of memory","details":[]}"#;
            return HttpReply { status: http::StatusCode::INTERNAL_SERVER_ERROR, body: body.into() };
        }
        ending(exchange)
    })
    .await;
    let tx = get(&store, &format!("/indexer/tx/v1/txs/by_height/{HEIGHT}"))["txs"][0].clone();
    let message = &tx["tx"]["body"]["messages"][0];
    assert_eq!(message["@type"], "/minievm.evm.v1.MsgCreate");
    assert!(message["value"].as_str().is_some_and(|bytes| bytes.len() > 10), "{message}");
}

fn without_creations(answer: &mut Value) {
    let value = &mut answer["response"]["value"];
    let bytes = BASE64.decode(value.as_str().unwrap()).unwrap();
    let mut set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    for file in set.file.iter_mut().filter(|file| file.package == "minievm.evm.v1") {
        file.message_type.retain(|message| message.name != "MsgCreate");
    }
    *value = BASE64.encode(set.encode_to_vec()).into();
}
