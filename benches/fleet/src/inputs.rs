//! The inputs of the model: what the bench of object storage measured (`measured.toml`), constants that it does not give and
//! measured cases (`constants.toml`), and list prices, requests and scenarios (`model.toml`).
//!
//! Times are in the unit that a name ends with; `KiB` and so on are powers of two, `gb` of ten as in price lists.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Constants of small cases, and measured cases that the model does not use, to check it. Fields that the file does not have
/// are filled from [`Bench`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measured {
    /// Where, when and how.
    pub(crate) source: String,
    pub(crate) store: Store,
    pub(crate) data: Data,
    pub(crate) writer: Writer,
    pub(crate) reader: Reader,
    pub(crate) request: Vec<Request>,
    pub(crate) case: Vec<Case>,
}

/// Figures of `make bench-slate`: a chain on SlateDB with versitygw, next to RocksDB.
#[derive(Debug, Deserialize)]
struct Bench {
    txs: f64,
    rows: f64,
    database_bytes: f64,
    database_bytes_rocksdb: f64,
    block_ms: f64,
    txs_per_block: f64,
    cpu_ms_per_block: f64,
    query_cpu_ms_per_block: f64,
    writer_memory_bytes: f64,
    block_puts: f64,
    block_put_bytes: f64,
    poll_gets_per_s: f64,
    idle_gets_per_s: f64,
    lag_p50_ms: f64,
    by_hash_cpu_us_warm: f64,
    by_hash_gets_small_cache: f64,
    by_hash_bytes_small_cache: f64,
    page_cpu_us_warm: f64,
    page_gets_small_cache: f64,
    page_bytes_small_cache: f64,
}

/// The object store, from a server next to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) get_ms: f64,
    pub(crate) put_ms: f64,
    /// CPU of the client: that of a query server which follows a busy chain, by its requests.
    #[serde(skip)]
    pub(crate) cpu_ms_per_request: f64,
}

/// What the tables of a chain hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    #[serde(skip)]
    pub(crate) rows_per_tx: f64,
    /// In RocksDB, whose files have little overhead.
    #[serde(skip)]
    pub(crate) bytes_per_tx: f64,
    /// Rows of a block next to those of its transactions, in bytes.
    pub(crate) bytes_per_block: f64,
    /// Bytes in the store relative to those of the rows: files that wait for compaction or collection included.
    #[serde(skip)]
    pub(crate) space_amplification: f64,
    /// Bytes of a cached block of a table file.
    pub(crate) cache_block_bytes: f64,
}

/// The process that writes one chain.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Writer {
    pub(crate) cpu_ms_per_block: f64,
    /// With compaction.
    #[serde(skip)]
    pub(crate) cpu_ms_per_tx: f64,
    /// Of a process with one quiet chain.
    pub(crate) memory_mib: f64,
    /// More than that for each transaction a second, up to the measured rate.
    #[serde(skip)]
    pub(crate) mib_per_tx_per_s: f64,
    /// The measured rate.
    #[serde(skip)]
    pub(crate) txs_per_s: f64,
    /// Of each further chain, if a process wrote several.
    pub(crate) further_chain_mib: f64,
    /// Bytes sent to the store, relative to those of the rows: log, table files, compaction.
    #[serde(skip)]
    pub(crate) write_amplification: f64,
    /// Time of a commit that the store does not cause.
    pub(crate) commit_ms: f64,
    /// PUTs of a block: a file of the log for each of its lanes, table files, manifests.
    #[serde(skip)]
    pub(crate) puts_per_block: f64,
    /// Files of the log that a block is.
    pub(crate) log_files_per_block: f64,
    /// Requests without any block: polls of the manifest by the writer, the compactor and its worker.
    pub(crate) idle_gets_per_s: f64,
    /// LISTs of the garbage collector.
    pub(crate) idle_lists_per_s: f64,
}

/// A server's reader of one chain.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reader {
    pub(crate) gets_per_poll: f64,
    /// Requests of a poll that wait for each other.
    pub(crate) round_trips_per_poll: f64,
    /// Time of a poll that the store does not cause.
    pub(crate) poll_ms: f64,
    /// GETs for each new file of the log, by each view.
    pub(crate) gets_per_log_file: f64,
    /// States in memory, each of which reads the log.
    pub(crate) views: f64,
    /// Commits after which the log becomes a table file.
    pub(crate) log_files: f64,
    /// Files of the log that are fetched at a time when a database is opened.
    pub(crate) open_parallel: f64,
    /// Time that each of them takes without the store.
    pub(crate) open_ms_per_file: f64,
    pub(crate) memory_mib: f64,
    /// Calls of one server that wait for the store at a time; more are refused.
    pub(crate) max_waiting: f64,
    /// Memory of a server that serves no chain, without its cache.
    pub(crate) server_mib: f64,
}

