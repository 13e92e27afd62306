//! The engine contract as tests, for any engine: `engine_tests!(MODULE ENGINE)` checks them all. Also included by the tests of
//! crates/slate.

use std::thread;

use store::{Access, Batch, Bounds, Durability, Order, Row, Store, TableSpec, for_each_row, prefix_end};

pub(crate) const POINT: &TableSpec = &TableSpec { name: "point", tag: 0x10, access: Access::Point };
pub(crate) const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
pub(crate) const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
pub(crate) const TABLES: &[&TableSpec] = &[POINT, APPEND, SCAN];

/// An engine to write to and one to read from; they may be the same.
pub(crate) trait Engine {
    fn new() -> Self;
    fn writer(&self) -> &dyn Store;
    fn reader(&self) -> &dyn Store;
    /// Makes the writes visible to new snapshots of the reader.
    fn publish(&self) {}

    fn commit(&self, batch: Batch) {
        self.writer().commit(batch, Durability::Buffered).unwrap();
        self.publish();
    }

    fn put(&self, table: &'static TableSpec, rows: &[(&[u8], &[u8])]) {
        let mut batch = Batch::new();
        for (key, value) in rows {
            batch.put(table, key.to_vec(), value.to_vec());
        }
        self.commit(batch);
    }

    /// Rows with these keys and no values.
    fn put_keys(&self, table: &'static TableSpec, keys: &[&[u8]]) {
        self.put(table, &keys.iter().map(|&key| (key, &[][..])).collect::<Vec<_>>());
    }

    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Option<Vec<u8>> {
        let snapshot = self.reader().snapshot().unwrap();
        let (value, mut visited) = (snapshot.get(table, key).unwrap(), None);
        snapshot.get_with(table, key, &mut |value| visited = Some(value.to_vec())).unwrap();
        assert_eq!(visited, value);
        value
    }

    fn scan(&self, table: &'static TableSpec, bounds: Bounds<'_>, order: Order, limit: usize) -> Vec<Row> {
        self.reader().snapshot().unwrap().scan(table, bounds, order, limit).unwrap()
    }

    fn keys(&self, table: &'static TableSpec, bounds: Bounds<'_>, order: Order) -> Vec<Vec<u8>> {
        self.scan(table, bounds, order, usize::MAX).into_iter().map(|(key, _)| key).collect()
    }
}

pub(crate) fn keys_compare_as_unsigned_bytes(engine: &impl Engine) {
    engine.put_keys(SCAN, &[&[0x80], &[0x7f], &[0xff], &[0], &[0, 0], &[0x7f, 0xff]]);
    let keys = [vec![0], vec![0, 0], vec![0x7f], vec![0x7f, 0xff], vec![0x80], vec![0xff]];
    assert_eq!(engine.keys(SCAN, Bounds::all(), Order::Asc), keys);
}

pub(crate) fn bounds_include_their_start_and_exclude_their_end(engine: &impl Engine) {
    engine.put_keys(SCAN, &[b"a", b"b", b"b1", b"c", b"d"]);
    let bounds = Bounds { start: b"b", end: Some(b"d") };
    assert_eq!(engine.keys(SCAN, bounds, Order::Asc), [&b"b"[..], b"b1", b"c"]);
    assert_eq!(engine.keys(SCAN, bounds, Order::Desc), [&b"c"[..], b"b1", b"b"]);
    let between_keys = Bounds { start: b"b0", end: Some(b"cc") };
    assert_eq!(engine.keys(SCAN, between_keys, Order::Asc), [&b"b1"[..], b"c"]);
    assert_eq!(engine.keys(SCAN, between_keys, Order::Desc), [&b"c"[..], b"b1"]);
}

pub(crate) fn bounds_without_end_reach_to_the_end_of_the_table(engine: &impl Engine) {
    engine.put_keys(SCAN, &[&[1], &[2], &[0xff, 0xff]]);
    engine.put_keys(APPEND, &[&[3]]);
    let bounds = Bounds { start: &[2], end: None };
    assert_eq!(engine.keys(SCAN, bounds, Order::Asc), [vec![2], vec![0xff, 0xff]]);
    assert_eq!(engine.keys(SCAN, bounds, Order::Desc), [vec![0xff, 0xff], vec![2]]);
}

