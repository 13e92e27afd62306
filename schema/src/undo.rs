//! The undo log: for the last heights of each lane, the values of the changed rows before each commit.
//!
//! # Invariants
//!
//! * An undo record is written in the same commit as the changes that it reverts.
//! * A record is applied only to the exact state that its commit produced (checked with a hash).
//! * The records of a lane cover its last heights without a gap.
//!
//! A change without an undo record invalidates the records below it; [`crate::rollback`] then removes the blocks
//! instead, more slowly. The rich list has an undo log of its own ([`crate::rich::RichUndo`]), because it cannot be
//! rebuilt from other tables.

use store::{
    Access, Batch, Bounds, Counts, Durability, Key as _, Message, Order, Pending, Snapshot, Store, Table,
    TableSpec, Txn, UndoRecord, prefix_end,
};

use crate::meta::{self, BlockLane, CallLane};
use crate::nft::{NameChanges, fold};
use crate::{Error, TABLES};

/// Heights of a lane that the undo log covers. A rollup has one sequencer and no forks: blocks disappear only if a
/// node is restored from a backup, or if the last output of the chain is challenged. Both rarely affect more than
/// some minutes of blocks; deeper rewinds use [`crate::rollback`].
pub const HEIGHTS: u64 = 256;

/// The fastest zstd level: a record lives for some minutes.
const LEVEL: i32 = 1;

/// Upper bound of an uncompressed record in bytes; a larger size is treated as corruption. A block with 20 MB of
/// transactions needs a tenth of this.
const MAX_RECORD: u64 = 256 << 20;

/// Prior values of the rows that the last commits of a lane changed. A commit that does not add a height becomes the
/// next part of the last height. Not part of the digest.
///
/// | lane: 1 blocks, 2 internal transactions (1) | height (8, BE) | part (4, BE) | → [`Record`] (protobuf)
#[derive(Debug)]
pub struct UndoRecords;

impl Table for UndoRecords {
    const SPEC: &'static TableSpec = &TableSpec { name: "undo", tag: 0x06, access: Access::Append };
    type Key = RecordKey;
    type Value = Message<Record>;
}

/// Lane, height and part.
pub type RecordKey = (u8, u64, u32);

/// The undo record of one commit.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Record {
    /// The lane's height before the commit.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The prior values of the rows ([`UndoRecord::encode`]), compressed with zstd if that is shorter.
    #[prost(bytes = "vec", tag = "2")]
    pub before: Vec<u8>,
    /// Size after decompression in bytes; 0 if `before` is not compressed.
    #[prost(uint64, tag = "3")]
    pub size: u64,
}

/// A lane whose commits carry undo records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Blocks, with transactions and NFTs.
    Blocks,
    /// Internal transactions.
    InternalTxs,
}

impl Lane {
    /// Every lane, in the order in which they are rewound, so that no lane is ever ahead of the blocks.
    pub const ALL: [Self; 2] = [Self::InternalTxs, Self::Blocks];

    fn tag(self) -> u8 {
        match self {
            Self::Blocks => 1,
            Self::InternalTxs => 2,
        }
    }

    /// The lane with this tag in a record's key.
    pub fn of_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.tag() == tag)
    }

    /// The lane's last height; 0 before its first.
    pub fn height(self, snapshot: &dyn Snapshot) -> Result<u64, Error> {
        Ok(match self {
            Self::Blocks => meta::read::<BlockLane>(snapshot)?.map_or(0, |lane| lane.height),
            Self::InternalTxs => meta::read::<CallLane>(snapshot)?.map_or(0, |lane| lane.height),
        })
    }
}

/// Finishes a transaction of `lane` and adds its undo record; deletes records that are too old. The transaction adds
/// one or more heights, or belongs to the last height; several heights in one commit can only be reverted together.
/// The rows of [`meta::excluded_rows`] are not reverted.
pub fn finish_with_undo_record(txn: Txn<'_>, lane: Lane) -> Result<(Batch, Pending), Error> {
    let base = txn.base();
    let (from, height) = (lane.height(base)?, lane.height(&txn)?);
    let (after, upto) = (from.saturating_sub(HEIGHTS), height.saturating_sub(HEIGHTS));
    let (newest, outdated) = match none_if_corrupt(newest(base, lane))? {
        Some(Some(((_, at, part), _))) if at == from => {
            (Some((at, part)), none_if_corrupt(keys(base, lane, after, upto))?)
        }
        // A later commit has no record, so no older record can be applied any more.
        Some(_) => (None, none_if_corrupt(keys(base, lane, 0, u64::MAX))?),
        None => (None, None),
    };
    // The rows are unreadable, so only the keys of first parts can be computed. Other parts remain; they match no
    // state.
    let outdated = outdated.unwrap_or_else(|| first_part_keys(lane, after, upto));
    let (mut batch, pending, before) = txn.finish_with_undo(&meta::excluded_rows())?;
    for key in outdated {
        batch.delete(UndoRecords::SPEC, key);
    }
    if !before.is_empty() {
        let part = newest.filter(|(at, _)| *at == height).map_or(0, |(_, part)| part.saturating_add(1));
        let mut value = Vec::new();
        store::Value::encode(&Message(Record::new(from, &before)), &mut value);
        batch.put(UndoRecords::SPEC, (lane.tag(), height, part).to_bytes(), value);
    }
    Ok((batch, pending))
}

