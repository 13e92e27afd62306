//! A flipped byte in a table file: reported, without effect on other rows, and removed with its table on demand.

use std::{collections::BTreeMap, fs, path::Path};

use store::{
    Access, Batch, Bounds, CorruptFile, Durability, Error, Order, RocksOptions, RocksStore, Store, TableSpec,
};

const POINT: &TableSpec = &TableSpec { name: "point", tag: 0x10, access: Access::Point };
const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
const TABLES: &[&TableSpec] = &[POINT, APPEND, SCAN];

const ROWS: u32 = 3000;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(path: &Path) -> Result<RocksStore, Error> {
    RocksStore::open(path, TABLES, RocksOptions::default())
}

/// A row that does not compress.
fn row(n: u32) -> (Vec<u8>, Vec<u8>) {
    let mut state = n;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (n.to_be_bytes().to_vec(), (0..100).map(|_| noise()).collect())
}

/// A database with one file per table, and the names of these files.
fn whole(path: &Path) -> Vec<String> {
    let store = open(path).unwrap();
    let mut batch = Batch::new();
    for (key, value) in (0..ROWS).map(row) {
        for table in TABLES {
            batch.put(table, key.clone(), value.clone());
        }
    }
    store.commit(batch, Durability::Synced).unwrap();
    store.compact().unwrap();
    drop(store);
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "sst")).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x10;
    fs::write(file, bytes).unwrap();
}

/// Offsets in a file: in its rows, and close together in its last part, which has filter, index and footer.
fn places(file: &Path) -> Vec<usize> {
    let len = usize::try_from(fs::metadata(file).unwrap().len()).unwrap();
    let rows = [0, 1, 2, 3, 4].map(|fifth| len / 5 * fifth + 7);
    let rest = [6000, 3000, 1800, 1400, 1000, 800, 500, 200, 60, 45, 20, 3].map(|end| len - end);
    rows.into_iter().chain(rest).collect()
}

fn rows(store: &RocksStore, table: &'static TableSpec) -> Rows {
    let rows = store.snapshot().unwrap().scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    rows.into_iter().collect()
}

/// Every other row is readable, and no corrupt row is reported as absent. Returns the number of unreadable rows.
fn check_reads(store: &RocksStore, corrupt: &[CorruptFile], file: &str, at: usize) -> usize {
    let (snapshot, mut unreadable) = (store.snapshot().unwrap(), 0);
    for table in TABLES {
        for (key, value) in (0..ROWS).step_by(7).map(row) {
            match snapshot.get(table, &key) {
                Ok(found) => {
                    assert!(found.as_ref() == Some(&value), "{file} at {at}: {found:?} in {}", table.name);
                }
                Err(error) => {
                    unreadable += 1;
                    assert!(corrupt.iter().any(|corrupt| corrupt.table == table.name), "{error}");
                    assert!(
                        matches!(&error, Error::Damaged { table: Some(name), file: Some(named), .. }
                            if *name == table.name && named == file),
                        "{error}"
                    );
                }
            }
        }
    }
    unreadable
}

#[test]
fn a_flipped_byte_anywhere_is_reported_and_is_removed_with_its_table() {
    let directory = tempfile::tempdir().unwrap();
    let sound = directory.path().join("sound");
    let files = whole(&sound);
    assert_eq!(files.len(), TABLES.len());
    // In blocks of rows, and in files that do not open with all checks.
    let mut found = [0, 0];
    for (n, file) in files.iter().enumerate() {
        for at in places(&sound.join(file)) {
            let path = directory.path().join(format!("{n}-{at}"));
            copy(&sound, &path);
            flip(&path.join(file), at);
            let corrupt = look(&path, file, at);
            let refused = open(&path).err();
            let named =
                |error: &Error| matches!(error, Error::Damaged { file: Some(named), .. } if named == file);
            assert!(refused.as_ref().is_none_or(named), "{file} at {at}: {refused:?}");
            assert!(refused.is_none() || !corrupt.is_empty(), "{file} at {at}: {refused:?}");
            found[usize::from(refused.is_some())] += corrupt.len();

            let kept =
                TABLES.iter().copied().find(|table| corrupt.iter().all(|file| file.table != table.name));
            let kept = kept.unwrap();
            let store = RocksStore::open_damaged(&path, TABLES, RocksOptions::default()).unwrap();
            drop(store.recreate_tables(&[kept], RocksOptions::default()).unwrap());
            check_recreated(&path, kept, &format!("{file} at {at}"));
            fs::remove_dir_all(path).unwrap();
        }
    }
    assert!(found[0] >= 12 && found[1] > 0, "{found:?}");
}

/// The reported files. A follower opens and serves the rest, or fails because of the same file.
fn look(path: &Path, file: &str, at: usize) -> Vec<CorruptFile> {
    let own = tempfile::tempdir().unwrap();
    let corrupt = RocksStore::find_corruption(path, TABLES, RocksOptions::default()).unwrap();
    assert!(
        corrupt.len() < 2 && corrupt.iter().all(|found| found.file.as_deref() == Some(file)),
        "{corrupt:?}"
    );
    match RocksStore::follow(path, own.path(), TABLES, RocksOptions::default()) {
        Ok(follower) => {
            let unreadable = check_reads(&follower, &corrupt, file, at);
            let len = usize::try_from(fs::metadata(path.join(file)).unwrap().len()).unwrap();
            // A block has a hundred rows or more; a part of the index leads to many blocks.
            assert!(at > len / 5 * 4 + 7 || unreadable < 300 / 7, "{file} at {at}: {unreadable}");
        }
        Err(error) => assert!(
            matches!(&error, Error::Damaged { file: Some(named), .. } if named == file)
                && !corrupt.is_empty(),
            "{file} at {at}: {error}"
        ),
    }
    corrupt
}