pub(crate) fn bounds_that_hold_nothing_give_nothing(engine: &impl Engine) {
    engine.put_keys(SCAN, &[&[1], &[2]]);
    for (start, end) in [(&[1][..], &[1][..]), (&[2], &[1]), (&[], &[]), (&[1, 0], &[2])] {
        for order in [Order::Asc, Order::Desc] {
            assert!(engine.keys(SCAN, Bounds { start, end: Some(end) }, order).is_empty());
        }
    }
}

pub(crate) fn a_prefix_of_ff_bytes_ends_with_the_table(engine: &impl Engine) {
    engine.put_keys(SCAN, &[&[0xfe, 0xff], &[0xff], &[0xff, 0xfe], &[0xff, 0xff], &[0xff, 0xff, 1]]);
    let prefix = [0xff, 0xff];
    let end = prefix_end(&prefix);
    let bounds = Bounds { start: &prefix, end: end.as_deref() };
    assert_eq!(engine.keys(SCAN, bounds, Order::Asc), [vec![0xff, 0xff], vec![0xff, 0xff, 1]]);
    assert_eq!(engine.keys(SCAN, bounds, Order::Desc), [vec![0xff, 0xff, 1], vec![0xff, 0xff]]);
}

pub(crate) fn a_limit_keeps_the_first_rows_in_the_order_of_the_scan(engine: &impl Engine) {
    engine.put(SCAN, &[(&[1], b"one"), (&[2], b"two"), (&[3], b"three")]);
    let (one, two, three) =
        ((vec![1], b"one".to_vec()), (vec![2], b"two".to_vec()), (vec![3], b"three".to_vec()));
    assert_eq!(engine.scan(SCAN, Bounds::all(), Order::Asc, 2), [one.clone(), two.clone()]);
    assert_eq!(engine.scan(SCAN, Bounds::all(), Order::Desc, 2), [three.clone(), two.clone()]);
    assert_eq!(engine.scan(SCAN, Bounds::all(), Order::Asc, 3), [one, two, three]);
    assert!(engine.scan(SCAN, Bounds::all(), Order::Asc, 0).is_empty());
}

pub(crate) fn a_snapshot_sees_no_later_commit_and_a_new_one_does(engine: &impl Engine) {
    engine.put(POINT, &[(b"k", b"old")]);
    let before = engine.writer().snapshot().unwrap();
    engine.put(POINT, &[(b"k", b"new"), (b"l", b"")]);
    assert_eq!(before.get(POINT, b"k").unwrap().unwrap(), b"old");
    assert_eq!(before.multi_get(POINT, &[b"l".to_vec()]).unwrap(), [None]);
    let rows = [(b"k".to_vec(), b"old".to_vec())];
    assert_eq!(before.scan(POINT, Bounds::all(), Order::Desc, 9).unwrap(), rows);
    assert_eq!(engine.get(POINT, b"k").unwrap(), b"new");
}

pub(crate) fn a_commit_changes_the_version_and_nothing_else_does(engine: &impl Engine) {
    let version = || engine.reader().version();
    engine.put_keys(SCAN, &[b"a"]);
    let before = version();
    drop(engine.reader().snapshot().unwrap());
    engine.publish();
    assert_eq!(version(), before);
    engine.put_keys(POINT, &[b"b"]);
    assert!(before.is_none() || version() != before, "{before:?}");
}

pub(crate) fn the_last_write_of_a_key_in_a_batch_wins(engine: &impl Engine) {
    let mut batch = Batch::new();
    batch.put(POINT, b"put".to_vec(), b"1".to_vec());
    batch.delete(POINT, b"put".to_vec());
    batch.put(POINT, b"put".to_vec(), b"2".to_vec());
    batch.put(POINT, b"deleted".to_vec(), b"1".to_vec());
    batch.delete(POINT, b"deleted".to_vec());
    engine.commit(batch);
    assert_eq!(engine.scan(POINT, Bounds::all(), Order::Asc, 9), [(b"put".to_vec(), b"2".to_vec())]);
}

