//! Costs of the optional indexes, and what they are for: bytes and CPU of each one on a recorded chain, in turns; then, on a
//! chain of a million computed transactions, the speed at which they are built from stored blocks, and the latency of
//! `eth_getLogs`, of balances and of transfers.
//!
//! `INDEXES_TXS` is the length of the long chain, 0 leaves it out; `INDEXES_ROUNDS` how often each set of indexes is measured
//! (3), 0 leaves that out; `INDEXES_CHAIN` the recording for that (`evm-load`), `NAME:TXS` if it is to be extended; `INDEXES_DIR`
//! the directory of the databases.

#[path = "indexes/costs.rs"]
mod costs;
#[path = "indexes/reads.rs"]
mod reads;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use benches::apart::{self, NodeApart};
use benches::report::{line, per_second};
use benches::{indexes, measuring, meter, setting};
use ingest::{Config, Ingest};
use schema::index::{Index, Input};
use schema::index_writer::{self, Rest, Writer};
use store::{RocksOptions, RocksStore, Store};
use tempfile::TempDir;
use testkit::indexed;
use tokio::runtime::Builder;
use tokio::sync::watch;

/// What is built on the long chain after its blocks, in turn.
const BUILT: [&str; 2] = ["logs,contracts,parties", "ledger"];

fn main() -> Result<()> {
    if apart::is_node()? || !measuring() {
        return Ok(());
    }
    let rounds: u32 = setting("INDEXES_ROUNDS", "3").parse().context("INDEXES_ROUNDS")?;
    costs::print(rounds, &setting("INDEXES_CHAIN", "evm-load"))?;
    match setting("INDEXES_TXS", "1000000").parse().context("INDEXES_TXS")? {
        0 => Ok(()),
        txs => long(txs),
    }
}

fn directory() -> Result<TempDir> {
    Ok(match std::env::var_os("INDEXES_DIR") {
        Some(path) => tempfile::tempdir_in(path)?,
        None => tempfile::tempdir()?,
    })
}

/// A database of a chain, with the CPU time and the time of making it.
struct Made {
    store: Arc<RocksStore>,
    cpu: Duration,
    elapsed: Duration,
    /// Removed after the database is closed.
    _directory: TempDir,
}

/// Indexes the chain of `node` with `indexes`.
fn make(node: &NodeApart, indexes: &[&'static Index]) -> Result<Made> {
    let directory = directory()?;
    let store = Arc::new(RocksStore::open(directory.path(), schema::TABLES, RocksOptions::default())?);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let (before, started) = (meter::process_cpu(std::process::id())?, Instant::now());
    runtime.block_on(ingest(node, indexes, &store))?;
    let elapsed = started.elapsed();
    let cpu = meter::process_cpu(std::process::id())?.saturating_sub(before);
    Ok(Made { store, cpu, elapsed, _directory: directory })
}

/// Runs an ingest until all lanes and all indexes have the last block.
async fn ingest(node: &NodeApart, indexes: &[&'static Index], store: &Arc<RocksStore>) -> Result<()> {
    let last = node.summary().last_height;
    let config = Config { indexes: indexes.to_vec(), ..indexed::config_of(node.summary())? };
    let clients = Arc::new(node.clients()?);
    let ingest = Ingest::prepare(config, clients, Arc::clone(store) as Arc<dyn Store>).await?;
    let (stop, stopped) = watch::channel(false);
    let reached = async {
        let mut progress = ingest.progress();
        while progress.done() < last {
            progress.moved().await;
        }
        // Headers arrive after their blocks, and nothing announces them.
        for index in indexes.iter().filter(|index| index.input == Input::Headers) {
            while index.state(&*store.snapshot()?)?.is_none_or(|state| state.height < last) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        stop.send_replace(true);
        anyhow::Ok(())
    };
    tokio::try_join!(async { Ok(ingest.run(stopped).await?) }, reached)?;
    Ok(())
}

/// Builds the indexes on a long chain, and reads from them.
fn long(txs: u64) -> Result<()> {
    let node = NodeApart::start("evm-load", Some((txs, "100")))?;
    let made = make(&node, &indexes("blocks")?)?;
    line(&format!(
        "{txs} transactions with `blocks` in {:.1} s, {:.1} s of CPU",
        made.elapsed.as_secs_f64(),
        made.cpu.as_secs_f64()
    ));
    let last = node.summary().last_height;
    node.stop()?;
    for names in BUILT {
        build(&made.store, &indexes(names)?, last, txs).context(names)?;
    }
    made.store.compact()?;
    reads::print(&made.store)
}

/// Builds `indexes` from the stored blocks, as the lane does that has no node.
fn build(store: &RocksStore, indexes: &[&'static Index], last: u64, txs: u64) -> Result<()> {
    let (before, started) = (meter::process_cpu(std::process::id())?, Instant::now());
    let undo = schema::undo::Horizon::DEFAULT;
    let writers = indexes.iter().map(|index| Writer::new(store, index, undo));
    let mut writers = writers.collect::<Result<Vec<_>, _>>()?;
    let mut advance =
        || index_writer::advance_all(&mut writers, store, last).into_iter().collect::<Result<Vec<_>, _>>();
    while advance()?.iter().any(|rest| *rest != Rest::None) {}
    store.flush()?;
    let names: Vec<_> = indexes.iter().map(|index| index.name).collect();
    line(&format!(
        "{} built from stored blocks: {:.0} transactions/s on disk, {:.1} s of CPU",
        names.join(", "),
        per_second(txs, started.elapsed()),
        meter::process_cpu(std::process::id())?.saturating_sub(before).as_secs_f64(),
    ));
    Ok(())
}
