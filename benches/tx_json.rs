//! Speed of the protobuf-to-JSON transcoder, over every kind of transaction of an EVM rollup in turn.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use anyhow::Result;
use benches::recorded::{Played, raw_txs};
use criterion::{Criterion, Throughput};

fn main() -> Result<()> {
    let played = Played::start("evm-scenario")?;
    let txs = raw_txs(played.recording())?;
    let registry = played.rules()?.registry;
    let mut out = Vec::new();
    for tx in &txs {
        proto::json::write_tx(&registry, tx, &mut out)?;
    }
    let mean = out.len() / txs.len();

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("tx_json");
    // The reported time is that of one transaction, and the rate that of its JSON.
    group.throughput(Throughput::Bytes(u64::try_from(mean)?));
    group.bench_function("write_tx", |bencher| {
        let mut next = txs.iter().cycle();
        bencher.iter(|| {
            out.clear();
            let tx = next.next().expect("a recording with transactions");
            proto::json::write_tx(&registry, black_box(tx), &mut out).expect("it was printed before");
            out.len()
        });
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}