pub(crate) fn appended_bytes_follow_those_before_them(engine: &impl Engine) {
    engine.put(SCAN, &[(b"put", b"1"), (b"deleted", b"1"), (b"in a range", b"1")]);
    for bytes in [b"2", b"3"] {
        let mut batch = Batch::new();
        for key in [&b"put"[..], b"new", b"twice", b"twice"] {
            batch.append(SCAN, key.to_vec(), bytes.to_vec());
        }
        engine.commit(batch);
    }
    let mut batch = Batch::new();
    batch.delete(SCAN, b"deleted".to_vec());
    batch.append(SCAN, b"deleted".to_vec(), b"4".to_vec());
    batch.append(SCAN, b"in a range".to_vec(), b"4".to_vec());
    batch.delete_range(SCAN, b"in".to_vec(), b"io".to_vec());
    batch.append(SCAN, b"set".to_vec(), b"4".to_vec());
    batch.put(SCAN, b"set".to_vec(), b"5".to_vec());
    batch.append(SCAN, b"set".to_vec(), b"6".to_vec());
    let before = engine.reader().snapshot().unwrap();
    engine.writer().commit(batch, Durability::Buffered).unwrap();
    assert_eq!(before.get(SCAN, b"in a range").unwrap().unwrap(), b"1");
    drop(before);
    engine.publish();
    let expected = [
        (&b"deleted"[..], &b"4"[..]),
        (b"in a range", b"4"),
        (b"new", b"23"),
        (b"put", b"123"),
        (b"set", b"56"),
        (b"twice", b"2233"),
    ];
    let expected = expected.map(|(key, value)| (key.to_vec(), value.to_vec()));
    assert_eq!(engine.scan(SCAN, Bounds::all(), Order::Asc, 9), expected);
    let keys = expected.each_ref().map(|(key, _)| key.clone());
    let values = engine.reader().snapshot().unwrap().multi_get(SCAN, &keys).unwrap();
    assert_eq!(values, expected.map(|(_, value)| Some(value)));
}

pub(crate) fn a_deleted_row_is_absent_and_deleting_an_absent_one_is_not_an_error(engine: &impl Engine) {
    engine.put_keys(SCAN, &[&[1], &[2], &[3]]);
    let mut batch = Batch::new();
    batch.delete(SCAN, vec![2]);
    batch.delete(SCAN, vec![9]);
    engine.commit(batch);
    assert_eq!(engine.get(SCAN, &[2]), None);
    assert_eq!(engine.keys(SCAN, Bounds::all(), Order::Desc), [[3], [1]]);
}

pub(crate) fn a_range_is_deleted_except_for_the_rows_that_the_batch_sets(engine: &impl Engine) {
    let keys: Vec<[u8; 2]> = (0..=255).flat_map(|a| [[a, 0], [a, 9]]).collect();
    engine.put_keys(SCAN, &keys.iter().map(|key| &key[..]).collect::<Vec<_>>());
    engine.put_keys(POINT, &[&[3, 0], &[5, 0]]);
    let mut batch = Batch::new();
    batch.put(SCAN, vec![3, 9], b"set before".to_vec());
    batch.delete_range(SCAN, vec![2, 9], vec![200, 9]);
    batch.delete_range(SCAN, vec![0xff], vec![0xff; 3]);
    batch.put(SCAN, vec![3, 0], b"set after".to_vec());
    batch.delete(SCAN, vec![3, 0]);
    batch.delete(SCAN, vec![1, 0]);
    // Reversed bounds, and empty ones.
    batch.delete_range(POINT, vec![9], vec![1]);
    batch.delete_range(POINT, vec![3, 0], vec![3, 0]);
    let mut all = Batch::new();
    all.extend(batch);
    engine.commit(all);
    let mut left = vec![vec![0, 0], vec![0, 9], vec![1, 9], vec![2, 0], vec![3, 9], vec![200, 9]];
    left.extend(keys.iter().filter(|key| (201..255).contains(&key[0])).map(|key| key.to_vec()));
    assert_eq!(engine.keys(SCAN, Bounds::all(), Order::Asc), left);
    left.reverse();
    assert_eq!(engine.keys(SCAN, Bounds::all(), Order::Desc), left);
    assert_eq!(engine.keys(POINT, Bounds::all(), Order::Asc), [[3, 0], [5, 0]]);
    assert_eq!(engine.get(SCAN, &[3, 9]).unwrap(), b"set before");
    assert_eq!((engine.get(SCAN, &[2, 9]), engine.get(SCAN, &[100, 0])), (None, None));
    // Later writes are visible again.
    engine.put_keys(SCAN, &[&[100, 0]]);
    assert!(engine.get(SCAN, &[100, 0]).is_some());
}

