//! What a node does and clients cannot live with, put right.

use std::sync::Arc;

use evm_rpc::Dialect;
use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::logs::LOGS;
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};
use store::{MemStore, Store};
use testkit::{indexed, recording};

use super::{app, over, text};

async fn reply(app: &web::app::App<evm_rpc::EvmRpc>, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    serde_json::from_str(&text(app, &body.to_string()).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_hash_is_no_block_and_not_a_fault_that_clients_try_again() {
    let app = app(Dialect::Fixed).await;
    for hash in [format!("0x{}", "7".repeat(64)), format!("0x{}", "0".repeat(64))] {
        for (method, params) in [
            ("eth_getBlockByHash", json!([hash, false])),
            ("eth_getBlockReceipts", json!([hash])),
            ("eth_getBlockTransactionCountByHash", json!([hash])),
            ("eth_getTransactionByHash", json!([hash])),
            ("eth_getTransactionReceipt", json!([hash])),
        ] {
            let reply = reply(&app, method, &params).await;
            assert!(reply["result"].is_null() && reply.get("error").is_none(), "{method}: {reply}");
        }
        let logs = reply(&app, "eth_getLogs", &json!([{ "blockHash": hash }])).await;
        assert_eq!(logs["error"], json!({ "code": -32000, "message": "unknown block" }), "{hash}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_range_of_logs_has_no_limit_and_tags_are_the_head() {
    let app = app(Dialect::Fixed).await;
    let whole =
        reply(&app, "eth_getLogs", &json!([{ "fromBlock": "0x1", "toBlock": "0x7fffffffffffffff" }])).await;
    assert!(whole["result"].as_array().unwrap().len() > 1000, "{whole}");
    let first = reply(&app, "eth_getLogs", &json!([{ "fromBlock": "0x0", "toBlock": "0x1" }])).await;
    assert!(first["result"].is_array(), "block 0 is the first one: {first}");
    for tag in ["latest", "earliest", "pending", "safe", "finalized"] {
        assert_eq!(
            reply(&app, "eth_getBlockByNumber", &json!([tag, false])).await["result"]["number"],
            "0x248",
            "{tag}"
        );
    }
    assert_eq!(reply(&app, "eth_getBlockByNumber", &json!(["0x0", false])).await["result"]["number"], "0x1");
    assert_eq!(reply(&app, "net_version", &json!([])).await["result"], "1");
}

/// viem and alloy send a call again after these codes, or after HTTP status 429.
const REPEATED: [i64; 2] = [-32603, -32005];

#[tokio::test(flavor = "multi_thread")]
async fn no_limit_of_a_request_is_an_error_that_clients_repeat() {
    let app = super::rpc(Dialect::Fixed).await.with_filters(true).app().unwrap();
    let (account, word) = (format!("0x{}", "11".repeat(20)), format!("0x{}", "11".repeat(32)));
    let contracts: Vec<_> = (0..1001).map(|number| format!("0x{number:040x}")).collect();
    for (method, params, message) in [
        ("eth_getLogs", json!([{ "address": contracts }]), "exceed max addresses"),
        ("eth_getLogs", json!([{ "topics": [vec![&word; 1001]] }]), "invalid argument 0: exceed max topics"),
        ("eth_getLogs", json!([{ "topics": vec![&word; 5] }]), "invalid argument 0: exceed max topics"),
        ("eth_getLogs", json!([{ "fromBlock": "0x7", "toBlock": "0x3" }]), "invalid block range params"),
        ("eth_newFilter", json!([{ "address": contracts }]), "exceed max addresses"),
        ("eth_getLogs", json!([{}, 1]), "too many arguments, want at most 1"),
        ("ots_searchTransactionsBefore", json!([account, 0, 26]), "max allowed page size: 25"),
        ("ots_getBlockTransactions", json!([1, 0, 256]), "max allowed page size: 255"),
        ("ots2_getAllContractsList", json!([0, 101]), "max allowed page size: 100"),
    ] {
        let error = reply(&app, method, &params).await["error"].clone();
        assert_eq!(error["message"], message, "{method}");
        assert!(!REPEATED.contains(&error["code"].as_i64().unwrap()), "{method}: {error}");
    }
}

/// The raw bytes of a transaction are those that it is hashed from, also of one with authorizations, which a node forgets.
#[tokio::test(flavor = "multi_thread")]
async fn the_raw_bytes_of_each_transaction_have_its_hash() {
    let app = app(Dialect::Fixed).await;
    let (mut kinds, mut seen) = (std::collections::BTreeSet::new(), 0);
    for height in 1..=0x248 {
        let block = reply(&app, "eth_getBlockByNumber", &json!([format!("{height:#x}"), true])).await;
        for tx in block["result"]["transactions"].as_array().unwrap() {
            let raw = reply(&app, "eth_getRawTransactionByHash", &json!([tx["hash"]])).await;
            let raw = hex::decode(&raw["result"].as_str().unwrap()[2..]).unwrap();
            let hash = format!("0x{}", hex::encode(Keccak256::digest(&raw)));
            let by_place = json!([format!("{height:#x}"), tx["transactionIndex"]]);
            let placed = reply(&app, "eth_getTransactionByBlockNumberAndIndex", &by_place).await;
            assert_eq!(placed["result"], *tx, "its printed place");
            if tx["from"] != "0x0000000000000000000000000000000000000000" {
                assert_eq!(tx["hash"], hash, "{tx}");
                seen += 1;
            }
            kinds.insert(tx["type"].to_string());
        }
    }
    assert!(kinds.len() == 4 && seen > 900, "{kinds:?} {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_before_the_first_one_are_pruned_and_no_empty_list() {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let lanes = Config { internal_txs: false, rich_list: false, ..indexed::config(&recording).unwrap() };
    let config = Config { indexes: vec![&LOGS], start_height: Some(400), ..lanes };
    let played = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    let ingest = Ingest::prepare(config, Arc::new(indexed::clients(&played).unwrap()), Arc::clone(&store));
    indexed::run_to(&ingest.await.unwrap(), 584).await.unwrap();
    played.stop().await;
    let app = over(indexed::indexer(store).unwrap(), Dialect::Fixed).app().unwrap();
    let query = |from: &str| json!([{ "fromBlock": from, "toBlock": "latest" }]);
    let pruned = reply(&app, "eth_getLogs", &query("0x18f")).await;
    assert_eq!(
        (&pruned["error"]["code"], &pruned["error"]["message"]),
        (&json!(4444), &json!("pruned history unavailable"))
    );
    assert!(!reply(&app, "eth_getLogs", &query("0x190")).await["result"].as_array().unwrap().is_empty());
    for method in ["eth_getBlockReceipts", "eth_getBlockTransactionCountByNumber"] {
        assert_eq!(reply(&app, method, &json!(["0x18f"])).await["error"]["code"], 4444, "{method}");
    }
}
