//! Reads of tables: the key of a row is the tree of its table, the tag of the table, then its key in the table.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use slatedb::config::{ReadOptions, ScanOptions};
use slatedb::{DbReadOps, IterationOrder};
use store::{Access, Bounds, Error, Order, Row, Snapshot, TableSpec, prefix_end};

use crate::engine::Engine;
use crate::settings::FILTERED_PREFIX;

/// Reads of a [`Snapshot::multi_get`] at a time: beyond it they only queue in the client.
const CONCURRENT_READS: usize = 64;

/// Bytes that a row likely takes: a scan fetches about its limit of rows in one request.
const LIKELY_ROW_BYTES: usize = 64;

/// The most that a scan fetches in one request.
const MAX_READ_AHEAD: usize = 1 << 20;

/// Rows beyond which a scan is a pass over a table, whose blocks would only evict others from the cache. A page of 100
/// records may scan some 3,300 rows.
const CACHED_SCAN: usize = 4095;

/// Initial capacity for a page; limits may be far larger than the number of rows.
const LIKELY_ROWS: usize = 128;

/// A view that does not change, of a writer or of a reader.
pub(crate) struct Rows<'a, V> {
    pub(crate) engine: &'a Engine,
    pub(crate) name: &'a Path,
    pub(crate) view: Arc<V>,
}

/// Bytes before the key of a row in its table.
const HEAD: usize = 2;

/// The tree of files of a table. A lookup asks each file of a tree whose first and last key enclose its own. A table that
/// is written in key order has a tree of its own, so that a lookup asks one file. The others share one: lookups in trees of
/// their own would ask as many files, and each file costs an upload.
fn tree(table: &TableSpec) -> u8 {
    match table.access {
        Access::Append => table.tag,
        Access::Point | Access::Hash | Access::Scan | Access::Ranked => 0,
    }
}

/// The key of a row in the database.
pub(crate) fn stored_key(table: &TableSpec, key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(HEAD + key.len());
    stored.extend_from_slice(&[tree(table), table.tag]);
    stored.extend_from_slice(key);
    stored
}

/// The stored keys of `bounds`.
pub(crate) fn stored_range(table: &TableSpec, bounds: Bounds<'_>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let end = match bounds.end {
        Some(end) => Some(stored_key(table, end)),
        None => prefix_end(&stored_key(table, &[])),
    };
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(stored_key(table, bounds.start)), end)
}

/// Whether `bounds` are those of all rows with a prefix that the filters know.
fn is_filtered(bounds: Bounds<'_>) -> bool {
    HEAD + bounds.start.len() >= FILTERED_PREFIX
        && bounds.end.is_some()
        && prefix_end(bounds.start).as_deref() == bounds.end
}

impl<V: DbReadOps + Send + Sync> Snapshot for Rows<'_, V> {
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
        let options = ReadOptions::default();
        let value = self.view.get_with_options(stored_key(table, key), &options);
        self.engine.read(self.name, READING, value)?.iter().for_each(|value| visit(value));
        Ok(())
    }

    fn multi_get(&self, table: &'static TableSpec, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let options = &ReadOptions::default();
        let value = |key: &Vec<u8>| self.view.get_with_options(stored_key(table, key), options);
        // Made before the stream: a closure over references inside it has no general enough lifetime.
        let reads: Vec<_> = keys.iter().map(value).collect();
        let values = stream::iter(reads).buffered(CONCURRENT_READS).map_ok(|value| value.map(Vec::from));
        self.engine.read(self.name, READING, values.try_collect())
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        if limit == 0 || bounds.is_empty() {
            return Ok(Vec::new());
        }
        let read_ahead = limit.saturating_mul(LIKELY_ROW_BYTES).min(MAX_READ_AHEAD);
        let options = ScanOptions::default()
            .with_read_ahead_bytes(read_ahead)
            .with_max_fetch_tasks(if limit > CACHED_SCAN { 4 } else { 1 })
            .with_cache_blocks(limit <= CACHED_SCAN)
            .with_order(match order {
                Order::Asc => IterationOrder::Ascending,
                Order::Desc => IterationOrder::Descending,
            });
        self.engine.read(self.name, READING, async {
            let mut found = if is_filtered(bounds) {
                self.view.scan_prefix_with_options(stored_key(table, bounds.start), .., &options).await?
            } else {
                self.view.scan_with_options(stored_range(table, bounds), &options).await?
            };
            let mut rows = Vec::with_capacity(limit.min(LIKELY_ROWS));
            while rows.len() < limit
                && let Some(row) = found.next().await?
            {
                rows.push((row.key[HEAD..].to_vec(), row.value.to_vec()));
            }
            Ok(rows)
        })
    }
}

const READING: &str = "reading";
