//! Lists whose rows are damaged at random: the audit finds the damage.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use store::{
    Access, Batch, Bounds, COUNT, Counts, Durability, List, MemStore, Order, Store, TableSpec, Txn, Value,
    list,
};

struct ByNumber;

impl List for ByNumber {
    const SPEC: &'static TableSpec = &TableSpec { name: "by_number", tag: 0x21, access: Access::Scan };
    type Owner = u16;
}

/// Owners with the values of their lists, ascending.
type Model = BTreeMap<u16, Vec<u64>>;

fn pushed(model: &Model) -> MemStore {
    let store = MemStore::new();
    let snapshot = store.snapshot().unwrap();
    let mut counts = Counts::new(4);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    for (owner, values) in model {
        for value in values {
            txn.push::<ByNumber>(owner, *value).unwrap();
        }
    }
    let (batch, _pending) = txn.finish();
    drop(snapshot);
    store.commit(batch, Durability::Buffered).unwrap();
    store
}

fn faults(store: &MemStore, last: u64) -> Vec<list::Inconsistency> {
    let mut faults = Vec::new();
    list::audit(&*store.snapshot().unwrap(), ByNumber::SPEC, last, |fault| faults.push(fault)).unwrap();
    faults
}

fn rows(store: &MemStore, spec: &'static TableSpec) -> Vec<store::engine::Row> {
    store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap()
}

fn model() -> impl Strategy<Value = Model> {
    let values = proptest::collection::btree_set(1_u64..400, 1..120);
    proptest::collection::btree_map(0_u16..5, values.prop_map(|values| values.into_iter().collect()), 1..5)
}

/// Another length, a row of entries that is damaged, or a lost row of either table.
#[derive(Debug, Clone)]
struct Damage {
    row: prop::sample::Index,
    value: Option<u64>,
}

fn misplaced(key: &[u8]) -> Vec<u8> {
    let (owner, ordinal) = key.split_last_chunk().unwrap();
    [owner, &(u64::from_be_bytes(*ordinal) + 5).to_be_bytes()].concat()
}

fn damage() -> impl Strategy<Value = Damage> {
    let row = any::<prop::sample::Index>();
    (row, proptest::option::of(1_u64..150)).prop_map(|(row, value)| Damage { row, value })
}

proptest! {
    #[test]
    fn intact_lists_pass_the_audit(model in model()) {
        prop_assert_eq!(faults(&pushed(&model), 400), Vec::new());
    }

    #[test]
    fn lost_and_damaged_rows_are_found(
        // A list that is lost together with its length leaves no trace in either table.
        model in model(), of_count in any::<bool>(), damages in vec(damage(), 1..4),
    ) {
        let (store, whole) = (pushed(&model), pushed(&model));
        for damage in damages {
            let spec = if of_count { COUNT } else { ByNumber::SPEC };
            let rows = rows(&store, spec);
            prop_assume!(!rows.is_empty());
            let (key, row) = damage.row.get(&rows).clone();
            let mut batch = Batch::new();
            match damage.value {
                Some(value) if of_count => {
                    let mut bytes = Vec::new();
                    value.encode(&mut bytes);
                    batch.put(spec, key, bytes);
                }
                // Entries are lost at the end of a row, also half of one.
                Some(value) if value % 3 == 0 => batch.put(spec, key, row[..row.len() / 2].to_vec()),
                // A row is where no row begins.
                Some(value) if value % 3 == 1 => {
                    batch.delete(spec, key.clone());
                    batch.put(spec, misplaced(&key), row);
                }
                // An entry follows that does not decode.
                Some(_) => batch.append(spec, key, vec![0x80, 0]),
                None => batch.delete(spec, key),
            }
            store.commit(batch, Durability::Buffered).unwrap();
        }
        prop_assume!([ByNumber::SPEC, COUNT].iter().any(|spec| rows(&store, spec) != rows(&whole, spec)));
        prop_assert_ne!(faults(&store, 400), Vec::new());
    }
}

#[test]
fn the_audit_reports_the_row_that_is_wrong_and_no_other() {
    let values: Vec<u64> = (1..=list::ROW + 8).collect();
    let second = [&0_u16.to_be_bytes()[..], &list::ROW.to_be_bytes()].concat();
    let repeated: Vec<u8> = (32..40).collect();
    let cases: [(&[u8], u64, &[&'static TableSpec]); 5] = [
        (&repeated, 40, &[ByNumber::SPEC]),
        // The number of entries is unknown: any length with that row passes.
        (&[0x80], 40, &[ByNumber::SPEC]),
        (&[0x80], 33, &[ByNumber::SPEC]),
        (&[0x80], 32, &[ByNumber::SPEC, COUNT]),
        (&[0x80], 65, &[ByNumber::SPEC, COUNT]),
    ];
    for (row, len, wrong) in cases {
        let store = pushed(&Model::from([(0, values.clone())]));
        let (mut batch, mut length) = (Batch::new(), Vec::new());
        len.encode(&mut length);
        batch.put(ByNumber::SPEC, second.clone(), row.to_vec());
        batch.put(COUNT, [&[ByNumber::SPEC.tag], &0_u16.to_be_bytes()[..]].concat(), length);
        store.commit(batch, Durability::Buffered).unwrap();
        let faults = faults(&store, 100);
        let tables: Vec<_> = faults.iter().map(|fault| fault.table).collect();
        assert_eq!((tables.as_slice(), &faults[0].key), (wrong, &second), "{faults:?}");
    }
}
