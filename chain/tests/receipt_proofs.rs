//! Receipts against the transactions and results that they belong to: all recorded ones fit, and none fits changed.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it says")]

mod recorded;

use chain::comet::{parse_block, parse_results};
use chain::evm::parse_receipts;
use chain::proof::{Bound, EvmChain, Executed, check_receipts};
use chain::tx::{DecodedTx, tx_hash};
use proptest::prelude::*;
use recorded::{Line, heights};
use serde_json::{Value, json};

/// Checks a recorded block as ingest does.
fn check(line: &Line, fee_denom: Option<&str>, results: &str, receipts: &str) -> Result<Bound, String> {
    let block = parse_block(line.block.get().as_bytes()).unwrap();
    let results = parse_results(results.as_bytes()).unwrap();
    let receipts = parse_receipts(receipts.as_bytes()).map_err(|error| error.to_string())?;
    let raw = block.raw_txs().unwrap();
    let txs: Vec<_> = raw.iter().map(|raw| (tx_hash(raw), DecodedTx::decode(raw).ok())).collect();
    let executed = txs.iter().zip(&results.txs_results);
    let executed = executed.map(|((hash, tx), result)| Executed { hash: *hash, tx: tx.as_ref(), result });
    let chain = EvmChain { chain_id: &block.header.chain_id, prefix: "init", fee_denom };
    check_receipts(&chain, line.height, executed, &receipts).map_err(|error| error.to_string())
}

#[test]
fn every_recorded_receipt_belongs_to_its_transaction() {
    for (chain, receipts, logs, proven_logs, proven_receipts) in
        [("evm-scenario", 642, 0, 0, 0), ("l1-l2/l2", 83, 0, 0, 0), ("evm-load", 34_183, 0, 0, 0)]
    {
        let mut all = Bound::default();
        for line in heights(chain) {
            let receipts = std::str::from_utf8(line.receipts()).unwrap();
            for fee_denom in [None, Some("GAS")] {
                let bound = check(&line, fee_denom, line.block_results.get(), receipts).unwrap();
                if fee_denom.is_some() {
                    all.receipts += bound.receipts;
                    all.logs += bound.logs;
                    all.proven_logs += bound.proven_logs;
                    all.proven_receipts += bound.proven_receipts;
                }
            }
        }
        assert_eq!(all, Bound { receipts, logs, proven_logs, proven_receipts }, "{chain}");
    }
}
