use std::collections::BTreeMap;

use super::*;
use crate::{
    batch::Batch,
    engine::{Bounds, Durability, Order, Store as _},
    spec::Access,
};

const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
const TABLES: &[&TableSpec] = &[APPEND, SCAN];

const ROWS: u32 = 140;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Rows of a megabyte, as many as need three files.
fn made(path: &Path) {
    let store = opened(path).unwrap();
    for n in 0..ROWS {
        let mut batch = Batch::new();
        batch.put(APPEND, n.to_be_bytes().to_vec(), n.to_be_bytes().repeat(1 << 18));
        batch.put(SCAN, n.to_be_bytes().to_vec(), Vec::new());
        store.commit(batch, Durability::Buffered).unwrap();
    }
    store.compact().unwrap();
}

fn opened(path: &Path) -> Result<RocksStore, Error> {
    RocksStore::open(path, TABLES, RocksOptions::default())
}

fn rows(path: &Path, table: &'static TableSpec) -> Rows {
    let store = opened(path).unwrap();
    let rows = store.snapshot().unwrap().scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    rows.into_iter().collect()
}

/// Damages a row of the table of large rows.
fn flip(path: &Path) {
    let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let tables = files.filter(|file| file.extension().is_some_and(|kind| kind == "sst"));
    let largest = tables.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
    let mut bytes = fs::read(&largest).unwrap();
    bytes[100] ^= 1;
    fs::write(largest, bytes).unwrap();
}

/// A salvage up to where its copy is complete.
fn salvaging(path: &Path) -> Handle {
    flip(path);
    let handle = open(path, TABLES, RocksOptions::default()).unwrap();
    assert_eq!(rewrite(&handle.db, path, APPEND).unwrap().len(), 1);
    assert_eq!(names(&state_dir(path, APPEND, State::Ready)).unwrap().len(), 4, "three files and their list");
    handle
}

/// Every row but one that was damaged, and nothing left to do.
fn check(path: &Path) {
    let rows_left = rows(path, APPEND);
    assert_eq!(rows_left.len() + 1, usize::try_from(ROWS).unwrap());
    assert!(rows_left.iter().all(|(key, value)| *value == key.repeat(1 << 18)));
    assert_eq!(rows(path, SCAN).len(), usize::try_from(ROWS).unwrap());
    assert!(!path.join(DIRECTORY).exists());
    assert_eq!(RocksStore::find_corruption(path, TABLES, RocksOptions::default()).unwrap(), []);
}

#[test]
fn a_salvage_that_ends_before_the_table_is_replaced_is_finished_by_the_next_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    made(path);
    let mut handle = salvaging(path);
    fs::create_dir_all(state_dir(path, SCAN, State::Part)).unwrap();
    fs::write(path.join("DAMAGED"), "append\nscan\n").unwrap();
    // At its worst: the table is gone, and the copy is not there yet.
    handle.db.drop_cf(APPEND.name).unwrap();
    drop(handle);
    check(path);
    assert_eq!(fs::read_to_string(path.join("DAMAGED")).unwrap(), "scan\n");
}

#[test]
fn a_salvage_that_ends_while_it_deletes_its_copy_has_replaced_the_table() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    made(path);
    let mut handle = salvaging(path);
    install(&mut handle.db, path, APPEND).unwrap();
    drop(handle);
    // It is deleted file by file, and under its old name what is left would be taken for all of it.
    assert_eq!(finished_copies(path).unwrap(), BTreeSet::new());
    fs::remove_file(state_dir(path, APPEND, State::Done).join("000001.sst")).unwrap();
    check(path);
}

#[test]
fn a_copy_that_lacks_a_file_is_neither_put_in_place_nor_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    made(path);
    drop(salvaging(path));
    let ready = state_dir(path, APPEND, State::Ready);
    let (file, elsewhere) = (ready.join("000001.sst"), path.join("elsewhere"));
    for missing in [file, ready.join(MANIFEST)] {
        fs::rename(&missing, &elsewhere).unwrap();
        for refused in [
            opened(path).err().unwrap(),
            RocksStore::salvage(path, TABLES, RocksOptions::default()).unwrap_err(),
        ] {
            let refused = refused.to_string();
            assert!(refused.contains("table `append`") && refused.contains("append.ready"), "{refused}");
        }
        fs::rename(&elsewhere, &missing).unwrap();
    }
    // Also a table that is not asked for is not lost.
    let unknown = RocksStore::open(path, &[SCAN], RocksOptions::default()).err().unwrap();
    assert!(matches!(unknown, Error::UnknownTables { .. }), "{unknown}");
    check(path);
}
