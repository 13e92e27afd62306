//! Recovery from corrupt files: emptying a database, compaction of tables that have become readable, and followers.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use store::{Access, Batch, Bounds, Durability, Error, Order, RocksOptions, RocksStore, Store, TableSpec};

const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
const TABLES: &[&TableSpec] = &[SCAN];

fn open(path: &Path) -> RocksStore {
    RocksStore::open(path, TABLES, RocksOptions::default()).unwrap()
}

/// Bytes that do not compress.
fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    };
    std::iter::repeat_n((), bytes).scan(seed, |state, ()| step(state)).collect()
}

/// Commits rows of `bytes` together.
fn put(store: &RocksStore, rows: std::ops::Range<u32>, bytes: usize) {
    let mut batch = Batch::new();
    rows.for_each(|n| batch.put(SCAN, n.to_be_bytes().to_vec(), noise(n, bytes)));
    store.commit(batch, Durability::Synced).unwrap();
}

/// The numbers of the rows.
fn numbers(store: &RocksStore) -> Vec<u32> {
    let rows = store.snapshot().unwrap().scan(SCAN, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    rows.iter().map(|(key, _)| u32::from_be_bytes(key.as_slice().try_into().unwrap())).collect()
}

/// The files of a kind, oldest first.
fn files(path: &Path, kind: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|found| found == kind)).collect();
    files.sort();
    files
}

/// Flips a bit; a second call reverts it.
fn flip(file: &Path, at: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x10;
    fs::write(file, bytes).unwrap();
}

#[test]
fn emptying_a_database_reads_no_row_and_needs_exclusive_ownership() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let empty = || RocksStore::open_damaged(path, TABLES, RocksOptions::default());
    assert!(matches!(empty().err(), Some(Error::NotADatabase { .. })));
    assert_eq!(fs::read_dir(path).unwrap().count(), 0);
    let owner = open(path);
    // New files overlap: RocksDB reads all of them for every row, so that one hides the rows of the others.
    for part in 0..3 {
        put(&owner, part * 100..part * 100 + 100, 100);
        owner.flush().unwrap();
    }
    put(&owner, 300..301, 100);
    assert!(matches!(empty().err(), Some(Error::InUse { .. })));
    drop(owner);
    flip(&files(path, "sst")[1], |len| len - 3);
    flip(&files(path, "log").pop().unwrap(), |len| len / 2);
    assert!(matches!(
        RocksStore::open(path, TABLES, RocksOptions::default()).err(),
        Some(Error::Damaged { .. })
    ));
    drop(empty().unwrap().recreate_tables(&[], RocksOptions::default()).unwrap());
    assert_eq!(numbers(&open(path)), [0_u32; 0]);
}

#[test]
fn unfinished_checkpoints_are_removed_by_the_next_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    let bytes = store.disk_bytes().unwrap();
    let left = path.join("checkpoint.tmp");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("000009.sst"), vec![b'r'; 1 << 20]).unwrap();
    // Their contents do not belong to the database, whose log may grow meanwhile.
    assert!(store.disk_bytes().unwrap() < bytes + (1 << 20));
    fs::create_dir(path.join("checkpoint")).unwrap();
    drop(store);
    let store = open(path);
    assert!(!left.exists());
    assert!(path.join("checkpoint").exists());
    assert_eq!(numbers(&store).len(), 100);
}

#[test]
fn a_table_that_becomes_readable_is_compacted_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path);
    put(&store, 0..300, 100);
    store.compact().unwrap();
    let file = files(path, "sst").remove(0);
    flip(&file, |_| 9);
    drop(store);
    let store = open(path);
    store.snapshot().unwrap().scan(SCAN, Bounds::all(), Order::Asc, usize::MAX).unwrap_err();
    assert_eq!(fs::read_to_string(path.join("DAMAGED")).unwrap(), "scan\n");
    drop(store);
    // The device gives the right bytes again.
    flip(&file, |_| 9);
    let store = open(path);
    let flush = |n| {
        put(&store, n..n + 1, 100);
        store.flush().unwrap();
    };
    (0..10).for_each(flush);
    assert_eq!(files(path, "sst").len(), 11);
    store.resume_compaction().unwrap();
    assert!(!path.join("DAMAGED").exists());
    flush(10);
    let since = Instant::now();
    while files(path, "sst").len() > 4 {
        assert!(since.elapsed() < Duration::from_mins(1), "it is not compacted");
        thread::yield_now();
    }
}

#[test]
fn a_follower_that_runs_notices_a_new_file_that_cannot_be_opened() {
    let (directory, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    store.flush().unwrap();
    let follower = RocksStore::follow(path, own.path(), TABLES, RocksOptions::default()).unwrap();
    put(&store, 100..200, 100);
    store.flush().unwrap();
    let damaged = files(path, "sst").pop().unwrap();
    flip(&damaged, |len| len - 3);
    // A new file may still be being written; a file that is present at the next catch-up as well is complete.
    drop(follower.catch_up());
    put(&store, 200..300, 100);
    store.flush().unwrap();
    let error = follower.catch_up().unwrap_err();
    let named = damaged.file_name().unwrap().to_str();
    assert!(
        matches!(&error, Error::Damaged { table: Some("scan"), file, .. } if file.as_deref() == named),
        "{error}"
    );
    flip(&damaged, |len| len - 3);
    follower.catch_up().unwrap();
    assert_eq!(numbers(&follower).len(), 300);
}

#[test]
fn files_outside_of_the_database_do_not_affect_a_follower() {
    let (directory, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    let follower = RocksStore::follow(path, own.path(), TABLES, RocksOptions::default()).unwrap();
    // Like a file that is being written.
    fs::write(path.join("999999.sst"), "rows").unwrap();
    for round in 1..4 {
        put(&store, round * 100..round * 100 + 100, 100);
        store.flush().unwrap();
        follower.catch_up().unwrap();
    }
    assert_eq!(numbers(&follower).len(), 400);
}