pub(crate) fn many_keys_are_answered_in_their_order_with_repetitions(engine: &impl Engine) {
    for table in TABLES {
        engine.put(table, &[(b"a", b"1"), (b"b", b"2"), (b"c", b"")]);
        let asked = [&b"c"[..], b"a", b"x", b"a", b"b", b"x"].map(<[u8]>::to_vec);
        let expected = [Some(&b""[..]), Some(b"1"), None, Some(b"1"), Some(b"2"), None];
        let snapshot = engine.reader().snapshot().unwrap();
        let values = snapshot.multi_get(table, &asked).unwrap();
        assert_eq!(values, expected.map(|value| value.map(<[u8]>::to_vec)));
        assert!(snapshot.multi_get(table, &[]).unwrap().is_empty());
    }
}

pub(crate) fn empty_keys_and_values_are_rows(engine: &impl Engine) {
    engine.put(SCAN, &[(b"", b"at the front"), (b"k", b"")]);
    assert_eq!(engine.get(SCAN, b"").unwrap(), b"at the front");
    assert_eq!(engine.get(SCAN, b"k").unwrap(), b"");
    assert_eq!(engine.keys(SCAN, Bounds::all(), Order::Desc), [&b"k"[..], b""]);
    assert_eq!(engine.keys(SCAN, Bounds { start: b"", end: Some(b"k") }, Order::Desc), [b""]);
}

pub(crate) fn large_values_are_read_back_whole(engine: &impl Engine) {
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.wrapping_mul(0x9e37_79b9).to_be_bytes()[0]).collect();
    engine.put(APPEND, &[(b"k", &large), (b"l", &large[1..])]);
    assert_eq!(engine.get(APPEND, b"k").unwrap(), large);
    assert_eq!(engine.scan(APPEND, Bounds::all(), Order::Desc, 1)[0].1, large[1..]);
}

pub(crate) fn tables_do_not_see_each_others_rows(engine: &impl Engine) {
    let mut batch = Batch::new();
    for table in TABLES {
        batch.put(table, b"same key".to_vec(), table.name.as_bytes().to_vec());
    }
    batch.delete(SCAN, b"same key".to_vec());
    engine.commit(batch);
    assert_eq!(engine.get(POINT, b"same key").unwrap(), b"point");
    assert_eq!(engine.get(APPEND, b"same key").unwrap(), b"append");
    assert_eq!(engine.get(SCAN, b"same key"), None);
}

pub(crate) fn two_writers_to_different_tables_lose_nothing(engine: &impl Engine) {
    const COMMITS: u32 = 300;
    let (store, start) = (engine.writer(), std::sync::Barrier::new(2));
    thread::scope(|scope| {
        for table in [APPEND, SCAN] {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for n in 0..COMMITS {
                    let mut batch = Batch::new();
                    batch.put(table, n.to_be_bytes().to_vec(), vec![table.tag]);
                    store.commit(batch, Durability::Buffered).unwrap();
                }
            });
        }
    });
    engine.publish();
    for table in [APPEND, SCAN] {
        let expected: Vec<Row> = (0..COMMITS).map(|n| (n.to_be_bytes().to_vec(), vec![table.tag])).collect();
        assert_eq!(engine.scan(table, Bounds::all(), Order::Asc, usize::MAX), expected);
    }
}

