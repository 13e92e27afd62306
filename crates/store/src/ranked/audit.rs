//! Audit and repair of the skip lists of ranked sets, against the items.

use std::collections::BTreeMap;

use super::skip_list::{LEVELS, SetMeta, SkipList, height, varint};
use super::{RANK, Ranked};
use crate::{
    batch::Batch,
    engine::{Bounds, Durability, Order, Row, Snapshot, Store, for_each_row, prefix_end},
    error::Error,
    key::Key,
    table::corrupt,
};

/// A row of `rank` that differs from the one derived from the items of its set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// Its key.
    pub key: Vec<u8>,
    /// What is stored, if anything.
    pub found: Option<Vec<u8>>,
    /// What belongs there, if anything.
    pub expected: Option<Vec<u8>>,
}

/// Compares the counts and nodes of every set of `R` with its items, and reports each difference to `on_inconsistency`.
///
/// Memory grows with the nodes of the largest set: some 2 bytes an item.
pub fn audit<R: Ranked>(
    snapshot: &dyn Snapshot,
    mut on_inconsistency: impl FnMut(Inconsistency) -> Result<(), Error>,
) -> Result<(), Error> {
    for_each_set::<R>(snapshot, |set, expected| {
        let prefix = set.prefix();
        let end = prefix_end(&prefix);
        let mut found: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for_each_row(snapshot, RANK, Bounds { start: &prefix, end: end.as_deref() }, |key, value| {
            found.insert(key.to_vec(), value.to_vec());
            Ok::<(), Error>(())
        })?;
        for (key, expected) in expected {
            let found = found.remove(&key);
            if found.as_ref() != Some(&expected) {
                on_inconsistency(Inconsistency { key, found, expected: Some(expected) })?;
            }
        }
        found.into_iter().try_for_each(|(key, found)| on_inconsistency(stray(key, found)))
    })?;
    // Rows of owners that have no items at all.
    let (prefix, end) = ([R::SPEC.tag], prefix_end(&[R::SPEC.tag]));
    let mut last: Option<(Vec<u8>, bool)> = None;
    for_each_row(snapshot, RANK, Bounds { start: &prefix, end: end.as_deref() }, |key, value| {
        let owner = owner_of::<R>(&key[1..]).ok_or_else(|| corrupt(RANK, key, "the key does not decode"))?;
        let known = match &last {
            Some((last, known)) if last == owner => *known,
            Some(_) | None => has_items::<R>(snapshot, owner)?,
        };
        last = Some((owner.to_vec(), known));
        if known { Ok(()) } else { on_inconsistency(stray(key.to_vec(), value.to_vec())) }
    })
}

fn stray(key: Vec<u8>, found: Vec<u8>) -> Inconsistency {
    Inconsistency { key, found: Some(found), expected: None }
}

/// Rewrites the wrong counts and nodes of every set of `R` from its items.
pub fn repair<R: Ranked>(store: &dyn Store) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut batch = Batch::new();
    audit::<R>(&*snapshot, |found| {
        match found.expected {
            Some(value) => batch.put(RANK, found.key, value),
            None => batch.delete(RANK, found.key),
        }
        Ok(())
    })?;
    store.commit(batch, Durability::Synced)
}

impl SkipList {
    /// What the keys of all its rows in `rank` begin with.
    fn prefix(&self) -> Vec<u8> {
        let mut key = self.rank_key(0, &[]);
        key.pop();
        key
    }
}

fn owner_of<R: Ranked>(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key;
    R::Owner::take(&mut rest)?;
    Some(&key[..key.len() - rest.len()])
}

fn has_items<R: Ranked>(snapshot: &dyn Snapshot, owner: &[u8]) -> Result<bool, Error> {
    let end = prefix_end(owner);
    let first = snapshot.scan(R::SPEC, Bounds { start: owner, end: end.as_deref() }, Order::Asc, 1)?;
    Ok(!first.is_empty())
}

/// Gives each set, with the rows of `rank` that its items make, to `visit`.
fn for_each_set<R: Ranked>(
    snapshot: &dyn Snapshot,
    mut visit: impl FnMut(&SkipList, Vec<Row>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut current: Option<Expected> = None;
    for_each_row(snapshot, R::SPEC, Bounds::all(), |key, _| {
        let owner = owner_of::<R>(key).ok_or_else(|| corrupt(R::SPEC, key, "the key does not decode"))?;
        if current.as_ref().is_none_or(|expected| expected.owner != owner)
            && let Some(done) = current.replace(Expected::new::<R>(owner))
        {
            let (set, rows) = done.finish();
            visit(&set, rows)?;
        }
        if let Some(expected) = &mut current {
            expected.add(key, R::PROMOTION_BITS);
        }
        Ok::<(), Error>(())
    })?;
    match current {
        Some(done) => {
            let (set, rows) = done.finish();
            visit(&set, rows)
        }
        None => Ok(()),
    }
}

/// The rows that the items of one set make, item by item.
struct Expected {
    owner: Vec<u8>,
    set: SkipList,
    meta: SetMeta,
    /// Items since the last node, by level.
    since: [u64; LEVELS],
    nodes: [Vec<Row>; LEVELS],
}

impl Expected {
    fn new<R: Ranked>(owner: &[u8]) -> Self {
        Self {
            owner: owner.to_vec(),
            set: SkipList::raw(R::SPEC, owner.to_vec(), R::PROMOTION_BITS),
            meta: SetMeta::default(),
            since: [0; LEVELS],
            nodes: std::array::from_fn(|_| Vec::new()),
        }
    }

    fn add(&mut self, row_key: &[u8], promotion_bits: u32) {
        let item = &row_key[self.owner.len()..];
        for level in 1..=height(row_key, promotion_bits) {
            let row = (self.set.rank_key(level, item), varint(self.since[level - 1]));
            self.nodes[level - 1].push(row);
            self.meta.nodes[level - 1] += 1;
            self.since[level - 1] = 0;
        }
        self.since.iter_mut().for_each(|since| *since += 1);
        self.meta.len += 1;
    }

    fn finish(self) -> (SkipList, Vec<Row>) {
        let mut rows = vec![(self.set.rank_key(0, &[]), self.meta.encode())];
        rows.extend(self.nodes.into_iter().flatten());
        (self.set, rows)
    }
}
