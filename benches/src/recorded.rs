//! A recording served by a replay node and ingested, and requests for its data.
//!
//! # Invariants
//!
//! - Node and ingest communicate over real sockets only.
//! - Their threads have different names, so that their CPU is measured separately.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::evm::flavour::Flavour;
use ingest::Ingest;
use ingest::derive::Rules;
use node::Node;
use proto::json::Registry;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::index::Index;
use store::{Bounds, COUNT, Key, List, RocksOptions, RocksStore, Snapshot, Store, Value as _};
use tempfile::TempDir;
use testkit::indexed;
use tokio::runtime::{Builder, Runtime};

use crate::meter;

/// Name of the threads of a replay node.
const NODE_THREADS: &str = "replay";
/// Name of the threads of an ingest.
const INGEST_THREADS: &str = "ingest";
/// Prefix of the names of RocksDB's threads.
const ROCKSDB_THREADS: &str = "rocksdb:";

/// A recording with its replay node.
pub struct Played {
    // Dropped before the runtime, because closing its sockets needs the runtime.
    node: ReplayNode,
    runtime: Runtime,
}

impl Played {
    /// Serves all heights of the recording `name` of this repository.
    pub fn start(name: &str) -> Result<Self> {
        Self::new(Arc::new(open(name)?))
    }

    /// Serves all heights of `recording`.
    pub fn new(recording: Arc<Recording>) -> Result<Self> {
        let runtime = Builder::new_multi_thread().thread_name(NODE_THREADS).enable_all().build()?;
        let node =
            runtime.block_on(ReplayNode::start(recording, Addresses::default(), Options::default()))?;
        Ok(Self { node, runtime })
    }

    /// The recording.
    pub fn recording(&self) -> &Arc<Recording> {
        self.node.recording()
    }

    /// The chain's rules, as ingest reads them from a node.
    pub fn rules(&self) -> Result<Rules> {
        let node = indexed::clients(&self.node)?;
        let (descriptors, prefix) = self.runtime.block_on(async {
            let rest = node.rest.as_ref().context("a replay node has a REST address")?;
            anyhow::Ok((node.descriptors().await?, rest.bech32_prefix().await?))
        })?;
        Ok(Rules {
            vm: self.recording().summary().vm.parse()?,
            flavour: Flavour::MiniEvm,
            prefix,
            registry: Arc::new(Registry::from_descriptors(&descriptors.bytes)?),
            descriptors: descriptors.sha256,
            verified: true,
        })
    }

    /// Ingests the whole chain into a new RocksDB database, with `lanes` in addition to that of blocks.
    pub fn ingest(&self, lanes: Lanes) -> Result<Ingested> {
        // A thread of its own, because some of the work runs on the thread that blocks on the runtime.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(INGEST_THREADS.to_owned());
            let ingested = thread.spawn_scoped(scope, || Ingested::take(&self.node, lanes))?.join();
            ingested.map_err(|_| anyhow::anyhow!("the ingest panicked"))?
        })
    }
}

/// The lanes of an ingest in addition to that of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Internal transactions.
    pub internal_txs: bool,
    /// The rich list.
    pub rich_list: bool,
    /// Optional indexes that follow from the records of blocks.
    pub indexes: &'static [&'static Index],
}

impl Lanes {
    /// Every lane.
    pub const ALL: Self = Self { internal_txs: true, rich_list: true, indexes: &[] };
    /// Blocks only.
    pub const NONE: Self = Self { internal_txs: false, rich_list: false, indexes: &[] };
}

/// A database in a temporary directory, and the cost of making it.
pub struct Ingested {
    /// The database. Declared before the directory, so that it is closed before the directory is removed.
    pub store: Arc<RocksStore>,
    directory: TempDir,
    /// From the first request to the node until the last lane is at the last height and on the device.
    pub elapsed: Duration,
    /// CPU time meanwhile.
    pub cpu: Cpu,
    /// The height that all lanes had reached, after each commit.
    progress: Vec<(Duration, u64)>,
}

