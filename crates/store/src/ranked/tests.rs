//! Sets whose levels are partly in memory, against the counts and nodes that follow from their items.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use proptest::{collection::vec, prelude::*};

use super::{RANK, Ranked, index_items};
use crate::{
    Access, Bounds, BulkWriter, Counts, Durability, MemStore, Order, Row, Store, Table, TableSpec, Txn,
};

/// Every second item is promoted, so levels have more nodes than are loaded.
struct Numbers;

impl Table for Numbers {
    const SPEC: &'static TableSpec = &TableSpec { name: "numbers", tag: 0x10, access: Access::Ranked };
    type Key = (u8, u16);
    type Value = ();
}

impl Ranked for Numbers {
    type Owner = u8;
    type Item = u16;
    const PROMOTION_BITS: u32 = 1;
}

fn rows(store: &MemStore, spec: &'static TableSpec) -> Vec<Row> {
    store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap()
}

/// The rows of `rank` for the items in `store`.
fn expected(store: &MemStore) -> Vec<Row> {
    let fresh = MemStore::new();
    let mut writer = BulkWriter::new(&fresh);
    index_items::<Numbers>(&*store.snapshot().unwrap(), &mut writer).unwrap();
    writer.finish(Durability::Buffered).unwrap();
    rows(&fresh, RANK)
}

proptest! {
    #[test]
    fn counts_and_nodes_follow_from_the_items(
        // Groups of changes (owner, item, insert), and whether the cache of sets is kept after the commit.
        groups in vec((vec((0_u8..2, 0_u16..60, any::<bool>()), 0..60), any::<bool>()), 1..8),
    ) {
        let (store, mut counts) = (MemStore::new(), Counts::new(1));
        for (changes, kept) in groups {
            let snapshot = store.snapshot().unwrap();
            let mut txn = Txn::new(&*snapshot, &mut counts);
            for (owner, item, insert) in changes {
                let len = txn.set_len::<Numbers>(&owner).unwrap();
                let expected = if insert {
                    len + u64::from(txn.insert::<Numbers>(&owner, &item, &()).unwrap())
                } else {
                    len - u64::from(txn.remove::<Numbers>(&owner, &item).unwrap())
                };
                prop_assert_eq!(txn.set_len::<Numbers>(&owner).unwrap(), expected);
            }
            let bytes = txn.bytes();
            let (batch, pending) = txn.finish();
            prop_assert!(bytes >= batch.bytes(), "{} < {}", bytes, batch.bytes());
            drop(snapshot);
            store.commit(batch, Durability::Buffered).unwrap();
            if kept {
                counts.absorb(pending);
            }
            prop_assert_eq!(rows(&store, RANK), expected(&store));
        }
    }
}
