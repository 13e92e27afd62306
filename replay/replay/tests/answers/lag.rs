//! Sequences at every height, and answers while the state lags by a height.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use replay::answers::Service;
use serde_json::{Value, json};

use crate::{Chain, EVM, MOVE, Reply, WASM, get, parse, post};

const NAME_OF_13: &str = "0xc87b56dd000000000000000000000000000000000000000000000000000000000000000d";

/// The signers of a height with their sequences, in order, including failed transactions.
fn signed(chain: &Chain, height: u64) -> Vec<(String, u64)> {
    let results = parse(&chain.recording.height(height).unwrap().block_results);
    let txs = results["txs_results"].as_array().into_iter().flatten();
    let events = txs.flat_map(|tx| tx["events"].as_array().unwrap());
    let attributes = events.flat_map(|event| event["attributes"].as_array().unwrap());
    let sequences = attributes.filter(|a| a["key"] == "acc_seq").map(|a| a["value"].as_str().unwrap());
    sequences
        .map(|value| value.split_once('/').unwrap())
        .map(|(address, sequence)| (address.to_owned(), sequence.parse().unwrap()))
        .collect()
}

fn account(chain: &Chain, address: &str, height: u64, lagging: &[u64]) -> Value {
    let request = Request::get(format!("/cosmos/auth/v1beta1/accounts/{address}"));
    let request = request.header("x-cosmos-block-height", height.to_string()).body(Bytes::new()).unwrap();
    let reply = chain.ask_lagging(lagging, Service::Rest, &request);
    assert_eq!((reply.status, reply.missing), (200, 0), "{}", reply.text);
    reply.json()["account"].clone()
}

fn sequence(account: &Value) -> u64 {
    account["sequence"].as_str().unwrap().parse().unwrap()
}

fn call(method: &str, params: Value) -> Request<Bytes> {
    post("/", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

#[test]
fn the_sequence_of_a_signer_is_derived_at_every_height() {
    for chain in [&*EVM, &*MOVE, &*WASM] {
        let mut last = BTreeMap::new();
        for height in chain.recording.first() + 1..=chain.recording.last() {
            for (address, used) in signed(chain, height) {
                // Of several transactions of a height, the first has the sequence of the previous state.
                let before = sequence(&account(chain, &address, height - 1, &[]));
                assert!(before <= used, "{address} at {height}");
                assert_eq!(sequence(&account(chain, &address, height, &[height])), before);
                assert!(sequence(&account(chain, &address, height, &[])) > used, "{address} at {height}");
                last.insert(address, used);
            }
        }
        assert!(last.len() > 2);
        // The node's own reply at the last height.
        let list = get("/cosmos/auth/v1beta1/accounts?pagination.limit=100");
        let (mut parts, body) = list.into_parts();
        parts.headers.insert("x-cosmos-block-height", chain.recording.last().into());
        let list = chain.ask_lagging(&[], Service::Rest, &Request::from_parts(parts, body)).json();
        let mut compared = 0;
        for listed in list["accounts"].as_array().unwrap() {
            let address = listed["address"].as_str().unwrap_or_default();
            if last.contains_key(address) {
                assert_eq!(account(chain, address, chain.recording.last(), &[]), *listed);
                compared += 1;
            }
        }
        assert!(compared > 2, "{compared}");
    }
}

fn eth_call(to: &str, data: &str, height: u64, lagging: &[u64]) -> Reply {
    let request = call("eth_call", json!([{ "to": to, "data": data }, format!("{height:#x}")]));
    EVM.ask_lagging(lagging, Service::JsonRpc, &request)
}

#[test]
fn a_call_to_a_lagging_state_is_answered_from_the_previous_height() {
    let calls = super::rest::lines("evm-scenario").into_iter().filter(|line| line["kind"] == "eth_call");
    let mut first = BTreeMap::new();
    let (mut absent, mut reverted, mut earlier) = (0, 0, 0);
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|line| line["height"].as_u64());
    for line in calls {
        let (to, data) = (line["to"].as_str().unwrap(), line["data"].as_str().unwrap());
        let height = line["height"].as_u64().unwrap();
        let sound = eth_call(to, data, height, &[height - 1, height + 1]);
        assert_eq!((sound.missing, sound.lagged), (0, 0));
        let reply = eth_call(to, data, height, &[height]);
        assert_eq!((reply.missing, reply.lagged), (0, 1));
        let (contract_from, before) = first.entry(to.to_owned()).or_insert((height, BTreeMap::new()));
        let before: &mut BTreeMap<u64, Value> = before.entry(data.to_owned()).or_default();
        if let Some((_, before)) = before.range(..height).next_back() {
            assert_eq!(reply.json(), *before);
            earlier += 1;
        } else if *contract_from == height {
            assert_eq!(reply.result(), "0x");
            absent += 1;
        } else if data.starts_with("0x70a08231") {
            assert_eq!(reply.result(), format!("0x{}", "0".repeat(64)));
        } else {
            assert_eq!(reply.json()["error"]["message"], "Reverted");
            reverted += 1;
        }
        before.insert(height, sound.json());
    }
    assert!(absent > 3 && reverted > 30 && earlier > 100, "{absent} {reverted} {earlier}");
    let unknown = eth_call("0xa3c1690099b8db2b564fdcc3b79ffe9c4252d6bb", NAME_OF_13, 3, &[3]);
    assert_eq!((unknown.missing, unknown.lagged), (1, 0), "{}", unknown.text);
}

#[test]
fn rest_answers_of_a_lagging_state_are_those_of_the_previous_height_or_not_found() {
    let mut kinds = BTreeMap::<&str, usize>::new();
    for (name, chain) in [("evm-scenario", &*EVM), ("move-scenario", &*MOVE), ("wasm-scenario", &*WASM)] {
        for line in super::rest::lines(name) {
            let (Some(height), "rest") = (line["height"].as_u64(), line["kind"].as_str().unwrap()) else {
                continue;
            };
            let request = super::rest::request(&line);
            let reply = chain.ask_lagging(&[height], Service::Rest, &request);
            assert_eq!((reply.missing, reply.lagged), (0, 1), "{line}");
            let path = line["path"].as_str().unwrap();
            let kind = match path {
                path if path.contains("/balances/") => "balances",
                path if path.contains("/accounts?") => "accounts",
                path if path.contains("/smart/") => "smart",
                path if path.contains("/resources/") => "resource",
                _ => continue,
            };
            let is_absent = match kind {
                "balances" | "accounts" => reply.json()[kind] == json!([]),
                _ => reply.status == 500,
            };
            if height == chain.recording.first() {
                assert!(is_absent, "{line}: {}", reply.text);
            }
            *kinds.entry(kind).or_default() += usize::from(is_absent);
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert!(kinds.values().all(|absent| *absent > 0), "{kinds:?}");
}
