//! `CometBFT` RPC against the recordings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use replay::answers::{Deviation, Deviations, Service, View, answer};
use replay::counters::Counters;
use replay::recording::Outcome;
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::{Chain, EVM, L1, MOVE, WASM, extra, get, parse, post};

const COMET: Service = Service::Comet;

fn rpc(chain: &Chain, method: &str, params: Value) -> crate::Reply {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    chain.post(COMET, "/", &call.to_string())
}

/// The recorded answer to a request without parameters.
fn recorded(chain: &Chain, method: &str) -> Value {
    match chain.recording.state().cometbft(method, &std::collections::BTreeMap::new()).unwrap() {
        Outcome::Result(raw) => parse(raw),
        Outcome::Error(raw) => panic!("{raw:?}"),
    }
}

#[test]
fn every_block_of_every_scenario_is_answered_as_recorded_by_get_and_post() {
    for chain in [&*EVM, &*WASM, &*MOVE] {
        for height in chain.recording.heights() {
            for (method, raw) in [("block", &height.block), ("block_results", &height.block_results)] {
                let raw = std::str::from_utf8(raw).unwrap();
                let h = height.height;
                let reply = chain.get(COMET, &format!("/{method}?height={h}"));
                assert_eq!(reply.text, format!(r#"{{"jsonrpc":"2.0","id":-1,"result":{raw}}}"#));
                let reply = rpc(chain, method, json!({ "height": h.to_string() }));
                assert_eq!(reply.text, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{raw}}}"#));
            }
        }
    }
}

#[test]
fn a_height_may_be_a_number_a_string_quoted_positional_or_left_out() {
    let block = |height: usize| parse(&EVM.recording.heights()[height - 1].block);
    for path in ["/block?height=5", "/block?height=%225%22"] {
        assert_eq!(EVM.get(COMET, path).result(), block(5), "{path}");
    }
    for params in [json!({"height": "5"}), json!({"height": 5}), json!(["5"]), json!([5])] {
        assert_eq!(rpc(&EVM, "block", params.clone()).result(), block(5), "{params}");
    }
    for params in [json!({}), json!([]), Value::Null, json!({"height": null})] {
        assert_eq!(rpc(&EVM, "block", params.clone()).result(), block(226), "{params}");
    }
    assert_eq!(EVM.get(COMET, "/block").result(), block(226));
}

#[test]
fn a_batch_is_answered_in_order() {
    let body = r#"[{"id":"a","method":"block","params":{"height":"2"}},{"id":7,"method":"health"}]"#;
    let reply = EVM.post(COMET, "/", body);
    let answers = reply.json();
    assert_eq!(answers[0]["id"], "a");
    assert_eq!(answers[0]["result"]["block"]["header"]["height"], "2");
    assert_eq!(answers[1], json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
}

#[test]
fn heights_above_the_tip_and_below_the_first_get_the_errors_of_a_node() {
    let future = "height 11 must be less than or equal to the current blockchain height 10";
    let pruned = "height 3 is not available, lowest height is 4";
    for (height, text) in [(11, future), (3, pruned), (0, "height must be greater than 0, but got 0")] {
        for method in ["block", "block_results"] {
            let reply = WASM.ask_at(10, COMET, get(&format!("/{method}?height={height}")));
            assert_eq!(reply.status, 500);
            let want = json!({ "code": -32603, "message": "Internal error", "data": text });
            assert_eq!(reply.json(), json!({ "jsonrpc": "2.0", "id": -1, "error": want }));
            let body = format!(r#"{{"id":3,"method":"{method}","params":{{"height":"{height}"}}}}"#);
            let reply = WASM.ask_at(10, COMET, post("/", &body));
            assert_eq!((reply.status, reply.missing), (200, 0));
            assert_eq!(reply.json(), json!({ "jsonrpc": "2.0", "id": 3, "error": want }));
        }
    }
    let reply = WASM.get(COMET, "/block?height=x");
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (500, &json!(-32602)));
}

#[test]
fn results_of_the_tip_alone_may_lag_with_the_nodes_error() {
    let counters = Counters::default();
    let view = View {
        recording: &EVM.recording,
        shown: 9,
        deviations: Deviations::from([(Deviation::NoResults, 0)]),
        lagging: &[],
        counters: &counters,
    };
    let answer = |height: u64| answer(COMET, view, &get(&format!("/block_results?height={height}")));
    assert!(std::str::from_utf8(&answer(9).body).unwrap().contains("could not find results for height #9"));
    assert_eq!(answer(8).status, 200);
}

#[test]
fn the_status_follows_from_the_blocks_and_equals_the_recorded_one_at_the_recorded_height() {
    assert_eq!(EVM.get(COMET, "/status").result(), recorded(&EVM, "status"));
    assert_eq!(MOVE.get(COMET, "/status").result(), recorded(&MOVE, "status"));
    let reply = EVM.ask_at(17, COMET, get("/status")).result();
    let header = &parse(&EVM.recording.height(17).unwrap().block)["block"]["header"];
    assert_eq!(reply["sync_info"]["latest_block_height"], "17");
    assert_eq!(reply["sync_info"]["latest_block_time"], header["time"]);
    assert_eq!(reply["sync_info"]["latest_app_hash"], header["app_hash"]);
    assert_eq!(WASM.get(COMET, "/status").result()["sync_info"]["earliest_block_height"], "4");
}

#[test]
fn the_application_follows_from_the_results_and_equals_the_recorded_one_at_the_recorded_height() {
    assert_eq!(EVM.get(COMET, "/abci_info").result(), recorded(&EVM, "abci_info"));
    let reply = EVM.ask_at(17, COMET, get("/abci_info")).result();
    assert_eq!(reply["response"]["last_block_height"], "17");
}

#[test]
fn the_descriptors_are_found_in_every_form_of_request() {
    let path = "/cosmos.reflection.v1.ReflectionService/FileDescriptors";
    let get = EVM.get(COMET, &format!("/abci_query?path=%22{path}%22")).result();
    assert!(get["response"]["value"].as_str().unwrap().len() > 100_000);
    for params in [
        json!({ "path": path }),
        json!({ "path": path, "data": "", "height": "0", "prove": false }),
        json!([path, "", "0", false]),
    ] {
        assert_eq!(rpc(&EVM, "abci_query", params).result(), get);
    }
    let other = rpc(&EVM, "abci_query", json!({ "path": "/other", "data": "0a" }));
    assert_eq!(other.missing, 1);
    assert!(other.json()["error"]["message"].as_str().unwrap().starts_with("not recorded: "));
}

#[test]
fn validators_are_those_of_every_height_that_names_the_same_set() {
    let path = "/validators?page=1&per_page=100";
    let validators = EVM.get(COMET, path).result();
    assert_eq!(validators, EVM.get(COMET, &format!("{path}&height=226")).result());
    let mut before = EVM.get(COMET, &format!("{path}&height=25")).result();
    assert_eq!(before["block_height"].take(), "25");
    assert_eq!(before["validators"], validators["validators"]);
    assert_eq!(EVM.get(COMET, "/validators?page=2&per_page=100&height=226").missing, 1);
}

#[test]
fn a_transaction_derived_from_its_block_equals_the_answer_of_the_node() {
    let mut compared = 0;
    for line in extra("l1-l2/l1") {
        let Some(hash) = line["path"].as_str().and_then(|path| path.strip_prefix("/tx?hash=0x")) else {
            continue;
        };
        if let Some(error) = line.get("error") {
            assert_eq!(L1.get(COMET, &format!("/tx?hash=0x{hash}")).json()["error"], *error);
            continue;
        }
        let reply = L1.get(COMET, &format!("/tx?hash=0x{hash}")).result();
        assert_eq!(reply, line["answer"], "{hash}");
        let base64 = STANDARD.encode(hex::decode(hash).unwrap());
        assert_eq!(rpc(&L1, "tx", json!({ "hash": base64 })).result(), reply);
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn a_transaction_that_is_unknown_or_held_back_is_not_found() {
    let unknown = EVM.get(COMET, &format!("/tx?hash=0x{}", "AB".repeat(32)));
    assert_eq!((unknown.status, unknown.missing), (500, 0));
    assert_eq!(unknown.json()["error"]["data"], format!("tx ({}) not found", "AB".repeat(32)));
    // Its index begins at its first block.
    let unknown = WASM.get(COMET, &format!("/tx?hash=0x{}", "AB".repeat(32)));
    assert_eq!((unknown.status, unknown.missing), (500, 0));
    assert_eq!(EVM.get(COMET, "/tx?hash=0x12").json()["error"]["code"], -32602);
    let raw = EVM.recording.height(2).unwrap().raw_txs().unwrap()[0].to_string();
    let hash = sha2::Sha256::digest(STANDARD.decode(raw).unwrap());
    let path = format!("/tx?hash=0x{}", hex::encode(hash));
    assert_eq!(EVM.ask_at(1, COMET, get(&path)).status, 500);
    assert_eq!(EVM.ask_at(2, COMET, get(&path)).result()["height"], "2");
}

#[test]
fn unrecorded_and_malformed_requests_are_counted_errors() {
    for path in ["/genesis", "/net_info", "/", "/nonsense"] {
        let reply = EVM.get(COMET, path);
        assert_eq!((reply.status, reply.missing), (500, 1), "{path}");
        assert_eq!(reply.json()["error"]["code"], -32000);
    }
    assert_eq!(EVM.post(COMET, "/", "{").json()["error"]["code"], -32700);
    let put = Request::put("/status").body(Bytes::new()).unwrap();
    assert_eq!(EVM.ask(COMET, put).status, 405);
    for params in [json!("x"), json!([1, 2]), json!({"height": {}})] {
        assert_eq!(rpc(&EVM, "block", params.clone()).json()["error"]["code"], -32602, "{params}");
    }
}
