//! Nodes of different versions next to one chain, and a node that is upgraded while it is indexed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ingest::verify::{Scope, verify};
use ingest::{Config, Verify};
use prost::Message as _;
use proto::descriptor::FileDescriptorSet;
use replay::Recording;
use replay::answers::{HttpReply, Service};
use schema::digest::TableDigest;
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::indexed;
use testkit::live::Live;
use testkit::overridden_node::{OverriddenNode, RecordedExchange};
use web::app::App;

use crate::malformed_answers::{LAST, ending, evm, undisturbed};
use crate::verify::database::scratch;

/// Receipts as a node of a later version writes them.
fn later_version(exchange: RecordedExchange<'_>) -> HttpReply {
    if !exchange.is_rpc("eth_getBlockReceipts", "") {
        return ending(exchange);
    }
    exchange.with_change(|receipts| {
        let mut logs = 0;
        for (index, receipt) in receipts.as_array_mut().into_iter().flatten().enumerate() {
            let index = format!("{index:#x}");
            receipt["transactionIndex"] = index.clone().into();
            receipt["blockTimestamp"] = "0x5".into();
            for log in receipt["logs"].as_array_mut().into_iter().flatten() {
                // minievm since "use block-scoped log index counter" (#284).
                log["logIndex"] = format!("{logs:#x}").into();
                log["transactionIndex"] = index.clone().into();
                logs += 1;
            }
        }
    })
}

