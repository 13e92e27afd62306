//! A recording of an EVM chain that is not a rollup: only its JSON-RPC, and logs from its receipts.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use node::{Evm, Kind, Limits};
use replay::answers::{Deviations, Service, View, answer};
use replay::counters::Counters;
use replay::{Addresses, Error, Options, Recording, ReplayNode};
use serde_json::{Value, json};

const TOPIC: &str = "0x85496b760a4b7f8d66384b9df21b381f5d1b1e79f229a47aaf4c232edc2fe59a";

fn hash(byte: u8) -> String {
    format!("0x{}", hex::encode([byte; 32]))
}

fn receipt(tx: u8, block: u64, index: u64) -> Value {
    let log = json!({
        "address": format!("0x{}", "1a".repeat(20)), "topics": [TOPIC, hash(tx)], "data": "0x",
        "blockNumber": format!("{block:#x}"), "blockHash": hash(0xb0), "transactionHash": hash(tx),
        "transactionIndex": "0x0", "logIndex": format!("{index:#x}"), "removed": false,
    });
    json!({ "transactionHash": hash(tx), "blockNumber": format!("{block:#x}"), "status": "0x1", "logs": [log] })
}

fn line(method: &str, params: Value, result: Value) -> Value {
    json!({ "kind": "eth", "method": method, "params": params, "result": result })
}

/// The files of a recording with three receipts, the last one also under another hash.
fn recording() -> (tempfile::TempDir, Recording) {
    let block = |number: &str| json!({ "number": number, "hash": hash(0xb0), "timestamp": "0x66000000" });
    let by_tag = |tag: &str, number: &str| line("eth_getBlockByNumber", json!([tag, false]), block(number));
    let by_hash = |of: u8, receipt: Value| line("eth_getTransactionReceipt", json!([hash(of)]), receipt);
    let call = json!({ "to": "0xAB", "data": "0x01" });
    let lines = [
        line("eth_chainId", json!([]), json!("0x7a69")),
        line("eth_blockNumber", json!([]), json!("0x9")),
        by_tag("latest", "0x9"),
        by_tag("finalized", "0x8"),
        by_tag("0x9", "0x9"),
        by_hash(2, receipt(2, 9, 1)),
        by_hash(1, receipt(1, 9, 0)),
        by_hash(3, receipt(3, 4, 0)),
        by_hash(7, receipt(3, 4, 0)),
        by_hash(9, Value::Null),
        line("eth_call", json!([call, "latest"]), json!("0x2a")),
        line(
            "eth_getLogs",
            json!([{ "fromBlock": "0x0", "address": "0xcc" }]),
            json!([{ "recorded": true }]),
        ),
        json!({ "kind": "eth", "method": "eth_call", "params": [{ "to": "0xab", "data": "0x02" }, "latest"],
            "error": { "code": 3, "message": "execution reverted", "data": "0x08c379a0" } }),
    ];
    let dir = tempfile::tempdir().unwrap();
    let text = lines.map(|line| line.to_string()).join("\n") + "\n";
    let state = zstd::encode_all(text.as_bytes(), 3).unwrap();
    fs::write(dir.path().join("state.ndjson.zst"), state).unwrap();
    summary(dir.path(), 0);
    let recording = Recording::open(dir.path()).unwrap();
    (dir, recording)
}

fn summary(dir: &Path, last: u64) {
    let summary = json!({
        "format": 1, "name": "x", "chain_id": "31337", "vm": "ethereum", "first_height": 0,
        "last_height": last, "txs": 0, "evm_txs": 4, "trace_frames": 0, "fee_denom": "", "state_queries": 13,
    });
    fs::write(dir.join("recording.json"), summary.to_string()).unwrap();
}

async fn play() -> (ReplayNode, Evm) {
    let (_dir, recording) = recording();
    let node =
        ReplayNode::start(Arc::new(recording), Addresses::default(), Options::default()).await.unwrap();
    let evm = Evm::new(vec![node.json_rpc_url().parse().unwrap()], Limits::default()).unwrap();
    (node, evm)
}

