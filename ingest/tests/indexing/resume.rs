//! Stops, rollbacks and restarts: whatever the history of a database, it equals an undisturbed one.

use std::path::Path;
use std::sync::Arc;

use ingest::{Config, Ingest};
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::digest::TableDigest;
use schema::meta::{self, BlockLane, CallLane};
use schema::rewind::{RewindError, rewind};
use store::{MemStore, RocksOptions, RocksStore, Store};
use testkit::{indexed, recording};
use tokio::sync::watch;

fn open(dir: &Path) -> Arc<RocksStore> {
    Arc::new(RocksStore::open(dir, schema::TABLES, RocksOptions::default()).unwrap())
}

fn evm() -> Arc<Recording> {
    Arc::new(Recording::open(&recording("evm-scenario")).unwrap())
}

/// Indexes up to `height` in one run.
async fn indexed_to(recording: &Arc<Recording>, height: u64) -> Vec<TableDigest> {
    let store = Arc::new(MemStore::new());
    let options = Options { up_to: Some(height), ..Options::default() };
    indexed::index(Arc::clone(recording), options, Arc::<MemStore>::clone(&store)).await.unwrap();
    indexed::digest(&*store).unwrap()
}

/// Pseudorandom numbers, the same in every run (the step of splitmix64).
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1_u64..).map(move |n| {
        let z = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

fn heights<S: Store + ?Sized>(store: &S) -> (u64, u64) {
    let snapshot = store.snapshot().unwrap();
    let blocks: BlockLane = meta::read(&*snapshot).unwrap().unwrap_or_default();
    let calls: CallLane = meta::read(&*snapshot).unwrap().unwrap_or_default();
    (blocks.height, calls.height)
}

/// Runs until `lane` has reached `height`, then stops without waiting for work in progress.
async fn run_and_stop(ingest: &Ingest, height: u64, calls: bool) {
    let (stop, stopped) = watch::channel(false);
    let progress = ingest.progress();
    let lane = if calls { &progress.calls } else { &progress.blocks };
    let reached = async {
        lane.clone().wait_for(|progress| progress.height >= height).await.unwrap();
        stop.send_replace(true);
    };
    tokio::join!(async { ingest.run(stopped).await.unwrap() }, reached);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingest_that_is_stopped_anywhere_resumes_at_the_same_height() {
    let (recording, dir) = (evm(), tempfile::tempdir().unwrap());
    let config = Config { look_ahead: 4, ..indexed::config(&recording).unwrap() };
    let played = ReplayNode::start(Arc::clone(&recording), Addresses::default(), Options::default());
    let played = played.await.unwrap();
    let last = recording.last();
    let (mut at, mut stops) = (0, 0);
    for (n, random) in (0..).zip(numbers(3)) {
        let store = open(dir.path());
        let node = Arc::new(indexed::clients(&played).unwrap());
        let shared: Arc<dyn Store> = Arc::<RocksStore>::clone(&store);
        let ingest = Ingest::prepare(config.clone(), node, shared).await.unwrap();
        at = heights(&*store).0.max(at) + 1 + random % 25;
        if at >= last {
            indexed::run_to(&ingest, last).await.unwrap();
            break;
        }
        run_and_stop(&ingest, at, n % 2 == 1).await;
        let (blocks, calls) = heights(&*store);
        assert!(calls <= blocks && blocks >= at, "{calls} {blocks} {at}");
        stops += 1;
    }
    assert!(stops >= 5, "only {stops} stops");
    assert_eq!(indexed::digest(&*open(dir.path())).unwrap(), indexed_to(&recording, last).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolled_back_database_equals_an_undisturbed_one_and_reaches_the_same_end() {
    let (recording, store) = (evm(), Arc::new(MemStore::new()));
    let last = recording.last();
    let whole: Arc<dyn Store> = Arc::<MemStore>::clone(&store);
    indexed::index(Arc::clone(&recording), Options::default(), Arc::clone(&whole)).await.unwrap();
    let end = indexed::digest(&*store).unwrap();
    // The first height, one without transactions, one before the large blocks, and two others.
    let mut to: Vec<u64> = numbers(5).take(2).map(|random| 2 + random % (last - 2)).collect();
    to.extend([1, 6, 198]);
    for to in to {
        rewind(&*store, to).unwrap();
        assert_eq!(heights(&*store), (to, to));
        assert_eq!(indexed::digest(&*store).unwrap(), indexed_to(&recording, to).await, "back to {to}");
        indexed::index(Arc::clone(&recording), Options::default(), Arc::clone(&whole)).await.unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), end, "from {to} forward again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_on_disk_is_the_same() {
    let recording = Arc::new(Recording::open(&testkit::recording("wasm-scenario")).unwrap());
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = open(dir.path());
    indexed::index(Arc::clone(&recording), Options::default(), Arc::clone(&store)).await.unwrap();
    let end = indexed::digest(&*store).unwrap();
    for to in [4, 31, 66, 67] {
        rewind(&*store, to).unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), indexed_to(&recording, to).await, "back to {to}");
        indexed::index(Arc::clone(&recording), Options::default(), Arc::clone(&store)).await.unwrap();
        assert_eq!(indexed::digest(&*store).unwrap(), end, "from {to} forward again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_to_a_height_without_a_block_is_refused_with_the_heights_that_exist() {
    let recording = Arc::new(Recording::open(&testkit::recording("wasm-scenario")).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    indexed::index(Arc::clone(&recording), Options::default(), Arc::clone(&store)).await.unwrap();
    let before = indexed::digest(&*store).unwrap();
    for to in [0, 3, 68, u64::MAX] {
        let error = rewind(&*store, to).unwrap_err();
        assert!(matches!(error, RewindError::OutOfRange { first: 4, last: 67, .. }), "{error:?}");
        assert!(error.to_string().contains("4 to 67"), "{error}");
    }
    assert_eq!(indexed::digest(&*store).unwrap(), before);
    assert!(rewind(&MemStore::new(), 1).is_err(), "an empty database has nowhere to go back to");
}
