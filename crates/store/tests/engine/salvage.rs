//! What a salvage spares: rows near damage, rows behind a file that cannot be opened, commits in the log, and a database that
//! somebody else has open.

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

fn salvage(path: &Path) -> Result<Vec<store::CorruptRange>, Error> {
    RocksStore::salvage(path, TABLES, RocksOptions::default())
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

/// The files of a kind, the oldest first.
fn files(path: &Path, kind: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|found| found == kind)).collect();
    files.sort();
    files
}

/// Changes a bit; doing it again takes it back.
fn flip(file: &Path, at: impl FnOnce(usize) -> usize) {
    let mut bytes = fs::read(file).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x10;
    fs::write(file, bytes).unwrap();
}

#[test]
fn rows_between_two_damaged_blocks_are_spared() {
    const ROWS: u32 = 3000;
    // The second stretch is where halving what is behind the first one looks first.
    for (fifths, between) in [([1, 3], 1200), ([0, 2], 600), ([2, 3], 1500)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let store = open(path);
        put(&store, 0..ROWS, 100);
        store.compact().unwrap();
        drop(store);
        let file = files(path, "sst").remove(0);
        for fifth in fifths {
            flip(&file, |len| len / 5 * fifth + 9);
        }
        assert_eq!(salvage(path).unwrap().len(), 2, "{fifths:?}");
        let left = numbers(&open(path));
        // A block has 16 KiB.
        assert!(left.len() > 2600, "{fifths:?}: {} rows are left", left.len());
        assert!(left.contains(&between), "{fifths:?}");
    }
}

#[test]
fn rows_behind_a_file_that_cannot_be_opened_are_not_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // New files overlap: RocksDB asks all of them for every row.
    let store = open(path);
    for part in 0..3 {
        put(&store, part * 100..part * 100 + 100, 100);
        store.flush().unwrap();
    }
    drop(store);
    let files_before = files(path, "sst");
    assert_eq!(files_before.len(), 3);
    let damaged = &files_before[1];
    let footer = |len: usize| len - 3;
    flip(damaged, footer);
    let refused = salvage(path).unwrap_err();
    let named = damaged.file_name().unwrap().to_str();
    assert!(
        matches!(&refused, Error::UnreachableRows { table: "scan", file, .. } if file.as_deref() == named),
        "{refused}"
    );
    assert!(refused.to_string().contains("nothing was changed; restore a backup"), "{refused}");
    flip(damaged, footer);
    assert_eq!(numbers(&open(path)), (0..300).collect::<Vec<_>>());
}

#[test]
fn a_table_whose_only_file_cannot_be_opened_is_empty_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    store.flush().unwrap();
    drop(store);
    flip(&files(path, "sst")[0], |len| len - 3);
    assert_eq!(salvage(path).unwrap().len(), 1);
    assert_eq!(numbers(&open(path)), []);
}

#[test]
fn a_damaged_log_ends_at_the_damage_also_for_a_salvage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 1000);
    store.compact().unwrap();
    // Each longer than what is read of a log at a time.
    for n in 100..103 {
        put(&store, n..n + 1, 40_000);
    }
    drop(store);
    flip(&files(path, "sst")[0], |_| 9);
    flip(&files(path, "log").pop().unwrap(), |_| 60_000);
    assert_eq!(salvage(path).unwrap().len(), 1);
    let left = numbers(&open(path));
    assert_eq!(left[left.len() - 1], 100);
}

#[test]
fn who_is_refused_a_database_leaves_the_salvage_of_its_owner_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let owner = open(path);
    for state in ["scan.part", "scan.ready", "scan.done"] {
        let theirs = path.join("salvage").join(state).join("000000.sst");
        fs::create_dir_all(theirs.parent().unwrap()).unwrap();
        fs::write(&theirs, "rows").unwrap();
        fs::create_dir_all(path.join("checkpoint.tmp")).unwrap();
        let opened = RocksStore::open(path, TABLES, RocksOptions::default()).err().unwrap();
        for refused in [opened, salvage(path).unwrap_err()] {
            assert!(matches!(refused, Error::InUse { .. }), "{state}: {refused}");
        }
        assert!(theirs.exists() && path.join("checkpoint.tmp").exists(), "{state}");
        fs::remove_dir_all(path.join("salvage")).unwrap();
    }
    drop(owner);
}

#[test]
fn what_was_left_unfinished_is_removed_by_the_next_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    let bytes = store.disk_bytes().unwrap();
    let left = ["salvage/scan.part", "salvage/scan.done", "checkpoint.tmp"].map(|left| path.join(left));
    for left in &left {
        fs::create_dir_all(left).unwrap();
        fs::write(left.join("000009.sst"), "rows").unwrap();
    }
    // What is in them is not the database.
    assert_eq!(store.disk_bytes().unwrap(), bytes);
    fs::create_dir(path.join("checkpoint")).unwrap();
    drop(store);
    let store = open(path);
    assert!(left.iter().all(|left| !left.exists()) && !path.join("salvage").exists());
    assert!(path.join("checkpoint").exists());
    assert_eq!(numbers(&store).len(), 100);
}

#[test]
fn a_table_that_can_be_read_again_is_compacted_again() {
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
    assert_eq!(store.recheck().unwrap().len(), 1);
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
    assert_eq!(store.recheck().unwrap(), []);
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
    // A file that is there may be one that is still being written. One that is there the next time too is not.
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
fn files_that_are_no_part_of_the_database_do_not_disturb_a_follower() {
    let (directory, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = directory.path();
    let store = open(path);
    put(&store, 0..100, 100);
    let follower = RocksStore::follow(path, own.path(), TABLES, RocksOptions::default()).unwrap();
    // As one looks that is being written.
    fs::write(path.join("999999.sst"), "rows").unwrap();
    for round in 1..4 {
        put(&store, round * 100..round * 100 + 100, 100);
        store.flush().unwrap();
        follower.catch_up().unwrap();
    }
    assert_eq!(numbers(&follower).len(), 400);
}
