//! Speed of ingest on a recorded chain: 34,183 EVM transactions with 142,706 call frames and 4,142 NFTs in 770 blocks,
//! from a replay node over loopback sockets into an empty RocksDB.
//!
//! A sample is a whole ingest, from the first request to the node until every lane is at the last height. The node
//! is in this process, on threads of its own, and shares the machine's cores.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::time::Duration;

use anyhow::Result;
use benches::recorded::{Cpu, Ingested, Lanes, Played};
use benches::report::{bytes_each, line, megabytes, micros_each, per_second, table_sizes};
use benches::{measuring, meter};
use criterion::{Criterion, SamplingMode, Throughput};
use store::Store as _;
use store::rocks::TableSize;

fn main() -> Result<()> {
    let played = Played::start("evm-load")?;
    // First, so that peak memory is that of one ingest in a fresh process.
    let figures = measuring().then(|| Figures::take(&played)).transpose()?;
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion, &played);
    criterion.final_summary();
    figures.map_or(Ok(()), |figures| figures.print(&played))
}

fn bench(criterion: &mut Criterion, played: &Played) {
    let mut group = criterion.benchmark_group("ingest");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(1));
    group.throughput(Throughput::Elements(played.recording().summary().txs));
    for (name, lanes) in [("all-lanes", Lanes::ALL), ("blocks-only", Lanes::NONE)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let ingest = |_| played.ingest(lanes).expect("a recording can be ingested").elapsed;
                (0..times).map(ingest).sum()
            });
        });
    }
    group.finish();
}

/// Detailed figures of one ingest.
struct Figures {
    elapsed: Duration,
    cpu: Cpu,
    resident_before: u64,
    peak: u64,
    /// Bytes in the directory: when the ingest ended, after a flush, after a compaction.
    disk: [u64; 3],
    tables: Vec<TableSize>,
}

impl Figures {
    fn take(played: &Played) -> Result<Self> {
        meter::forget_peak()?;
        let resident_before = meter::resident()?;
        let Ingested { store, elapsed, cpu, .. } = &played.ingest(Lanes::ALL)?;
        let peak = meter::peak_resident()?;
        let at_the_end = store.disk_bytes()?;
        store.flush()?;
        let flushed = store.disk_bytes()?;
        store.compact()?;
        let disk = [at_the_end, flushed, store.disk_bytes()?];
        let tables = store.table_sizes()?;
        Ok(Self { elapsed: *elapsed, cpu: *cpu, resident_before, peak, disk, tables })
    }

    fn print(&self, played: &Played) -> Result<()> {
        let summary = played.recording().summary();
        let (txs, blocks) = (summary.txs, summary.last_height - summary.first_height + 1);
        line(&format!("\none ingest, all lanes, in a fresh process (load average now {})", meter::load()?));
        line(&format!(
            "  {:.2} s: {:.0} tx/s, {:.0} blocks/s, {:.0} call frames/s",
            self.elapsed.as_secs_f64(),
            per_second(txs, self.elapsed),
            per_second(blocks, self.elapsed),
            per_second(summary.trace_frames, self.elapsed),
        ));
        line(&format!(
            "  CPU a transaction: ingest {:.1} us, RocksDB's threads {:.1} us; beside it the replay node {:.1} us",
            micros_each(self.cpu.ingest, txs),
            micros_each(self.cpu.rocksdb, txs),
            micros_each(self.cpu.node, txs),
        ));
        line(&format!(
            "  memory: peak {:.0} MB, of which {:.0} MB were there before: the replay node's recording",
            megabytes(self.peak),
            megabytes(self.resident_before),
        ));
        let [at_the_end, flushed, compacted] = self.disk;
        for (when, bytes) in [("at its end", at_the_end), ("flushed", flushed), ("compacted", compacted)] {
            let (size, each) = (megabytes(bytes), bytes_each(bytes, txs));
            line(&format!("  database {when}, logs included: {size:.1} MB, {each:.0} bytes a transaction"));
        }
        line("");
        table_sizes(&self.tables, txs);
        Ok(())
    }
}
