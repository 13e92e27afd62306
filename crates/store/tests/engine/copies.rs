//! A copy-on-write store against a full copy: the same rows after the same writes, and a base that never changes.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use store::{Access, Batch, Bounds, CopyOnWrite, Durability, MemStore, Order, Row, Store, TableSpec};

const TABLE: &TableSpec = &TableSpec { name: "rows", tag: 0x10, access: Access::Scan };
const OTHER: &TableSpec = &TableSpec { name: "others", tag: 0x11, access: Access::Scan };

type Key = Vec<u8>;

#[derive(Debug, Clone)]
enum Write {
    Put(Key, u8),
    Delete(Key),
    DeleteRange(Key, Key),
    Commit,
}

fn key() -> impl Strategy<Value = Key> {
    vec(0_u8..4, 0..3)
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (key(), any::<u8>()).prop_map(|(key, value)| Write::Put(key, value)),
        3 => key().prop_map(Write::Delete),
        1 => (key(), key()).prop_map(|(start, end)| Write::DeleteRange(start, end)),
        3 => Just(Write::Commit),
    ]
}

fn apply(store: &dyn Store, writes: &[Write]) {
    for group in writes.split(|write| matches!(write, Write::Commit)) {
        let mut batch = Batch::new();
        for write in group {
            match write {
                Write::Put(key, value) => batch.put(TABLE, key.clone(), vec![*value]),
                Write::Delete(key) => batch.delete(TABLE, key.clone()),
                Write::DeleteRange(start, end) => batch.delete_range(TABLE, start.clone(), end.clone()),
                Write::Commit => {}
            }
        }
        store.commit(batch, Durability::Buffered).unwrap();
    }
}

fn rows(store: &dyn Store, table: &'static TableSpec) -> Vec<Row> {
    store.snapshot().unwrap().scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_copy_reads_like_a_real_one(
        base in vec((key(), any::<u8>()), 0..20), writes in vec(write(), 0..24),
        start in key(), end in proptest::option::of(key()), limit in 1_usize..9,
    ) {
        let (original, real) = (Arc::new(MemStore::new()), MemStore::new());
        let puts: Vec<_> = base.into_iter().map(|(key, value)| Write::Put(key, value)).collect();
        apply(&*original, &puts);
        apply(&real, &puts);
        let before = rows(&*original, TABLE);
        let copy = CopyOnWrite::new(Arc::clone(&original) as Arc<dyn Store>, Arc::new(MemStore::new()));
        let early = copy.snapshot().unwrap();
        apply(&copy, &writes);
        apply(&real, &writes);
        let (copied, expected) = (copy.snapshot().unwrap(), real.snapshot().unwrap());
        let bounds = Bounds { start: &start, end: end.as_deref() };
        for order in [Order::Asc, Order::Desc] {
            for (bounds, limit) in [(Bounds::all(), usize::MAX), (bounds, limit)] {
                let scanned = copied.scan(TABLE, bounds, order, limit).unwrap();
                prop_assert_eq!(scanned, expected.scan(TABLE, bounds, order, limit).unwrap());
            }
        }
        prop_assert_eq!(copied.get(TABLE, &start).unwrap(), expected.get(TABLE, &start).unwrap());
        prop_assert_eq!(early.scan(TABLE, Bounds::all(), Order::Asc, usize::MAX).unwrap(), before.clone());
        prop_assert_eq!(rows(&*original, TABLE), before);
        prop_assert_eq!(rows(&copy, OTHER), vec![]);
    }
}
