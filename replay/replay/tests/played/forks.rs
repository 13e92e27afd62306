//! Forged histories: every hash is recomputed, and dropped transactions are absent everywhere.

use std::collections::BTreeSet;
use std::path::Path;

use chain::comet::proof::{check_txs, results_hash};
use chain::comet::{check_pair, parse_block, parse_results};
use replay::eth_header::eth_header_hash;
use replay::header::header_hash;
use replay::recording::{Height, Trace};
use replay::{Error, Recording};
use serde_json::Value;

const SEED: u64 = 7;

fn open(name: &str) -> Recording {
    Recording::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name))
        .unwrap()
}

fn parse(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap()
}

fn upper(hash: [u8; 32]) -> String {
    hex::encode_upper(hash)
}

/// Recomputes all hashes that link the heights of a chain.
fn is_bound(heights: &[Height]) {
    let mut before: Option<(Value, Value)> = None;
    for height in heights {
        let (block, results) = (parse(&height.block), parse(&height.block_results));
        let header = &block["block"]["header"];
        let at = height.height;
        assert_eq!(block["block_id"]["hash"], upper(header_hash(header).unwrap()), "{at}");
        let answer = parse_block(&height.block).unwrap();
        check_txs(&answer, &answer.raw_txs().unwrap()).unwrap();
        check_pair(&answer, &parse_results(&height.block_results).unwrap()).unwrap();
        if let Some((last_block, last_results)) = before {
            assert_eq!(header["last_block_id"], last_block["block_id"], "{at}");
            assert_eq!(block["block"]["last_commit"]["block_id"], last_block["block_id"], "{at}");
            let last = last_results.to_string();
            let last = parse_results(last.as_bytes()).unwrap();
            assert_eq!(header["last_results_hash"], upper(results_hash(&last.txs_results).unwrap()), "{at}");
            let app_hash: [u8; 32] = base64(&last_results["app_hash"]).try_into().unwrap();
            assert_eq!(header["app_hash"], upper(app_hash), "{at}");
            assert!(header["time"].as_str() > last_block["block"]["header"]["time"].as_str(), "{at}");
        }
        before = Some((block, results));
    }
}

fn base64(text: &Value) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
}

/// Checks that the EVM's answers about a chain are consistent, like minievm's.
fn is_one_evm(heights: &[Height]) {
    let mut parent = None;
    for height in heights {
        let (block, receipts) =
            (parse(height.eth_block.as_ref().unwrap()), parse(height.eth_receipts.as_ref().unwrap()));
        assert!(parent.is_none_or(|parent| parent == block["parentHash"]), "{}", height.height);
        assert_eq!(block["hash"], format!("0x{}", hex::encode(eth_header_hash(&block).unwrap())));
        let receipts = receipts.as_array().unwrap();
        let hashes: Vec<&Value> = receipts.iter().map(|r| &r["transactionHash"]).collect();
        assert_eq!(hashes, block["transactions"].as_array().unwrap().iter().collect::<Vec<_>>());
        let mut gas = 0;
        for (place, receipt) in (1..).zip(receipts) {
            gas += quantity(&receipt["gasUsed"]);
            assert_eq!(
                (quantity(&receipt["transactionIndex"]), quantity(&receipt["cumulativeGasUsed"])),
                (place, gas)
            );
            assert_eq!(receipt["blockHash"], block["hash"]);
            for log in receipt["logs"].as_array().unwrap() {
                assert_eq!(
                    (&log["transactionIndex"], &log["blockHash"]),
                    (&receipt["transactionIndex"], &block["hash"])
                );
            }
        }
        if let Some(Trace::Result(traces)) = &height.eth_trace {
            let traces = parse(traces);
            let traced: Vec<&Value> =
                traces.as_array().unwrap().iter().map(|trace| &trace["txHash"]).collect();
            assert_eq!(traced, hashes, "{}", height.height);
        }
        parent = Some(block["hash"].clone());
    }
}