/// CPU time by owner of the threads.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Our threads: HTTP client, parsing, rendering, compressing, batches.
    pub ingest: Duration,
    /// RocksDB's own: flushes and compactions.
    pub rocksdb: Duration,
    /// The replay node's.
    pub node: Duration,
}

impl Cpu {
    fn now() -> Result<Self> {
        Ok(Self {
            ingest: meter::cpu(|name| name == INGEST_THREADS)?,
            rocksdb: meter::cpu(|name| name.starts_with(ROCKSDB_THREADS))?,
            node: meter::cpu(|name| name == NODE_THREADS)?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            ingest: self.ingest.saturating_sub(before.ingest),
            rocksdb: self.rocksdb.saturating_sub(before.rocksdb),
            node: self.node.saturating_sub(before.node),
        }
    }
}

impl Ingested {
    fn take(played: &ReplayNode, lanes: Lanes) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let store = RocksStore::open(directory.path(), schema::TABLES, RocksOptions::default())?;
        let store = Arc::new(store);
        let config = indexed::config(played.recording())?;
        let Lanes { internal_txs, rich_list, indexes } = lanes;
        let config = ingest::Config { internal_txs, rich_list, indexes: indexes.to_vec(), ..config };
        let last = played.recording().last();
        let node: Arc<Node> = Arc::new(indexed::clients(played)?);
        let runtime = Builder::new_multi_thread().thread_name(INGEST_THREADS).enable_all().build()?;
        let (before, started) = (Cpu::now()?, Instant::now());
        let mut progress = Vec::new();
        runtime.block_on(async {
            let ingest = Ingest::prepare(config, node, Arc::clone(&store) as Arc<dyn Store>).await?;
            let mut lanes = ingest.progress();
            let follow = async {
                loop {
                    lanes.moved().await;
                    progress.push((started.elapsed(), lanes.done()));
                }
            };
            tokio::select! {
                reached = indexed::run_to(&ingest, last) => reached,
                () = follow => Ok(()),
            }
        })?;
        let (elapsed, cpu) = (started.elapsed(), Cpu::now()?.since(before));
        let missing = played.missing();
        ensure!(missing.count == 0, "questions that are not recorded: {:?}", missing.questions);
        progress.push((elapsed, last));
        Ok(Self { store, directory, elapsed, cpu, progress })
    }

    /// Transactions that all lanes had indexed after each commit; `txs_by_height` are the transactions up to and including
    /// each height, in the order of heights.
    pub fn txs_over_time(&self, txs_by_height: &[(u64, u64)]) -> Vec<(Duration, u64)> {
        let txs = |height| {
            let heights = txs_by_height.partition_point(|(other, _)| *other <= height);
            heights.checked_sub(1).map_or(0, |place| txs_by_height[place].1)
        };
        self.progress.iter().map(|(elapsed, height)| (*elapsed, txs(*height))).collect()
    }

    /// Path of the database.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// The recording `name` of this repository.
pub fn open(name: &str) -> Result<Recording> {
    Ok(Recording::open(&testkit::recording(name))?)
}

/// The bytes of all transactions, in chain order.
pub fn raw_txs(recording: &Recording) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for height in recording.heights() {
        for raw in height.raw_txs()? {
            all.push(STANDARD.decode(raw.as_bytes())?);
        }
    }
    Ok(all)
}

/// The longest list of the kind `L`: its owner and its length.
pub fn longest<L: List>(snapshot: &dyn Snapshot) -> Result<(L::Owner, u64)> {
    let tag = [L::SPEC.tag];
    let end = store::prefix_end(&tag);
    let mut longest: Option<(Vec<u8>, u64)> = None;
    store::for_each_row(snapshot, COUNT, Bounds { start: &tag, end: end.as_deref() }, |key, value| {
        let length = u64::decode(value).context("a length that is not a number")?;
        if longest.as_ref().is_none_or(|(_, most)| length > *most) {
            longest = Some((key[1..].to_vec(), length));
        }
        anyhow::Ok(())
    })?;
    let (owner, length) = longest.with_context(|| format!("no list in `{}`", L::SPEC.name))?;
    Ok((<L::Owner as Key>::from_bytes(&owner).context("an owner that does not decode")?, length))
}
