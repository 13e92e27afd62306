//! Behaviour of a database in a directory only: reopening, its owner, damage, foreign files.

use std::time::{Duration, Instant};
use std::{fs, path::Path, thread};

use store::{Access, Batch, Bounds, Durability, Error, Order, RocksOptions, RocksStore, Store, TableSpec};

pub(crate) const POINT: &TableSpec = &TableSpec { name: "point", tag: 0x10, access: Access::Point };
pub(crate) const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
pub(crate) const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
pub(crate) const TABLES: &[&TableSpec] = &[POINT, APPEND, SCAN];

pub(crate) fn open(path: &Path) -> RocksStore {
    try_open(path, TABLES).unwrap()
}

pub(crate) fn try_open(path: &Path, tables: &'static [&'static TableSpec]) -> Result<RocksStore, Error> {
    RocksStore::open(path, tables, RocksOptions::default())
}

pub(crate) fn follow(primary: &Path, own: &Path) -> RocksStore {
    RocksStore::follow(primary, own, TABLES, RocksOptions::default()).unwrap()
}

/// The same rows in every table.
pub(crate) fn put(
    store: &RocksStore,
    rows: impl IntoIterator<Item = (u32, Vec<u8>)>,
    durability: Durability,
) {
    let mut batch = Batch::new();
    for (key, value) in rows {
        for table in TABLES {
            batch.put(table, key.to_be_bytes().to_vec(), value.clone());
        }
    }
    store.commit(batch, durability).unwrap();
}

pub(crate) fn get(store: &RocksStore, table: &'static TableSpec, key: u32) -> Option<Vec<u8>> {
    store.snapshot().unwrap().get(table, &key.to_be_bytes()).unwrap()
}

/// A kilobyte that differs from row to row and does not compress.
pub(crate) fn noise(seed: u32) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(state.to_be_bytes()[0])
    };
    std::iter::repeat_n((), 1_000).scan(seed, |state, ()| step(state)).collect()
}

#[test]
fn rows_of_one_prefix_are_found_in_both_orders_among_files_with_other_prefixes() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let key = |prefix: u64, row: u8| [&prefix.to_be_bytes()[..], &[row]].concat();
    // Each file has rows of two neighbours only.
    for file in 0..4_u64 {
        let mut batch = Batch::new();
        for (prefix, row) in [(file, 0), (file, 1), (file + 1, 2), (file + 1, 3)] {
            batch.put(SCAN, key(prefix, row), Vec::new());
        }
        store.commit(batch, Durability::Buffered).unwrap();
        store.flush().unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    for prefix in 1..4_u64 {
        let (start, end) = (prefix.to_be_bytes(), (prefix + 1).to_be_bytes());
        let bounds = Bounds { start: &start, end: Some(&end) };
        let rows = |order| snapshot.scan(SCAN, bounds, order, 9).unwrap().into_iter().map(|(key, _)| key);
        let expected: Vec<_> = (0..4).map(|row| key(prefix, row)).collect();
        assert_eq!(rows(Order::Asc).collect::<Vec<_>>(), expected);
        assert_eq!(rows(Order::Desc).rev().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_flush_of_many_deleted_rows_is_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for is_deleted in [false, true] {
        let mut batch = Batch::new();
        for key in 0..2_000_u32 {
            let key = key.to_be_bytes().to_vec();
            if is_deleted {
                batch.delete(SCAN, key);
            } else {
                batch.put(SCAN, key, Vec::new());
            }
        }
        store.commit(batch, Durability::Buffered).unwrap();
        // The first file makes room for the second one to be compacted with.
        store.flush().unwrap();
    }
    let begun = Instant::now();
    let bytes =
        || store.table_sizes().unwrap().iter().find(|table| table.name == SCAN.name).unwrap().file_bytes;
    while bytes() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} bytes", bytes());
        thread::yield_now();
    }
}

