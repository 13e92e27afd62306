//! Reverted transactions: every row has its prior value again, and a record matches no other state.

use proptest::{collection::vec, prelude::*};
use store::{
    Access, Batch, Bounds, COUNT, Counts, Durability, List, MemStore, Order, RANK, Ranked, RocksOptions,
    RocksStore, Row, Store, Table, TableSpec, Txn, UndoRecord,
};

struct Balance;

impl Table for Balance {
    const SPEC: &'static TableSpec = &TableSpec { name: "balance", tag: 0x10, access: Access::Point };
    type Key = u8;
    type Value = u64;
}

struct Payment;

impl Table for Payment {
    const SPEC: &'static TableSpec = &TableSpec { name: "payment", tag: 0x11, access: Access::Append };
    type Key = u64;
    type Value = String;
}

struct Note;

impl Table for Note {
    const SPEC: &'static TableSpec = &TableSpec { name: "note", tag: 0x14, access: Access::Scan };
    type Key = u8;
    type Value = String;
}

struct Payments;

impl List for Payments {
    const SPEC: &'static TableSpec = &TableSpec { name: "payments", tag: 0x12, access: Access::Scan };
    type Owner = u8;
}

/// A small skip list tests few levels: here every second item is promoted.
struct Richest;

impl Table for Richest {
    const SPEC: &'static TableSpec = &TableSpec { name: "richest", tag: 0x13, access: Access::Ranked };
    type Key = (u8, u8);
    type Value = u64;
}

impl Ranked for Richest {
    type Owner = u8;
    type Item = u8;
    const PROMOTION_BITS: u32 = 1;
}

const TABLES: &[&TableSpec] =
    &[COUNT, RANK, Balance::SPEC, Payment::SPEC, <Payments as List>::SPEC, Richest::SPEC, Note::SPEC];

#[derive(Debug, Clone)]
enum Write {
    Put(u8, u64),
    Delete(u8),
    /// The next payment, and its ordinal in an owner's list.
    Pay(u8, String),
    /// A payment that is also put as a separate row.
    PayTwice(String),
    /// Bytes at the end of a row.
    Append(u8, String),
    Insert(u8, u8, u64),
    Remove(u8, u8),
}

fn write() -> impl Strategy<Value = Write> {
    // Few and similar, so that writes overlap.
    let (key, item, number) = (0_u8..4, 0_u8..12, 0_u64..3);
    prop_oneof![
        (key.clone(), number.clone()).prop_map(|(key, value)| Write::Put(key, value)),
        key.clone().prop_map(Write::Delete),
        (key.clone(), "[a-b]{0,20}").prop_map(|(owner, text)| Write::Pay(owner, text)),
        "[a-b]{0,3}".prop_map(Write::PayTwice),
        (key.clone(), "[a-b]{0,3}").prop_map(|(key, text)| Write::Append(key, text)),
        (key.clone(), item.clone(), number)
            .prop_map(|(owner, item, value)| Write::Insert(owner, item, value)),
        (key, item).prop_map(|(owner, item)| Write::Remove(owner, item)),
    ]
}

/// Applies `writes`; payments are numbered from `seq` on.
fn apply(txn: &mut Txn<'_>, writes: &[Write], seq: &mut u64) {
    for write in writes {
        match write {
            Write::Put(key, value) => txn.put::<Balance>(key, value),
            Write::Delete(key) => txn.delete::<Balance>(key),
            Write::Pay(owner, text) => {
                *seq += 1;
                txn.put_unread::<Payment>(seq, text);
                txn.push::<Payments>(owner, *seq).unwrap();
            }
            Write::Append(key, text) => txn.append_unread::<Note>(key, text),
            Write::PayTwice(text) => {
                *seq += 1;
                txn.put_unread::<Payment>(seq, &"appended".to_owned());
                txn.put::<Payment>(seq, text);
            }
            Write::Insert(owner, item, value) => {
                txn.insert::<Richest>(owner, item, value).unwrap();
            }
            Write::Remove(owner, item) => {
                txn.remove::<Richest>(owner, item).unwrap();
            }
        }
    }
}

fn rows(store: &dyn Store) -> Vec<(&'static str, Vec<Row>)> {
    let snapshot = store.snapshot().unwrap();
    let rows =
        |spec: &&'static TableSpec| snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    TABLES.iter().map(|spec| (spec.name, rows(spec))).collect()
}

/// Commits `writes` and returns the undo record after a round trip through its encoding.
fn commit(store: &dyn Store, counts: &mut Counts, writes: &[Write], seq: &mut u64) -> UndoRecord {
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, counts);
    apply(&mut txn, writes, seq);
    let (batch, pending, before) = txn.finish_with_undo(&[]).unwrap();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
    counts.absorb(pending);
    let stored = before.encode();
    assert_eq!(UndoRecord::decode(&stored, TABLES).as_ref(), Some(&before));
    assert_eq!(UndoRecord::decode(&stored[..stored.len() - 1], TABLES), None);
    before
}

fn take_back(store: &dyn Store, before: UndoRecord) {
    let mut batch = Batch::new();
    before.revert_into(&*store.snapshot().unwrap(), &mut batch).unwrap();
    store.commit(batch, Durability::Buffered).unwrap();
}

