//! Every computed height passes the indexer's checks of hashes and receipts, and computed state follows from the
//! computed transactions.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use std::path::Path;

use chain::comet::proof::{self, Claims, EvmChain, Executed};
use chain::comet::{parse_block, parse_results};
use chain::evm::header::{self, Contents, Header, union_of_blooms};
use chain::evm::parse_receipts;
use chain::hash::tx_hash;
use chain::tx::DecodedTx;
use replay::Recording;
use replay::recording::Height;
use synthesize::BlockSizes;

fn extended(name: &str, txs: u64, sizes: BlockSizes) -> (u64, Recording) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name);
    let recorded = Recording::open(&dir).unwrap();
    (recorded.last(), synthesize::extend(recorded, txs, sizes).unwrap())
}

/// The header of the EVM's block, whose hash is that of its content.
fn eth_header(height: &Height) -> Header {
    let receipts = parse_receipts(height.eth_receipts.as_ref().unwrap()).unwrap();
    let hashes: Vec<_> = receipts.iter().map(|receipt| receipt.hash().unwrap()).collect();
    let time = parse_block(&height.block).unwrap().header.time.unix_nanos();
    let timestamp = u64::try_from(time.div_euclid(1_000_000_000)).unwrap();
    let contents = Contents { number: height.height, timestamp, bloom: &union_of_blooms(&receipts) };
    header::parse(height.eth_block.as_ref().unwrap(), &contents, &hashes).unwrap()
}

fn eth_hash(header: &Header) -> String {
    format!("0x{}", hex::encode(header.hash))
}

/// Checks every height after `recorded` against the one before.
fn is_proven(recorded: u64, chain: &Recording) {
    let mut txs = 0;
    for height in recorded + 1..=chain.last() {
        let (before, this) = (chain.height(height - 1).unwrap(), chain.height(height).unwrap());
        let (earlier, block) = (parse_block(&before.block).unwrap(), parse_block(&this.block).unwrap());
        let raw = block.raw_txs().unwrap();
        proof::check_header(&block).unwrap();
        proof::check_txs(&block, &raw).unwrap();
        proof::check_parent(&earlier.hash, &block).unwrap();
        proof::check_last_commit(&block).unwrap();
        let claims = Claims::from_results(&parse_results(&before.block_results).unwrap()).unwrap();
        proof::check_results(&claims, &block).unwrap();
        txs += raw.len();
        let Some(receipts) = &this.eth_receipts else { continue };
        let (receipts, results) =
            (parse_receipts(receipts).unwrap(), parse_results(&this.block_results).unwrap());
        let decoded: Vec<_> = raw.iter().map(|raw| DecodedTx::decode(raw).unwrap()).collect();
        let executed = raw.iter().zip(&decoded).zip(&results.txs_results);
        let executed =
            executed.map(|((raw, tx), result)| Executed { hash: tx_hash(raw), tx: Some(tx), result });
        let id = &chain.summary().chain_id;
        let of = EvmChain { chain_id: id, prefix: "init", fee_denom: None };
        let bound = proof::check_receipts(&of, height, executed, &receipts).unwrap().bound;
        assert_eq!(bound.receipts, raw.len());
        let (parent, header) = (eth_header(&before), eth_header(&this));
        assert_eq!(header.parent, parent.hash, "{height}");
        assert!(receipts.iter().all(|receipt| *receipt.block_hash == *eth_hash(&header)), "{height}");
    }
    assert!(txs > 1_000, "{txs}");
}

#[test]
fn every_hash_of_a_computed_evm_rollup_is_proven() {
    let (recorded, chain) = extended("evm-scenario", 4_000, BlockSizes::Medium);
    is_proven(recorded, &chain);
}

#[test]
fn every_hash_of_a_computed_chain_with_all_kinds_of_calls_is_proven() {
    let (recorded, chain) = extended("evm-load", 38_000, BlockSizes::Medium);
    is_proven(recorded, &chain);
}

#[test]
fn every_hash_of_a_computed_move_rollup_is_proven() {
    let (recorded, chain) = extended("move-scenario", 2_000, BlockSizes::Small);
    is_proven(recorded, &chain);
}

#[test]
fn every_hash_of_a_computed_wasm_rollup_is_proven() {
    let (recorded, chain) = extended("wasm-scenario", 6_000, BlockSizes::Large);
    is_proven(recorded, &chain);
}
