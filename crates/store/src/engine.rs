//! The contract between us and whatever keeps the bytes: ordered tables, snapshots, atomic commits.
//!
//! Every engine must hold to the following (`tests/engine/engines.rs` demands it of each):
//! keys compare as unsigned bytes; a scan gives the rows of its bounds in order, all of them up to its
//! limit; a snapshot never changes; a commit is all or nothing across tables and threads; the last write of
//! a key in a batch wins and deleting an absent key is no error; damaged bytes and failed reads are errors,
//! never an absence or an early end.
//!
//! Nothing here names a feature that only one engine has. An engine without column families puts
//! [`TableSpec::tag`] in front of each key.

use crate::{batch::Batch, error::Error, key::successor, spec::TableSpec};

/// Direction of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smallest key first.
    Asc,
    /// Largest key first.
    Desc,
}

/// The keys from `start` on and before `end`: half-open, whatever the direction of the scan.
///
/// Bounds that are the wrong way round hold no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds<'a> {
    /// First key inside.
    pub start: &'a [u8],
    /// First key beyond; `None` is the end of the table.
    pub end: Option<&'a [u8]>,
}

impl Bounds<'_> {
    /// The whole table.
    pub const fn all() -> Self {
        Bounds { start: &[], end: None }
    }

    /// Whether no key can be inside.
    pub fn is_empty(&self) -> bool {
        self.end.is_some_and(|end| self.start >= end)
    }
}

/// The first key beyond all keys that start with `prefix`; `None` if there is none (only `ff` bytes).
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

/// What a commit survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Handed to the operating system: the end of the process, but not a loss of power. After one, the store
    /// holds all commits up to some earlier one, without gaps.
    Buffered,
    /// On the device.
    Synced,
}

/// A set of ordered tables that change only by whole batches.
pub trait Store: Send + Sync + 'static {
    /// A view of all tables that no later commit changes. Hold it for a request, not longer: an engine
    /// keeps what a view can see.
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error>;

    /// Applies every write of `batch`, or none. Threads may commit at the same time.
    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error>;

    /// Whether there is room for commits, which fail as this does ([`Error::NoSpace`]) while there is none. Ask it before
    /// work whose results could not be kept. An engine without a disk always has room.
    fn room(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns once all earlier commits are on the device.
    fn sync(&self) -> Result<(), Error>;

    /// Bytes that the store takes on disk, logs included.
    fn disk_bytes(&self) -> Result<u64, Error>;
}

/// A view of a store at one moment.
pub trait Snapshot: Send + Sync {
    /// The value of `key`; `None` if there is no such row.
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

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
}

/// Gives every row of `bounds` to `visit`, in ascending order, and stops at its first error.
///
/// Memory stays bounded whatever the size of the table: rows come in chunks that grow while they are small
/// and shrink when they are large.
pub fn for_each_row<E: From<Error>>(
    snapshot: &dyn Snapshot,
    table: &'static TableSpec,
    bounds: Bounds<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut start = bounds.start.to_vec();
    let mut chunk = FIRST_CHUNK;
    loop {
        let rows = snapshot.scan(table, Bounds { start: &start, end: bounds.end }, Order::Asc, chunk)?;
        for (key, value) in &rows {
            visit(key, value)?;
        }
        let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
        let Some((last, _)) = rows.into_iter().next_back() else { return Ok(()) };
        start = successor(&last);
        chunk = next_chunk(chunk, bytes);
    }
}

/// Rows of the first chunk: one that is too large costs memory, one that is too small only a seek.
const FIRST_CHUNK: usize = 64;

/// At 4,096 rows a chunk, the seek at its start is lost in the noise.
const MAX_CHUNK: usize = 4096;

/// A chunk of more bytes than this makes the next one smaller.
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