async fn digest_beside(answers: fn(RecordedExchange<'_>) -> HttpReply, verify: Verify) -> Vec<TableDigest> {
    let node = OverriddenNode::start(evm(), answers).await.unwrap();
    let config = Config { verify, ..indexed::config(&evm()).unwrap() };
    let store = Arc::new(MemStore::new());
    indexed::index_from(node.clients().unwrap(), config, Arc::clone(&store) as _, LAST).await.unwrap();
    indexed::digest(&*store).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_the_same_beside_nodes_of_two_versions() {
    assert_eq!(digest_beside(later_version, Verify::Hashes).await, undisturbed().await);
    // Unverified receipts are not derived, so that their transactions are numbered as the node does.
    assert_eq!(digest_beside(ending, Verify::Off).await, undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_is_sound_beside_a_node_of_another_version() {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let node = OverriddenNode::start(evm(), ending).await.unwrap();
    let config = indexed::config(&evm()).unwrap();
    indexed::index_from(node.clients().unwrap(), config, Arc::clone(&store), LAST).await.unwrap();
    let later = OverriddenNode::start(evm(), later_version).await.unwrap();
    let clients = Arc::new(later.clients().unwrap());
    let report = verify(&store, Some(&clients), Scope::All, &*scratch()).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_of_the_node_about_its_own_index_is_not_stored() {
    let digest = digest_beside(
        |exchange| {
            let target = exchange.request.uri().path().to_owned();
            if exchange.service != Service::Comet || target != "/block_results" {
                return ending(exchange);
            }
            let text = String::from_utf8(exchange.answer.body.to_vec()).unwrap();
            HttpReply {
                status: exchange.answer.status,
                body: text.replace(r#""index":true"#, r#""index":false"#).into(),
            }
        },
        Verify::Hashes,
    );
    assert_eq!(digest.await, undisturbed().await);
}

/// Takes a field from the descriptors in the answer to `abci_query`: those before the upgrade that adds it.
fn without_access_list(answer: &mut Value) {
    let value = &mut answer["response"]["value"];
    let bytes = BASE64.decode(value.as_str().unwrap()).unwrap();
    let mut set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    let messages = set.file.iter_mut().filter(|file| file.package == "minievm.evm.v1");
    let calls = messages.flat_map(|file| &mut file.message_type).filter(|message| message.name == "MsgCall");
    let mut fields = 0;
    for call in calls {
        fields += call.field.len();
        call.field.retain(|field| field.name != "access_list");
        fields -= call.field.len();
    }
    assert_eq!(fields, 1);
    *value = BASE64.encode(set.encode_to_vec()).into();
}

/// A node that has not been upgraded until `is_new`, and shows the chain up to `tip`.
fn upgraded_once(
    is_new: Arc<AtomicBool>,
    tip: Arc<AtomicU64>,
) -> impl Fn(RecordedExchange<'_>) -> HttpReply + Send + Sync + 'static {
    move |exchange| {
        let path = exchange.request.uri().path().to_owned();
        match path.as_str() {
            _ if exchange.service != Service::Comet => exchange.answer,
            "/status" => exchange.with_change(|status| {
                let tip = tip.load(Ordering::SeqCst).to_string();
                status["sync_info"]["latest_block_height"] = tip.into();
            }),
            "/abci_info" if !is_new.load(Ordering::SeqCst) => {
                exchange.with_change(|info| info["response"]["version"] = "v0.0.1".into())
            }
            "/abci_query" if !is_new.load(Ordering::SeqCst) => exchange.with_change(without_access_list),
            _ => exchange.answer,
        }
    }
}

/// The `tx` members of the calls at `height`.
fn calls_at(store: &Arc<dyn Store>, height: u64) -> Vec<Value> {
    let app = App::new(indexed::indexer(Arc::clone(store)).unwrap(), query::ENDPOINTS).unwrap();
    let response = app.get(&format!("/indexer/tx/v1/txs/by_height/{height}"));
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    let messages = |tx: &Value| tx["tx"]["body"]["messages"].as_array().cloned().unwrap_or_default();
    let all = body["txs"].as_array().unwrap().iter().flat_map(messages);
    let calls: Vec<Value> = all.filter(|message| message["@type"] == "/minievm.evm.v1.MsgCall").collect();
    assert!(!calls.is_empty());
    calls
}

/// A height with a call whose access list is empty, from `from` on.
fn height_of_a_call(chain: &Recording, from: u64) -> u64 {
    let is_call = |tx: &Value| {
        let message = &tx["body"]["messages"][0];
        message["@type"] == "/minievm.evm.v1.MsgCall" && message["access_list"] == json!([])
    };
    let of = |height: u64| -> Vec<Value> {
        let txs = chain.height(height).unwrap().rest_txs;
        serde_json::from_slice(txs.as_deref().unwrap_or(b"[]")).unwrap()
    };
    (from..=chain.last()).find(|height| of(*height).iter().any(is_call)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptors_follow_an_upgrade_without_a_restart_and_the_database_stays_sound() {
    let chain = evm();
    let (before, after) = (height_of_a_call(&chain, 1), height_of_a_call(&chain, 12));
    assert!(before < 10 && after < LAST, "{before} {after}");
    let (is_new, tip) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(10)));
    let answers = upgraded_once(Arc::clone(&is_new), Arc::clone(&tip));
    let node = OverriddenNode::start(Arc::clone(&chain), answers).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = indexed::config(&chain).unwrap();
    let clients = Arc::new(node.clients().unwrap());
    let mut live = Live::start(Arc::clone(&clients), config, Arc::clone(&store)).await.unwrap();
    live.reach(&chain, 10).await.unwrap();
    assert!(calls_at(&store, before).iter().all(|call| call.get("access_list").is_none()));

    is_new.store(true, Ordering::SeqCst);
    // The new descriptors are stored when they are loaded.
    let sets = || {
        let snapshot = store.snapshot().unwrap();
        store::table::rows::<schema::descriptors::Descriptors>(
            &*snapshot,
            &store::key::All,
            store::Order::Asc,
            9,
        )
        .unwrap()
        .len()
    };
    let loaded = async {
        while sets() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), loaded).await.unwrap();
    tip.store(LAST, Ordering::SeqCst);
    live.reach(&chain, LAST).await.unwrap();
    live.stop().await.unwrap();
    assert!(calls_at(&store, after).iter().all(|call| call["access_list"].is_array()));
    assert!(calls_at(&store, before).iter().all(|call| call.get("access_list").is_none()), "as it was then");

    let report = verify(&store, Some(&clients), Scope::All, &*scratch()).await.unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}