fn quantity(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn every_recorded_header_hashes_to_its_recorded_hash() {
    for name in ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2"] {
        is_bound(open(name).heights());
    }
    for height in open("evm-scenario").heights() {
        let block = parse(height.eth_block.as_ref().unwrap());
        assert_eq!(block["hash"], format!("0x{}", hex::encode(eth_header_hash(&block).unwrap())));
    }
}

#[test]
fn a_fork_is_the_same_chain_up_to_its_height_and_another_valid_one_above() {
    for (name, at) in [("evm-scenario", 100), ("move-scenario", 20), ("evm-load", 740), ("l1-l2/l2", 200)] {
        let chain = open(name);
        let fork = chain.forked(at, SEED).unwrap();
        assert_eq!((fork.first(), fork.last()), (chain.first(), chain.last()));
        for (old, new) in chain.heights().iter().zip(fork.heights()) {
            assert_eq!(old == new, new.height <= at, "{name} {}", new.height);
        }
        let from = fork.heights().iter().position(|height| height.height == at).unwrap();
        for (old, new) in chain.heights().iter().zip(fork.heights()).skip(from + 1) {
            assert_ne!(parse(&old.block)["block_id"], parse(&new.block)["block_id"], "{name} {}", new.height);
        }
        is_bound(&fork.heights()[from..]);
        if chain.is_evm() {
            is_one_evm(&fork.heights()[from..]);
        }
        let (old, new) = (chain.summary(), fork.summary());
        assert!((1..old.txs).contains(&new.txs), "{name}: {new:?}");
        assert!(new.evm_txs <= old.evm_txs && new.trace_frames <= old.trace_frames, "{name}: {new:?}");
    }
}

#[test]
fn a_dropped_transaction_is_absent_from_every_answer_with_its_receipt() {
    let chain = open("evm-scenario");
    let fork = chain.forked(0, SEED).unwrap();
    let mut dropped = 0;
    for (old, new) in chain.heights().iter().zip(fork.heights()) {
        let (before, after) = (old.raw_txs().unwrap(), new.raw_txs().unwrap());
        dropped += before.len() - after.len();
        assert!(after.iter().all(|tx| before.contains(tx)));
        // The node's JSON of a transaction and its receipt are dropped with its bytes; the rest is consistent.
        let rest = new.rest_txs.as_deref().map_or(0, |txs| parse(txs).as_array().unwrap().len());
        assert_eq!(rest, after.len(), "{}", new.height);
        let results = parse(&new.block_results);
        let gas: BTreeSet<u64> = results["txs_results"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|r| r["gas_used"].as_str().unwrap().parse().unwrap())
            .collect();
        for receipt in parse(new.eth_receipts.as_ref().unwrap()).as_array().unwrap() {
            assert!(gas.contains(&quantity(&receipt["gasUsed"])), "{}: {receipt}", new.height);
        }
    }
    assert!((100..250).contains(&dropped), "{dropped}");
}

#[test]
fn the_seed_determines_the_fork() {
    let chain = open("move-scenario");
    let heights = |seed| chain.forked(10, seed).unwrap().heights().to_vec();
    assert_eq!(heights(1), heights(1));
    assert_ne!(heights(1), heights(2));
}

#[test]
fn a_fork_may_start_anywhere_from_below_the_first_to_the_last_height() {
    let chain = open("wasm-scenario");
    let whole = chain.forked(3, SEED).unwrap();
    is_bound(whole.heights());
    assert_ne!(whole.heights()[0].block, chain.heights()[0].block);
    assert_eq!(chain.forked(67, SEED).unwrap().heights(), chain.heights());
    for at in [2, 68] {
        assert!(
            matches!(chain.forked(at, SEED), Err(Error::NoSuchHeight { height, first: 4, last: 67 }) if height == at)
        );
    }
}
