//! A chain in a bucket next to the same chain in RocksDB: indexing from empty, the head of the chain, the death of writers,
//! and query servers, cold and warm. `cairn` and the object store are processes of their own; the node is in this one. All
//! share the machine's cores.
//!
//! `make bench-slate` runs it: `CAIRN` names the program, built with the cargo feature `slate`, and `VERSITYGW` the object
//! store; without them nothing is measured. `OBJECT_STORAGE_TXS` is the number of transactions. Figures go to `benches/fleet/measured.toml`, with which `benches/fleet` compares its predictions.

#[path = "object_storage/head.rs"]
mod head;
#[path = "object_storage/programs.rs"]
mod programs;
#[path = "object_storage/queries.rs"]
mod queries;
#[path = "object_storage/scene.rs"]
mod scene;

use anyhow::{Context as _, Result};
use benches::report::line;
use benches::{measuring, meter};

use self::head::{BLOCK_EVERY, Head};
use self::programs::Engine;
use self::queries::{COLD_HASHES, COLD_PAGES, Cold, Servers, Targets, Warm};
use self::scene::{Backfill, Scene};

const RECORDING: &str = "evm-load";
/// Transactions of a block, of which three in ten are empty.
const SIZES: &str = "100";

/// The program's default.
const CACHE_BYTES: u64 = 256 << 20;
/// A cache that is far smaller than the database.
const SMALL_CACHE_BYTES: u64 = 16 << 20;

fn main() -> Result<()> {
    if !measuring() {
        return Ok(());
    }
    if ["CAIRN", "VERSITYGW"].iter().any(|name| std::env::var_os(name).is_none()) {
        line("not measured: CAIRN and VERSITYGW name no programs (`make bench-slate`)");
        return Ok(());
    }
    let txs: u64 = std::env::var("OBJECT_STORAGE_TXS").map_or(Ok(700_000), |txs| txs.parse())?;
    let load_before = meter::load()?;
    let scene = Scene::start(RECORDING, txs, SIZES)?;
    let mut figures = Figures::default();
    figures.add("txs", txs);
    figures.add("cache_bytes", CACHE_BYTES);
    figures.add("small_cache_bytes", SMALL_CACHE_BYTES);
    figures.add("block_ms", BLOCK_EVERY.as_millis());

    for engine in Engine::BOTH {
        figures.add_backfill(engine, &scene.backfill(engine)?);
    }
    let reader = scene.read(Engine::RocksDb, None)?;
    let targets = Targets::take(reader.serving()?)?;
    reader.stop()?;
    for engine in Engine::BOTH {
        figures.add_head(engine, &head::measure(&scene, engine)?);
    }
    for engine in Engine::BOTH {
        for (name, warm) in ["by_hash", "page"].into_iter().zip(queries::busy(&scene, engine, &targets)?) {
            figures.add_warm(name, "busy", engine, &warm);
        }
    }
    for engine in Engine::BOTH {
        let times = head::take_over(&scene, engine)?;
        figures.add_float("takeover_s", engine, times[times.len() / 2]);
        figures.add_float("takeover_max_s", engine, times[times.len() - 1]);
    }
    // Both at the same height, and closed.
    let rows = Engine::BOTH.map(|engine| scene.finish(engine));
    let [rocks, slate] = rows;
    let (rocks, slate) = (rocks?, slate?);
    anyhow::ensure!(rocks == slate, "the digests differ: {rocks:?}, {slate:?}");
    figures.add("rows", rocks.rows);
    for engine in Engine::BOTH {
        figures.add_count("database_bytes", engine, scene.bytes(engine)?);
    }

    let servers = Servers::start(&scene)?;
    for (name, pages) in [("by_hash", false), ("page", true)] {
        for (engine, warm) in Engine::BOTH.into_iter().zip(servers.warm(&targets, pages)?) {
            figures.add_warm(name, "warm", engine, &warm);
        }
    }
    for (engine, memory) in Engine::BOTH.into_iter().zip(servers.memory()?) {
        figures.add_count("query_memory_bytes", engine, memory);
    }
    servers.stop()?;
    figures.add("by_hash_cold_requests", COLD_HASHES);
    figures.add("page_cold_requests", COLD_PAGES);
    for (name, pages) in [("by_hash", false), ("page", true)] {
        for engine in Engine::BOTH {
            figures.add_cold(name, "cold", engine, &queries::cold(&scene, engine, &targets, pages)?);
        }
        let small = queries::small_cache(&scene, &targets, pages, SMALL_CACHE_BYTES)?;
        figures.add_cold(name, "small_cache", Engine::SlateDb, &small);
    }
    figures.add_float("idle_gets_per_s", Engine::SlateDb, queries::idle_gets(&scene)?);
    let header = format!(
        "# Written by `make bench-slate`; docs/scale.md has the explanations. A name that ends in _rocksdb is of the same\n\
         # measurement on RocksDB. Load average before: {load_before}, after: {}.\n",
        meter::load()?
    );
    let path = testkit::root().join("benches/fleet/measured.toml");
    std::fs::write(&path, header + &figures.0).with_context(|| path.display().to_string())
}

