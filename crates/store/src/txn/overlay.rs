//! Overlay of uncommitted rows over a snapshot.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
};

use super::undo::UndoBuilder;
use crate::{
    batch::Batch,
    engine::{Bounds, Order, Row, Snapshot},
    error::Error,
    key::successor,
    spec::TableSpec,
};

/// A new value; `None` if the row was deleted.
pub(super) type Written = Option<Vec<u8>>;

type Rows = BTreeMap<Vec<u8>, Written>;

/// Rows written and not committed, by table.
#[derive(Default)]
pub(super) struct Overlay {
    // A transaction writes to a dozen tables: a linear search is faster than hashing.
    tables: Vec<(&'static TableSpec, Rows)>,
}

impl Overlay {
    fn rows(&self, table: &TableSpec) -> Option<&Rows> {
        self.tables.iter().find(|(spec, _)| spec.tag == table.tag).map(|(_, rows)| rows)
    }

    /// What was written to `key`, if anything.
    pub(super) fn get(&self, table: &TableSpec, key: &[u8]) -> Option<&Written> {
        self.rows(table)?.get(key)
    }

    /// Sets `key`, or deletes it.
    pub(super) fn write(&mut self, table: &'static TableSpec, key: Vec<u8>, value: Written) {
        let found = self.tables.iter().position(|(spec, _)| spec.tag == table.tag);
        let at = found.unwrap_or_else(|| {
            self.tables.push((table, Rows::new()));
            self.tables.len() - 1
        });
        self.tables[at].1.insert(key, value);
    }

    /// The first `limit` rows of `bounds` in `order`, as they would be if this were committed onto `snapshot`.
    pub(super) fn scan(
        &self,
        snapshot: &dyn Snapshot,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let Some(rows) = self.rows(table).filter(|_| !bounds.is_empty()) else {
            return snapshot.scan(table, bounds, order, limit);
        };
        let end = bounds.end.map_or(Bound::Unbounded, Bound::Excluded);
        let own = rows.range::<[u8], _>((Bound::Included(bounds.start), end));
        let stored = Stored::new(snapshot, table, bounds, order, limit);
        match order {
            Order::Asc => merge(own, stored, order, limit),
            Order::Desc => merge(own.rev(), stored, order, limit),
        }
    }

    /// Adds every row that differs from `snapshot` to the undo record.
    pub(super) fn add_to_undo(
        &self,
        snapshot: &dyn Snapshot,
        undo: &mut UndoBuilder<'_>,
    ) -> Result<(), Error> {
        for (spec, rows) in &self.tables {
            let keys: Vec<_> = rows.keys().cloned().collect();
            for ((key, new), old) in rows.iter().zip(snapshot.multi_get(spec, &keys)?) {
                if *new != old {
                    undo.row(spec, key, old, new.as_deref());
                }
            }
        }
        Ok(())
    }

    /// Puts every write into `batch`.
    pub(super) fn drain_into(self, batch: &mut Batch) {
        for (spec, rows) in self.tables {
            for (key, value) in rows {
                match value {
                    Some(value) => batch.put(spec, key, value),
                    None => batch.delete(spec, key),
                }
            }
        }
    }
}

/// Merges two row streams of the same order; for equal keys the overlay's row wins.
fn merge<'a>(
    own: impl Iterator<Item = (&'a Vec<u8>, &'a Written)>,
    mut stored: Stored<'_>,
    order: Order,
    limit: usize,
) -> Result<Vec<Row>, Error> {
    let mut own = own.peekable();
    let mut rows = Vec::new();
    while rows.len() < limit {
        let comparison = match (own.peek(), stored.peek()?) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((key, _)), Some((stored, _))) => match order {
                Order::Asc => key.as_slice().cmp(stored),
                Order::Desc => stored.as_slice().cmp(key),
            },
        };
        if comparison.is_ge() {
            let row = stored.next();
            if comparison.is_gt() {
                rows.extend(row);
                continue;
            }
        }
        if let Some((key, Some(value))) = own.next() {
            rows.push((key.clone(), value.clone()));
        }
    }
    Ok(rows)
}

/// The rows of a snapshot one by one, read in chunks.
struct Stored<'a> {
    snapshot: &'a dyn Snapshot,
    table: &'static TableSpec,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    order: Order,
    chunk: usize,
    read: VecDeque<Row>,
    done: bool,
}

/// Rows read beyond those that are wanted, at most: rows of the snapshot may turn out to be deleted.
const SPARE: usize = 4;
const MAX_CHUNK: usize = 256;

impl<'a> Stored<'a> {
    fn new(
        snapshot: &'a dyn Snapshot,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Self {
        Self {
            snapshot,
            table,
            start: bounds.start.to_vec(),
            end: bounds.end.map(<[u8]>::to_vec),
            order,
            chunk: limit.saturating_add(SPARE).min(MAX_CHUNK),
            read: VecDeque::new(),
            done: false,
        }
    }

    fn peek(&mut self) -> Result<Option<&Row>, Error> {
        if self.read.is_empty() && !self.done {
            let bounds = Bounds { start: &self.start, end: self.end.as_deref() };
            self.read = self.snapshot.scan(self.table, bounds, self.order, self.chunk)?.into();
            self.done = self.read.len() < self.chunk;
            if let Some((last, _)) = self.read.back() {
                match self.order {
                    // The smallest key beyond it.
                    Order::Asc => self.start = successor(last),
                    Order::Desc => self.end = Some(last.clone()),
                }
            }
        }
        Ok(self.read.front())
    }

    fn next(&mut self) -> Option<Row> {
        self.read.pop_front()
    }
}
