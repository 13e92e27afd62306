//! Storage engine interface: ordered tables, snapshots, atomic commits.
//!
//! The interface uses no feature that only one engine has. An engine without column families prefixes each key with
//! [`TableSpec::tag`].
//!
//! # Invariants
//!
//! `tests/engine/demands.rs` checks these for every engine:
//!
//! * Keys compare as unsigned bytes.
//! * A scan returns the rows within its bounds in order, without gaps, up to its limit.
//! * A snapshot never changes.
//! * A commit is atomic across tables and threads. The last write of a key in a batch wins; deleting an absent key is
//!   no error.
//! * Corrupt bytes and failed reads are errors, never an absent row or an early end of a scan.

use crate::{batch::Batch, error::Error, key::successor, spec::TableSpec};

/// Direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest key first.
    Asc,
    /// Largest key first.
    Desc,
}

/// The half-open key range `start..end`, in either scan direction.
///
/// A range with `end` before `start` is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds<'a> {
    /// First key of the range.
    pub start: &'a [u8],
    /// First key after the range; `None` is the end of the table.
    pub end: Option<&'a [u8]>,
}

impl Bounds<'_> {
    /// The whole table.
    pub const fn all() -> Self {
        Bounds { start: &[], end: None }
    }

    /// True if the range contains no key.
    pub fn is_empty(&self) -> bool {
        self.end.is_some_and(|end| self.start >= end)
    }

    /// True if all keys of the range begin with the same `n` bytes.
    pub fn share_prefix(&self, n: usize) -> bool {
        let (Some(prefix), Some(end)) = (self.start.get(..n), self.end) else { return false };
        end.starts_with(prefix) || prefix_end(prefix).as_deref() == Some(end)
    }
}

/// The smallest key above all keys that start with `prefix`; `None` if there is none (`prefix` has only `ff` bytes).
///
/// `[0a ff]` → `[0b]`. Keys under a prefix are
/// `Bounds { start: prefix, end: prefix_end(prefix).as_deref() }`.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Key and value as stored.
pub type Row = (Vec<u8>, Vec<u8>);

/// The failures that a commit survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the engine. On disk it is handed to the operating system and survives the end of the process, but not
    /// a power failure; on object storage it is in memory and may not survive the process. After such a failure the
    /// store holds all commits up to an earlier one, without gaps.
    Buffered,
    /// On the device (fsync), or in the object store: survives a power failure. Only these commits may be announced
    /// outside the process, and then all earlier ones with them.
    Synced,
}

/// A set of ordered tables, written in atomic batches.
pub trait Store: Send + Sync + 'static {
    /// An immutable view of all tables. Hold it for one request only: the engine keeps every row version that a
    /// snapshot can see.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error>;

    /// A number that changes when new snapshots show another state: a snapshot that is taken between two equal numbers
    /// shows the same rows as any other such snapshot. `None` if the engine does not count its states.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Applies every write of `batch`, or none. Threads may commit concurrently.
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error>;

    /// Returns [`Error::NoSpace`] while the disk is too full for commits, which then fail with the same error. Call it
    /// before work whose results would be lost. An engine without a disk never fails.
    fn room(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Blocks until all earlier commits are on the device, or in the object store.
    fn sync(&self) -> Result<(), Error>;

    /// Bytes of the store on disk, write-ahead logs included.
    fn disk_bytes(&self) -> Result<u64, Error>;
}

/// An immutable view of a store.
pub trait Snapshot: Send + Sync {
    /// The value of `key`; `None` if there is no such row.
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Calls `visit` with the value of `key`, if there is such a row; engines may spare the copy.
    fn get_with(
        &self,
        table: &'static TableSpec,
        key: &[u8],
        visit: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        self.get(table, key)?.iter().for_each(|value| visit(value));
        Ok(())
    }

