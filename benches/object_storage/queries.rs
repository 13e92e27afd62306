//! Transactions by hash and pages of 100 from query servers: cold, warm, with a small cache, and while blocks come.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::client::{Client, ClosedLoop, get};
use benches::pick::Pick;
use benches::report::{median, per_second};

use crate::head;
use crate::programs::{Cairn, Engine, Requests};
use crate::scene::Scene;

/// Rows of a page.
const PAGE: u64 = 100;

/// Pages from which hashes are taken, and pages that are requested.
const SOURCES: u64 = 100;
const PAGES: u64 = 1_000;

/// Requests of a server whose cache is empty, one after another.
pub(crate) const COLD_HASHES: usize = 300;
pub(crate) const COLD_PAGES: usize = 100;

/// Connections of a warm server, and requests of a round. The median of the rounds is reported.
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 7;
const WARM_HASHES: usize = 8_000;
const WARM_PAGES: usize = 500;

/// Time for each kind of request while blocks come: longer than it takes until the log is written into a table file.
const BUSY: Duration = Duration::from_secs(12);

/// The requests, the same for all servers.
pub(crate) struct Targets {
    hashes: Vec<Vec<u8>>,
    pages: Vec<Vec<u8>>,
}

/// Requests one after another.
pub(crate) struct Cold {
    /// From the start of the process until it is ready, in seconds.
    pub(crate) ready: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Requests to the object store for each, without those of polls.
    pub(crate) gets: f64,
    pub(crate) got_bytes: f64,
}

/// Rates of a warm server.
pub(crate) struct Warm {
    pub(crate) per_second: f64,
    pub(crate) cpu_micros: f64,
    pub(crate) p99_ms: f64,
}

impl Targets {
    /// Hashes and pages at random places of the list of all transactions, from the server at `address`.
    pub(crate) fn take(address: SocketAddr) -> Result<Self> {
        let (mut client, mut pick) = (Client::connect(address)?, Pick::seeded(5));
        let page = |offset: u64| {
            get(&format!("/indexer/tx/v1/txs?pagination.limit={PAGE}&pagination.offset={offset}"))
        };
        let first: serde_json::Value = serde_json::from_slice(client.ask(&page(0))?)?;
        let total = first["pagination"]["total"].as_str().context("no total")?;
        let total: u64 = total.parse().context("the total")?;
        let mut hashes = Vec::new();
        for _ in 0..SOURCES {
            let answer: serde_json::Value =
                serde_json::from_slice(client.ask(&page(pick.below(total - PAGE)))?)?;
            for tx in answer["txs"].as_array().context("no transactions")? {
                let hash = tx["txhash"].as_str().context("no hash")?;
                hashes.push(get(&format!("/indexer/tx/v1/txs/{hash}")));
            }
        }
        pick.shuffle(&mut hashes);
        Ok(Self { hashes, pages: (0..PAGES).map(|_| page(pick.below(total - PAGE))).collect() })
    }

    fn kind(&self, pages: bool) -> (&[Vec<u8>], usize, usize) {
        if pages { (&self.pages, COLD_PAGES, WARM_PAGES) } else { (&self.hashes, COLD_HASHES, WARM_HASHES) }
    }
}

/// Starts a query server and waits until it is ready; returns the time that took.
fn start(scene: &Scene, engine: Engine, cache: Option<&str>) -> Result<(Cairn, SocketAddr, f64)> {
    let started = Instant::now();
    let server = scene.read(engine, cache)?;
    let address = server.serving()?;
    let mut client = Client::connect(address)?;
    // A refusal is an error of this client.
    while client.ask(&get("/readyz")).is_err() {
        ensure!(started.elapsed() < Duration::from_mins(2), "{address} does not become ready");
        client = Client::connect(address)?;
    }
    Ok((server, address, started.elapsed().as_secs_f64()))
}

