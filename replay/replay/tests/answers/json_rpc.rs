//! The EVM's JSON-RPC against the recordings.

use replay::answers::{Deviation, Deviations, Service, View, answer};
use replay::counters::Counters;
use replay::recording::Trace;
use serde_json::{Value, json};

use crate::{EVM, MOVE, Reply, get, parse, post};

const JSON_RPC: Service = Service::JsonRpc;

fn call(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn rpc(method: &str, params: Value) -> Reply {
    EVM.post(JSON_RPC, "/", &call(method, params))
}

fn rpc_at(shown: u64, method: &str, params: Value) -> Reply {
    EVM.ask_at(shown, JSON_RPC, post("/", &call(method, params)))
}

fn call_tracer() -> Value {
    json!({ "tracer": "callTracer" })
}

#[test]
fn blocks_receipts_and_traces_of_every_height_are_the_recorded_ones() {
    for height in EVM.recording.heights() {
        let number = format!("{:#x}", height.height);
        let receipts = rpc("eth_getBlockReceipts", json!([number]));
        let raw = std::str::from_utf8(height.eth_receipts.as_ref().unwrap()).unwrap();
        assert_eq!(receipts.text, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#));
        let block = rpc("eth_getBlockByNumber", json!([number, false])).result();
        assert_eq!(block, parse(height.eth_block.as_ref().unwrap()));
        if height.height == 1 {
            continue;
        }
        let trace = rpc("debug_traceBlockByNumber", json!([number, call_tracer()])).result();
        match &height.eth_trace {
            Some(Trace::Result(raw)) => assert_eq!(trace, parse(raw)),
            Some(Trace::Error(raw)) => panic!("recorded error {raw:?}"),
            None => assert_eq!(trace, json!([])),
        }
    }
}

#[test]
fn heights_above_the_shown_one_are_null_and_cannot_be_traced() {
    assert_eq!(rpc_at(10, "eth_blockNumber", json!([])).result(), "0xa");
    assert_eq!(rpc_at(10, "eth_getBlockReceipts", json!(["0xb"])).result(), Value::Null);
    assert_eq!(rpc_at(10, "eth_getBlockByNumber", json!(["0xb", false])).result(), Value::Null);
    let trace = rpc_at(10, "debug_traceBlockByNumber", json!(["0xb", call_tracer()]));
    assert_eq!((trace.status, trace.missing), (200, 0));
    assert_eq!(trace.json()["error"], json!({ "code": -32000, "message": "block #11 not found" }));
    let genesis = rpc("debug_traceBlockByNumber", json!(["0x1", call_tracer()]));
    assert_eq!(genesis.json()["error"]["message"], "genesis is not traceable");
    let latest = rpc_at(10, "eth_getBlockByNumber", json!(["latest", false])).result();
    assert_eq!(latest["number"], "0xa");
    assert_eq!(rpc("eth_getBlockByNumber", json!(["0x0", false])).result()["number"], "0x1");
}

#[test]
fn every_receipt_and_trace_is_found_by_its_hash() {
    let mut found = 0;
    for height in EVM.recording.heights() {
        let Some(Trace::Result(traces)) = &height.eth_trace else { continue };
        let (traces, receipts) = (parse(traces), parse(height.eth_receipts.as_ref().unwrap()));
        for receipt in receipts.as_array().unwrap() {
            let hash = &receipt["transactionHash"];
            assert_eq!(rpc("eth_getTransactionReceipt", json!([hash])).result(), *receipt);
            let entry = traces.as_array().unwrap().iter().find(|t| t["txHash"] == *hash).unwrap();
            let trace = rpc("debug_traceTransaction", json!([hash, call_tracer()])).result();
            assert_eq!(trace, entry["result"]);
            found += 1;
        }
        let Some(hash) = receipts[0].get("transactionHash") else { continue };
        assert_eq!(
            rpc_at(height.height - 1, "eth_getTransactionReceipt", json!([hash])).result(),
            Value::Null
        );
    }
    assert_eq!(found, 642);
    let unknown = format!("0x{}", "ab".repeat(32));
    assert_eq!(rpc("eth_getTransactionReceipt", json!([unknown])).result(), Value::Null);
    let trace = rpc("debug_traceTransaction", json!([unknown, call_tracer()]));
    assert_eq!(trace.json()["error"]["message"], "transaction not found");
}

#[test]
fn receipts_are_null_while_the_index_lags() {
    let counters = Counters::default();
    let view = View {
        recording: &EVM.recording,
        shown: 226,
        deviations: Deviations::from([(Deviation::NullReceipts, 0)]),
        lagging: &[],
        counters: &counters,
    };
    let reply = answer(JSON_RPC, view, &post("/", &call("eth_getBlockReceipts", json!(["0x2"]))));
    assert_eq!(&reply.body[..], br#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[test]
fn recorded_answers_about_the_chain_are_returned() {
    assert_eq!(rpc("eth_chainId", json!([])).result(), "0x892573920682c");
    assert_eq!(rpc("net_version", json!([])).result(), "1");
    assert_eq!(EVM.post(JSON_RPC, "/", r#"{"id":1,"method":"web3_clientVersion"}"#).result(), "0.38.19");
}

#[test]
fn recorded_calls_are_answered_with_their_result_or_error_and_others_are_not() {
    let name = json!({ "to": "0x042ADD9E80f7a23ab71d5e1d392af1d3928b7d05", "data": "0x06fdde03" });
    let reply = rpc("eth_call", json!([name, "0xe2"])).result();
    assert!(reply.as_str().unwrap().contains("474153"), "{reply}");
    assert_eq!(rpc("eth_call", json!([name, "latest"])).result(), reply);
    let reverted = json!({ "to": "0xa347222461b92ac51ece69ff59375197f6317ba3",
        "input": "0x01ffc9a780ac58cd00000000000000000000000000000000000000000000000000000000" });
    let error = rpc("eth_call", json!([reverted, "0xe2"]));
    assert_eq!(error.json()["error"], json!({ "code": -32000, "message": "Reverted" }));
    assert_eq!(error.missing, 0);
    assert_eq!(rpc("eth_call", json!([name, "0x5"])).missing, 1);
    let with_sender = json!({ "to": name["to"], "data": name["data"], "from": name["to"] });
    assert_eq!(rpc("eth_call", json!([with_sender, "0xe2"])).missing, 1);
    let held_back = rpc_at(10, "eth_call", json!([name, "0xe2"]));
    assert_eq!(held_back.json()["error"]["message"], "block #226 not found");
}

#[test]
fn a_batch_of_a_thousand_is_answered_and_a_larger_one_is_an_error() {
    let batch = |n: usize| {
        let calls: Vec<_> = (0..n)
            .map(
                |i| json!({ "jsonrpc": "2.0", "id": i, "method": "eth_getBlockReceipts", "params": ["0x2"] }),
            )
            .collect();
        EVM.post(JSON_RPC, "/", &Value::from(calls).to_string()).json()
    };
    let answers = batch(1000);
    assert_eq!(answers.as_array().unwrap().len(), 1000);
    assert_eq!(answers[999]["id"], 999);
    assert_eq!(
        answers[999]["result"],
        parse(EVM.recording.height(2).unwrap().eth_receipts.as_ref().unwrap())
    );
    assert_eq!(batch(1001)["error"]["message"], "batch too large");
}

#[test]
fn unknown_methods_and_malformed_parameters_are_errors_and_unrecorded_calls_are_counted() {
    let unknown = rpc("eval", json!([]));
    assert_eq!((unknown.missing, &unknown.json()["error"]["code"]), (0, &json!(-32601)));
    for (method, params) in [
        ("eth_getStorageAt", json!([])),
        ("eth_getBlockByNumber", json!(["0x2", true])),
        ("debug_traceBlockByNumber", json!(["0x2"])),
        ("debug_traceBlockByNumber", json!(["0x2", { "tracer": "prestateTracer" }])),
        ("debug_traceBlockByNumber", json!(["0x2", { "tracer": "callTracer", "tracerConfig": {} }])),
    ] {
        let reply = rpc(method, params);
        assert_eq!((reply.missing, &reply.json()["error"]["code"]), (1, &json!(-32000)), "{method}");
    }
    for params in [json!([]), json!(["x"]), json!(["0xg"]), json!([5]), json!({})] {
        let reply = rpc("eth_getBlockReceipts", params.clone());
        assert_eq!((reply.missing, &reply.json()["error"]["code"]), (0, &json!(-32602)), "{params}");
    }
    assert_eq!(EVM.ask(JSON_RPC, get("/")).status, 405);
    assert_eq!(EVM.post(JSON_RPC, "/", "nonsense").json()["error"]["code"], -32700);
}

#[test]
fn a_chain_without_an_evm_has_no_json_rpc() {
    let reply = MOVE.post(JSON_RPC, "/", &call("eth_blockNumber", json!([])));
    assert_eq!((reply.missing, &reply.json()["error"]["code"]), (1, &json!(-32000)));
    assert!(reply.text.contains("has no EVM"));
}