#[test]
fn a_few_files_are_merged_only_after_merge_early() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for value in 0..6 {
        put(&store, [(1, noise(value))], Durability::Buffered);
        store.flush().unwrap();
    }
    let bytes = |of: &TableSpec| {
        store.table_sizes().unwrap().iter().find(|table| table.name == of.name).unwrap().file_bytes
    };
    let files = [bytes(POINT), bytes(SCAN)];
    assert!(files.iter().all(|bytes| *bytes > 6 * 1_000), "{files:?}");
    store.merge_early(|| false).unwrap();
    assert_eq!(files, [bytes(POINT), bytes(SCAN)], "nothing is wanted");
    store.merge_early(|| true).unwrap();
    let begun = Instant::now();
    while bytes(POINT) > files[0] / 2 || bytes(SCAN) > files[1] / 2 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} and {} bytes", bytes(POINT), bytes(SCAN));
        thread::yield_now();
    }
    assert_eq!(get(&store, SCAN, 1), Some(noise(5)));
}

#[test]
fn reopening_keeps_every_commit_whether_flushed_or_not() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let store = open(directory.path());
        for earlier in 0..round {
            for table in TABLES {
                assert_eq!(get(&store, table, earlier * 2), Some(noise(earlier)), "round {round}");
                assert_eq!(get(&store, table, earlier * 2 + 1), Some(noise(earlier)), "round {round}");
            }
        }
        put(&store, [(round * 2, noise(round))], Durability::Synced);
        store.flush().unwrap();
        put(&store, [(round * 2 + 1, noise(round))], Durability::Buffered);
        if round == 1 {
            store.compact().unwrap();
        }
    }
}

#[test]
fn a_table_can_be_added_to_an_existing_database() {
    let directory = tempfile::tempdir().unwrap();
    let batch = || {
        let mut batch = Batch::new();
        batch.put(POINT, b"k".to_vec(), b"v".to_vec());
        batch
    };
    {
        let store = try_open(directory.path(), &[POINT]).unwrap();
        store.commit(batch(), Durability::Buffered).unwrap();
        let unopened = store.snapshot().unwrap().get(SCAN, b"k");
        assert!(matches!(unopened, Err(Error::UnopenedTable { table: "scan" })), "{unopened:?}");
    }
    let store = open(directory.path());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(POINT, b"k").unwrap().unwrap(), b"v");
    assert_eq!(snapshot.get(SCAN, b"k").unwrap(), None);
}

#[test]
fn a_directory_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let second = try_open(directory.path(), TABLES).err().unwrap();
    assert!(matches!(&second, Error::InUse { path } if path == directory.path()), "{second}");
    drop(store);
    open(directory.path());
}

#[test]
fn a_directory_of_something_else_is_refused_untouched() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("thesis.tex"), "years of work").unwrap();
    let error = try_open(directory.path(), TABLES).err().unwrap();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let file = directory.path().join("thesis.tex");
    let error = try_open(&file, TABLES).err().unwrap();
    assert!(error.to_string().contains("thesis.tex"), "{error}");
}

#[test]
fn a_database_of_another_program_is_refused_untouched() {
    const THEIRS: &TableSpec = &TableSpec { name: "theirs", tag: 0x20, access: Access::Scan };
    let directory = tempfile::tempdir().unwrap();
    drop(try_open(directory.path(), &[THEIRS]).unwrap());
    let error = try_open(directory.path(), TABLES).err().unwrap();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");

    drop(try_open(directory.path(), &[THEIRS, SCAN]).unwrap());
    let error = try_open(directory.path(), TABLES).err().unwrap();
    assert!(matches!(&error, Error::UnknownTables { tables, .. } if tables == &["theirs"]), "{error}");
    drop(try_open(directory.path(), &[THEIRS, SCAN]).unwrap());
}

#[test]
fn a_database_whose_creation_was_interrupted_before_its_first_table_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    drop(try_open(directory.path(), &[]).unwrap());
    drop(try_open(directory.path(), TABLES).unwrap());
}