    /// The values of `keys`, in their order; keys may come in any order and more than once.
    fn multi_get(&self, table: &'static TableSpec, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }

    /// The first `limit` rows of `bounds` in `order`.
    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, Error>;

    /// Calls `visit` with key and value of each row that [`Snapshot::scan`] returns; engines may spare the copies.
    fn visit(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        self.scan(table, bounds, order, limit)?.iter().for_each(|(key, value)| visit(key, value));
        Ok(())
    }
}

/// Calls `visit` for every row of `bounds`, in ascending order, and stops at its first error.
///
/// Memory is bounded for tables of any size.
pub fn for_each_row<E: From<Error>>(
    snapshot: &dyn Snapshot,
    table: &'static TableSpec,
    bounds: Bounds<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    for row in RowCursor::new(snapshot, table, bounds, Order::Asc) {
        let (key, value) = row?;
        visit(&key, &value)?;
    }
    Ok(())
}

/// The rows of a range one by one, read in chunks whose row count adapts to the row size. Ends after an error.
pub struct RowCursor<'a> {
    snapshot: &'a dyn Snapshot,
    table: &'static TableSpec,
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    order: Order,
    /// Rows of the next chunk.
    rows: usize,
    chunk: std::vec::IntoIter<Row>,
    done: bool,
}

impl<'a> RowCursor<'a> {
    /// A cursor over the rows of `bounds` in `order`.
    pub fn new(
        snapshot: &'a dyn Snapshot,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
    ) -> Self {
        Self {
            snapshot,
            table,
            start: bounds.start.to_vec(),
            end: bounds.end.map(<[u8]>::to_vec),
            order,
            rows: FIRST_CHUNK,
            chunk: Vec::new().into_iter(),
            done: false,
        }
    }

    /// Sets the rows of the first chunk, for a reader that probably needs no more.
    pub(crate) fn with_chunk(mut self, rows: usize) -> Self {
        self.rows = rows.clamp(1, MAX_CHUNK);
        self
    }

    fn read(&mut self) -> Result<(), Error> {
        let bounds = Bounds { start: &self.start, end: self.end.as_deref() };
        let rows = self.snapshot.scan(self.table, bounds, self.order, self.rows)?;
        self.done = rows.len() < self.rows;
        if let Some((last, _)) = rows.last() {
            match self.order {
                Order::Asc => self.start = successor(last),
                Order::Desc => self.end = Some(last.clone()),
            }
        }
        let bytes = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        self.rows = next_chunk(self.rows, bytes);
        self.chunk = rows.into_iter();
        Ok(())
    }
}

impl Iterator for RowCursor<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.chunk.len() == 0
            && !self.done
            && let Err(error) = self.read()
        {
            self.done = true;
            return Some(Err(error));
        }
        self.chunk.next().map(Ok)
    }
}

/// Rows of the first chunk: too many cost memory, too few cost only another seek.
const FIRST_CHUNK: usize = 64;

/// At 4,096 rows a chunk, the cost of its seek is negligible.
const MAX_CHUNK: usize = 4096;

/// A chunk larger than this halves the rows of the next one.
const CHUNK_BYTES: usize = 1 << 20;

fn next_chunk(rows: usize, bytes: usize) -> usize {
    if bytes > CHUNK_BYTES { (rows / 2).max(1) } else { (rows * 2).min(MAX_CHUNK) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key_that_does_not_start_with_it() {
        assert_eq!(prefix_end(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(prefix_end(&[1, 0xff, 0xff]), Some(vec![2]));
        assert_eq!(prefix_end(&[0xff, 0xff]), None);
        assert_eq!(prefix_end(&[]), None);
    }

    #[test]
    fn chunks_grow_while_rows_are_small_and_shrink_when_they_are_large() {
        assert_eq!(next_chunk(64, 6_400), 128);
        assert_eq!(next_chunk(MAX_CHUNK, 400_000), MAX_CHUNK);
        assert_eq!(next_chunk(64, CHUNK_BYTES + 1), 32);
        assert_eq!(next_chunk(1, CHUNK_BYTES + 1), 1);
    }
}
