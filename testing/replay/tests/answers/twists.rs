//! Twisted answers beside the sound ones: each differs in exactly what its twist says.

use bytes::Bytes;
use http::Request;
use replay::answers::{Service, Twist, Twists};
use replay::header::header_hash;
use serde_json::{Value, json};

use crate::{EVM, MOVE, Said, get, post};

/// A busy block of the EVM's recording, with receipts, events and traces.
const BUSY: u64 = 190;
/// Enough numbers to see every way of lying about something.
const CHANCES: std::ops::Range<u64> = 0..40;

fn ask(twists: Twists, service: Service, request: &Request<Bytes>) -> Said {
    EVM.ask_twisted(twists, 226, service, request)
}

fn comet(twists: Twists, path: &str) -> Value {
    ask(twists, Service::Comet, &get(path)).json()
}

fn eth(twists: Twists, method: &str, params: &Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let said = ask(twists, Service::JsonRpc, &post("/", &call.to_string()));
    assert_eq!(said.missing, 0, "{}", said.text);
    said.json()
}

/// The paths of all that differs between two answers; a list of another length differs as a whole.
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

/// What a lie changes of an answer, over all ways of telling it, each way once.
fn changed(twist: Twist, answer: impl Fn(Twists) -> Value) -> Vec<String> {
    let sound = answer(Twists::default());
    let mut all = Vec::new();
    for chance in CHANCES {
        let mut found = Vec::new();
        differences(&sound, &answer([(twist, chance)].into()), "", &mut found);
        all.push(found.join(" "));
    }
    all.sort();
    all.dedup();
    all
}

fn block(twists: Twists) -> Value {
    comet(twists, &format!("/block?height={BUSY}"))["result"].clone()
}

fn results(twists: Twists) -> Value {
    comet(twists, &format!("/block_results?height={BUSY}"))["result"].clone()
}

fn receipts(twists: Twists) -> Value {
    eth(twists, "eth_getBlockReceipts", &json!([format!("{BUSY:#x}")]))["result"].clone()
}

#[test]
fn a_lie_about_transactions_changes_one_or_drops_one_and_nothing_else() {
    assert_eq!(changed(Twist::LieTxs, block), ["/block/data/txs", "/block/data/txs/*"]);
    let (sound, short) = (block(Twists::default()), block([(Twist::LieTxs, 2)].into()));
    let txs = |block: &Value| block["block"]["data"]["txs"].as_array().unwrap().len();
    assert_eq!(txs(&sound), txs(&short) + 1);
    assert_eq!(changed(Twist::LieTxs, |twists| comet(twists, "/block?height=3")), [""]);
}

#[test]
fn a_lie_in_the_header_is_in_its_time_proposer_or_state_and_its_hash_shows_it_or_not() {
    let members = ["app_hash", "proposer_address", "time"];
    let paths = members.map(|member| format!("/block/header/{member}"));
    assert_eq!(changed(Twist::LieHeader, block), paths);
    assert_eq!(changed(Twist::LieHeaderRehashed, block), paths.map(|path| format!("{path} /block_id/hash")));
    let header = |twists| comet(twists, &format!("/header?height={BUSY}"))["result"].clone();
    assert_eq!(changed(Twist::LieHeader, header), members.map(|member| format!("/header/{member}")));
    for chance in CHANCES {
        let hash = |block: &Value| hex::encode_upper(header_hash(&block["block"]["header"]).unwrap());
        let caught = block([(Twist::LieHeader, chance)].into());
        assert_ne!(caught["block_id"]["hash"], hash(&caught));
        let sly = block([(Twist::LieHeaderRehashed, chance)].into());
        assert_eq!(sly["block_id"]["hash"], hash(&sly));
    }
}

#[test]
fn lies_about_results_and_events_are_one_value_each() {
    let of_result = ["code", "data", "gas_used"].map(|member| format!("/txs_results/*/{member}"));
    assert_eq!(changed(Twist::LieResults, results), of_result);
    assert_eq!(changed(Twist::LieEvents, results), ["/txs_results/*/events/*/attributes/*/value"]);
    let empty = |twists| comet(twists, "/block_results?height=3");
    assert_eq!(changed(Twist::LieResults, empty), [""]);
}

#[test]
fn a_lie_about_receipts_changes_one_or_drops_one() {
    // A list of another length differs as a whole.
    let all = ["", "/*/gasUsed", "/*/logs", "/*/status", "/*/transactionHash"];
    assert_eq!(
        changed(Twist::LieReceipts, |twists| json!({ "receipts": receipts(twists) })),
        all.map(|path| format!("/receipts{path}"))
    );
}

#[test]
fn another_heights_answer_is_whole_and_that_of_a_shown_height() {
    for chance in CHANCES {
        let twists = Twists::from([(Twist::OtherHeight, chance)]);
        let other = block(twists);
        let height = other["block"]["header"]["height"].as_str().unwrap();
        assert_ne!(height, BUSY.to_string());
        assert_eq!(comet(Twists::default(), &format!("/block?height={height}"))["result"], other);
        assert_eq!(results(twists)["height"], height);
        let number: u64 = height.parse().unwrap();
        let params = json!([format!("{number:#x}")]);
        assert_eq!(receipts(twists), eth(Twists::default(), "eth_getBlockReceipts", &params)["result"]);
    }
    let one = EVM.ask_twisted([(Twist::OtherHeight, 7)].into(), 1, Service::Comet, &get("/block?height=1"));
    assert_eq!(one.json()["result"]["block"]["header"]["height"], "1");
}