/// Whether there may be records that rewind `lane` to `to`. Only applying them shows whether all of them match.
pub(crate) fn covers(snapshot: &dyn Snapshot, lane: Lane, to: u64) -> Result<bool, Error> {
    if lane.height(snapshot)? <= to {
        return Ok(true);
    }
    let before = (lane.tag(), to, u32::MAX);
    let row = store::table::rows_after::<UndoRecords>(snapshot, &lane.tag(), &before, Order::Asc, 1);
    let row = none_if_corrupt(row.map_err(Error::from))?.unwrap_or_default();
    Ok(row.first().is_some_and(|(_, Message(record))| record.from == to))
}

/// Reverts the last commit of `lane`, in one commit. Returns false and changes nothing if no record matches the current
/// state, or if the lane would end below `to`.
pub(crate) fn revert_last_commit(store: &dyn Store, lane: Lane, to: u64) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let height = lane.height(&*snapshot)?;
    let Some((key, record)) = none_if_corrupt(newest(&*snapshot, lane))?.flatten() else { return Ok(false) };
    if key.1 != height || record.from < to {
        return Ok(false);
    }
    let Some(mut before) = record.before() else { return Ok(false) };
    if !before.matches(&*snapshot)? {
        return Ok(false);
    }
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    // These numbers must only grow: caches of collection names continue after the last number they have applied.
    if before.exclude_table(NameChanges::SPEC) {
        fold::invalidate_all_names(&mut txn)?;
    }
    meta::count_rewind(&mut txn, to)?;
    txn.delete::<UndoRecords>(&key);
    let (mut batch, _pending) = txn.finish();
    before.revert_into(&*snapshot, &mut batch)?;
    // The caller syncs after the last of these commits; the engine keeps their order.
    store.commit(batch, Durability::Buffered)?;
    Ok(true)
}

impl Record {
    fn new(from: u64, before: &UndoRecord) -> Self {
        let plain = before.encode();
        match zstd::bulk::compress(&plain, LEVEL) {
            Ok(packed) if packed.len() < plain.len() => {
                Self { from, before: packed, size: plain.len() as u64 }
            }
            // If compression fails, the record is stored uncompressed.
            Ok(_) | Err(_) => Self { from, before: plain, size: 0 },
        }
    }

    /// The prior values of the rows; `None` if the record is corrupt.
    pub fn before(&self) -> Option<UndoRecord> {
        let size = usize::try_from(Some(self.size).filter(|size| *size <= MAX_RECORD)?).ok()?;
        if size == 0 {
            return UndoRecord::decode(&self.before, TABLES);
        }
        let plain = zstd::bulk::decompress(&self.before, size).ok()?;
        UndoRecord::decode(&plain, TABLES)
    }
}

/// Deletes the records of heights above `to` with `batch`, without reading them, because they may be corrupt.
pub(crate) fn delete_above(batch: &mut Batch, to: u64) {
    for lane in Lane::ALL {
        let start = (lane.tag(), to.saturating_add(1)).to_bytes();
        batch.delete_range(UndoRecords::SPEC, start, vec![lane.tag() + 1]);
    }
}

/// The result of reading undo records; `None` if they are corrupt, because every operation works without them.
fn none_if_corrupt<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    const TABLE: &str = UndoRecords::SPEC.name;
    match read {
        Ok(found) => Ok(Some(found)),
        Err(Error::Store(
            store::Error::Damaged { table: Some(TABLE), .. } | store::Error::Corrupt { table: TABLE, .. },
        )) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The newest record of `lane`.
fn newest(snapshot: &dyn Snapshot, lane: Lane) -> Result<Option<(RecordKey, Record)>, Error> {
    let row = store::table::rows::<UndoRecords>(snapshot, &lane.tag(), Order::Desc, 1)?.pop();
    Ok(row.map(|(key, Message(record))| (key, record)))
}

/// The keys of the records of `lane` beyond height `after` and up to `upto`.
fn keys(snapshot: &dyn Snapshot, lane: Lane, after: u64, upto: u64) -> Result<Vec<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    let start = (lane.tag(), after.saturating_add(1)).to_bytes();
    let end = prefix_end(&(lane.tag(), upto).to_bytes());
    if after < upto {
        let bounds = Bounds { start: &start, end: end.as_deref() };
        store::for_each_row(snapshot, UndoRecords::SPEC, bounds, |key, _| {
            keys.push(key.to_vec());
            Ok::<(), Error>(())
        })?;
    }
    Ok(keys)
}

/// The keys of the first parts of the last [`HEIGHTS`] heights in the range of [`keys`], computed without reading the
/// table.
fn first_part_keys(lane: Lane, after: u64, upto: u64) -> Vec<Vec<u8>> {
    let heights = after.max(upto.saturating_sub(HEIGHTS)) + 1..=upto;
    heights.map(|height| (lane.tag(), height, 0_u32).to_bytes()).collect()
}
