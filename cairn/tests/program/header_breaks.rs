//! A node that has rebuilt its EVM index gives headers that do not follow from those that are stored: no consensus data, so nothing is
//! rolled back.

use std::sync::Arc;

use chain::evm::header::{Contents, Header, HeaderError, parse};
use serde_json::{Value, json};
use testkit::overridden_node::OverriddenNode;

use crate::support::{Cairn, get_text, post, until};

/// A block without EVM transactions, which no receipt names.
const HEIGHT: u64 = 114;

/// The hash of a header with another content than it had.
fn hash_of(header: &Value) -> String {
    let timestamp = header["timestamp"].as_str().unwrap();
    let timestamp = u64::from_str_radix(&timestamp[2..], 16).unwrap();
    let contents = Contents { number: HEIGHT, timestamp, bloom: &[0; 256] };
    let error: Result<Header, HeaderError> = parse(header.to_string().as_bytes(), &contents, &[]);
    let Err(HeaderError::Contradiction { expected, .. }) = error else { panic!("{error:?}") };
    expected
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_names_another_parent_is_counted_and_rolls_nothing_back() {
    let recording = replay::Recording::open(&testkit::recording("evm-scenario")).unwrap();
    // As if the header had been computed with the sum of receipts: another figure of gas.
    let node = OverriddenNode::start(Arc::new(recording), |exchange| {
        if !exchange.is_rpc("eth_getBlockByNumber", &format!("{HEIGHT:#x}")) {
            return exchange.answer;
        }
        exchange.with_change(|header| {
            header["gasUsed"] = "0x1".into();
            header["hash"] = hash_of(header).into();
        })
    })
    .await
    .unwrap();
    let endpoints = node.endpoints().unwrap();
    let [comet, rest, json_rpc] =
        [&endpoints.comet, &endpoints.rest, &endpoints.json_rpc].map(|urls| urls[0].to_string());
    tokio::task::spawn_blocking(move || {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let own = ["run", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--reconcile", "0s"];
        let chain = ["--chain-id", "e2e-evm-1", "--vm", "evm", "--index", "blocks"];
        let urls = ["--comet", &comet, "--rest", &rest, "--json-rpc", &json_rpc];
        let more = ["--metrics", "127.0.0.1:0", "--evm-listen", "127.0.0.1:0"];
        let mut cairn = Cairn::start(&[&own[..], &chain, &urls, &more].concat());
        let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
        let evm = cairn.logged("serving Ethereum's JSON-RPC")["url"].as_str().unwrap().to_owned();
        let block = |height: u64| {
            let params = json!([format!("{height:#x}"), false]);
            let call =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": params });
            post(&format!("{evm}/"), &call).1["result"].clone()
        };
        until("the last header", || block(226)["hash"].is_string().then_some(()));
        let (one, next) = (block(HEIGHT), block(HEIGHT + 1));
        let (_, scraped) = get_text(&metrics);
        assert!(scraped.contains("\ncairn_evm_header_breaks_total 1\n"), "{scraped}");
        assert_eq!(block(226)["number"], "0xe2", "nothing is rolled back");
        cairn.signal("TERM");
        let (code, log) = cairn.ended_with_log();
        assert!(code == Some(0) && !log.contains("rolled back"), "{log}");
        // From the whole log: the line comes before or after the one with the address.
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut breaks = lines.filter(|line| {
            line["message"] == "EVM headers do not follow from each other: the node has rebuilt its EVM index"
        });
        let logged = breaks.next().expect("a line about the break");
        assert_eq!((&logged["height"], breaks.next()), (&json!(HEIGHT + 1), None), "{logged}");
        let plain = |hash: &Value| hash.as_str().unwrap().trim_start_matches("0x").to_lowercase();
        assert_eq!((plain(&one["hash"]), &one["gasUsed"]), (plain(&logged["expected"]), &json!("0x1")));
        assert_eq!(plain(&next["parentHash"]), plain(&logged["found"]));
        assert_ne!(one["hash"], next["parentHash"]);
    })
    .await
    .unwrap();
}
