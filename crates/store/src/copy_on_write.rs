//! Copy-on-write store: the rows of another store, with changes that are kept apart.
//!
//! # Invariants
//!
//! The base is never written. While it does not change, the copy behaves as a complete copy of it would, at the cost of
//! the changed rows only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    batch::{Batch, Change},
    engine::{Bounds, Durability, Order, Row, RowCursor, Snapshot, Store},
    error::Error,
    merge::{Written, merge},
    spec::TableSpec,
};

/// First byte of a row of the changes: the row is deleted, or its new value follows.
const DELETED: u8 = 0;
const PUT: u8 = 1;

/// Key ranges of the base that were deleted: tag of the table, start and end.
type Hidden = Vec<(u8, Vec<u8>, Vec<u8>)>;

/// A store that begins with the rows of another one.
pub struct CopyOnWrite {
    base: Arc<dyn Store>,
    /// Changed rows, with [`DELETED`] or [`PUT`] before their values.
    changes: Arc<dyn Store>,
    hidden: Mutex<Arc<Hidden>>,
}

impl CopyOnWrite {
    /// A copy of `base`. Its changes go to `changes`, which must be empty and have the same tables.
    pub fn new(base: Arc<dyn Store>, changes: Arc<dyn Store>) -> Self {
        Self { base, changes, hidden: Mutex::default() }
    }

    // No code that holds the lock can panic with the ranges half-changed.
    fn lock(&self) -> MutexGuard<'_, Arc<Hidden>> {
        self.hidden.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self, hidden: &Arc<Hidden>) -> Result<View<'_>, Error> {
        let (base, changes) = (self.base.snapshot()?, self.changes.snapshot()?);
        Ok(View { base, changes, hidden: Arc::clone(hidden) })
    }
}

impl Store for CopyOnWrite {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        Ok(Box::new(self.view(&self.lock())?))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        let (mut changes, mut ranges) = (Batch::new(), Vec::new());
        // Held to the end, so that no other commit changes a row between its read and its write.
        let mut hidden = self.lock();
        let before = self.view(&hidden)?;
        for writes in batch.into_sorted() {
            let table = writes.table();
            for (start, end) in writes.ranges() {
                changes.delete_range(table, start.clone(), end.clone());
                ranges.push((table.tag, start.clone(), end.clone()));
            }
            for (key, change) in writes.iter() {
                let value = match change {
                    Change::Append(_) if !writes.deletes(key) => change.apply(before.get(table, key)?),
                    Change::Append(_) | Change::Put(_) | Change::Delete => change.apply(None),
                };
                let value = value.map_or_else(|| vec![DELETED], |value| [&[PUT], &value[..]].concat());
                changes.put(table, key.to_vec(), value);
            }
        }
        drop(before);
        self.changes.commit(changes, durability)?;
        if !ranges.is_empty() {
            Arc::make_mut(&mut hidden).extend(ranges);
        }
        Ok(())
    }

    fn room(&self) -> Result<(), Error> {
        self.changes.room()
    }

    fn sync(&self) -> Result<(), Error> {
        self.changes.sync()
    }

    /// Bytes of the changes.
    fn disk_bytes(&self) -> Result<u64, Error> {
        self.changes.disk_bytes()
    }
}

struct View<'a> {
    base: Box<dyn Snapshot + 'a>,
    changes: Box<dyn Snapshot + 'a>,
    hidden: Arc<Hidden>,
}

impl View<'_> {
    /// The parts of `bounds` that are not deleted in the base, ascending.
    fn visible(&self, table: &TableSpec, bounds: Bounds<'_>) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut parts = vec![(bounds.start.to_vec(), bounds.end.map(<[u8]>::to_vec))];
        for (_, start, end) in self.hidden.iter().filter(|(tag, ..)| *tag == table.tag) {
            let cut = |(from, to): (Vec<u8>, Option<Vec<u8>>)| {
                let before = to.clone().map_or_else(|| start.clone(), |to| to.min(start.clone()));
                [(from.clone(), Some(before)), (from.max(end.clone()), to)]
            };
            parts = parts.into_iter().flat_map(cut).collect();
            parts.retain(|(from, to)| to.as_ref().is_none_or(|to| from < to));
        }
        parts
    }
}

fn written(value: &[u8]) -> Written {
    value.strip_prefix(&[PUT]).map(<[u8]>::to_vec)
}

impl Snapshot for View<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if let Some(value) = self.changes.get(table, key)? {
            return Ok(written(&value));
        }
        let deleted = |(tag, start, end): &(u8, Vec<u8>, Vec<u8>)| {
            *tag == table.tag && start.as_slice() <= key && key < end.as_slice()
        };
        if self.hidden.iter().any(deleted) { Ok(None) } else { self.base.get(table, key) }
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let changes = RowCursor::new(&*self.changes, table, bounds, order).with_chunk(limit);
        let changes = changes.map(|row| row.map(|(key, value)| (key, written(&value))));
        let mut parts = self.visible(table, bounds);
        if order == Order::Desc {
            parts.reverse();
        }
        let stored = parts.iter().flat_map(|(start, end)| {
            let part = Bounds { start, end: end.as_deref() };
            RowCursor::new(&*self.base, table, part, order).with_chunk(limit)
        });
        merge(changes, stored, order, limit)
    }
}