/// A kind of request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) name: String,
    /// Served from memory.
    #[serde(skip)]
    pub(crate) cpu_ms: f64,
    /// GETs if hardly anything is cached.
    #[serde(skip)]
    pub(crate) gets: f64,
    /// Bytes of those, which are blocks of table files.
    #[serde(skip)]
    pub(crate) read_bytes: f64,
    /// Reads that wait for each other.
    pub(crate) round_trips: f64,
    /// Of the response.
    pub(crate) bytes: f64,
}

/// A measured case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// 0 for a case that [`Bench`] measured.
    #[serde(default)]
    pub(crate) measured: f64,
    pub(crate) of: Quantity,
}

/// What was measured, and under which conditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Quantity {
    /// GETs a second of a query server of a chain without new blocks.
    IdleGets { polls: Polls, get_ms: f64 },
    /// The same of a chain with the measured blocks.
    BusyGets {
        polls: Polls,
        get_ms: f64,
        #[serde(skip)]
        blocks_per_s: f64,
    },
    /// Milliseconds from the first reply of the writer with a block until a query server has it, at the median.
    LagAfterWriter { pause_ms: f64, get_ms: f64 },
    /// GETs a second of a reader without our clock, whose log has a file for each block.
    ReaderGets { poll_ms: f64, blocks_per_s: f64, get_ms: f64 },
    /// Milliseconds from the call of a commit until a reader shows it, at the median.
    Lag { poll_ms: f64, get_ms: f64, put_ms: f64 },
    /// Milliseconds until a commit is durable, at the median.
    Durable { put_ms: f64 },
    /// Milliseconds to open a database whose log has `files`.
    Open { files: f64, get_ms: f64 },
    /// PUTs of the log, a block, while catching up: one each `flush_ms`.
    LogPuts { blocks: f64, seconds: f64, flush_ms: f64 },
    /// Milliseconds of a read without any cached block, of which `warm_ms` are not the store's.
    ColdRead { round_trips: f64, warm_ms: f64, get_ms: f64 },
}

/// List prices, the mix of requests, and scenarios.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) price: Vec<Price>,
    pub(crate) machine: Machine,
    /// Shares of the kinds of requests.
    pub(crate) mix: Vec<Share>,
    pub(crate) scenario: Vec<Scenario>,
    pub(crate) lever: Vec<Lever>,
}

/// List prices of an object store, in USD.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    pub(crate) name: String,
    /// Where the figures are from, and their date.
    pub(crate) source: String,
    /// Of PUTs, and LISTs as well.
    pub(crate) put_per_million: f64,
    pub(crate) get_per_million: f64,
    pub(crate) gb_month: f64,
    pub(crate) gb_written: f64,
    pub(crate) gb_read: f64,
    /// Requests a second that one partition of the keys takes.
    pub(crate) partition_puts_per_s: f64,
    pub(crate) partition_gets_per_s: f64,
}

/// A machine for servers and writers, and its price in USD.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) hour: f64,
    pub(crate) cores: f64,
    pub(crate) memory_gib: f64,
    pub(crate) network_gbit_per_s: f64,
    /// Share of each resource that is planned for.
    pub(crate) target: f64,
}

/// The share of a kind of request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Share {
    pub(crate) request: String,
    pub(crate) share: f64,
}

/// Chains, their load, and how they are served.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) chains: u32,
    /// Rows of all chains.
    pub(crate) rows: f64,
    /// Years in which they were written.
    pub(crate) years: f64,
    /// Exponent of the Zipf distribution of rows, transactions and requests over chains.
    pub(crate) chain_zipf: f64,
    /// Exponent of that of reads over the blocks of table files of one chain.
    pub(crate) block_zipf: f64,
    /// A chain makes a block for each transaction, within these rates.
    pub(crate) min_blocks_per_s: f64,
    pub(crate) max_blocks_per_s: f64,
    pub(crate) requests_per_s: f64,
    /// Servers that hold each chain at least; 0 for all of them.
    pub(crate) replicas: u32,
    pub(crate) min_servers: u32,
    pub(crate) cache_gib: f64,
    pub(crate) polls: Polls,
    /// Blocks that come faster become durable together.
    pub(crate) max_commits_per_s: f64,
    /// The writer's own polls, relative to those of `constants.toml`.
    pub(crate) writer_polls: f64,
    /// Chains that one ingest process writes. Today it is 1.
    pub(crate) chains_per_writer: f64,
    pub(crate) price: String,
}

