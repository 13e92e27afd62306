//! Transactions: they read their own writes, then the snapshot, and result in a batch or have no effect.

use store::{
    Access, Batch, Counts, Durability, MemStore, Store, Table, TableSpec, Txn,
    batch::Change,
    table::{read, read_many},
};

struct Balance;

impl Table for Balance {
    const SPEC: &'static TableSpec = &TableSpec { name: "balance", tag: 0x10, access: Access::Point };
    type Key = u8;
    type Value = u64;
}

struct Name;

impl Table for Name {
    const SPEC: &'static TableSpec = &TableSpec { name: "name", tag: 0x11, access: Access::Scan };
    type Key = u8;
    type Value = String;
}

/// A store with the balances 1 → 10 and 2 → 20.
fn store() -> MemStore {
    let store = MemStore::new();
    let mut batch = Batch::new();
    batch.put(Balance::SPEC, vec![1], vec![10]);
    batch.put(Balance::SPEC, vec![2], vec![20]);
    store.commit(batch, Durability::Buffered).unwrap();
    store
}

#[test]
fn a_read_returns_the_last_own_write_or_else_the_stored_value() {
    let (store, mut counts) = (store(), Counts::new(1));
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut counts);
    assert_eq!(txn.get::<Balance>(&1).unwrap(), Some(10));
    txn.put::<Balance>(&1, &11);
    txn.put::<Balance>(&1, &12);
    txn.delete::<Balance>(&2);
    txn.put::<Balance>(&3, &30);
    txn.put::<Name>(&1, &"one".to_owned());
    assert_eq!(txn.get::<Balance>(&1).unwrap(), Some(12));
    assert_eq!(txn.get::<Balance>(&2).unwrap(), None);
    assert_eq!(txn.get::<Name>(&1).unwrap().as_deref(), Some("one"));
    assert_eq!(
        read_many::<Balance>(&txn, &[4, 3, 2, 1, 3]).unwrap(),
        [None, Some(30), None, Some(12), Some(30)]
    );
    let (batch, pending) = txn.finish();
    store.commit(batch, Durability::Buffered).unwrap();
    counts.absorb(pending);
    assert_eq!(read::<Balance>(&*snapshot, &1).unwrap(), Some(10));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(read_many::<Balance>(&*snapshot, &[1, 2, 3]).unwrap(), [Some(12), None, Some(30)]);
    assert_eq!(read::<Name>(&*snapshot, &1).unwrap().as_deref(), Some("one"));
}

#[test]
fn many_reads_mix_own_writes_and_stored_rows_in_the_requested_order() {
    let (store, mut counts) = (store(), Counts::new(1));
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut counts);
    txn.put::<Balance>(&5, &50);
    assert_eq!(read_many::<Balance>(&txn, &[2, 5, 9, 1]).unwrap(), [Some(20), Some(50), None, Some(10)]);
}

#[test]
fn an_appended_row_is_committed_and_a_put_of_its_key_wins() {
    let (store, mut counts) = (store(), Counts::new(1));
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut counts);
    txn.put::<Name>(&2, &"put".to_owned());
    txn.put_unread::<Name>(&1, &"appended".to_owned());
    txn.put_unread::<Name>(&2, &"appended".to_owned());
    let (batch, _pending) = txn.finish();
    store.commit(batch, Durability::Buffered).unwrap();
    let snapshot = store.snapshot().unwrap();
    let names = read_many::<Name>(&*snapshot, &[1, 2]).unwrap();
    assert_eq!(names, [Some("appended".to_owned()), Some("put".to_owned())]);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let batch = || {
        let (store, mut counts) = (store(), Counts::new(1));
        let snapshot = store.snapshot().unwrap();
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for key in [9, 3, 200, 7, 0] {
            txn.put::<Balance>(&key, &u64::from(key));
            txn.put_unread::<Name>(&key, &key.to_string());
        }
        let (batch, _pending) = txn.finish();
        let rows = |writes: store::batch::SortedWrites| {
            let row = |(key, change): (&[u8], Change<'_>)| (key.to_vec(), change.apply(None));
            (writes.table().name, writes.iter().map(row).collect::<Vec<_>>())
        };
        batch.into_sorted().map(rows).collect::<Vec<_>>()
    };
    assert_eq!(batch(), batch());
    assert_eq!(batch()[0].1.iter().map(|(key, _)| key[0]).collect::<Vec<_>>(), [0, 3, 7, 9, 200]);
}

#[test]
fn the_size_of_the_batch_is_known_before_it_is_made() {
    let (store, mut counts) = (store(), Counts::new(1));
    let snapshot = store.snapshot().unwrap();
    let mut txn = Txn::new(&*snapshot, &mut counts);
    assert_eq!(txn.bytes(), 0);
    txn.put_unread::<Name>(&1, &"12345".to_owned());
    txn.put::<Name>(&2, &"123".to_owned());
    txn.delete::<Name>(&3);
    assert_eq!(txn.bytes(), 6 + 4 + 1);
    assert_eq!(txn.finish().0.bytes(), 6 + 4 + 1);
}
