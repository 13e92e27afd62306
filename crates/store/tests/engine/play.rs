//! A plain map next to an engine: random batches, long-lived snapshots and reads of every kind. Also included by the tests of
//! crates/slate.

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*};
use store::{Access, Batch, Bounds, Durability, Order, Row, Snapshot, Store, TableSpec};

pub(crate) const TABLES: &[&TableSpec] = &[
    &TableSpec { name: "point", tag: 0x10, access: Access::Point },
    &TableSpec { name: "append", tag: 0x11, access: Access::Append },
    &TableSpec { name: "scan", tag: 0x12, access: Access::Scan },
];

pub(crate) type Bytes = Vec<u8>;
pub(crate) type Model = BTreeMap<(u8, Bytes), Bytes>;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Commit {
        writes: Vec<Write>,
        synced: bool,
    },
    TakeSnapshot,
    DropSnapshot(usize),
    Read(usize, Question),
    /// On disk only.
    Flush,
    Compact,
}

/// Table, key and the change of its row.
pub(crate) type Write = (usize, Bytes, RowChange);

#[derive(Debug, Clone)]
pub(crate) enum RowChange {
    Put(Bytes),
    Append(Bytes),
    Delete,
}

/// A read of one table.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    Get(usize, Bytes),
    MultiGet(usize, Vec<Bytes>),
    Scan { table: usize, start: Bytes, end: Option<Bytes>, descending: bool, limit: usize },
}

/// Few and similar, so that steps overlap; some shorter and some longer than the prefixes that RocksDB's filters know.
fn key() -> impl Strategy<Value = Bytes> {
    let short = vec(prop_oneof![Just(0_u8), Just(1), Just(0x80), Just(0xff)], 0..4);
    (any::<bool>(), short).prop_map(|(long, key)| if long { [&[7; 7], &key[..]].concat() } else { key })
}

fn question() -> impl Strategy<Value = Question> {
    let table = 0..TABLES.len();
    let limit = prop_oneof![0_usize..6, Just(usize::MAX)];
    prop_oneof![
        (table.clone(), key()).prop_map(|(table, key)| Question::Get(table, key)),
        (table.clone(), vec(key(), 0..8)).prop_map(|(table, keys)| Question::MultiGet(table, keys)),
        (table, key(), option::of(key()), any::<bool>(), limit).prop_map(
            |(table, start, end, descending, limit)| Question::Scan { table, start, end, descending, limit }
        ),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let change = prop_oneof![
        4 => vec(any::<u8>(), 0..20).prop_map(RowChange::Put),
        4 => vec(any::<u8>(), 0..20).prop_map(RowChange::Append),
        3 => Just(RowChange::Delete),
    ];
    let write = (0..TABLES.len(), key(), change);
    prop_oneof![
        6 => (vec(write, 0..12), any::<bool>()).prop_map(|(writes, synced)| Step::Commit { writes, synced }),
        3 => Just(Step::TakeSnapshot),
        1 => any::<usize>().prop_map(Step::DropSnapshot),
        12 => (any::<usize>(), question()).prop_map(|(snapshot, question)| Step::Read(snapshot, question)),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
    ]
}

/// Steps between openings of the store.
pub(crate) fn sessions() -> impl Strategy<Value = Vec<Vec<Step>>> {
    vec(vec(step(), 0..40), 1..4)
}

fn expected_rows(
    model: &Model,
    table: usize,
    start: &[u8],
    end: Option<&[u8]>,
    descending: bool,
    limit: usize,
) -> Vec<Row> {
    let inside = |key: &[u8]| key >= start && end.is_none_or(|end| key < end);
    let rows = model.iter().filter(|((tag, key), _)| *tag == TABLES[table].tag && inside(key));
    let mut rows: Vec<_> = rows.map(|((_, key), value)| (key.clone(), value.clone())).collect();
    if descending {
        rows.reverse();
    }
    rows.truncate(limit);
    rows
}

fn check(snapshot: &dyn Snapshot, model: &Model, question: &Question) -> Result<(), TestCaseError> {
    let value = |table: usize, key: &Bytes| model.get(&(TABLES[table].tag, key.clone())).cloned();
    match question {
        Question::Get(table, key) => {
            prop_assert_eq!(snapshot.get(TABLES[*table], key).unwrap(), value(*table, key));
        }
        Question::MultiGet(table, keys) => {
            let expected: Vec<_> = keys.iter().map(|key| value(*table, key)).collect();
            prop_assert_eq!(snapshot.multi_get(TABLES[*table], keys).unwrap(), expected);
        }
        Question::Scan { table, start, end, descending, limit } => {
            let bounds = Bounds { start, end: end.as_deref() };
            let order = if *descending { Order::Desc } else { Order::Asc };
            let rows = snapshot.scan(TABLES[*table], bounds, order, *limit).unwrap();
            let expected = expected_rows(model, *table, start, end.as_deref(), *descending, *limit);
            prop_assert_eq!(rows, expected);
        }
    }
    Ok(())
}

fn commit(store: &dyn Store, model: &mut Model, writes: &[Write], synced: bool) {
    let mut batch = Batch::new();
    for (table, key, change) in writes {
        let row = (TABLES[*table].tag, key.clone());
        match change {
            RowChange::Put(value) => {
                batch.put(TABLES[*table], key.clone(), value.clone());
                model.insert(row, value.clone());
            }
            RowChange::Append(bytes) => {
                batch.append(TABLES[*table], key.clone(), bytes.clone());
                model.entry(row).or_default().extend(bytes);
            }
            RowChange::Delete => {
                batch.delete(TABLES[*table], key.clone());
                model.remove(&row);
            }
        }
    }
    let durability = if synced { Durability::Synced } else { Durability::Buffered };
    store.commit(batch, durability).unwrap();
}

/// Plays one session; `tidy` performs the steps that only one engine supports.
pub(crate) fn play(
    store: &dyn Store,
    model: &mut Model,
    steps: &[Step],
    tidy: impl Fn(&Step),
) -> Result<(), TestCaseError> {
    let mut snapshots = vec![(store.snapshot().unwrap(), model.clone())];
    for step in steps {
        let pick = |index: &usize| index % snapshots.len().max(1);
        match step {
            Step::Commit { writes, synced } => commit(store, model, writes, *synced),
            Step::TakeSnapshot => snapshots.push((store.snapshot().unwrap(), model.clone())),
            Step::DropSnapshot(index) if snapshots.len() > 1 => drop(snapshots.swap_remove(pick(index))),
            Step::DropSnapshot(_) => {}
            Step::Read(index, question) => {
                let (snapshot, then) = &snapshots[pick(index)];
                check(&**snapshot, then, question)?;
                check(&*store.snapshot().unwrap(), model, question)?;
            }
            Step::Flush | Step::Compact => tidy(step),
        }
    }
    Ok(())
}