/// When a reader polls: after `shortest_ms` while there are new blocks, then in doubling intervals up to `longest_ms`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Polls {
    pub(crate) shortest_ms: f64,
    pub(crate) longest_ms: f64,
    /// Whether the writer announces each block, so that a reader polls then, and each `longest_ms`.
    pub(crate) announced: bool,
}

/// One change to the last scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lever {
    pub(crate) name: String,
    /// Whether the program can do it.
    pub(crate) exists: bool,
    /// Values that replace those of the scenario.
    pub(crate) set: toml::Table,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files.
pub(crate) fn read() -> anyhow::Result<(Measured, Model)> {
    let mut measured: Measured = parse("constants.toml")?;
    measured.fill(&parse("measured.toml")?)?;
    Ok((measured, parse("model.toml")?))
}

fn parse<T: DeserializeOwned>(name: &str) -> anyhow::Result<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("in {}", path.display()))
}

impl Measured {
    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()> {
        let bytes_per_tx = bench.database_bytes_rocksdb / bench.txs;
        let bytes_per_block = bytes_per_tx * bench.txs_per_block;
        let Self { store, data, writer, .. } = self;
        let gets_per_block = bench.poll_gets_per_s * bench.block_ms / 1000.0;
        store.cpu_ms_per_request = bench.query_cpu_ms_per_block / gets_per_block;
        data.rows_per_tx = bench.rows / bench.txs;
        data.bytes_per_tx = bytes_per_tx;
        data.space_amplification = bench.database_bytes / bench.database_bytes_rocksdb;
        writer.cpu_ms_per_tx = bench.cpu_ms_per_block / bench.txs_per_block;
        writer.txs_per_s = bench.txs_per_block * 1000.0 / bench.block_ms;
        let mib = bench.writer_memory_bytes / 1024.0 / 1024.0;
        writer.mib_per_tx_per_s = (mib - writer.memory_mib) / writer.txs_per_s;
        writer.write_amplification = bench.block_put_bytes / bytes_per_block;
        writer.puts_per_block = bench.block_puts;
        for kind in &mut self.request {
            (kind.cpu_ms, kind.gets, kind.read_bytes) = match kind.name.as_str() {
                "by hash" => (
                    bench.by_hash_cpu_us_warm / 1000.0,
                    bench.by_hash_gets_small_cache,
                    bench.by_hash_bytes_small_cache,
                ),
                "page of 100" => (
                    bench.page_cpu_us_warm / 1000.0,
                    bench.page_gets_small_cache,
                    bench.page_bytes_small_cache,
                ),
                name => anyhow::bail!("constants.toml names the request `{name}`, which is not measured"),
            };
        }
        for case in &mut self.case {
            match case.of {
                Quantity::IdleGets { .. } => case.measured = bench.idle_gets_per_s,
                Quantity::BusyGets { ref mut blocks_per_s, .. } => {
                    *blocks_per_s = 1000.0 / bench.block_ms;
                    case.measured = bench.poll_gets_per_s;
                }
                Quantity::LagAfterWriter { .. } => case.measured = bench.lag_p50_ms,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Model {
    /// The prices of `scenario`.
    pub(crate) fn price(&self, scenario: &Scenario) -> anyhow::Result<&Price> {
        let found = self.price.iter().find(|price| price.name == scenario.price);
        found.with_context(|| {
            format!("`{}` has the price `{}`, which is not listed", scenario.name, scenario.price)
        })
    }
}

impl Scenario {
    /// A copy with the change of `lever`.
    pub(crate) fn with(&self, lever: &Lever) -> anyhow::Result<Self> {
        let mut changed = self.clone();
        for (key, value) in &lever.set {
            changed.set(key, value).with_context(|| format!("in the lever `{}`", lever.name))?;
        }
        Ok(changed)
    }

    fn set(&mut self, key: &str, value: &toml::Value) -> anyhow::Result<()> {
        match key {
            "replicas" => self.replicas = value.clone().try_into()?,
            "cache_gib" => self.cache_gib = value.clone().try_into()?,
            "polls" => self.polls = value.clone().try_into()?,
            "max_commits_per_s" => self.max_commits_per_s = value.clone().try_into()?,
            "writer_polls" => self.writer_polls = value.clone().try_into()?,
            "chains_per_writer" => self.chains_per_writer = value.clone().try_into()?,
            "price" => self.price = value.clone().try_into()?,
            "requests_per_s" => self.requests_per_s = value.clone().try_into()?,
            _ => anyhow::bail!("`{key}` cannot be changed"),
        }
        Ok(())
    }
}
