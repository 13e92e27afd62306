//! At the head of the chain, a block every 100 ms: lag of a query server behind its writer, requests to the object store,
//! CPU; and the time until the next writer has taken over from one that was killed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::client::{Client, get};

use crate::programs::{Cairn, Engine, Requests};
use crate::scene::Scene;

/// Time between blocks.
pub(crate) const BLOCK_EVERY: Duration = Duration::from_millis(100);

/// Blocks during which requests and CPU are counted, and during which heights are watched, which takes CPU itself.
const COUNTED: u64 = 200;
const WATCHED: u64 = 400;

/// Kills of writers.
const KILLS: usize = 5;

/// Interval between looks at a height: it leaves CPU time to the servers.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Longer than any height takes.
const PATIENCE: Duration = Duration::from_mins(2);

/// Figures of one engine.
pub(crate) struct Head {
    /// From the writer's first reply with a height to the query server's, sorted, in milliseconds.
    pub(crate) lags: Vec<f64>,
    /// The same from the time at which the node showed the block.
    pub(crate) since_node: Vec<f64>,
    /// Requests of the writer for a block, and of the query server for a second.
    pub(crate) written: Requests,
    pub(crate) blocks: u64,
    /// Transactions in those blocks.
    pub(crate) txs: u64,
    pub(crate) read: Requests,
    pub(crate) seconds: f64,
    /// CPU of both, in milliseconds for a block.
    pub(crate) writer_cpu: f64,
    pub(crate) reader_cpu: f64,
    /// Peak memory of the writer.
    pub(crate) writer_memory: u64,
}

/// Heights, and when a server first showed them.
#[derive(Default)]
struct Sightings(Mutex<Vec<(u64, Instant)>>);