/// Requests to a server that has just started, one after another.
pub(crate) fn cold(scene: &Scene, engine: Engine, targets: &Targets, pages: bool) -> Result<Cold> {
    let (server, address, ready) = start(scene, engine, None)?;
    let (requests, count, _) = targets.kind(pages);
    let mut client = Client::connect(address)?;
    let (before, started, mut waits) = (server.requests()?, Instant::now(), Vec::new());
    for request in &requests[..count] {
        let asked = Instant::now();
        client.ask(request)?;
        waits.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    let elapsed = started.elapsed();
    let found = server.requests()?.since(before);
    let polls = idle(&server, elapsed)?;
    server.stop()?;
    waits.sort_unstable_by(f64::total_cmp);
    Ok(Cold {
        ready,
        p50_ms: waits[count / 2],
        p99_ms: waits[count * 99 / 100],
        gets: each(found.gets.saturating_sub(polls.gets), count),
        got_bytes: each(found.got_bytes.saturating_sub(polls.got_bytes), count),
    })
}

/// Requests of a server during `time` without clients.
fn idle(server: &Cairn, time: Duration) -> Result<Requests> {
    let before = server.requests()?;
    thread::sleep(time);
    Ok(server.requests()?.since(before))
}

/// Requests of an idle server to the object store in a second.
pub(crate) fn idle_gets(scene: &Scene) -> Result<f64> {
    let (server, ..) = start(scene, Engine::SlateDb, None)?;
    let time = Duration::from_secs(5);
    let found = idle(&server, time)?;
    server.stop()?;
    Ok(per_second(found.gets + found.lists, time))
}

/// Requests to a server with `cache` bytes that has been serving such requests for a while.
pub(crate) fn small_cache(scene: &Scene, targets: &Targets, pages: bool, cache: u64) -> Result<Cold> {
    let (server, address, ready) = start(scene, Engine::SlateDb, Some(&cache.to_string()))?;
    let (requests, ..) = targets.kind(pages);
    let mut connections = ClosedLoop::connect(address, 1)?;
    let count = requests.len() / 2;
    connections.run(requests, 0, count)?;
    let before = server.requests()?;
    let load = connections.run(requests, count, count)?;
    let found = server.requests()?.since(before);
    let polls = idle(&server, load.elapsed)?;
    server.stop()?;
    Ok(Cold {
        ready,
        p50_ms: load.waits[count / 2].as_secs_f64() * 1e3,
        p99_ms: load.waits[count * 99 / 100].as_secs_f64() * 1e3,
        gets: each(found.gets.saturating_sub(polls.gets), count),
        got_bytes: each(found.got_bytes.saturating_sub(polls.got_bytes), count),
    })
}

impl Warm {
    /// One round.
    fn take(
        server: &Cairn,
        load: &mut ClosedLoop,
        requests: &[Vec<u8>],
        first: usize,
        count: usize,
    ) -> Result<Self> {
        let before = server.cpu()?;
        let done = load.run(requests, first, count)?;
        Ok(Self {
            per_second: per_second(u64::try_from(count)?, done.elapsed),
            cpu_micros: each_micro(server.cpu()?.saturating_sub(before), count),
            p99_ms: done.waits[count * 99 / 100].as_secs_f64() * 1e3,
        })
    }

    fn median(samples: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(&mut samples.iter().map(figure).collect::<Vec<_>>());
        Self {
            per_second: of(|sample| sample.per_second),
            cpu_micros: of(|sample| sample.cpu_micros),
            p99_ms: of(|sample| sample.p99_ms),
        }
    }
}

/// A warm server of `engine` while a writer commits a block every 100 ms: by hash, and pages.
pub(crate) fn busy(scene: &Scene, engine: Engine, targets: &Targets) -> Result<[Warm; 2]> {
    let writer = scene.write(engine)?;
    writer.logged("caught up")?;
    let (server, address, _) = start(scene, engine, None)?;
    let mut load = ClosedLoop::connect(address, CONNECTIONS)?;
    let done = AtomicBool::new(false);
    let found = thread::scope(|scope| -> Result<_> {
        let blocks = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                head::show(scene, 1)?;
            }
            Ok(())
        });
        let mut measure = |pages: bool| -> Result<Warm> {
            let (requests, _, count) = targets.kind(pages);
            load.run(requests, 0, requests.len())?;
            let (started, mut samples) = (Instant::now(), Vec::new());
            while started.elapsed() < BUSY {
                samples.push(Warm::take(&server, &mut load, requests, samples.len() * count, count)?);
            }
            Ok(Warm::median(&samples))
        };
        let outcome = measure(false).and_then(|hashes| Ok([hashes, measure(true)?]));
        done.store(true, Ordering::Relaxed);
        blocks.join().map_err(|_| anyhow::anyhow!("the thread of blocks panicked"))??;
        outcome
    })?;
    server.stop()?;
    writer.stop()?;
    Ok(found)
}

/// Both servers, which are kept while they are measured in turns.
pub(crate) struct Servers([(Cairn, SocketAddr); 2]);

impl Servers {
    /// In the order of [`Engine::BOTH`].
    pub(crate) fn start(scene: &Scene) -> Result<Self> {
        let [(rocks, at_rocks, _), (slate, at_slate, _)] =
            [start(scene, Engine::RocksDb, None)?, start(scene, Engine::SlateDb, None)?];
        Ok(Self([(rocks, at_rocks), (slate, at_slate)]))
    }

    /// Peak memory of each.
    pub(crate) fn memory(&self) -> Result<[u64; 2]> {
        Ok([self.0[0].0.peak_memory()?, self.0[1].0.peak_memory()?])
    }

    /// The rates of each.
    pub(crate) fn warm(&self, targets: &Targets, pages: bool) -> Result<[Warm; 2]> {
        let (requests, _, count) = targets.kind(pages);
        let mut loops =
            [ClosedLoop::connect(self.0[0].1, CONNECTIONS)?, ClosedLoop::connect(self.0[1].1, CONNECTIONS)?];
        for load in &mut loops {
            load.run(requests, 0, requests.len())?;
        }
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for (((server, _), load), samples) in self.0.iter().zip(&mut loops).zip(&mut samples) {
                samples.push(Warm::take(server, load, requests, round * count, count)?);
            }
        }
        Ok(samples.map(|samples| Warm::median(&samples)))
    }

    pub(crate) fn stop(self) -> Result<()> {
        for (server, _) in self.0 {
            server.stop()?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for eyes")]
fn each(sum: u64, count: usize) -> f64 {
    sum as f64 / count as f64
}

#[expect(clippy::cast_precision_loss, reason = "figures for eyes")]
fn each_micro(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
