//! A read that waits for the object store holds up no other work of its thread, and ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use slate::object_store::throttle::{ThrottleConfig, ThrottledStore};
use slate::{Engine, Location, Options, SlateReader, SlateStore};
use store::{Bounds, Durability, Order, Store};

use crate::heights::{ROWS, block};
use crate::{CHAIN, ENGINE, bucket};

/// A reader of a database whose table file is not cached, in an object store that answers after `wait`. The reader opens
/// without waits.
fn slow_reader(engine: &Arc<Engine>, wait: Duration) -> SlateReader {
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    store.flush().unwrap();
    let slow = Arc::new(ThrottledStore::new(bucket.object_store(), ThrottleConfig::default()));
    let reader =
        SlateReader::open(engine, &Location::in_store("memory://slow", slow.clone()), CHAIN).unwrap();
    slow.config_mut(|config| config.wait_get_per_call = wait);
    reader
}

#[test]
fn a_read_that_waits_leaves_its_worker_to_other_tasks() {
    let reader = slow_reader(&ENGINE, Duration::from_millis(100));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let other = Arc::new(AtomicBool::new(false));
    let read = runtime.spawn(async move {
        let flag = Arc::clone(&other);
        drop(tokio::spawn(async move { flag.store(true, Ordering::Relaxed) }));
        let rows = reader.snapshot().unwrap().scan(ROWS, Bounds::all(), Order::Asc, 2).unwrap();
        (rows.len(), other.load(Ordering::Relaxed))
    });
    assert_eq!(runtime.block_on(read).unwrap(), (2, true));
}

#[test]
fn a_read_without_an_answer_is_an_error_after_its_limit() {
    let limit = Duration::from_millis(300);
    let engine = Engine::start(Options { read_timeout: limit, ..Options::default() }).unwrap();
    let reader = slow_reader(&engine, Duration::from_secs(20));
    let (snapshot, started) = (reader.snapshot().unwrap(), Instant::now());
    let error = snapshot.scan(ROWS, Bounds::all(), Order::Asc, 2).unwrap_err();
    assert!(error.to_string().contains("no answer within 300ms"), "{error}");
    assert!((limit..Duration::from_secs(10)).contains(&started.elapsed()), "{:?}", started.elapsed());
}
