//! Replies with deviations compared with correct ones: each differs only as its deviation states.

use bytes::Bytes;
use http::Request;
use replay::answers::{Deviation, Deviations, Service};
use replay::header::header_hash;
use serde_json::{Value, json};

use crate::{EVM, MOVE, Reply, get, post};

/// A busy block of the EVM's recording, with receipts, events and traces.
const BUSY: u64 = 190;
/// Enough random numbers to select every change of a deviation.
const CHANCES: std::ops::Range<u64> = 0..40;

fn ask(deviations: Deviations, service: Service, request: &Request<Bytes>) -> Reply {
    EVM.ask_deviationed(deviations, 226, service, request)
}

fn comet(deviations: Deviations, path: &str) -> Value {
    ask(deviations, Service::Comet, &get(path)).json()
}

fn eth(deviations: Deviations, method: &str, params: &Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let reply = ask(deviations, Service::JsonRpc, &post("/", &call.to_string()));
    assert_eq!(reply.missing, 0, "{}", reply.text);
    reply.json()
}

/// The paths of all differences between two replies; a list of another length differs as a whole.
fn differences(a: &Value, b: &Value, path: &str, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().for_each(|(key, value)| differences(value, &b[key], &format!("{path}/{key}"), found));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| differences(a, b, &format!("{path}/*"), found));
        }
        _ if a == b => {}
        _ => found.push(path.to_owned()),
    }
}

/// The members that a deviation changes in a reply, over all random numbers, each once.
fn changed(deviation: Deviation, answer: impl Fn(Deviations) -> Value) -> Vec<String> {
    let sound = answer(Deviations::default());
    let mut all = Vec::new();
    for chance in CHANCES {
        let mut found = Vec::new();
        differences(&sound, &answer([(deviation, chance)].into()), "", &mut found);
        all.push(found.join(" "));
    }
    all.sort();
    all.dedup();
    all
}

fn block(deviations: Deviations) -> Value {
    comet(deviations, &format!("/block?height={BUSY}"))["result"].clone()
}

fn results(deviations: Deviations) -> Value {
    comet(deviations, &format!("/block_results?height={BUSY}"))["result"].clone()
}

fn receipts(deviations: Deviations) -> Value {
    eth(deviations, "eth_getBlockReceipts", &json!([format!("{BUSY:#x}")]))["result"].clone()
}

#[test]
fn false_transactions_change_or_drop_exactly_one() {
    assert_eq!(changed(Deviation::FalseTxs, block), ["/block/data/txs", "/block/data/txs/*"]);
    let (sound, short) = (block(Deviations::default()), block([(Deviation::FalseTxs, 2)].into()));
    let txs = |block: &Value| block["block"]["data"]["txs"].as_array().unwrap().len();
    assert_eq!(txs(&sound), txs(&short) + 1);
    assert_eq!(changed(Deviation::FalseTxs, |deviations| comet(deviations, "/block?height=3")), [""]);
}

#[test]
fn a_false_header_has_another_time_proposer_or_state_with_or_without_its_hash() {
    let members = ["app_hash", "proposer_address", "time"];
    let paths = members.map(|member| format!("/block/header/{member}"));
    assert_eq!(changed(Deviation::FalseHeader, block), paths);
    assert_eq!(
        changed(Deviation::FalseHeaderRehashed, block),
        paths.map(|path| format!("{path} /block_id/hash"))
    );
    let header = |deviations| comet(deviations, &format!("/header?height={BUSY}"))["result"].clone();
    assert_eq!(changed(Deviation::FalseHeader, header), members.map(|member| format!("/header/{member}")));
    for chance in CHANCES {
        let hash = |block: &Value| hex::encode_upper(header_hash(&block["block"]["header"]).unwrap());
        let caught = block([(Deviation::FalseHeader, chance)].into());
        assert_ne!(caught["block_id"]["hash"], hash(&caught));
        let sly = block([(Deviation::FalseHeaderRehashed, chance)].into());
        assert_eq!(sly["block_id"]["hash"], hash(&sly));
    }
}

#[test]
fn false_results_and_events_change_one_value_each() {
    let of_result = ["code", "data", "gas_used"].map(|member| format!("/txs_results/*/{member}"));
    assert_eq!(changed(Deviation::FalseResults, results), of_result);
    assert_eq!(changed(Deviation::FalseEvents, results), ["/txs_results/*/events/*/attributes/*/value"]);
    let empty = |deviations| comet(deviations, "/block_results?height=3");
    assert_eq!(changed(Deviation::FalseResults, empty), [""]);
}

#[test]
fn false_receipts_change_one_or_drop_one() {
    // A list of another length differs as a whole.
    let all = ["", "/*/gasUsed", "/*/logs", "/*/status", "/*/transactionHash"];
    assert_eq!(
        changed(Deviation::FalseReceipts, |deviations| json!({ "receipts": receipts(deviations) })),
        all.map(|path| format!("/receipts{path}"))
    );
}

#[test]
fn another_heights_answer_is_whole_and_that_of_a_shown_height() {
    for chance in CHANCES {
        let deviations = Deviations::from([(Deviation::OtherHeight, chance)]);
        let other = block(deviations);
        let height = other["block"]["header"]["height"].as_str().unwrap();
        assert_ne!(height, BUSY.to_string());
        assert_eq!(comet(Deviations::default(), &format!("/block?height={height}"))["result"], other);
        assert_eq!(results(deviations)["height"], height);
        let number: u64 = height.parse().unwrap();
        let params = json!([format!("{number:#x}")]);
        assert_eq!(
            receipts(deviations),
            eth(Deviations::default(), "eth_getBlockReceipts", &params)["result"]
        );
    }
    let one =
        EVM.ask_deviationed([(Deviation::OtherHeight, 7)].into(), 1, Service::Comet, &get("/block?height=1"));
    assert_eq!(one.json()["result"]["block"]["header"]["height"], "1");
}

