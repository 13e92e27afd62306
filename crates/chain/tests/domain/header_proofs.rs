//! Header proofs: one member of a recorded block or of its results is changed, and the change is refused with a message
//! that contains the height and the mismatch.

use crate::recorded::{Line, heights};
use base64::Engine as _;
use chain::comet::proof::{Claims, check_header, check_last_commit, check_parent, check_results, check_txs};
use chain::comet::{parse_block, parse_results};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A block with three transactions or more, and the block after it.
fn pair() -> (Line, Line) {
    let mut lines = heights("evm-scenario");
    let first = lines.by_ref().find(|line| line.rest_txs.as_ref().is_some_and(|txs| txs.len() > 2)).unwrap();
    (first, lines.next().unwrap())
}

fn edited(raw: &str, pointer: &str, value: Value) -> String {
    let mut answer: Value = serde_json::from_str(raw).unwrap();
    let place = answer.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
    assert_ne!(*place, value, "{pointer} is changed to what it is");
    *place = value;
    answer.to_string()
}

/// Runs the checks of one block and of the previous results.
fn refusal(claims: &Claims, parent: &[u8; 32], answer: &str) -> Result<(), String> {
    let block = parse_block(answer.as_bytes()).map_err(|error| error.to_string())?;
    check_header(&block).map_err(|error| error.to_string())?;
    check_parent(parent, &block).map_err(|error| error.to_string())?;
    check_txs(&block, &block.raw_txs().unwrap()).map_err(|error| error.to_string())?;
    check_last_commit(&block).map_err(|error| error.to_string())?;
    check_results(claims, &block).map_err(|error| error.to_string())
}

/// Each member of the header with another value.
fn header_edits() -> Vec<(&'static str, Value)> {
    let hash = json!("AB".repeat(32));
    vec![
        ("version/block", json!("12")),
        ("version", json!({"block": "11", "app": "1"})),
        ("chain_id", json!("e2e-evm-2")),
        ("height", json!("7")),
        ("time", json!("2026-11-21T07:07:28.305804504Z")),
        ("last_block_id/hash", hash.clone()),
        ("last_block_id/parts/total", json!(2)),
        ("last_block_id/parts/hash", hash.clone()),
        ("last_commit_hash", hash.clone()),
        ("data_hash", hash.clone()),
        ("validators_hash", hash.clone()),
        ("next_validators_hash", hash.clone()),
        ("consensus_hash", hash.clone()),
        ("app_hash", hash.clone()),
        ("app_hash", json!("")),
        ("last_results_hash", hash.clone()),
        ("evidence_hash", hash),
        ("proposer_address", json!("AB".repeat(20))),
    ]
}

#[test]
fn every_change_to_a_header_changes_its_hash() {
    let (line, _) = pair();
    for (member, value) in header_edits() {
        let answer = edited(line.block.get(), &format!("/block/header/{member}"), value);
        let block = parse_block(answer.as_bytes()).unwrap();
        let error = check_header(&block).unwrap_err().to_string();
        let start = format!("the header of block {} hashes to ", block.header.height);
        assert!(error.starts_with(&start) && error.ends_with("ask another endpoint"), "{member}: {error}");
    }
    let answer = edited(line.block.get(), "/block_id/hash", json!("AB".repeat(32)));
    assert!(check_header(&parse_block(answer.as_bytes()).unwrap()).is_err());
    let answer = edited(line.block.get(), "/block/header/app_hash", json!("xyz"));
    assert!(
        parse_block(answer.as_bytes()).unwrap_err().to_string().starts_with("the answer of /block does not")
    );
}

