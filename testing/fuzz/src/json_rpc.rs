//! JSON-RPC over a recorded chain: any body gets a response of the protocol, and no internal error.

use std::sync::{Arc, LazyLock, OnceLock};

use evm_rpc::{Dialect, EvmRpc};
use http::{Request, StatusCode};
use replay::Recording;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use web::app::App;

use crate::edit;
use crate::input::Input;

/// The code of an error that is the server's own.
const INTERNAL: i64 = -32603;

struct Served {
    runtime: Runtime,
    app: App<EvmRpc>,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let store = runtime.block_on(testkit::indexed::index_for_json_rpc(recording, true)).unwrap();
    let index = App::new(testkit::indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let index = Arc::new(OnceLock::from(Arc::new(index)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0.0.0");
    Served { runtime, app: rpc.app().unwrap() }
});

/// Methods, members and values.
pub const WORDS: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "\"method\":\"eth_getLogs\"",
    "\"method\":\"eth_getBlockByNumber\"",
    "\"params\":[",
    "\"fromBlock\":",
    "\"toBlock\":",
    "\"blockHash\":",
    "\"address\":",
    "\"topics\":[[",
    "\"earliest\"",
    "\"finalized\"",
    "\"0x7fffffffffffffff\"",
    "\"0xffffffffffffffff\"",
    "\"0x\"",
    "\"0x00\"",
    "null",
    "true",
    "],[",
    "},{",
];

/// Input: 0 and a body, or the number of a call and edits of it.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let calls = &*CALLS;
    let body = match input.byte() {
        0 => input.rest().to_vec(),
        number => {
            let mut call = calls[usize::from(number) % calls.len()].clone();
            edit::apply(&mut call, &mut input);
            call.to_string().into_bytes()
        }
    };
    let request = Request::builder().method("POST").uri("/").header("content-type", "application/json");
    let parts = request.body(()).unwrap().into_parts().0;
    let Served { runtime, app } = &*SERVED;
    let response = runtime.block_on(app.respond_later(&parts, &body));
    assert_eq!(response.status(), StatusCode::OK);
    if response.body().is_empty() {
        return false;
    }
    let replies: Value = serde_json::from_slice(response.body()).unwrap();
    let replies = replies.as_array().map_or(std::slice::from_ref(&replies), Vec::as_slice);
    let mut has_result = false;
    for reply in replies {
        assert_eq!(reply["jsonrpc"], "2.0", "{reply}");
        let (result, error) = (reply.get("result"), reply.get("error"));
        assert!(reply.get("id").is_some() && result.is_some() != error.is_some(), "{reply}");
        if let Some(error) = error {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{reply}");
            assert_ne!(error["code"], INTERNAL, "{reply}");
        }
        has_result |= result.is_some();
    }
    has_result
}

/// A call of each kind of parameters, and a batch of them.
static CALLS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let (hash, address) = (format!("0x{:064}", 1), format!("0x{:040}", 1));
    let calls = [
        ("eth_chainId", json!([])),
        ("eth_blockNumber", Value::Null),
        ("web3_sha3", json!(["0x00ff"])),
        ("eth_getBlockByNumber", json!(["0x14", true])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getBlockByHash", json!([hash, true])),
        ("eth_getBlockReceipts", json!([{ "blockNumber": "0x14" }])),
        ("eth_getTransactionByBlockNumberAndIndex", json!(["0x14", "0x1"])),
        ("eth_getTransactionReceipt", json!([hash])),
        ("eth_getLogs", json!([{ "fromBlock": "0x1", "toBlock": "latest", "address": [address, address] }])),
        ("eth_getLogs", json!([{ "fromBlock": "earliest", "topics": [[hash], null, [hash, null]] }])),
        ("eth_getLogs", json!([{ "fromBlock": "0x1", "toBlock": "0x50" }])),
        ("ots_searchTransactionsBefore", json!([format!("0x{:040}", 0), 0, 25])),
        ("ots_searchTransactionsAfter", json!([address, 20, 1])),
        ("ots_getBlockDetails", json!([20])),
        ("ots_getBlockTransactions", json!(["0x14", 0, 25])),
        ("ots_getContractCreator", json!([address])),
        ("ots_hasCode", json!([address, "latest"])),
        ("ots_getTransactionBySenderAndNonce", json!([address, 1])),
        ("ots_traceTransaction", json!([hash])),
    ];
    let call = |(id, (method, params)): (u32, (&str, Value))| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut calls: Vec<Value> = (1..).zip(calls).map(call).collect();
    calls.push(Value::Array(calls.clone()));
    calls
});

/// Each call, as text and by its number.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = CALLS.iter().map(|call| [&[0][..], call.to_string().as_bytes()].concat());
    texts.chain((1..=CALLS.len()).filter_map(|number| Some(vec![u8::try_from(number).ok()?]))).collect()
}
