//! Latency of a live index: from a new block to its first read, in the index and in a follower, and of responses during
//! a backfill at full speed.
//!
//! Blocks appear every 100 ms, as on a fast rollup. A block's time starts when the node answers about its height over
//! RPC. Readers, node and index share the machine's cores.

#![expect(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use benches::client::{Client, get};
use benches::report;
use ingest::{Config, Ingest};
use node::{Limits as NodeLimits, Node};
use replay::{Addresses, Options, Recording, ReplayNode};
use store::{RocksOptions, RocksStore, Store};
use tempfile::TempDir;
use testkit::indexed;
use testkit::live::Live;
use tokio::runtime::Builder;
use web::app::App;
use web::limits::Limits;
use web::limits::priority::{self, BACKGROUND};
use web::serve::server::{Server, default_workers};

/// Number of blocks.
const BLOCKS: u64 = 200;
const BLOCK_EVERY: Duration = Duration::from_millis(100);

/// Duration of the measurements, idle and during a backfill.
const TIMED: Duration = Duration::from_secs(3);

fn main() -> Result<()> {
    if !benches::measuring() {
        return Ok(());
    }
    // The same runtime as `cairn run`.
    let on_start = || priority::lower(BACKGROUND);
    let runtime = Builder::new_multi_thread().enable_all().on_thread_start(on_start).build()?;
    report::line("a new block, every 100 ms: from the node's answer to ours (ms)");
    let mut rows = Vec::new();
    for (name, poll) in
        [("woken by websocket", Duration::from_secs(5)), ("polling every 50 ms", Duration::from_millis(50))]
    {
        let mut waits = runtime.block_on(following(poll))?;
        rows.push(row(name, &mut waits, 1e3));
    }
    report::table(&["", "p50", "p99", "max"], &rows);
    report::line("");
    report::line("a transaction by its hash, one client (us)");
    let (mut idle, mut busy) = runtime.block_on(backfilling())?;
    let ratio = quantile(&mut busy, 0.99) / quantile(&mut idle, 0.99);
    report::table(
        &["", "p50", "p99", "max"],
        &[row("idle", &mut idle, 1e6), row("during a backfill", &mut busy, 1e6)],
    );
    report::line(&format!("p99 during a backfill is {ratio:.1} times that of an idle server"));
    Ok(())
}

fn row(name: &str, waits: &mut [f64], scale: f64) -> Vec<String> {
    let at = |waits: &mut [f64], q| format!("{:.1}", quantile(waits, q) * scale);
    vec![name.to_owned(), at(waits, 0.5), at(waits, 0.99), at(waits, 1.0)]
}

fn quantile(waits: &mut [f64], q: f64) -> f64 {
    waits.sort_unstable_by(f64::total_cmp);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let at = ((waits.len() - 1) as f64 * q).round() as usize;
    waits[at]
}

/// A served database of a growing chain.
struct Scene {
    store: Arc<RocksStore>,
    server: Server,
    _dir: TempDir,
}

impl Scene {
    fn serve(store: &Arc<RocksStore>) -> Result<Server> {
        let indexer = indexed::indexer(Arc::clone(store) as Arc<dyn Store>)?;
        let app = Arc::new(App::new(indexer, query::ENDPOINTS)?);
        Ok(Server::start(TcpListener::bind("127.0.0.1:0")?, app, Limits::default(), default_workers())?)
    }
}