#[test]
fn every_change_to_a_body_or_to_results_is_refused_with_the_member() {
    let (line, next) = pair();
    let height = line.height;
    let results = parse_results(line.block_results.get().as_bytes()).unwrap();
    let claims = Claims::from_results(&results).unwrap();
    let parent = parse_block(line.block.get().as_bytes()).unwrap().hash;
    refusal(&claims, &parent, next.block.get()).unwrap();
    let error = refusal(&claims, &[7; 32], next.block.get()).unwrap_err();
    assert!(error.starts_with(&format!("the parent of block {} is ", height + 1)), "{error}");

    let block: Value = serde_json::from_str(line.block.get()).unwrap();
    let mut txs = block.pointer("/block/data/txs").unwrap().as_array().unwrap().clone();
    let all = txs.clone();
    txs.swap(0, 1);
    let swapped = txs.clone();
    let edits = [swapped, all[1..].to_vec(), [&all[..], &all[..1]].concat(), Vec::new()];
    for edit in edits {
        let answer = edited(line.block.get(), "/block/data/txs", edit.into());
        let block = parse_block(answer.as_bytes()).unwrap();
        let error = check_txs(&block, &block.raw_txs().unwrap()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the transactions of block {height} do not hash to its data_hash: ask another endpoint")
        );
    }

    for (member, value) in [
        ("block_id_flag", json!(3)),
        ("validator_address", json!("AB".repeat(20))),
        ("timestamp", json!("2026-11-21T07:07:28.305804504Z")),
        ("signature", json!("AAAA")),
    ] {
        let pointer = format!("/block/last_commit/signatures/0/{member}");
        let error = refusal(&claims, &parent, &edited(next.block.get(), &pointer, value)).unwrap_err();
        let start = format!("the signatures in last_commit of block {}", height + 1);
        assert!(error.starts_with(&start), "{member}: {error}");
    }

    for (member, value, says) in [
        ("txs_results/0/code", json!(1), "do not hash to last_results_hash of block"),
        ("txs_results/1/data", json!("AAAA"), "do not hash"),
        ("txs_results/1/data", Value::Null, "do not hash"),
        ("txs_results/2/gas_used", json!("1"), "do not hash"),
        ("txs_results/2/gas_wanted", json!("-1"), "do not hash"),
        ("app_hash", json!("AAAA"), "app_hash in the results of block"),
    ] {
        let answer = edited(line.block_results.get(), &format!("/{member}"), value);
        let claims = Claims::from_results(&parse_results(answer.as_bytes()).unwrap()).unwrap();
        let error = refusal(&claims, &parent, next.block.get()).unwrap_err();
        let names = error.contains(&format!("of block {height} ")) && error.ends_with("ask another endpoint");
        assert!(error.contains(says) && names, "{member}: {error}");
    }
    let own = parse_block(line.block.get().as_bytes()).unwrap();
    assert!(check_results(&claims, &own).unwrap_err().to_string().contains("expected the next one"));
}

#[test]
fn events_and_logs_of_results_are_not_bound_to_a_header() {
    let (line, next) = pair();
    let answer = edited(line.block_results.get(), "/txs_results/0/events", json!([]));
    let claims = Claims::from_results(&parse_results(answer.as_bytes()).unwrap()).unwrap();
    check_results(&claims, &parse_block(next.block.get().as_bytes()).unwrap()).unwrap();
}

proptest! {
    #[test]
    fn no_text_in_a_header_or_commit_makes_a_check_panic(
        text in ".*", member in 0..18_usize, version in any::<u64>(), height in any::<i64>(),
    ) {
        let mut header = json!({
            "version": {"block": version.to_string(), "app": version.to_string()}, "chain_id": text,
            "height": height.to_string(), "time": "2026-11-21T07:07:28Z", "last_block_id": {"hash": ""},
            "data_hash": "", "last_results_hash": "", "proposer_address": "AB".repeat(20),
        });
        let names = [
            "last_commit_hash", "validators_hash", "next_validators_hash", "consensus_hash", "app_hash",
            "evidence_hash",
        ];
        for name in names {
            header[name] = "".into();
        }
        if member < names.len() {
            header[names[member]] = hex::encode(&text).into();
        }
        let signature = base64::engine::general_purpose::STANDARD.encode(&text);
        let commit = json!({"height": height.to_string(), "round": member, "signatures": [
            {"block_id_flag": member, "validator_address": hex::encode(&text),
                "timestamp": "2026-11-21T07:07:28Z", "signature": signature},
        ]});
        let answer = json!({"block_id": {"hash": "AB".repeat(32)}, "block": {"header": header, "last_commit": commit}});
        if let Ok(block) = parse_block(answer.to_string().as_bytes()) {
            prop_assert!(check_header(&block).is_err());
            prop_assert!(check_last_commit(&block).is_err());
            prop_assert!(check_parent(&[0; 32], &block).is_err());
        }
    }
}
