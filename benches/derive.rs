//! Cost of deriving on one core: node answers in memory to records and index entries, without storage. One iteration is
//! forty consecutive blocks from the middle of the chain.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::sync::Arc;

use anyhow::{Context as _, Result};
use benches::recorded::Played;
use criterion::{Criterion, Throughput};
use ingest::derive::{
    self, BlockResponses, EvmResponse, Rendered, Retraced, Rules, Traced, WorkerPool, WorkerState,
};
use replay::recording::{Height, Trace};
use schema::meta::Identity;
use schema::payload::Codec;
use store::{MemStore, Store as _};

/// Blocks of one iteration.
const BLOCKS: usize = 40;

fn main() -> Result<()> {
    let played = Played::start("evm-load")?;
    let rules = played.rules()?;
    let workshops = WorkerPool::new(Arc::new(codec(&rules)?), rules.clone());
    let heights = played.recording().heights();
    let heights =
        heights.get(heights.len() / 2..).and_then(|rest| rest.get(..BLOCKS)).context("too short")?;
    let (mut txs, mut frames) = (0, 0);
    workshops.with(|workshop| {
        for height in heights {
            txs += block(height, &rules, workshop);
            frames += calls(height, workshop);
        }
    })?;

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("derive");
    group.sample_size(20);
    group.throughput(Throughput::Elements(u64::try_from(txs)?));
    group.bench_function("blocks (elements: transactions)", |bencher| {
        let all =
            |workshop: &mut WorkerState| heights.iter().map(|h| block(h, &rules, workshop)).sum::<usize>();
        bencher.iter(|| workshops.with(all).expect("the workshop is there already"));
    });
    group.throughput(Throughput::Elements(u64::try_from(frames)?));
    group.bench_function("traces (elements: call frames)", |bencher| {
        let all = |workshop: &mut WorkerState| heights.iter().map(|h| calls(h, workshop)).sum::<usize>();
        bencher.iter(|| workshops.with(all).expect("the workshop is there already"));
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}

/// Derives a block; returns the number of its transactions.
fn block(height: &Height, rules: &Rules, workshop: &mut WorkerState) -> usize {
    let answers = BlockResponses {
        height: height.height,
        block: &height.block,
        results: &height.block_results,
        evm: height.eth_receipts.as_deref().map(EvmResponse::Receipts),
    };
    let derived = derive::block(&answers, &Rendered::new(), rules, workshop);
    derived.expect("a recorded block can be derived").txs.len()
}

/// Derives a block's call frames; returns their number.
fn calls(height: &Height, workshop: &mut WorkerState) -> usize {
    let Some(Trace::Result(trace)) = &height.eth_trace else { return 0 };
    let receipts = height.eth_receipts.as_deref().unwrap_or(b"[]");
    let receipts = chain::evm::parse_receipts(receipts).expect("recorded receipts can be read");
    let hashes = receipts.iter().filter_map(|receipt| receipt.hash().ok());
    let expected: Vec<Traced> = hashes.map(Traced::from).collect();
    let derived = derive::frames(height.height, &expected, Some(trace), &Retraced::new(), workshop);
    derived.expect("a recorded trace can be derived").txs.iter().map(Vec::len).sum()
}

/// The dictionaries of a new database.
fn codec(rules: &Rules) -> Result<Codec> {
    let store = MemStore::new();
    let identity = Identity {
        format: schema::FORMAT,
        chain_id: "bench".to_owned(),
        vm: rules.vm.to_string(),
        prefix: rules.prefix.clone(),
        start_height: 1,
    };
    schema::open::or_create(&store, &identity)?;
    Ok(Codec::load(&*store.snapshot()?)?)
}