#[test]
fn another_chain_says_its_id_everywhere_and_its_headers_are_sound() {
    let twists = Twists::from([(Twist::WrongChain, 0)]);
    assert_eq!(changed(Twist::WrongChain, block), ["/block/header/chain_id /block_id/hash"]);
    let other = block(twists);
    assert_eq!(other["block"]["header"]["chain_id"], "not-e2e-evm-1");
    assert_eq!(other["block_id"]["hash"], hex::encode_upper(header_hash(&other["block"]["header"]).unwrap()));
    assert_eq!(comet(twists, "/status")["result"]["node_info"]["network"], "not-e2e-evm-1");
    let path = "/cosmos/base/tendermint/v1beta1/node_info";
    let info = |twists| ask(twists, Service::Rest, &get(path)).json();
    assert_eq!(changed(Twist::WrongChain, info), ["/default_node_info/network"]);
}

#[test]
fn a_pruned_node_says_what_it_lacks_and_answers_the_rest() {
    let twists = Twists::from([(Twist::Pruned, 100)]);
    let lacks = "height 99 is not available, lowest height is 100";
    for path in ["/block?height=99", "/block_results?height=99", "/header?height=99"] {
        assert_eq!(comet(twists, path)["error"]["data"], lacks, "{path}");
    }
    assert_eq!(comet(twists, "/block?height=100"), comet(Twists::default(), "/block?height=100"));
    assert_eq!(comet(twists, "/status")["result"]["sync_info"]["earliest_block_height"], "100");
    let trace = |height: u64| {
        let params = json!([format!("{height:#x}"), { "tracer": "callTracer" }]);
        eth(twists, "debug_traceBlockByNumber", &params)
    };
    let state = "failed to load state at height 99; version mismatch on immutable IAVL tree; version does not exist. \
                 Version has either been pruned, or is for a future block height (latest height: 226): invalid request";
    assert_eq!(trace(100)["error"]["message"], state);
    assert!(trace(101)["error"].is_null());
    let past = Request::get("/minievm/evm/v1/params").header("x-cosmos-block-height", "99");
    let said = ask(twists, Service::Rest, &past.body(Bytes::new()).unwrap());
    assert_eq!((said.status, said.missing), (500, 0), "{}", said.text);
    assert!(said.json()["message"].as_str().unwrap().contains("failed to load state at height 99; "));
    let txs = ask(twists, Service::Rest, &get("/cosmos/tx/v1beta1/txs/block/99"));
    assert_eq!(txs.json()["message"], lacks);
    // Its receipts are in an index of their own.
    assert_eq!(
        eth(twists, "eth_getBlockReceipts", &json!(["0x63"])),
        eth(Twists::default(), "eth_getBlockReceipts", &json!(["0x63"]))
    );
}

#[test]
fn a_node_pruned_to_above_its_tip_still_has_its_tip() {
    let said = MOVE.ask_twisted([(Twist::Pruned, 99)].into(), 50, Service::Comet, &get("/block?height=50"));
    assert_eq!(said.result()["block"]["header"]["height"], "50");
}

#[test]
fn a_node_that_discards_results_has_none_of_any_height() {
    let twists = Twists::from([(Twist::DiscardAbciResponses, 0)]);
    for height in [BUSY, 226] {
        let said = ask(twists, Service::Comet, &get(&format!("/block_results?height={height}")));
        assert_eq!(said.status, 500);
        let error = json!({ "code": -32603, "message": "Internal error", "data": "node is not persisting finalize block responses" });
        assert_eq!(said.json()["error"], error);
    }
    let future = comet(twists, "/block_results?height=227")["error"]["data"].clone();
    assert_eq!(future, "height 227 must be less than or equal to the current blockchain height 226");
    assert_eq!(block(twists), block(Twists::default()));
}

#[test]
fn a_node_without_tracing_does_not_know_the_method() {
    let twists = Twists::from([(Twist::NoTracing, 0)]);
    let traced = eth(twists, "debug_traceBlockByNumber", &json!(["0x2", { "tracer": "callTracer" }]));
    let message = "the method debug_traceBlockByNumber does not exist/is not available";
    assert_eq!(traced["error"], json!({ "code": -32601, "message": message }));
    assert_eq!(receipts(twists), receipts(Twists::default()));
}

#[test]
fn pruned_receipts_are_an_empty_list_and_their_block_is_null() {
    let twists = Twists::from([(Twist::PrunedReceipts, BUSY)]);
    let before = json!([format!("{:#x}", BUSY - 1)]);
    assert_eq!(eth(twists, "eth_getBlockReceipts", &before)["result"], json!([]));
    assert!(eth(twists, "eth_getBlockByNumber", &json!([before[0], false]))["result"].is_null());
    let sound = eth(Twists::default(), "eth_getBlockReceipts", &before);
    let hash = &sound["result"][0]["transactionHash"];
    assert!(hash.is_string());
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        assert!(eth(twists, method, &json!([hash]))["result"].is_null(), "{method}");
    }
    assert_eq!(receipts(twists), receipts(Twists::default()));
}
