//! The REST gateway against the recordings.

use bytes::Bytes;
use http::Request;
use replay::answers::Service;
use serde_json::{Value, json};

use crate::{Chain, EVM, L1, MOVE, Reply, WASM, get, parse, post};

const REST: Service = Service::Rest;

/// A recording's file of requests, line by line.
pub(crate) fn lines(name: &str) -> Vec<Value> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
    let file = std::fs::File::open(dir.join("state.ndjson.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(file).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn request(line: &Value) -> Request<Bytes> {
    let builder =
        Request::builder().method(line["method"].as_str().unwrap()).uri(line["path"].as_str().unwrap());
    let builder = match line["height"].as_u64() {
        Some(height) => builder.header("x-cosmos-block-height", height.to_string()),
        None => builder,
    };
    let body = line.get("body").map(Value::to_string).unwrap_or_default();
    builder.body(Bytes::from(body)).unwrap()
}

fn block_txs(chain: &Chain, height: u64, query: &str) -> Reply {
    chain.get(REST, &format!("/cosmos/tx/v1beta1/txs/block/{height}{query}"))
}

#[test]
fn every_recorded_state_request_has_its_recorded_answer_and_status() {
    for (name, chain) in [("evm-scenario", &*EVM), ("wasm-scenario", &*WASM), ("move-scenario", &*MOVE)] {
        let mut asked = 0;
        // The latest block is derived and has a separate test.
        let latest = "/cosmos/base/tendermint/v1beta1/blocks/latest";
        for line in lines(name).iter().filter(|line| line["kind"] == "rest" && line["path"] != latest) {
            let reply = chain.ask(REST, request(line));
            let want = line["status"].as_u64();
            assert_eq!((Some(u64::from(reply.status)), reply.missing), (want, 0), "{}", line["path"]);
            assert_eq!(reply.json(), line["answer"], "{}", line["path"]);
            asked += 1;
        }
        assert!(asked > 100);
    }
}

#[test]
fn an_answer_of_another_height_is_never_given() {
    let lines = lines("evm-scenario");
    let with_height = lines.iter().filter(|l| l["kind"] == "rest" && l["height"].as_u64().is_some());
    for line in with_height {
        let mut other = line.clone();
        other["height"] = json!(17);
        let reply = EVM.ask(REST, request(&other));
        assert_eq!((reply.status, reply.missing), (501, 1), "{}", line["path"]);
        assert!(reply.json()["message"].as_str().unwrap().contains("at height 17"));
        let future = EVM.ask_at(line["height"].as_u64().unwrap() - 1, REST, request(line));
        let Some(message) = future.json()["message"].as_str().map(str::to_owned) else { panic!("answered") };
        assert!(message.contains("codespace sdk code 26: invalid height"), "{message}");
        assert_eq!((future.status, future.missing), (500, 0));
    }
}

#[test]
fn the_latest_block_follows_from_the_recorded_one_member_for_member() {
    let path = "/cosmos/base/tendermint/v1beta1/blocks/latest";
    for (name, chain) in [("evm-scenario", &*EVM), ("move-scenario", &*MOVE)] {
        let recorded = lines(name).into_iter().find(|line| line["path"] == path).unwrap();
        assert_eq!(chain.get(REST, path).json(), recorded["answer"]);
    }
    let held_back = EVM.ask_at(17, REST, get(path)).json();
    assert_eq!(held_back["block"]["header"]["height"], "17");
    assert_eq!(EVM.get(REST, "/cosmos/base/tendermint/v1beta1/blocks/17").json(), held_back);
    assert_eq!(EVM.ask_at(17, REST, get("/cosmos/base/tendermint/v1beta1/blocks/18")).status, 400);
}

#[test]
fn the_transactions_of_every_block_are_the_recorded_ones_with_their_total() {
    for chain in [&*EVM, &*WASM, &*MOVE, &*L1] {
        for height in chain.recording.heights() {
            let reply = block_txs(chain, height.height, "?pagination.limit=1000");
            assert_eq!((reply.status, reply.missing), (200, 0), "{}", reply.text);
            let reply = reply.json();
            let txs = height.rest_txs.as_deref().map_or(json!([]), parse);
            let total = height.raw_txs().unwrap().len().to_string();
            assert_eq!(reply["txs"], txs);
            assert_eq!(reply["pagination"], json!({ "next_key": null, "total": total }));
            assert_eq!(reply["block"]["header"]["height"], height.height.to_string());
        }
    }
}

#[test]
fn pages_of_a_block_follow_the_nodes_rules() {
    let busy = EVM.recording.heights().iter().max_by_key(|h| h.raw_txs().unwrap().len()).unwrap();
    let all = parse(busy.rest_txs.as_ref().unwrap());
    let all = all.as_array().unwrap();
    assert!(all.len() > 90, "{}", all.len());
    let page = |query: &str| block_txs(&EVM, busy.height, query).json()["txs"].clone();
    assert_eq!(page("?pagination.limit=10&pagination.offset=20"), Value::from(&all[20..30]));
    assert_eq!(page("?pagination.offset=85&pagination.limit=100"), Value::from(&all[85..]));
    assert_eq!(page("?pagination.limit=7"), Value::from(&all[..7]));
    assert_eq!(page(""), Value::from(&all[..all.len().min(100)]));
    assert_eq!(page("?pagination.limit=0"), json!([]));
    assert_eq!(page("?pagination.offset=3"), json!([]));
    let beyond = block_txs(&EVM, busy.height, "?pagination.limit=10&pagination.offset=5000");
    assert_eq!(beyond.status, 500);
    assert!(beyond.json()["message"].as_str().unwrap().starts_with("out of range: cannot paginate"));
    assert_eq!(block_txs(&EVM, busy.height, "?pagination.limit=x").status, 400);
}

#[test]
fn transactions_of_a_missing_height_get_the_error_of_a_node() {
    let reply = EVM.ask_at(10, REST, get("/cosmos/tx/v1beta1/txs/block/11"));
    assert_eq!((reply.status, reply.missing), (500, 0));
    let text = "codespace sdk code 26: invalid height: requested height 11 but height must not be less than 1 or \
                greater than the current height 10";
    assert_eq!(reply.json(), json!({ "code": 2, "message": text, "details": [] }));
    let pruned = block_txs(&WASM, 3, "");
    assert_eq!((pruned.status, pruned.missing), (500, 0));
    assert!(pruned.text.contains("height 3 is not available, lowest height is 4"));
    assert_eq!(block_txs(&EVM, 0, "").status, 500);
    assert_eq!(EVM.get(REST, "/cosmos/tx/v1beta1/txs/block/x").status, 400);
}

#[test]
fn every_recorded_transaction_decodes_to_the_nodes_json_of_it() {
    for chain in [&*EVM, &*WASM, &*MOVE] {
        for height in chain.recording.heights() {
            let Some(rest) = &height.rest_txs else { continue };
            let rest = parse(rest);
            for (raw, want) in height.raw_txs().unwrap().iter().zip(rest.as_array().unwrap()) {
                let body = json!({ "tx_bytes": raw }).to_string();
                let reply = chain.post(REST, "/cosmos/tx/v1beta1/decode", &body);
                assert_eq!(reply.json(), json!({ "tx": want }));
            }
        }
    }
}

#[test]
fn a_transaction_outside_the_recording_is_not_decoded() {
    let reply = EVM.post(REST, "/cosmos/tx/v1beta1/decode", r#"{"tx_bytes":"AAAA"}"#);
    assert_eq!((reply.status, reply.missing), (501, 1));
    for body in ["", "{}", r#"{"tx_bytes":"?"}"#] {
        assert_eq!(EVM.post(REST, "/cosmos/tx/v1beta1/decode", body).status, 400, "{body}");
    }
}

#[test]
fn unrecorded_requests_fail_and_are_counted() {
    let wrong_height =
        Request::get("/cosmos/auth/v1beta1/bech32").header("x-cosmos-block-height", "x").body(Bytes::new());
    assert_eq!(EVM.ask(REST, wrong_height.unwrap()).status, 400);
    for request in [
        get("/cosmos/bank/v1beta1/params"),
        get("/cosmos/auth/v1beta1/bech32?x=1"),
        post("/cosmos/auth/v1beta1/bech32", ""),
        post("/minievm/evm/v1/call", "{}"),
    ] {
        let path = request.uri().clone();
        let reply = EVM.ask(REST, request);
        assert_eq!((reply.status, reply.missing), (501, 1), "{path}");
        assert_eq!(reply.json()["code"], 12);
        assert!(reply.json()["message"].as_str().unwrap().starts_with("not recorded: "));
    }
}