/// Commits each of `txns`, reverts all of them, the last first, and compares every row with its prior value.
fn there_and_back(store: &dyn Store, txns: &[Vec<Write>]) {
    let (mut counts, mut seq) = (Counts::new(2), 0);
    let mut states = Vec::new();
    for writes in txns {
        let was = rows(store);
        let before = commit(store, &mut counts, writes, &mut seq);
        assert_eq!(before.is_empty(), was == rows(store));
        states.push((was, before));
    }
    while let Some((was, before)) = states.pop() {
        assert!(before.matches(&*store.snapshot().unwrap()).unwrap());
        let changed = !before.is_empty();
        take_back(store, before.clone());
        assert_eq!(rows(store), was);
        assert_eq!(before.matches(&*store.snapshot().unwrap()).unwrap(), !changed, "undone twice");
    }
}

/// A table, a key, and the value; `None` if there is no row.
type OtherRow = (&'static TableSpec, Vec<u8>, Option<Vec<u8>>);

proptest! {
    #[test]
    fn reverted_transactions_leave_no_trace(txns in vec(vec(write(), 0..30), 1..8)) {
        there_and_back(&MemStore::new(), &txns);
    }

    #[test]
    fn a_reverted_and_repeated_transaction_applies_once(first in vec(write(), 0..30), other in vec(write(), 1..30), then in vec(write(), 1..30)) {
        let (store, undisturbed) = (MemStore::new(), MemStore::new());
        let (mut counts, mut seq) = (Counts::new(8), 0);
        commit(&store, &mut counts, &first, &mut seq);
        let at = seq;
        let before = commit(&store, &mut counts, &other, &mut seq);
        take_back(&store, before);
        // The cached lengths are outdated, so the cache starts empty.
        commit(&store, &mut Counts::new(8), &then, &mut at.clone());
        let mut seq = 0;
        for writes in [&first, &then] {
            commit(&undisturbed, &mut Counts::new(8), writes, &mut seq);
        }
        prop_assert_eq!(rows(&store), rows(&undisturbed));
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in vec(any::<u8>(), 0..60), txn in vec(write(), 0..20), at in any::<prop::sample::Index>()) {
        UndoRecord::decode(&bytes, TABLES);
        let mut stored = commit(&MemStore::new(), &mut Counts::new(1), &txn, &mut 0).encode();
        let at = at.index(stored.len());
        stored[at] ^= 1 << (bytes.len() % 8);
        UndoRecord::decode(&stored, TABLES);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn on_disk_it_is_the_same(txns in vec(vec(write(), 0..30), 1..6)) {
        let dir = tempfile::tempdir().unwrap();
        there_and_back(&RocksStore::open(dir.path(), TABLES, RocksOptions::default()).unwrap(), &txns);
    }
}

#[test]
fn a_record_matches_no_state_that_differs_in_a_written_row() {
    let pay = Write::Pay(1, "a".to_owned());
    let writes = [Write::Put(1, 7), Write::Delete(2), pay, Write::Insert(3, 4, 5)];
    let others: [OtherRow; 6] = [
        (Balance::SPEC, vec![1], Some(vec![8])),
        (Balance::SPEC, vec![1], None),
        (Balance::SPEC, vec![2], Some(vec![0])),
        (Payment::SPEC, 2_u64.to_be_bytes().to_vec(), None),
        (COUNT, vec![0x12, 1], Some(vec![3])),
        (RANK, vec![0x13, 3, 0], None),
    ];
    for (table, key, value) in others {
        let (store, mut counts, mut seq) = (MemStore::new(), Counts::new(1), 0);
        commit(&store, &mut counts, &[Write::Put(2, 1), Write::Pay(1, String::new())], &mut seq);
        let before = commit(&store, &mut counts, &writes, &mut seq);
        assert!(before.matches(&*store.snapshot().unwrap()).unwrap());
        let mut batch = Batch::new();
        match value {
            Some(value) => batch.put(table, key.clone(), value),
            None => batch.delete(table, key.clone()),
        }
        store.commit(batch, Durability::Buffered).unwrap();
        assert!(!before.matches(&*store.snapshot().unwrap()).unwrap(), "{} {key:?}", table.name);
    }
}

#[test]
fn excluded_rows_are_not_reverted() {
    let (store, mut counts) = (MemStore::new(), Counts::new(1));
    let mut before = commit(&store, &mut counts, &[Write::Put(1, 7), Write::Insert(1, 1, 1)], &mut 0);
    assert!(before.exclude_table(Balance::SPEC));
    assert!(!before.exclude_table(Payment::SPEC));
    take_back(&store, before);
    let left: Vec<_> = rows(&store).into_iter().filter(|(_, rows)| !rows.is_empty()).collect();
    assert_eq!(left, [("balance", vec![(vec![1], vec![7])])]);
}

#[test]
fn the_stored_bytes_do_not_change() {
    let (store, mut counts, mut seq) = (MemStore::new(), Counts::new(1), 0);
    commit(&store, &mut counts, &[Write::Put(1, 300)], &mut seq);
    let pay = |owner| Write::Pay(owner, "x".to_owned());
    let before =
        commit(&store, &mut counts, &[Write::Delete(1), Write::Put(2, 5), pay(9), pay(8), pay(9)], &mut seq);
    let left = before.encode()[..8].to_vec();
    let expected = [
        &left[..],
        // Two tables: payments 1, 2 and 3, which were absent, ...
        &[2, 0x11, 3, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 7, 1, 2, 0, 7, 1, 3, 0],
        // ... and balances: 1 was 300, 2 was absent.
        &[0x10, 2, 0, 1, 1, 3, 0xac, 2, 0, 1, 2, 0],
        // One list: owner 8 has one entry, owner 9 two, both new.
        &[1, 0x12, 2, 0, 1, 8, 0, 1, 0, 1, 9, 0, 2],
    ];
    assert_eq!(before.encode(), expected.concat());
}
