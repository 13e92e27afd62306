//! Speed of ingest as the chain grows: a recording, extended by computed blocks to a million transactions, indexed with
//! all lanes and verified hashes into an empty RocksDB. One row for each tenth of the transactions. Then the latency of
//! reads of which nothing is cached.
//!
//! The replay node is a process of its own, so that the figures of this process are the ingest's.
//!
//! `GROWTH_TXS=10000000 cargo bench --workspace --bench growth` takes ten times as long; `GROWTH_BLOCK` is the number of
//! transactions in a block (`0-4`, `100`, `5000`), `GROWTH_RECORDING` another recording than `evm-load`,
//! `GROWTH_INDEXES` the optional indexes (`logs,parties`; none by default), and `GROWTH_DIR` the directory in which the
//! database is made and removed.

#[path = "growth/cold.rs"]
mod cold;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use benches::apart::{self, NodeApart};
use benches::report::{bytes_each, line, megabytes, micros_each, per_second, table, table_sizes};
use benches::{indexes, measuring, meter, setting};
use ingest::{Config, Ingest, ProgressReceivers};
use replay::recording::Summary;
use store::{RocksOptions, RocksStore, Store};
use testkit::indexed;
use tokio::runtime::Builder;
use tokio::sync::watch;

/// Rows of the table.
const PARTS: u64 = 10;

fn main() -> Result<()> {
    if apart::is_node()? || !measuring() {
        return Ok(());
    }
    let txs = setting("GROWTH_TXS", "1000000").parse().context("GROWTH_TXS")?;
    let (recording, sizes) = (setting("GROWTH_RECORDING", "evm-load"), setting("GROWTH_BLOCK", "100"));
    let played = NodeApart::start(&recording, Some((txs, &sizes)))?;
    let directory = match std::env::var_os("GROWTH_DIR") {
        Some(path) => tempfile::tempdir_in(path)?,
        None => tempfile::tempdir()?,
    };
    let store = Arc::new(RocksStore::open(directory.path(), schema::TABLES, RocksOptions::default())?);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let samples = runtime.block_on(ingest(&played, &store))?;
    print(played.summary(), &samples);
    print_size(&store, txs)?;
    played.stop()?;
    drop((runtime, store));
    cold::print(directory.path())
}

/// Figures of this process at an instant.
struct Sample {
    txs: u64,
    at: Instant,
    cpu: Duration,
    resident: u64,
    written: u64,
    disk: u64,
    load: String,
}

impl Sample {
    fn take(txs: u64, store: &RocksStore) -> Result<Self> {
        Ok(Self {
            txs,
            at: Instant::now(),
            cpu: meter::process_cpu(std::process::id())?,
            resident: meter::resident()?,
            written: meter::written()?,
            disk: store.disk_bytes()?,
            load: meter::load()?.split(' ').next().unwrap_or_default().to_owned(),
        })
    }
}

/// Indexes the whole chain, with a sample at the start and after each tenth of the transactions in all lanes.
async fn ingest(played: &NodeApart, store: &Arc<RocksStore>) -> Result<Vec<Sample>> {
    let summary = played.summary();
    let indexes = indexes(&setting("GROWTH_INDEXES", ""))?;
    let config = Config { indexes, ..indexed::config_of(summary)? };
    let node = Arc::new(played.clients()?);
    let first = Sample::take(0, store)?;
    let ingest = Ingest::prepare(config, node, Arc::clone(store) as Arc<dyn Store>).await?;
    let (stop, stopped) = watch::channel(false);
    let sampled = async {
        let mut samples = vec![first];
        let mut progress = ingest.progress();
        for part in 1..=PARTS {
            let txs = until(&mut progress, summary, part).await;
            samples.push(Sample::take(txs, store)?);
        }
        stop.send_replace(true);
        anyhow::Ok(samples)
    };
    let ((), samples) = tokio::try_join!(async { Ok(ingest.run(stopped).await?) }, sampled)?;
    Ok(samples)
}

/// Waits until all lanes have so many tenths of the transactions; returns their number.
async fn until(progress: &mut ProgressReceivers, summary: &Summary, part: u64) -> u64 {
    let wanted = summary.txs * part / PARTS;
    while progress.blocks.borrow().records < wanted {
        progress.moved().await;
    }
    let blocks = *progress.blocks.borrow();
    // Empty blocks may follow the last transaction.
    let height = if part == PARTS { summary.last_height } else { blocks.height };
    while progress.done() < height {
        progress.moved().await;
    }
    let now = *progress.blocks.borrow();
    now.records
}

fn print(summary: &Summary, samples: &[Sample]) {
    line(&format!(
        "{} transactions, {} call frames, heights {} to {}",
        summary.txs, summary.trace_frames, summary.first_height, summary.last_height
    ));
    let rate = |before: &Sample, after: &Sample| per_second(after.txs - before.txs, after.at - before.at);
    let cpu = |before: &Sample, after: &Sample| {
        micros_each(after.cpu.saturating_sub(before.cpu), after.txs - before.txs) / 1_000.0
    };
    let row = |(part, pair): (usize, &[Sample])| {
        let [before, after] = pair else { return Vec::new() };
        vec![
            part.to_string(),
            format!("{:.0}", rate(before, after)),
            format!("{:.4}", cpu(before, after)),
            format!("{:.0}", megabytes(after.resident)),
            format!("{:.0}", megabytes(after.written - before.written)),
            format!("{:.0}", megabytes(after.disk)),
            after.load.clone(),
        ]
    };
    let rows: Vec<_> = (1..).zip(samples.windows(2)).map(row).collect();
    table(&["tenth", "tx/s", "CPU ms/tx", "memory MB", "written MB", "disk MB", "load"], &rows);
    let [start, first, second, .., before_last, last] = samples else { return };
    line(&format!(
        "in all {:.0} tx/s and {:.4} ms CPU a transaction; the last tenth {:.2} times the CPU of the second, and {:.2} times its rate",
        rate(start, last),
        cpu(start, last),
        cpu(before_last, last) / cpu(first, second),
        rate(before_last, last) / rate(first, second),
    ));
}

fn print_size(store: &RocksStore, txs: u64) -> Result<()> {
    let size = |when: &str| {
        let bytes = store.disk_bytes()?;
        let (size, each) = (megabytes(bytes), bytes_each(bytes, txs));
        line(&format!("database {when}, logs included: {size:.1} MB, {each:.0} bytes a transaction"));
        anyhow::Ok(())
    };
    line(&format!("peak memory {:.0} MB", megabytes(meter::peak_resident()?)));
    size("at the end")?;
    store.flush()?;
    size("flushed")?;
    store.compact()?;
    size("compacted")?;
    table_sizes(&store.table_sizes()?, txs);
    Ok(())
}
