//! A request never mixes heights, and would without the gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use slate::{SlateReader, SlateStore};
use slatedb::config::DbReaderOptions;
use slatedb::{DbReader, DbReaderMode, PrefixExtractor, PrefixTarget};
use store::{Durability, Store};

use crate::heights::{Done, block, head, is_mixed, request};
use crate::{CHAIN, ENGINE, bucket};

/// Blocks that the writer may be ahead of the reader: each is an object, and lists of all objects become slow.
const AHEAD: usize = 8;

/// Calls `requests` while a writer commits blocks and, if there is a reader, it catches up after each of them.
fn during_writes(store: &SlateStore, reader: Option<&SlateReader>, requests: impl FnOnce()) {
    let done = AtomicBool::new(false);
    let (committed, commits) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let done = &done;
        let _done = Done(done);
        scope.spawn(move || {
            for height in head(&*store.snapshot().unwrap()) + 1.. {
                store.commit(block(height), Durability::Synced).unwrap();
                if committed.send(height).is_err() || done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        scope.spawn(move || {
            for _ in commits {
                if let Some(reader) = reader {
                    reader.catch_up().unwrap();
                }
            }
        });
        requests();
    });
}

#[test]
fn no_request_mixes_heights() {
    const REQUESTS: usize = 4_000;
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    let (highest, different) = (AtomicU64::new(0), AtomicU64::new(0));
    during_writes(&store, Some(&reader), || {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..REQUESTS / 2 {
                        let seen = request(&*reader.snapshot().unwrap());
                        assert!(!is_mixed(&seen), "{seen:?}");
                        let before = highest.fetch_max(seen[0], Ordering::Relaxed);
                        different.fetch_add(u64::from(seen[0] > before), Ordering::Relaxed);
                    }
                });
            }
        });
    });
    // The heights moved meanwhile.
    assert!(different.load(Ordering::Relaxed) > 20, "{different:?}");
}

/// The trees of the engine, for a reader that is not the engine's.
struct FirstByte;

impl PrefixExtractor for FirstByte {
    fn name(&self) -> &'static str {
        "first-1"
    }

    fn prefix_len(&self, _: &PrefixTarget) -> Option<usize> {
        Some(1)
    }
}

#[test]
fn a_reader_without_the_gate_mixes_heights() {
    const REQUESTS: usize = 200_000;
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options =
        DbReaderOptions { manifest_poll_interval: Duration::from_millis(1), ..DbReaderOptions::default() };
    let objects = bucket.object_store();
    let reader = DbReader::builder(CHAIN, objects).with_reader_mode(DbReaderMode::FollowLatest);
    let reader = reader.with_options(options).with_segment_extractor(Arc::new(FirstByte));
    let reader = runtime.block_on(reader.build()).unwrap();
    let row = |row: u32| runtime.block_on(reader.get([&[0, 0x11][..], &row.to_be_bytes()].concat())).unwrap();
    let mut mixed = false;
    during_writes(&store, None, || {
        mixed = (0..REQUESTS).any(|_| {
            let first = row(0);
            (1..crate::heights::REPLACED).any(|n| row(n) != first)
        });
    });
    assert!(mixed, "{REQUESTS} requests saw one height each: the test cannot fail");
    runtime.block_on(reader.close()).unwrap();
}

#[test]
fn a_view_is_fixed_until_the_next_catch_up_and_never_older() {
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    assert!(!reader.catch_up().unwrap());
    let mut held = Vec::new();
    for height in 1..=20 {
        store.commit(block(height), Durability::Synced).unwrap();
        assert_eq!(head(&*reader.snapshot().unwrap()), height - 1);
        assert!(reader.catch_up().unwrap());
        let snapshot = reader.snapshot().unwrap();
        assert_eq!(request(&*snapshot)[0], height);
        // A long request holds one view; the others follow each other.
        if height == 3 {
            held.push(snapshot);
        }
    }
    assert!(request(&*held[0]).iter().all(|height| *height == 3));
}

#[test]
fn table_files_and_the_log_give_the_same_view() {
    let bucket = bucket();
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    for height in 2..60 {
        store.commit(block(height), Durability::Synced).unwrap();
        if height % 7 == 0 {
            store.flush().unwrap();
        }
        reader.catch_up().unwrap();
        assert!(request(&*reader.snapshot().unwrap()).iter().all(|seen| *seen == height));
        // One that is opened now sees the same.
        if height % 10 == 0 {
            let opened = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
            assert!(request(&*opened.snapshot().unwrap()).iter().all(|seen| *seen == height));
        }
    }
}
