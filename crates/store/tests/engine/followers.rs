//! Followers of a database in a directory: what they see, and when.

use std::sync::mpsc;
use std::thread;

use store::{Batch, Durability, Error, RocksOptions, RocksStore, Snapshot, Store};

use crate::rocks::{APPEND, POINT, SCAN, TABLES, follow, get, noise, open, put, try_open};

#[test]
fn a_follower_sees_all_commits_before_its_catch_up() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, [(1, noise(1))], Durability::Buffered);
    let follower = follow(primary.path(), own.path());
    assert_eq!(get(&follower, SCAN, 1), Some(noise(1)));
    put(&owner, [(2, noise(2))], Durability::Buffered);
    assert_eq!(get(&follower, SCAN, 2), None);
    follower.catch_up().unwrap();
    assert_eq!(get(&follower, SCAN, 2), Some(noise(2)));
}

#[test]
fn a_follower_sees_rows_that_were_replaced_and_flushed_before_it_caught_up() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, [(1, b"old".to_vec())], Durability::Buffered);
    let follower = follow(primary.path(), own.path());
    let held = follower.snapshot().unwrap();
    for (value, compacted) in [(b"flushed", false), (b"compact", true)] {
        put(&owner, [(1, value.to_vec())], Durability::Buffered);
        if compacted {
            owner.compact().unwrap();
        } else {
            owner.flush().unwrap();
        }
        follower.catch_up().unwrap();
        for table in TABLES {
            assert_eq!(get(&follower, table, 1).unwrap(), value, "in `{}`", table.name);
        }
    }
    // A new log does not change the state of a snapshot.
    assert_eq!(held.get(SCAN, &1_u32.to_be_bytes()).unwrap().unwrap(), b"old");
}

#[test]
fn a_follower_continues_after_a_restart_of_the_owner() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, [(1, noise(1))], Durability::Buffered);
    let follower = follow(primary.path(), own.path());
    put(&owner, [(1, noise(2))], Durability::Buffered);
    drop(owner);
    let owner = open(primary.path());
    follower.catch_up().unwrap();
    assert_eq!(get(&follower, POINT, 1), Some(noise(2)));
    put(&owner, [(1, noise(3))], Durability::Buffered);
    follower.catch_up().unwrap();
    assert_eq!(get(&follower, POINT, 1), Some(noise(3)));
}

#[test]
fn a_held_snapshot_does_not_change_and_delays_neither_a_catch_up_nor_new_snapshots() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    let next = |n: u32| {
        put(&owner, [(1, noise(n))], Durability::Buffered);
        if n.is_multiple_of(3) {
            owner.flush().unwrap();
        }
    };
    next(1);
    let follower = follow(primary.path(), own.path());
    let held = follower.snapshot().unwrap();
    // Each catch-up runs on the thread that holds the snapshot: waiting for the snapshot would be a deadlock.
    for n in 2..10 {
        next(n);
        follower.catch_up().unwrap();
        for table in TABLES {
            assert_eq!(get(&follower, table, 1), Some(noise(n)));
            assert_eq!(held.get(table, &1_u32.to_be_bytes()).unwrap(), Some(noise(1)));
        }
    }
}

#[test]
fn snapshots_are_taken_while_a_catch_up_runs() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, [(1, noise(1))], Durability::Buffered);
    let follower = follow(primary.path(), own.path());
    let first = follower.snapshot().unwrap();
    put(&owner, [(1, noise(1))], Durability::Buffered);
    follower.catch_up().unwrap();
    let second = follower.snapshot().unwrap();
    put(&owner, [(1, noise(2))], Durability::Buffered);
    let (caught_up, catching_up) = mpsc::channel();
    thread::scope(|scope| {
        // It waits for `first`, whose state is the next to catch up.
        scope.spawn(|| caught_up.send(follower.catch_up()).unwrap());
        let mut during = 0;
        let outcome = loop {
            assert_eq!(second.get(SCAN, &1_u32.to_be_bytes()).unwrap(), Some(noise(1)));
            if let Ok(outcome) = catching_up.try_recv() {
                break outcome;
            }
            let row = get(&follower, SCAN, 1).unwrap();
            assert!(row == noise(1) || row == noise(2));
            during += 1;
        };
        outcome.unwrap();
        assert!(during > 100, "only {during} snapshots while it caught up");
    });
    assert_eq!(first.get(SCAN, &1_u32.to_be_bytes()).unwrap(), Some(noise(1)));
    assert_eq!(get(&follower, SCAN, 1), Some(noise(2)));
}