/// Seconds from the node's first reply about a height to our first response with it.
async fn following(poll: Duration) -> Result<Vec<f64>> {
    let recording = Arc::new(Recording::open(&testkit::recording("evm-load"))?);
    let first = recording.first();
    let options = Options { up_to: Some(first), block_every: Some(BLOCK_EVERY), ..Options::default() };
    let dir = tempfile::tempdir()?;
    let store = Arc::new(RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default())?);
    let played = ReplayNode::start(Arc::clone(&recording), Addresses::default(), options).await?;
    let mut shown = played.watch();
    let config = Config { poll, ..indexed::config(&recording)? };
    let node = Arc::new(indexed::clients(&played)?);
    let mut live = Live::start(node, config, Arc::clone(&store) as Arc<dyn Store>).await?;
    live.reach(&recording, first).await?;
    let scene = Scene { server: Scene::serve(&store)?, store, _dir: dir };
    let mut client = Client::connect(scene.server.address())?;
    let mut waits = Vec::new();
    while waits.len() < usize::try_from(BLOCKS)? {
        shown.changed().await?;
        let (height, since) = (*shown.borrow_and_update(), Instant::now());
        // The newest block is the total of the list.
        let newest = get("/indexer/block/v1/blocks?pagination.limit=1");
        tokio::task::block_in_place(|| -> Result<()> {
            loop {
                let body = std::str::from_utf8(client.ask(&newest)?)?;
                let (_, total) = body.rsplit_once("\"total\":\"").context("a page has a total")?;
                let total: u64 = total.split('"').next().unwrap_or("").parse()?;
                if total >= height {
                    return Ok(());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        })?;
        waits.push(since.elapsed().as_secs_f64());
    }
    live.stop().await?;
    scene.server.stop();
    drop(scene.store);
    played.stop().await;
    Ok(waits)
}

/// Latencies in seconds, without and with an index at full speed in the same process.
async fn backfilling() -> Result<(Vec<f64>, Vec<f64>)> {
    let recording = Arc::new(Recording::open(&testkit::recording("evm-load"))?);
    let half = recording.first() + 300;
    let played = ReplayNode::start(
        Arc::clone(&recording),
        Addresses::default(),
        Options { up_to: Some(half), ..Options::default() },
    )
    .await?;
    let dir = tempfile::tempdir()?;
    let store = Arc::new(RocksStore::open(dir.path(), schema::TABLES, RocksOptions::default())?);
    let config = indexed::config(&recording)?;
    indexed::index_from(
        indexed::clients(&played)?,
        config.clone(),
        Arc::clone(&store) as Arc<dyn Store>,
        half,
    )
    .await?;
    let server = Scene::serve(&store)?;
    let hashes: Vec<Vec<u8>> = benches::recorded::raw_txs(&recording)?
        .iter()
        .take(5_000)
        .map(|raw| get(&format!("/indexer/tx/v1/txs/{}", chain::hash::to_hex(&chain::hash::tx_hash(raw)))))
        .collect();
    let idle = timed(&server, &hashes, &AtomicBool::new(true), TIMED)?;

    played.show(recording.last())?;
    let node: Arc<Node> = Arc::new(Node::new(indexed::endpoints(&played)?, NodeLimits::default())?);
    let ingest = Ingest::prepare(config, node, Arc::clone(&store) as Arc<dyn Store>).await?;
    let running = AtomicBool::new(true);
    let busy = std::thread::scope(|scope| -> Result<Vec<f64>> {
        let timer = scope.spawn(|| timed(&server, &hashes, &running, Duration::from_mins(5)));
        let done = tokio::runtime::Handle::current();
        let indexed = std::thread::scope(|inner| {
            let work = inner.spawn(|| done.block_on(indexed::run_to(&ingest, recording.last())));
            work.join().expect("the index does not panic")
        });
        running.store(false, Ordering::SeqCst);
        indexed?;
        timer.join().expect("the client does not panic")
    })?;
    server.stop();
    played.stop().await;
    Ok((idle, busy))
}

/// Sends requests sequentially while `running`, for at most `time`.
fn timed(server: &Server, requests: &[Vec<u8>], running: &AtomicBool, time: Duration) -> Result<Vec<f64>> {
    let mut client = Client::connect(server.address())?;
    let (begun, mut waits) = (Instant::now(), Vec::new());
    for request in requests.iter().cycle() {
        if begun.elapsed() >= time || !running.load(Ordering::SeqCst) {
            break;
        }
        let asked = Instant::now();
        client.ask(request)?;
        waits.push(asked.elapsed().as_secs_f64());
    }
    Ok(waits)
}
