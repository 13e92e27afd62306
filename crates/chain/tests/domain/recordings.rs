//! Every recorded block of every recorded chain is parsed and written as the node wrote it.

use crate::recorded::{CHAINS, heights};
use chain::Account;
use chain::comet::proof::{Claims, check_header, check_last_commit, check_parent, check_results, check_txs};
use chain::comet::{check_pair, parse_block, parse_results};
use chain::evm::trace::{parse_traces, write_internal_tx};
use chain::evm::{check_receipts, parse_receipts, write_evm_tx};
use chain::hash::Hash;
use chain::tx::{DecodedTx, is_eth_tx};
use serde_json::Value;

#[test]
fn every_block_passes_every_check_against_its_header_its_parent_and_the_next_header() {
    for (chain, expected) in CHAINS.into_iter().zip([226, 50, 64, 1_281, 820, 770]) {
        let mut last: Option<(Hash, Claims)> = None;
        let mut blocks = 0;
        for line in heights(chain) {
            let block = parse_block(line.block.get().as_bytes()).unwrap();
            let results = parse_results(line.block_results.get().as_bytes()).unwrap();
            check_pair(&block, &results).unwrap();
            check_header(&block).unwrap();
            check_txs(&block, &block.raw_txs().unwrap()).unwrap();
            check_last_commit(&block).unwrap();
            if let Some((hash, claims)) = last {
                check_parent(&hash, &block).unwrap();
                check_results(&claims, &block).unwrap();
                assert!(claims.app_hash.is_some());
            }
            last = Some((block.hash, Claims::from_results(&results).unwrap()));
            blocks += 1;
        }
        assert_eq!(blocks, expected, "{chain}");
    }
}

#[test]
fn every_transaction_decodes_as_the_node_decodes_it_and_vote_data_does_not() {
    for chain in CHAINS {
        let (mut decoded, mut vote_data) = (0, 0);
        for line in heights(chain).filter(|line| line.rest_txs.is_some()) {
            let block = parse_block(line.block.get().as_bytes()).unwrap();
            for (raw, rest) in block.raw_txs().unwrap().iter().zip(line.rest_txs.as_ref().unwrap()) {
                if rest["body"]["memo"] == "decode failed tx" {
                    vote_data += 1;
                    assert!(DecodedTx::decode(raw).is_err(), "{chain} {}", line.height);
                } else {
                    decoded += 1;
                    assert_same(&DecodedTx::decode(raw).unwrap(), rest);
                }
            }
        }
        let expected = match chain {
            "evm-scenario" => (655, 0),
            "move-scenario" => (34, 0),
            "wasm-scenario" => (46, 0),
            "l1-l2/l1" => (289, 1281),
            "l1-l2/l2" => (108, 0),
            _ => (0, 0),
        };
        assert_eq!((decoded, vote_data), expected, "{chain}");
    }
}

fn assert_same(tx: &DecodedTx, rest: &Value) {
    let list = |value: &Value| value.as_array().unwrap().clone();
    let types: Vec<String> = list(&rest["body"]["messages"])
        .iter()
        .map(|message| message["@type"].as_str().unwrap().trim_start_matches('/').to_owned())
        .collect();
    assert!(types.iter().all(|name| tx.message_types.contains(name)));
    assert_eq!(tx.messages.len(), types.len());
    assert_eq!(tx.memo, rest["body"]["memo"].as_str().unwrap());
    assert_eq!(tx.signatures.len(), list(&rest["signatures"]).len());
    let infos = list(&rest["auth_info"]["signer_infos"]);
    assert_eq!(tx.signer_infos.len(), infos.len());
    for (mine, info) in tx.signer_infos.iter().zip(&infos) {
        assert_eq!(mine.public_key.as_ref().unwrap().type_url, info["public_key"]["@type"]);
        assert_eq!(mine.sequence.to_string(), info["sequence"].as_str().unwrap());
    }
    let fee: Vec<_> = list(&rest["auth_info"]["fee"]["amount"]);
    assert_eq!(tx.fee.len(), fee.len());
    for (mine, coin) in tx.fee.iter().zip(&fee) {
        assert_eq!((mine.denom.as_str(), mine.amount.as_str()), (text(coin, "denom"), text(coin, "amount")));
    }
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap()
}

#[test]
fn every_receipt_is_written_as_by_the_node_and_none_is_missing() {
    for (chain, expected) in [("evm-scenario", 642), ("l1-l2/l2", 83), ("evm-load", 34_183)] {
        let mut receipts_seen = 0;
        for line in heights(chain) {
            let receipts = parse_receipts(line.receipts()).unwrap();
            let eth_txs = eth_txs_of(&line);
            check_receipts(&receipts, line.height, eth_txs).unwrap();
            // Receipts from the zero address belong to Cosmos transactions: the others are exactly those that the rule
            // counts.
            let from_someone = receipts.iter().filter(|receipt| receipt.signer().unwrap() != Account::ZERO);
            assert_eq!(from_someone.count(), eth_txs, "{chain} {}", line.height);
            let node: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
            for (receipt, mut node) in receipts.iter().zip(node) {
                if node["to"].is_null() {
                    node["to"] = "".into();
                }
                let mut out = Vec::new();
                write_evm_tx(&mut out, receipt);
                assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), node);
            }
            receipts_seen += receipts.len();
        }
        assert_eq!(receipts_seen, expected, "{chain}");
    }
}

fn eth_txs_of(line: &crate::recorded::Line) -> usize {
    let block = parse_block(line.block.get().as_bytes()).unwrap();
    let txs = block.raw_txs().unwrap();
    let is_eth =
        |raw: &&Vec<u8>| DecodedTx::decode(raw).is_ok_and(|tx| is_eth_tx(&tx, "init", false, Some("GAS")));
    txs.iter().filter(is_eth).count()
}

#[test]
fn every_trace_flattens_to_the_recorded_frames() {
    for (chain, expected) in [("evm-scenario", 2_928), ("l1-l2/l2", 424), ("evm-load", 142_706)] {
        let mut frames = 0;
        for line in heights(chain) {
            for tx in parse_traces(line.traces()).unwrap() {
                for (at, frame) in tx.frames.iter().enumerate() {
                    assert_eq!(frame.index, at as u64);
                    assert!(frame.parent_index < at.try_into().unwrap());
                    let mut out = Vec::new();
                    write_internal_tx(&mut out, line.height, &tx.hash, frame);
                    serde_json::from_slice::<Value>(&out).unwrap();
                }
                frames += tx.frames.len();
            }
        }
        assert_eq!(frames, expected, "{chain}");
    }
}