/// Flips a byte in the middle of every table file.
fn damage(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn damaged_bytes_are_an_error_and_neither_an_absence_nor_an_early_end() {
    const ROWS: u32 = 500;
    let directory = tempfile::tempdir().unwrap();
    {
        let store = open(directory.path());
        put(&store, (0..ROWS).map(|n| (n, noise(n))), Durability::Buffered);
        store.flush().unwrap();
    }
    damage(directory.path());
    let store = open(directory.path());
    let snapshot = store.snapshot().unwrap();
    for table in TABLES {
        for order in [Order::Asc, Order::Desc] {
            let error = snapshot.scan(table, Bounds::all(), order, usize::MAX).unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
        let keys: Vec<_> = (0..ROWS).map(|n| n.to_be_bytes().to_vec()).collect();
        let error = snapshot.multi_get(table, &keys).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        let answers = keys.iter().map(|key| snapshot.get(table, key)).collect::<Vec<_>>();
        assert!(answers.iter().any(|answer| matches!(answer, Err(Error::Damaged { .. }))));
        assert!(!answers.iter().any(|answer| matches!(answer, Ok(None))), "an absence in `{}`", table.name);
    }
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store"));
    put(&store, [(1, noise(1))], Durability::Buffered);
    let copy = directory.path().join("copy");
    store.checkpoint(&copy).unwrap();
    put(&store, [(1, noise(2))], Durability::Buffered);
    assert_eq!(get(&open(&copy), SCAN, 1), Some(noise(1)));
}

#[test]
fn sizes_are_given_for_every_table() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    put(&store, (0..100).map(|n| (n, noise(n))), Durability::Buffered);
    assert!(store.table_sizes().unwrap().iter().all(|size| size.memory_bytes >= 100_000));
    store.flush().unwrap();
    let sizes = store.table_sizes().unwrap();
    assert_eq!(sizes.iter().map(|size| size.name).collect::<Vec<_>>(), ["point", "append", "scan"]);
    for size in sizes {
        assert_eq!(size.estimated_rows, 100);
        assert!((90_000..200_000).contains(&size.file_bytes), "{size:?}");
    }
}

#[test]
fn statistics_count_what_the_database_writes_and_reads() {
    let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let owner = open(primary.path());
    put(&owner, (0..100).map(|key| (key, noise(key))), Durability::Synced);
    owner.flush().unwrap();
    let written = owner.statistics().unwrap();
    let bytes = 3 * 100 * 1_000;
    for (what, counted) in [
        ("committed", written.committed_bytes),
        ("log", written.log_bytes),
        ("flushed", written.flushed_bytes),
    ] {
        assert!((bytes..2 * bytes).contains(&counted), "{what}: {counted}");
    }
    assert!(!written.is_write_stopped && written.background_errors == 0, "{written:?}");

    get(&owner, SCAN, 1);
    let cold = owner.statistics().unwrap();
    assert!(cold.cache_misses > written.cache_misses && cold.cache_bytes > 0, "{cold:?}");
    get(&owner, SCAN, 1);
    let warm = owner.statistics().unwrap();
    assert!(warm.cache_hits > cold.cache_hits && warm.cache_misses == cold.cache_misses, "{warm:?}");
    let compacted = owner.compact().and_then(|()| owner.statistics()).unwrap();
    assert!(compacted.compaction_written_bytes >= warm.compaction_written_bytes, "{compacted:?}");

    // The secondaries of a follower share their counters.
    let follower = follow(primary.path(), own.path());
    get(&follower, SCAN, 1);
    let before = follower.statistics().unwrap();
    put(&owner, [(100, noise(100))], Durability::Synced);
    owner.flush().unwrap();
    follower.catch_up().unwrap();
    get(&follower, SCAN, 1);
    let after = follower.statistics().unwrap();
    assert!(
        before.cache_misses > 0
            && after.cache_hits + after.cache_misses > before.cache_hits + before.cache_misses
    );
}
