//! Overlay of uncommitted rows over a snapshot.

use std::{collections::BTreeMap, ops::Bound};

use super::undo::UndoBuilder;
use crate::{
    batch::Batch,
    engine::{Bounds, Order, Row, RowCursor, Snapshot},
    error::Error,
    merge::{Written, merge},
    spec::TableSpec,
};

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

    /// The uncommitted write to `key`, if any.
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

    /// The first `limit` rows of `bounds` in `order`, as after a commit of the overlay onto `snapshot`.
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
        let written = rows.range::<[u8], _>((Bound::Included(bounds.start), end));
        let written = written.map(|(key, value)| Ok((key.clone(), value.clone())));
        let chunk = limit.saturating_add(SPARE).min(MAX_CHUNK);
        let stored = RowCursor::new(snapshot, table, bounds, order).with_chunk(chunk);
        match order {
            Order::Asc => merge(written, stored, order, limit),
            Order::Desc => merge(written.rev(), stored, order, limit),
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

/// Rows read beyond the limit: rows of the snapshot may turn out to be deleted.
const SPARE: usize = 4;
const MAX_CHUNK: usize = 256;
