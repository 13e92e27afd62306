//! Cost of parsing, of records and of the checks of `chain::comet::proof` and `chain::comet::light` on one core, over the whole
//! recorded chain `evm-load`: `cargo run --release -p chain --example proof_cost`.
//!
//! The time of a check excludes parsing and decoding, because ingest does that anyway.

#![allow(clippy::unwrap_used, reason = "a measurement stops where a file is not as recorded")]
#![allow(clippy::print_stdout, reason = "its output is the measurement")]

#[path = "../tests/domain/recorded/mod.rs"]
mod recorded;

use std::hint::black_box;
use std::time::{Duration, Instant};

use chain::AccountSet;
use chain::comet::light::{Validators, check_commit, parse_validators};
use chain::comet::proof::{
    Claims, EvmChain, Executed, check_header, check_last_commit, check_parent, check_receipts, check_results,
    check_txs,
};
use chain::comet::{BlockResponse, ResultsResponse, parse_block, parse_results};
use chain::evm::{Receipt, parse_receipts, write_evm_tx};
use chain::involved::{StoreOwners, accounts};
use chain::record::write_tx_record;
use chain::tx::{DecodedTx, tx_hash};
use recorded::{heights, states};

#[derive(Default)]
struct Costs {
    blocks: u32,
    txs: u32,
    receipts: u32,
    parsing: Duration,
    records: Duration,
    involved: Duration,
    header: Duration,
    txs_root: Duration,
    results: Duration,
    last_commit: Duration,
    evm: Duration,
    signatures: Duration,
}

fn main() {
    let page = states("evm-load").find(|state| state.path.starts_with("/validators?")).unwrap();
    let page = parse_validators(page.answer.unwrap().get().as_bytes()).unwrap();
    let set = Validators::new(page.validators).unwrap();
    let mut costs = Costs::default();
    let mut before: Option<(u64, [u8; 32], Claims)> = None;
    for line in heights("evm-load") {
        let (block, results, receipts) = timed(&mut costs.parsing, || {
            let block = parse_block(line.block.get().as_bytes()).unwrap();
            let results = parse_results(line.block_results.get().as_bytes()).unwrap();
            (block, results, parse_receipts(line.receipts()).unwrap())
        });
        costs.records(&block, &results, &receipts);
        let claims = costs.hashes(&block, &results, before.as_ref());
        costs.receipts(&block, &results, &receipts);
        if let Some((height, hash, _)) = &before {
            let start = Instant::now();
            let commit = block.last_commit().unwrap();
            black_box(check_commit(&block.header.chain_id, *height, hash, &commit, &set)).unwrap();
            costs.signatures += start.elapsed();
        }
        before = Some((block.header.height, block.hash, claims));
    }
    costs.print();
}

impl Costs {
    fn hashes(
        &mut self,
        block: &BlockResponse<'_>,
        results: &ResultsResponse<'_>,
        before: Option<&(u64, [u8; 32], Claims)>,
    ) -> Claims {
        let raw = block.raw_txs().unwrap();
        timed(&mut self.header, || {
            check_header(block).unwrap();
            if let Some((_, hash, _)) = before {
                check_parent(hash, block).unwrap();
            }
        });
        timed(&mut self.txs_root, || check_txs(block, &raw)).unwrap();
        timed(&mut self.last_commit, || check_last_commit(block)).unwrap();
        self.blocks += 1;
        self.txs += u32::try_from(raw.len()).unwrap();
        timed(&mut self.results, || {
            if let Some((_, _, claims)) = before {
                check_results(claims, block).unwrap();
            }
            Claims::from_results(results).unwrap()
        })
    }

    fn records(
        &mut self,
        block: &BlockResponse<'_>,
        results: &ResultsResponse<'_>,
        receipts: &[Receipt<'_>],
    ) {
        let (height, time, mut out) = (block.header.height, block.header.time, Vec::new());
        for result in &results.txs_results {
            out.clear();
            let written =
                timed(&mut self.records, || write_tx_record(&mut out, &[7; 32], height, result, b"{}", time));
            written.unwrap();
            timed(&mut self.involved, || {
                let (owners, mut set) = (StoreOwners::default(), AccountSet::default());
                accounts(&result.events, "init", chain::Vm::Evm, &owners, &[], &mut set);
                set.len()
            });
        }
        for receipt in receipts {
            out.clear();
            timed(&mut self.records, || write_evm_tx(&mut out, receipt));
            timed(&mut self.involved, || {
                let mut set = AccountSet::default();
                receipt.accounts(&mut set).unwrap();
                set.len()
            });
        }
    }

    fn receipts(
        &mut self,
        block: &BlockResponse<'_>,
        results: &ResultsResponse<'_>,
        receipts: &[Receipt<'_>],
    ) {
        let raw = block.raw_txs().unwrap();
        let txs: Vec<_> = raw.iter().map(|raw| (tx_hash(raw), DecodedTx::decode(raw).ok())).collect();
        let executed = txs.iter().zip(&results.txs_results);
        let executed = executed.map(|((hash, tx), result)| Executed { hash: *hash, tx: tx.as_ref(), result });
        let chain = EvmChain { chain_id: &block.header.chain_id, prefix: "init", fee_denom: None };
        let checked =
            timed(&mut self.evm, || check_receipts(&chain, block.header.height, executed, receipts)).unwrap();
        self.receipts += u32::try_from(checked.bound.receipts).unwrap();
    }

    fn print(&self) {
        let micros = |spent: Duration, of: u32| spent.as_secs_f64() * 1e6 / f64::from(of.max(1));
        println!("{} blocks, {} transactions, {} receipts", self.blocks, self.txs, self.receipts);
        for (name, spent) in [
            ("parsing", self.parsing),
            ("records", self.records),
            ("accounts", self.involved),
            ("header and parent", self.header),
            ("transactions", self.txs_root),
            ("results", self.results),
            ("last commit", self.last_commit),
            ("receipts", self.evm),
            ("signatures (one validator)", self.signatures),
        ] {
            let (block, tx) = (micros(spent, self.blocks), micros(spent, self.txs));
            println!("{name}: {block:.1} us a block, {tx:.2} us a transaction");
        }
    }
}

fn timed<T>(spent: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = black_box(work());
    *spent += start.elapsed();
    done
}