/// All rows of the kept table, no others, and a usable database.
fn check_recreated(path: &Path, kept: &TableSpec, what: &str) {
    let store = open(path).unwrap();
    assert_eq!(RocksStore::find_corruption(path, TABLES, RocksOptions::default()).unwrap(), [], "{what}");
    for table in TABLES {
        let expected: Rows = if *table == kept { (0..ROWS).map(row).collect() } else { Rows::new() };
        assert!(rows(&store, table) == expected, "{what}: rows of {}", table.name);
    }
    let mut batch = Batch::new();
    for table in TABLES {
        batch.put(table, b"more".to_vec(), b"row".to_vec());
    }
    store.commit(batch, Durability::Synced).unwrap();
    store.compact().unwrap();
    drop(store);
    let store = open(path).unwrap();
    assert_eq!(rows(&store, SCAN).get(b"more".as_slice()).unwrap(), b"row");
}

#[test]
fn one_corrupt_file_does_not_hide_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = open(&path).unwrap();
    for part in 0..3 {
        let mut batch = Batch::new();
        for (key, value) in (part * 1000..(part + 1) * 1000).map(row) {
            batch.put(SCAN, key, value);
        }
        store.commit(batch, Durability::Synced).unwrap();
        store.flush().unwrap();
    }
    drop(store);
    let mut files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "sst"));
    files.sort();
    for file in [&files[0], &files[2]] {
        flip(file, 9);
    }
    let found = RocksStore::find_corruption(&path, TABLES, RocksOptions::default()).unwrap();
    let corrupt = |found: &CorruptFile| {
        let named = path.join(found.file.as_ref().unwrap());
        found.table == SCAN.name && (named == files[0] || named == files[2])
    };
    assert!(!found.is_empty() && found.iter().all(corrupt), "{found:?}");
    // After a manual repair, the next corrupt file is reported.
    let first = path.join(found[0].file.as_ref().unwrap());
    flip(&first, 9);
    let next = RocksStore::find_corruption(&path, TABLES, RocksOptions::default()).unwrap();
    assert!(next.len() == 1 && corrupt(&next[0]) && next[0].file != found[0].file, "{next:?}");
}

#[test]
fn a_corrupt_file_is_reported_with_its_table() {
    let file =
        CorruptFile { table: "scan", file: Some("000012.sst".to_owned()), reason: "a bad block".to_owned() };
    assert_eq!(file.to_string(), "unreadable rows: table scan, file 000012.sst: a bad block");
    let unknown = CorruptFile { file: None, ..file };
    assert_eq!(unknown.to_string(), "unreadable rows: table scan, file of an unknown name: a bad block");
}

/// Commits a row to each table and flushes them to files, which are compacted from time to time.
fn go_on(store: &RocksStore, round: u32) -> Result<(), Error> {
    let mut batch = Batch::new();
    let (key, value) = row(ROWS / 40 * (round % 40) + 1);
    for table in TABLES {
        batch.put(table, key.clone(), value.clone());
    }
    store.commit(batch, Durability::Buffered)?;
    store.flush()
}

/// A database of four files per table, one of which has a damaged block of rows.
fn damaged(path: &Path) -> String {
    let file = whole(path).remove(0);
    let file_path = path.join(&file);
    flip(&file_path, 9);
    file
}

#[test]
fn a_table_known_to_be_damaged_accepts_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    damaged(&path);
    {
        let store = open(&path).unwrap();
        // A read detects the damage.
        let snapshot = store.snapshot().unwrap();
        for table in TABLES {
            drop(snapshot.scan(table, Bounds::all(), Order::Asc, usize::MAX));
        }
        drop(snapshot);
        (0..60).for_each(|round| go_on(&store, round).unwrap());
    }
    let store = open(&path).unwrap();
    (0..20).for_each(|round| go_on(&store, round).unwrap());
    drop(store);
    assert!(path.join("DAMAGED").exists());
    let store = RocksStore::open_damaged(&path, TABLES, RocksOptions::default()).unwrap();
    drop(store.recreate_tables(&[], RocksOptions::default()).unwrap());
    assert!(!path.join("DAMAGED").exists());
    open(&path).unwrap().compact().unwrap();
}

#[test]
fn damage_that_a_compaction_finds_first_stops_writes_until_the_next_start_only() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let file = damaged(&path);
    let store = open(&path).unwrap();
    (0..2).for_each(|round| go_on(&store, round).unwrap());
    store.compact().unwrap();
    let error = (2..4).find_map(|round| go_on(&store, round).err()).expect("a refused write");
    assert!(matches!(&error, Error::Damaged { file: Some(named), .. } if *named == file), "{error}");
    drop(store);
    let store = open(&path).unwrap();
    (0..60).for_each(|round| go_on(&store, round).unwrap());
}