fn transactions(logs: &[u8]) -> Vec<String> {
    let logs: Vec<Value> = serde_json::from_slice(logs).unwrap();
    logs.iter().map(|log| log["transactionHash"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn recorded_answers_are_found_by_method_and_parameters() {
    let (node, evm) = play().await;
    assert_eq!((evm.chain_id().await.unwrap(), evm.block_number().await.unwrap()), (31_337, 9));
    assert_eq!(evm.finalized().await.unwrap(), Some(8));
    let time = evm.block_time(9).await.unwrap().unwrap();
    assert_eq!(time.unix_nanos(), 0x6600_0000 * 1_000_000_000);
    let receipt: Value = serde_json::from_slice(&evm.receipt([1; 32]).await.unwrap().unwrap()).unwrap();
    assert_eq!(receipt, self::receipt(1, 9, 0));
    assert_eq!(evm.receipt([9; 32]).await.unwrap(), None);
    assert_eq!(node.missing().count, 0);
    // Unknown receipts and the other services have no answers.
    assert_eq!(evm.receipt([8; 32]).await.unwrap_err().kind(), Kind::Transient);
    assert_eq!(node.missing().count, 1);
    assert!(tokio::net::TcpStream::connect(node.comet_url().trim_start_matches("http://")).await.is_err());
    assert_eq!(node.executor_url(), None);
}

#[tokio::test]
async fn logs_are_derived_from_the_receipts_in_chain_order_and_once() {
    let (node, evm) = play().await;
    let all = evm.logs(r#"{"fromBlock":"earliest"}"#).await.unwrap();
    assert_eq!(transactions(&all), [hash(3), hash(1), hash(2)]);
    let finalized = evm.logs(r#"{"fromBlock":"0x0","toBlock":"finalized"}"#).await.unwrap();
    assert_eq!(transactions(&finalized), [hash(3)]);
    let filter = json!({ "fromBlock": "0x0", "topics": [TOPIC, [hash(1), hash(5)]] }).to_string();
    assert_eq!(transactions(&evm.logs(&filter).await.unwrap()), [hash(1)]);
    assert_eq!(transactions(&evm.logs("{}").await.unwrap()), [hash(1), hash(2)]);
    let recorded = evm.logs(r#"{"fromBlock":"0x0","address":"0xCC"}"#).await.unwrap();
    assert_eq!(recorded, r#"[{"recorded":true}]"#);
    assert_eq!(node.missing().count, 0);
    assert!(evm.logs(r#"{"toBlock":"safe"}"#).await.is_err());
    assert_eq!(node.missing().count, 1);
}

#[test]
fn logs_of_the_recorded_pair_equal_those_of_its_nodes() {
    for name in ["a", "b"] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-oft").join(name);
        let recording = Recording::open(&dir).unwrap();
        let counters = Counters::default();
        let view = View {
            recording: &recording,
            shown: 0,
            deviations: Deviations::default(),
            lagging: &[],
            counters: &counters,
        };
        let text = zstd::decode_all(fs::File::open(dir.join("state.ndjson.zst")).unwrap()).unwrap();
        let lines = String::from_utf8(text).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let (mut found, mut empty) = (0, 0);
        for line in lines.filter(|line| line["method"] == "eth_getLogs") {
            // The same request in another spelling, so that the recorded line is not used.
            let mut params = line["params"].clone();
            params[0]["address"] = json!([params[0]["address"]]);
            params[0]["fromBlock"] = json!("earliest");
            let call = json!({ "id": 1, "method": "eth_getLogs", "params": params }).to_string();
            let request = http::Request::post("/").body(bytes::Bytes::from(call)).unwrap();
            let reply: Value =
                serde_json::from_slice(&answer(Service::JsonRpc, view, &request).body).unwrap();
            assert_eq!(reply["result"], line["result"], "{name}: {params}");
            if reply["result"] == json!([]) { empty += 1 } else { found += 1 }
        }
        assert!(found > 5 && empty > 0, "{name}: {found} found, {empty} empty");
        assert_eq!(counters.missing().count, 0);
    }
}

#[test]
fn heights_are_neither_required_nor_allowed() {
    let (dir, recording) = recording();
    assert!(recording.is_ethereum() && recording.heights().is_empty());
    summary(dir.path(), 5);
    assert!(matches!(Recording::open(dir.path()), Err(Error::File { .. })));
}