/// Lines `name = value`.
#[derive(Default)]
struct Figures(String);

impl Figures {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        let text = format!("{name} = {value}");
        line(&text);
        self.0.push_str(&text);
        self.0.push('\n');
    }

    fn add_count(&mut self, name: &str, engine: Engine, value: u64) {
        self.add(&of(name, engine), value);
    }

    fn add_float(&mut self, name: &str, engine: Engine, value: f64) {
        self.add(&of(name, engine), format!("{value:.3}"));
    }

    fn add_backfill(&mut self, engine: Engine, backfill: &Backfill) {
        self.add_float("backfill_s", engine, backfill.elapsed.as_secs_f64());
        self.add_float("backfill_cpu_s", engine, backfill.cpu.as_secs_f64());
        self.add_count("backfill_peak_memory_bytes", engine, backfill.peak_memory);
        self.add_count("backfill_database_bytes", engine, backfill.bytes);
        if engine == Engine::SlateDb {
            self.add("backfill_puts", backfill.requests.puts);
            self.add("backfill_put_bytes", backfill.requests.put_bytes);
            self.add("backfill_gets", backfill.requests.gets);
            self.add("backfill_got_bytes", backfill.requests.got_bytes);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for eyes")]
    fn add_head(&mut self, engine: Engine, head: &Head) {
        let at =
            |sorted: &[f64], percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
        self.add_float("lag_p50_ms", engine, at(&head.lags, 50));
        self.add_float("lag_p99_ms", engine, at(&head.lags, 99));
        self.add_float("lag_max_ms", engine, at(&head.lags, 100));
        self.add_float("since_node_p50_ms", engine, at(&head.since_node, 50));
        self.add_float("since_node_p99_ms", engine, at(&head.since_node, 99));
        self.add_float("cpu_ms_per_block", engine, head.writer_cpu);
        self.add_float("query_cpu_ms_per_block", engine, head.reader_cpu);
        self.add_count("writer_memory_bytes", engine, head.writer_memory);
        if engine == Engine::SlateDb {
            let blocks = head.blocks as f64;
            self.add_float("txs_per_block", engine, head.txs as f64 / blocks);
            self.add_float("block_puts", engine, head.written.puts as f64 / blocks);
            self.add_float("block_put_bytes", engine, head.written.put_bytes as f64 / blocks);
            self.add_float("block_gets", engine, head.written.gets as f64 / blocks);
            self.add_float("block_got_bytes", engine, head.written.got_bytes as f64 / blocks);
            self.add_float(
                "poll_gets_per_s",
                engine,
                (head.read.gets + head.read.lists) as f64 / head.seconds,
            );
            self.add_float("poll_bytes_per_s", engine, head.read.got_bytes as f64 / head.seconds);
        }
    }

    fn add_warm(&mut self, name: &str, state: &str, engine: Engine, warm: &Warm) {
        self.add_float(&format!("{name}_rps_{state}"), engine, warm.per_second);
        self.add_float(&format!("{name}_cpu_us_{state}"), engine, warm.cpu_micros);
        self.add_float(&format!("{name}_p99_ms_{state}"), engine, warm.p99_ms);
    }

    fn add_cold(&mut self, name: &str, state: &str, engine: Engine, cold: &Cold) {
        self.add_float(&format!("{name}_p50_ms_{state}"), engine, cold.p50_ms);
        self.add_float(&format!("{name}_p99_ms_{state}"), engine, cold.p99_ms);
        self.add_float(&format!("{name}_ready_s_{state}"), engine, cold.ready);
        if engine == Engine::SlateDb {
            self.add_float(&format!("{name}_gets_{state}"), engine, cold.gets);
            self.add_float(&format!("{name}_bytes_{state}"), engine, cold.got_bytes);
        }
    }
}

/// The name of a figure of `engine`.
fn of(name: &str, engine: Engine) -> String {
    match engine {
        Engine::SlateDb => name.to_owned(),
        Engine::RocksDb => format!("{name}_rocksdb"),
    }
}