impl Sightings {
    /// Watches the server at `address` until `done`.
    fn watch(&self, address: SocketAddr, done: &AtomicBool) -> Result<()> {
        let (mut client, status) = (Client::connect(address)?, get("/status"));
        let mut last = 0;
        while !done.load(Ordering::Relaxed) {
            let answer: serde_json::Value = serde_json::from_slice(client.ask(&status)?)?;
            let height = answer["height"].as_u64().context("no height")?;
            if height > last {
                last = height;
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push((height, Instant::now()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// When `height` or a later one was first shown.
    fn at(&self, height: u64) -> Option<Instant> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().find(|(shown, _)| *shown >= height).map(|(_, at)| *at)
    }

    fn wait_for(&self, height: u64) -> Result<Instant> {
        let started = Instant::now();
        loop {
            if let Some(at) = self.at(height) {
                return Ok(at);
            }
            ensure!(started.elapsed() < PATIENCE, "height {height} was not shown within {PATIENCE:?}");
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Lets the node show `blocks` more, in time; returns when it showed each.
pub(crate) fn show(scene: &Scene, blocks: u64) -> Result<Vec<(u64, Instant)>> {
    let (first, started) = (scene.node.shown() + 1, Instant::now());
    let mut shown = Vec::new();
    for height in first..first + blocks {
        scene.node.show(height)?;
        shown.push((height, Instant::now()));
        let next = started + BLOCK_EVERY * u32::try_from(height + 1 - first)?;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(shown)
}

pub(crate) fn measure(scene: &Scene, engine: Engine) -> Result<Head> {
    let writer = scene.write(engine)?;
    let writes = writer.serving()?;
    writer.logged("caught up")?;
    let reader = scene.read(engine, None)?;
    let reads = reader.serving()?;
    settle(&writer)?;
    // The first blocks fill the caches.
    show(scene, 20)?;

    let txs_before = total(writes)?;
    let before = (writer.requests()?, reader.requests()?, writer.cpu()?, reader.cpu()?);
    let started = Instant::now();
    show(scene, COUNTED)?;
    let seconds = started.elapsed().as_secs_f64();
    let written = writer.requests()?.since(before.0);
    let read = reader.requests()?.since(before.1);
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let each =
        |cpu: Duration, before: Duration| cpu.saturating_sub(before).as_secs_f64() * 1e3 / COUNTED as f64;
    let (writer_cpu, reader_cpu) = (each(writer.cpu()?, before.2), each(reader.cpu()?, before.3));

    let txs = total(writes)? - txs_before;
    let (at_writer, at_reader, done) = (Sightings::default(), Sightings::default(), AtomicBool::new(false));
    let shown = thread::scope(|scope| -> Result<_> {
        let watchers = [(&at_writer, writes), (&at_reader, reads)];
        let watchers = watchers.map(|(sightings, address)| {
            let done = &done;
            scope.spawn(move || sightings.watch(address, done))
        });
        let shown = show(scene, WATCHED).and_then(|shown| {
            at_reader.wait_for(scene.node.shown())?;
            Ok(shown)
        });
        done.store(true, Ordering::Relaxed);
        for watcher in watchers {
            watcher.join().map_err(|_| anyhow::anyhow!("a watcher panicked"))??;
        }
        shown
    })?;
    let (mut lags, mut since_node) = (Vec::new(), Vec::new());
    for (height, showed) in shown {
        let (wrote, read) = (at_writer.wait_for(height)?, at_reader.wait_for(height)?);
        lags.push(read.saturating_duration_since(wrote).as_secs_f64() * 1e3);
        since_node.push(read.saturating_duration_since(showed).as_secs_f64() * 1e3);
    }
    lags.sort_unstable_by(f64::total_cmp);
    since_node.sort_unstable_by(f64::total_cmp);
    let writer_memory = writer.peak_memory()?;
    reader.stop()?;
    writer.stop()?;
    Ok(Head {
        lags,
        since_node,
        written,
        blocks: COUNTED,
        txs,
        read,
        seconds,
        writer_cpu,
        reader_cpu,
        writer_memory,
    })
}

/// Waits until the compactions that catching up left behind are done.
fn settle(writer: &Cairn) -> Result<()> {
    let (mut before, mut quiet) = (writer.requests()?, 0);
    // The compactor looks for work each 5 s.
    while quiet < 8 {
        thread::sleep(Duration::from_secs(1));
        let now = writer.requests()?;
        let moved = now.since(before);
        quiet = if moved.got_bytes + moved.put_bytes < 1 << 20 { quiet + 1 } else { 0 };
        before = now;
    }
    Ok(())
}

/// Number of transactions that a server has.
fn total(server: SocketAddr) -> Result<u64> {
    let mut client = Client::connect(server)?;
    let answer = client.ask(&get("/indexer/tx/v1/txs?pagination.limit=1&pagination.count_total=true"))?;
    let answer: serde_json::Value = serde_json::from_slice(answer)?;
    answer["pagination"]["total"].as_str().context("no total")?.parse().context("the total")
}

/// Seconds from the kill of a writer until a query server shows a block that came after it, sorted.
pub(crate) fn take_over(scene: &Scene, engine: Engine) -> Result<Vec<f64>> {
    let mut writer = Some(scene.write(engine)?);
    let reader = scene.read(engine, None)?;
    let (address, seen, done) = (reader.serving()?, Sightings::default(), AtomicBool::new(false));
    let times = thread::scope(|scope| -> Result<_> {
        let watcher = scope.spawn(|| seen.watch(address, &done));
        let blocks = scope.spawn(|| -> Result<()> {
            while !done.load(Ordering::Relaxed) {
                show(scene, 1)?;
            }
            Ok(())
        });
        let mut times = Vec::new();
        let mut kill = || -> Result<()> {
            // As many blocks as the log of a long-running writer may have.
            seen.wait_for(scene.node.shown() + 40)?;
            let (height, killed) = (scene.node.shown(), Instant::now());
            drop(writer.take());
            writer = Some(scene.write(engine)?);
            times.push(seen.wait_for(height + 1)?.duration_since(killed).as_secs_f64());
            Ok(())
        };
        let outcome = (0..KILLS).try_for_each(|_| kill());
        done.store(true, Ordering::Relaxed);
        for thread in [watcher, blocks] {
            thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        outcome.map(|()| times)
    })?;
    reader.stop()?;
    writer.context("no writer")?.stop()?;
    let mut times = times;
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}