#[test]
fn another_chain_reports_its_id_everywhere_and_its_headers_are_valid() {
    let deviations = Deviations::from([(Deviation::WrongChain, 0)]);
    assert_eq!(changed(Deviation::WrongChain, block), ["/block/header/chain_id /block_id/hash"]);
    let other = block(deviations);
    assert_eq!(other["block"]["header"]["chain_id"], "not-e2e-evm-1");
    assert_eq!(other["block_id"]["hash"], hex::encode_upper(header_hash(&other["block"]["header"]).unwrap()));
    assert_eq!(comet(deviations, "/status")["result"]["node_info"]["network"], "not-e2e-evm-1");
    let path = "/cosmos/base/tendermint/v1beta1/node_info";
    let info = |deviations| ask(deviations, Service::Rest, &get(path)).json();
    assert_eq!(changed(Deviation::WrongChain, info), ["/default_node_info/network"]);
}

#[test]
fn a_pruned_node_names_its_first_height_and_answers_the_rest() {
    let deviations = Deviations::from([(Deviation::Pruned, 100)]);
    let lacks = "height 99 is not available, lowest height is 100";
    for path in ["/block?height=99", "/block_results?height=99", "/header?height=99"] {
        assert_eq!(comet(deviations, path)["error"]["data"], lacks, "{path}");
    }
    assert_eq!(comet(deviations, "/block?height=100"), comet(Deviations::default(), "/block?height=100"));
    assert_eq!(comet(deviations, "/status")["result"]["sync_info"]["earliest_block_height"], "100");
    let trace = |height: u64| {
        let params = json!([format!("{height:#x}"), { "tracer": "callTracer" }]);
        eth(deviations, "debug_traceBlockByNumber", &params)
    };
    let state = "failed to load state at height 99; version mismatch on immutable IAVL tree; version does not exist. \
                 Version has either been pruned, or is for a future block height (latest height: 226): invalid request";
    assert_eq!(trace(100)["error"]["message"], state);
    assert!(trace(101)["error"].is_null());
    let past = Request::get("/minievm/evm/v1/params").header("x-cosmos-block-height", "99");
    let reply = ask(deviations, Service::Rest, &past.body(Bytes::new()).unwrap());
    assert_eq!((reply.status, reply.missing), (500, 0), "{}", reply.text);
    assert!(reply.json()["message"].as_str().unwrap().contains("failed to load state at height 99; "));
    let txs = ask(deviations, Service::Rest, &get("/cosmos/tx/v1beta1/txs/block/99"));
    assert_eq!(txs.json()["message"], lacks);
    // Its receipts are in a separate index.
    assert_eq!(
        eth(deviations, "eth_getBlockReceipts", &json!(["0x63"])),
        eth(Deviations::default(), "eth_getBlockReceipts", &json!(["0x63"]))
    );
}

#[test]
fn a_node_pruned_to_above_its_tip_still_has_its_tip() {
    let reply =
        MOVE.ask_deviationed([(Deviation::Pruned, 99)].into(), 50, Service::Comet, &get("/block?height=50"));
    assert_eq!(reply.result()["block"]["header"]["height"], "50");
}

#[test]
fn a_node_that_discards_results_has_none_of_any_height() {
    let deviations = Deviations::from([(Deviation::DiscardAbciResponses, 0)]);
    for height in [BUSY, 226] {
        let reply = ask(deviations, Service::Comet, &get(&format!("/block_results?height={height}")));
        assert_eq!(reply.status, 500);
        let error = json!({ "code": -32603, "message": "Internal error", "data": "node is not persisting finalize block responses" });
        assert_eq!(reply.json()["error"], error);
    }
    let future = comet(deviations, "/block_results?height=227")["error"]["data"].clone();
    assert_eq!(future, "height 227 must be less than or equal to the current blockchain height 226");
    assert_eq!(block(deviations), block(Deviations::default()));
}

#[test]
fn a_node_without_tracing_does_not_know_the_method() {
    let deviations = Deviations::from([(Deviation::NoTracing, 0)]);
    let traced = eth(deviations, "debug_traceBlockByNumber", &json!(["0x2", { "tracer": "callTracer" }]));
    let message = "the method debug_traceBlockByNumber does not exist/is not available";
    assert_eq!(traced["error"], json!({ "code": -32601, "message": message }));
    assert_eq!(receipts(deviations), receipts(Deviations::default()));
}

#[test]
fn pruned_receipts_are_an_empty_list_and_their_block_is_null() {
    let deviations = Deviations::from([(Deviation::PrunedReceipts, BUSY)]);
    let before = json!([format!("{:#x}", BUSY - 1)]);
    assert_eq!(eth(deviations, "eth_getBlockReceipts", &before)["result"], json!([]));
    assert!(eth(deviations, "eth_getBlockByNumber", &json!([before[0], false]))["result"].is_null());
    let sound = eth(Deviations::default(), "eth_getBlockReceipts", &before);
    let hash = &sound["result"][0]["transactionHash"];
    assert!(hash.is_string());
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        assert!(eth(deviations, method, &json!([hash]))["result"].is_null(), "{method}");
    }
    assert_eq!(receipts(deviations), receipts(Deviations::default()));
}
