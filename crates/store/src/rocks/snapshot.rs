//! Snapshot reads from RocksDB.
//!
//! # Invariants
//!
//! Every read of a snapshot sees the same state. Reads of the owner use a RocksDB snapshot. Secondary instances do not
//! support them (iterators fail, `Get` silently ignores them), so a follower's snapshot holds a secondary, which does
//! not change meanwhile.

use std::{path::Path, sync::Arc};

use rocksdb::{DB, ReadOptions, SnapshotWithThreadMode};

use super::{
    compaction_hold::CompactionHold,
    errors::{map_error, with_table},
    handle::family,
    options::FILTERED_PREFIX,
    secondary::Secondary,
};
use crate::{
    engine::{Bounds, Order, Row, Snapshot},
    error::Error,
    spec::{Access, TableSpec},
};

pub(super) struct RocksSnapshot<'a> {
    path: &'a Path,
    /// Options for reads by key, created once.
    by_key: ReadOptions,
    view: View<'a>,
}

enum View<'a> {
    Owner { db: &'a DB, hold: &'a CompactionHold, snapshot: SnapshotWithThreadMode<'a, DB> },
    Follower(Arc<Secondary>),
}

impl View<'_> {
    fn db(&self) -> &DB {
        match self {
            View::Owner { db, .. } => db,
            View::Follower(secondary) => secondary.db(),
        }
    }

    fn options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        match self {
            View::Owner { snapshot, .. } => options.set_snapshot(snapshot),
            View::Follower(_) => {}
        }
        options
    }
}

impl<'a> RocksSnapshot<'a> {
    pub(super) fn of_owner(path: &'a Path, db: &'a DB, hold: &'a CompactionHold) -> Self {
        Self::at(path, View::Owner { db, hold, snapshot: db.snapshot() })
    }

    pub(super) fn of_follower(path: &'a Path, secondary: Arc<Secondary>) -> Self {
        Self::at(path, View::Follower(secondary))
    }

    fn at(path: &'a Path, view: View<'a>) -> Self {
        Self { path, by_key: view.options(), view }
    }

    pub(super) fn db(&self) -> &DB {
        self.view.db()
    }

    fn map_error(&self, table: &'static TableSpec, error: rocksdb::Error) -> Error {
        let error = with_table(table, map_error(self.path, "reading", error));
        if let View::Owner { db, hold, .. } = &self.view {
            hold.record(db, &error);
        }
        error
    }
}

impl Snapshot for RocksSnapshot<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut found = None;
        self.get_with(table, key, &mut |value| found = Some(value.to_vec()))?;
        Ok(found)
    }

    fn get_with(
        &self,
        table: &'static TableSpec,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        let db = self.db();
        let family = family(db, table)?;
        let value = db.get_pinned_cf_opt(family, key, &self.by_key);
        value.map_err(|error| self.map_error(table, error))?.iter().for_each(|value| visit(value));
        Ok(())
    }

    fn multi_get(&self, table: &'static TableSpec, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let db = self.db();
        let family = family(db, table)?;
        let sorted = keys.is_sorted();
        let values = db.batched_multi_get_cf_opt(family, keys, sorted, &self.by_key);
        let owned = |value: Result<Option<rocksdb::DBPinnableSlice<'_>>, _>| match value {
            Ok(value) => Ok(value.map(|bytes| bytes.to_vec())),
            Err(error) => Err(self.map_error(table, error)),
        };
        values.into_iter().map(owned).collect()
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::with_capacity(limit.min(LIKELY_ROWS));
        self.visit(table, bounds, order, limit, &mut |key, value| rows.push((key.to_vec(), value.to_vec())))?;
        Ok(rows)
    }

    fn visit(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let db = self.db();
        let family = family(db, table)?;
        if limit == 0 || bounds.is_empty() {
            return Ok(());
        }
        let mut options = self.view.options();
        // Only these seeks are to a key with the prefix of all keys that are wanted.
        let filtered = matches!(table.access, Access::Scan | Access::Ranked);
        if filtered && order == Order::Asc && bounds.share_prefix(FILTERED_PREFIX) {
            options.set_prefix_same_as_start(true);
        } else {
            options.set_total_order_seek(true);
        }
        options.set_iterate_lower_bound(bounds.start);
        if let Some(end) = bounds.end {
            options.set_iterate_upper_bound(end);
        }
        let mut iterator = db.raw_iterator_cf_opt(family, options);
        // The bounds of the options limit the seeks.
        match order {
            Order::Asc => iterator.seek_to_first(),
            Order::Desc => iterator.seek_to_last(),
        }
        let mut visited = 0;
        while let Some((key, value)) = iterator.item() {
            visit(key, value);
            visited += 1;
            // A step beyond the last row may cost a block.
            if visited == limit {
                break;
            }
            match order {
                Order::Asc => iterator.next(),
                Order::Desc => iterator.prev(),
            }
        }
        // An iterator that fails looks like one at its end.
        iterator.status().map_err(|error| self.map_error(table, error))
    }
}

/// Initial capacity for a page; limits may be far larger than the number of rows.
const LIKELY_ROWS: usize = 128;
