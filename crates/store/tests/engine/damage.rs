//! A flipped byte in a table file: named, passed by for all rows elsewhere, and taken out of the table on demand.

use std::{collections::BTreeMap, fs, path::Path};

use store::{
    Access, Batch, Bounds, CorruptRange, Durability, Error, Order, RocksOptions, RocksStore, Store, TableSpec,
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

/// A database of which every table is one file, and those files.
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

/// Places in a file: in its rows, and close together in its last part, where filter, index and footer are.
fn places(file: &Path) -> Vec<usize> {
    let len = usize::try_from(fs::metadata(file).unwrap().len()).unwrap();
    let rows = [0, 1, 2, 3, 4].map(|fifth| len / 5 * fifth + 7);
    let rest = [6000, 3000, 1800, 1400, 1000, 800, 500, 200, 60, 45, 20, 3].map(|end| len - end);
    rows.into_iter().chain(rest).collect()
}

fn is_lost(damage: &[CorruptRange], table: &TableSpec, key: &[u8]) -> bool {
    damage.iter().any(|lost| {
        lost.table == table.name
            && lost.after.as_deref().is_none_or(|after| key > after)
            && lost.before.as_deref().is_none_or(|before| key < before)
    })
}

fn rows(store: &RocksStore, table: &'static TableSpec) -> Rows {
    let rows = store.snapshot().unwrap().scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    rows.into_iter().collect()
}

/// Every row elsewhere is there, and no damaged one is taken for absent.
fn check_reads(store: &RocksStore, damage: &[CorruptRange], file: &str, at: usize) {
    let snapshot = store.snapshot().unwrap();
    for table in TABLES {
        for (key, value) in (0..ROWS).step_by(7).map(row) {
            match snapshot.get(table, &key) {
                Ok(found) => assert!(
                    found.as_ref() == Some(&value),
                    "{file} at {at}: {found:?} in {}, {damage:?}",
                    table.name
                ),
                Err(error) => {
                    assert!(is_lost(damage, table, &key), "{error}");
                    assert!(
                        matches!(&error, Error::Damaged { table: Some(name), file: Some(named), .. }
                            if *name == table.name && named == file),
                        "{error}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_flipped_byte_anywhere_is_named_and_salvaged_with_every_row_that_could_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let sound = directory.path().join("sound");
    let files = whole(&sound);
    assert_eq!(files.len(), TABLES.len());
    let mut stretches = [0, 0];
    for (n, file) in files.iter().enumerate() {
        for at in places(&sound.join(file)) {
            let damaged = directory.path().join(format!("{n}-{at}"));
            copy(&sound, &damaged);
            flip(&damaged.join(file), at);
            let damage = look(&damaged, file, at);
            let refused = open(&damaged).err();
            let named =
                |error: &Error| matches!(error, Error::Damaged { file: Some(named), .. } if named == file);
            assert!(refused.as_ref().is_none_or(named), "{file} at {at}: {refused:?}");
            stretches[usize::from(refused.is_some())] += damage.len();
            // A block has a hundred rows and more; only a file that does not open is lost whole.
            let is_block = refused.is_none() && damage.iter().any(|lost| lost.after.is_some());
            let lost = (0..ROWS).filter(|n| TABLES.iter().any(|table| is_lost(&damage, table, &row(*n).0)));
            let lost = lost.count();
            assert!(!is_block || lost < 300, "{file} at {at}: {lost} rows, {damage:?}");

            assert_eq!(RocksStore::salvage(&damaged, TABLES, RocksOptions::default()).unwrap(), damage);
            check_salvaged(&damaged, &damage, &format!("{file} at {at}"));
            fs::remove_dir_all(damaged).unwrap();
        }
    }
    // Single blocks, and whole files whose index or footer is gone.
    assert!(stretches[0] >= 12, "{stretches:?}");
}

/// What is found. A follower opens and serves the rest, or refuses for the same file.
fn look(damaged: &Path, file: &str, at: usize) -> Vec<CorruptRange> {
    let own = tempfile::tempdir().unwrap();
    let damage = RocksStore::find_corruption(damaged, TABLES, RocksOptions::default()).unwrap();
    assert!(damage.iter().all(|lost| lost.file.as_deref() == Some(file)), "{damage:?}");
    match RocksStore::follow(damaged, own.path(), TABLES, RocksOptions::default()) {
        Ok(follower) => check_reads(&follower, &damage, file, at),
        Err(error) => assert!(
            matches!(&error, Error::Damaged { file: Some(named), .. } if named == file) && !damage.is_empty(),
            "{file} at {at}: {error}"
        ),
    }
    damage
}

/// The rows outside of `damage`, as they were, and nothing else; and a database that works.
fn check_salvaged(path: &Path, damage: &[CorruptRange], what: &str) {
    let store = open(path).unwrap();
    assert_eq!(RocksStore::find_corruption(path, TABLES, RocksOptions::default()).unwrap(), [], "{what}");
    for table in TABLES {
        let mut expected: Rows = (0..ROWS).map(row).collect();
        expected.retain(|key, _| !is_lost(damage, table, key));
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
fn damage_says_which_rows_of_which_file_cannot_be_read() {
    let whole = CorruptRange {
        table: "scan",
        file: Some("000012.sst".to_owned()),
        after: Some(vec![0x0a, 1]),
        before: Some(vec![0xff]),
        reason: "a bad block".to_owned(),
    };
    let said = "unreadable rows: table scan, file 000012.sst, keys between 0a01 and ff: a bad block";
    assert_eq!(whole.to_string(), said);
    let unknown = CorruptRange { file: None, after: None, before: None, ..whole };
    let said = "unreadable rows: table scan, file of an unknown name, keys between the first and the last: a bad block";
    assert_eq!(unknown.to_string(), said);
}

/// Commits a row to each table and makes files of them, which are compacted from time to time.
fn go_on(store: &RocksStore, round: u32) -> Result<(), Error> {
    let mut batch = Batch::new();
    let (key, value) = row(ROWS / 40 * (round % 40) + 1);
    for table in TABLES {
        batch.put(table, key.clone(), value.clone());
    }
    store.commit(batch, Durability::Buffered)?;
    store.flush()
}

/// A database of four files a table, one of which has a damaged block of rows.
fn damaged(path: &Path) -> String {
    let file = whole(path).remove(0);
    let file_path = path.join(&file);
    flip(&file_path, 9);
    file
}

#[test]
fn a_table_that_is_known_to_be_damaged_is_written_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    damaged(&path);
    {
        let store = open(&path).unwrap();
        // Somebody reads the damage.
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
    assert_ne!(RocksStore::salvage(&path, TABLES, RocksOptions::default()).unwrap(), []);
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