#[test]
fn a_follower_has_three_states_at_most() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, [(1, noise(0))], Durability::Buffered);
    let follower = follow(primary.path(), own.path());
    let mut held = Vec::new();
    let error = loop {
        held.push(follower.snapshot().unwrap());
        put(&owner, [(1, noise(u32::try_from(held.len()).unwrap()))], Durability::Buffered);
        if let Err(error) = follower.catch_up() {
            break error;
        }
    };
    assert!(error.to_string().contains("three states"), "{error}");
    assert_eq!(held.len(), 3);
    // New snapshots use the last state until one is free.
    assert_eq!(get(&follower, SCAN, 1), Some(noise(2)));
    held.remove(0);
    follower.catch_up().unwrap();
    assert_eq!(get(&follower, SCAN, 1), Some(noise(3)));
    for (n, snapshot) in (1..).zip(&held) {
        assert_eq!(snapshot.get(SCAN, &1_u32.to_be_bytes()).unwrap(), Some(noise(n)));
    }
}

/// While one thread commits and flushes and another one catches up, a reader compares the tables.
#[test]
fn a_follower_never_shows_a_partial_commit_or_an_earlier_state() {
    const COMMITS: u32 = 400;
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    let commit = |n: u32| {
        let mut batch = Batch::new();
        batch.put(POINT, vec![0], n.to_be_bytes().to_vec());
        batch.put(SCAN, vec![0], n.to_be_bytes().to_vec());
        // Written too rarely to be in every log.
        if n.is_multiple_of(50) {
            batch.put(APPEND, vec![0], n.to_be_bytes().to_vec());
        }
        owner.commit(batch, Durability::Buffered).unwrap();
    };
    commit(0);
    let follower = follow(primary.path(), own.path());
    let number = |snapshot: &dyn Snapshot, table| {
        u32::from_be_bytes(snapshot.get(table, &[0]).unwrap().unwrap().try_into().unwrap())
    };
    let seen = || {
        let snapshot = follower.snapshot().unwrap();
        let n = number(&*snapshot, POINT);
        assert_eq!(number(&*snapshot, SCAN), n);
        assert_eq!(number(&*snapshot, APPEND), n - n % 50);
        n
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=COMMITS {
                commit(n);
                if n.is_multiple_of(5) {
                    owner.flush().unwrap();
                }
            }
        });
        scope.spawn(|| {
            let mut last = 0;
            for _ in 0..50_000 {
                let n = seen();
                assert!(n >= last, "{n} after {last}");
                last = n;
            }
        });
        // The owner may delete files faster than they can be read; the current view stays complete.
        let caught_up = (0..100_000).any(|_| follower.catch_up().is_ok() && seen() == COMMITS);
        assert!(caught_up, "never saw the last commit");
    });
}

#[test]
fn a_follower_does_not_write() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    let follower = follow(primary.path(), own.path());
    let mut batch = Batch::new();
    batch.put(POINT, vec![1], vec![]);
    let results = [
        follower.commit(batch, Durability::Buffered),
        follower.sync(),
        follower.flush(),
        follower.compact(),
        follower.checkpoint(&own.path().join("copy")),
    ];
    for result in results {
        assert!(matches!(result, Err(Error::ReadOnly { .. })), "{result:?}");
    }
    drop(owner);
}

#[test]
fn a_missing_database_is_an_error_for_a_follower() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let error =
        RocksStore::follow(primary.path(), own.path(), TABLES, RocksOptions::default()).err().unwrap();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    let _owner = try_open(primary.path(), &[POINT]).unwrap();
    let error =
        RocksStore::follow(primary.path(), own.path(), TABLES, RocksOptions::default()).err().unwrap();
    assert!(
        matches!(&error, Error::MissingTables { tables, .. } if tables == &["append", "scan"]),
        "{error}"
    );
}
