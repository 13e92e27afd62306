//! A growing chain, an object store, and a database of the chain on each engine.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use replay::{Addresses, Options, Recording, ReplayNode};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::programs::{Cairn, Engine, Gateway, Requests, bytes_below, printed};

/// Blocks that the node holds back at first, for the measurements at the head.
const HELD_BACK: u64 = 5_500;

/// Time without an upload after which there will be none: a merge that a killed writer had begun is free after 30 s.
const SETTLED: Duration = Duration::from_secs(40);

/// The chain, its node in this process, and the object store. Databases are in a temporary directory.
pub(crate) struct Scene {
    pub(crate) node: ReplayNode,
    pub(crate) gateway: Gateway,
    _runtime: Runtime,
    dir: TempDir,
}

/// All rows of a database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) rows: u64,
    digest: String,
}

/// Cost of indexing from an empty database to the head.
pub(crate) struct Backfill {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
    pub(crate) peak_memory: u64,
    pub(crate) requests: Requests,
    /// Bytes of its files or objects afterwards.
    pub(crate) bytes: u64,
}

/// Waits until `writer`, which has no block to index, uploads nothing more: merges that killed writers had begun are done.
fn settle(writer: &Cairn) -> Result<()> {
    let started = Instant::now();
    let (mut puts, mut since) = (writer.requests()?.puts, started);
    while since.elapsed() < SETTLED {
        ensure!(started.elapsed() < 10 * SETTLED, "the writer merges for longer than {:?}", 10 * SETTLED);
        thread::sleep(Duration::from_secs(1));
        let found = writer.requests()?.puts;
        if found != puts {
            (puts, since) = (found, Instant::now());
        }
    }
    Ok(())
}

impl Scene {
    /// A recording that is extended to `txs` transactions in blocks of `sizes`.
    pub(crate) fn start(recording: &str, txs: u64, sizes: &str) -> Result<Self> {
        let recorded = Recording::open(&testkit::recording(recording))?;
        let chain = synthesize::extend(recorded, txs, sizes.parse()?)?;
        let options = Options { up_to: Some(chain.last() - HELD_BACK), ..Options::default() };
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let node = runtime.block_on(ReplayNode::start(Arc::new(chain), Addresses::default(), options))?;
        let dir = tempfile::tempdir()?;
        Ok(Self { node, gateway: Gateway::start(dir.path())?, _runtime: runtime, dir })
    }

    fn directory(&self) -> PathBuf {
        self.dir.path().join("rocksdb")
    }

    fn location(&self, engine: Engine) -> String {
        match engine {
            Engine::RocksDb => self.directory().to_string_lossy().into_owned(),
            Engine::SlateDb => "s3://chains/bench".to_owned(),
        }
    }

    /// `cairn COMMAND` on the database of `engine`.
    fn start_on(&self, engine: Engine, command: &str, more: &[&str]) -> Result<Cairn> {
        let chain = &self.node.recording().summary().chain_id;
        let args = [command, "--data", &self.location(engine), "--chain-id", chain];
        Cairn::start(&[&args, more].concat(), &self.gateway)
    }

    /// Indexes what the node shows, closes the database, and counts its rows.
    pub(crate) fn finish(&self, engine: Engine) -> Result<Rows> {
        let writer = self.write(engine)?;
        writer.logged("caught up")?;
        if engine == Engine::SlateDb {
            settle(&writer)?;
        }
        writer.stop()?;
        let (file, chain) = (self.dir.path().join("cairn.toml"), &self.node.recording().summary().chain_id);
        std::fs::write(&file, format!("data = {:?}\nchain_id = {chain:?}\n", self.location(engine)))?;
        let text =
            printed(&["db", "digest", "--tables", "--config", &file.to_string_lossy()], &self.gateway)?;
        let (tables, digest) = text.trim().rsplit_once("digest ").context("no digest")?;
        let counts = tables.lines().map(|line| -> Result<u64> {
            line.split_whitespace().nth(2).context("a table without rows")?.parse().context("rows")
        });
        Ok(Rows { rows: counts.sum::<Result<_>>()?, digest: digest.to_owned() })
    }

    /// An indexer that serves too.
    pub(crate) fn write(&self, engine: Engine) -> Result<Cairn> {
        let node = &self.node;
        let urls = [node.comet_url(), node.rest_url(), node.json_rpc_url()];
        // A recording lacks the replies for samples.
        let flags = ["--vm", &node.recording().summary().vm, "--reconcile", "0s", "--poll", "50ms"];
        let services = ["--comet", &urls[0], "--rest", &urls[1], "--json-rpc", &urls[2]];
        self.start_on(engine, "run", &[&flags[..], &services].concat())
    }

    /// A query server, with `cache` as its memory for blocks.
    pub(crate) fn read(&self, engine: Engine, cache: Option<&str>) -> Result<Cairn> {
        match cache {
            Some(cache) => self.start_on(engine, "query", &["--cache", cache]),
            None => self.start_on(engine, "query", &[]),
        }
    }

    /// Indexes all that the node shows into an empty database.
    pub(crate) fn backfill(&self, engine: Engine) -> Result<Backfill> {
        let started = Instant::now();
        let writer = self.write(engine)?;
        writer.logged("caught up")?;
        let elapsed = started.elapsed();
        let (cpu, requests) = (writer.cpu()?, writer.requests()?);
        let peak_memory = writer.peak_memory()?;
        writer.stop()?;
        Ok(Backfill { elapsed, cpu, peak_memory, requests, bytes: self.bytes(engine)? })
    }

    /// Bytes of the files or objects of a database.
    pub(crate) fn bytes(&self, engine: Engine) -> Result<u64> {
        match engine {
            Engine::RocksDb => bytes_below(&self.directory()),
            Engine::SlateDb => self.gateway.bytes(),
        }
    }
}