pub(crate) fn every_row_is_visited_once_whatever_the_size_of_rows(engine: &impl Engine) {
    let mut batch = Batch::new();
    let large = |n: u32| n.is_multiple_of(64);
    for n in 0..1_000_u32 {
        batch.put(SCAN, n.to_be_bytes().to_vec(), vec![7; if large(n) { 200_000 } else { 3 }]);
    }
    engine.commit(batch);
    let snapshot = engine.reader().snapshot().unwrap();
    let (start, end) = (5_u32.to_be_bytes(), 990_u32.to_be_bytes());
    let mut expected = 5_u32;
    let visit = |key: &[u8], value: &[u8]| {
        assert_eq!(key, expected.to_be_bytes());
        assert_eq!(value.len(), if large(expected) { 200_000 } else { 3 });
        expected += 1;
        Ok::<_, store::Error>(())
    };
    for_each_row(&*snapshot, SCAN, Bounds { start: &start, end: Some(&end) }, visit).unwrap();
    assert_eq!(expected, 990);
}

pub(crate) fn a_visitor_that_fails_ends_the_visit(engine: &impl Engine) {
    #[derive(Debug)]
    struct Stopped;
    impl From<store::Error> for Stopped {
        fn from(error: store::Error) -> Self {
            panic!("{error}")
        }
    }
    engine.put_keys(SCAN, &[&[1], &[2], &[3]]);
    let snapshot = engine.reader().snapshot().unwrap();
    let mut visited = Vec::new();
    let visit = |key: &[u8], _: &[u8]| {
        visited.push(key.to_vec());
        if key == [2] { Err(Stopped) } else { Ok(()) }
    };
    for_each_row(&*snapshot, SCAN, Bounds::all(), visit).unwrap_err();
    assert_eq!(visited, [[1], [2]]);
}

pub(crate) fn the_disk_is_measured(engine: &impl Engine) {
    let before = engine.reader().disk_bytes().unwrap();
    // An engine may compress them.
    let random: Vec<u8> =
        (0..1_000_000_u64).map(|n| (n * n).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]).collect();
    engine.put(APPEND, &[(b"k", &random)]);
    engine.writer().sync().unwrap();
    // Meanwhile RocksDB may delete some small files of its start.
    assert!(engine.reader().disk_bytes().unwrap() >= before + 900_000);
}

/// The contract's tests in a module of their own.
macro_rules! engine_tests {
    ($module:ident $engine:ident) => {
        engine_tests!(@ $module $engine;
            keys_compare_as_unsigned_bytes
            bounds_include_their_start_and_exclude_their_end
            bounds_without_end_reach_to_the_end_of_the_table
            bounds_that_hold_nothing_give_nothing
            a_prefix_of_ff_bytes_ends_with_the_table
            a_limit_keeps_the_first_rows_in_the_order_of_the_scan
            a_snapshot_sees_no_later_commit_and_a_new_one_does
            a_commit_changes_the_version_and_nothing_else_does
            the_last_write_of_a_key_in_a_batch_wins
            appended_bytes_follow_those_before_them
            a_deleted_row_is_absent_and_deleting_an_absent_one_is_not_an_error
            a_range_is_deleted_except_for_the_rows_that_the_batch_sets
            many_keys_are_answered_in_their_order_with_repetitions
            empty_keys_and_values_are_rows
            large_values_are_read_back_whole
            tables_do_not_see_each_others_rows
            two_writers_to_different_tables_lose_nothing
            every_row_is_visited_once_whatever_the_size_of_rows
            a_visitor_that_fails_ends_the_visit
            the_disk_is_measured
        );
    };
    (@ $module:ident $engine:ident; $($demand:ident)*) => {
        mod $module {
            $(#[test]
            fn $demand() {
                crate::demands::$demand(&<super::$engine as crate::demands::Engine>::new());
            })*
        }
    };
}
pub(crate) use engine_tests;
