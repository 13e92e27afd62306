//! The undo log: for the last commits of each lane, the values of the changed rows before each commit. It is the only way
//! to remove heights from a database ([`crate::rewind`]).
//!
//! # Invariants
//!
//! * An undo record is written in the same commit as the changes that it reverts.
//! * A record is applied only to the exact state that its commit produced (checked with a hash).
//! * The records of a lane cover its last commits without a gap. Their age and size are bounded by a [`Horizon`].
//!
//! A change without an undo record invalidates the records below it. The rich list has an undo log of its own
//! ([`crate::rich::RichUndo`]).

use std::time::Duration;

use store::{
    Batch, Counts, Durability, Key as _, Message, Order, Pending, Snapshot, Store, Table as _, Txn,
    UndoRecord, Value as _,
};

use crate::block::Blocks;
use crate::index::Index;
use crate::meta::{self, BlockLane, CallLane};
use crate::nft::{NameChanges, fold};
use crate::{Error, INDEXES, TABLES};

/// Heights from the head of the chain that are committed one by one. Before them, many heights share a commit, which can
/// only be reverted as a whole.
pub const SINGLE_HEIGHTS: u64 = 256;

/// What the undo log keeps: the commits that are inside both bounds, and always the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Age of a block, compared with the last block of its lane; while catching up, compared with the clock.
    pub time: Duration,
    /// Bytes of all records of a lane, as stored.
    pub bytes: u64,
}

impl Horizon {
    /// A day, which is longer than the outages after which nodes are restored from a backup, and a size that it needs on no
    /// recorded chain.
    pub const DEFAULT: Self = Self { time: Duration::from_hours(24), bytes: 1 << 30 };

    /// The time of the oldest block inside, if `newest` is the time of the last one (nanoseconds since 1970).
    pub fn since(&self, newest: i64) -> i64 {
        newest.saturating_sub(i64::try_from(self.time.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// Most records that one commit deletes: a shorter horizon takes effect over some commits.
const MAX_DELETED: usize = 64;

/// The fastest zstd level: a record lives for some minutes.
const LEVEL: i32 = 1;

/// Upper bound of an uncompressed record in bytes; a larger size is treated as corruption. A block with 20 MB of
/// transactions needs a tenth of this.
const MAX_RECORD: u64 = 256 << 20;

store::tables! {
    /// Prior values of the rows that the last commits of a lane changed. A commit that does not add a height becomes the
    /// next part of the last height. Not part of the digest.
    ///
    /// | lane: 1 blocks, 2 internal transactions, else the tag of an index's first table (1) | height (8, BE) | part (4, BE) | → [`Record`] (protobuf)
    pub table UndoRecords("undo", 0x06, Append): RecordKey => Message<Record>;
}

/// Lane, height and part.
pub type RecordKey = (u8, u64, u32);

/// The undo record of one commit.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Record {
    /// The lane's height before the commit.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// The prior values of the rows ([`UndoRecord::encode`]), compressed with zstd if that is shorter.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub before: Vec<u8>,
    /// Size after decompression in bytes; 0 if `before` is not compressed.
    #[prost(uint64, tag = "3")]
    pub size: u64,
    /// Time of the block of the lane's height after the commit, in nanoseconds since 1970.
    #[prost(int64, tag = "4")]
    pub time: i64,
    /// Bytes of all records of the lane before this one, since its first: a difference of two is the size of the records
    /// between them.
    #[prost(uint64, tag = "5")]
    pub total: u64,
}

/// A lane whose commits carry undo records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Blocks, with transactions and NFTs.
    Blocks,
    /// Internal transactions.
    InternalTxs,
    /// An optional index.
    Index(&'static Index),
}

impl Lane {
    /// Every lane that queries the node, in the order in which they are rewound, so that no lane is ever ahead of the
    /// blocks. Those of indexes are rewound before them.
    pub const ALL: [Self; 2] = [Self::InternalTxs, Self::Blocks];

    fn tag(self) -> u8 {
        match self {
            Self::Blocks => 1,
            Self::InternalTxs => 2,
            Self::Index(index) => index.lane_tag(),
        }
    }

    /// The lane with this tag in a record's key.
    pub fn of_tag(tag: u8) -> Option<Self> {
        let indexes = INDEXES.iter().copied().map(Self::Index);
        Self::ALL.into_iter().chain(indexes).find(|lane| lane.tag() == tag)
    }

    /// The lane's last height; 0 before its first.
    pub fn height(self, snapshot: &dyn Snapshot) -> Result<u64, Error> {
        Ok(match self {
            Self::Blocks => meta::read::<BlockLane>(snapshot)?.map_or(0, |lane| lane.height),
            Self::InternalTxs => meta::read::<CallLane>(snapshot)?.map_or(0, |lane| lane.height),
            Self::Index(index) => index.state(snapshot)?.map_or(0, |state| state.height),
        })
    }

    /// The time of the block of its last height, in nanoseconds since 1970; 0 if there is none.
    fn time(self, snapshot: &dyn Snapshot) -> Result<i64, Error> {
        Ok(match self {
            Self::Blocks => meta::read::<BlockLane>(snapshot)?.map_or(0, |lane| lane.time),
            Self::Index(index) => index.state(snapshot)?.map_or(0, |state| state.time),
            Self::InternalTxs => {
                let height = self.height(snapshot)?;
                store::table::read::<Blocks>(snapshot, &height)?.map_or(0, |Message(block)| block.time)
            }
        })
    }
}

/// The writer of a lane's undo log.
#[derive(Debug)]
pub struct UndoLog {
    lane: Lane,
    horizon: Horizon,
    /// The oldest record: key, time and `total`. A search for it from the start of the table would pass over all deleted
    /// ones. `None`: not searched yet.
    oldest: Option<(RecordKey, i64, u64)>,
}

impl UndoLog {
    /// Continues the log of `lane`.
    pub fn new(lane: Lane, horizon: Horizon) -> Self {
        Self { lane, horizon, oldest: None }
    }

    /// Finishes a transaction of the lane and adds its undo record; deletes records beyond the horizon. The transaction
    /// adds one or more heights, or belongs to the last height; several heights in one commit can only be reverted together.
    /// The rows of [`meta::excluded_rows`] are not reverted.
    pub fn finish(&mut self, txn: Txn<'_>) -> Result<(Batch, Pending), Error> {
        let (base, lane) = (txn.base(), self.lane);
        let (from, height) = (lane.height(base)?, lane.height(&txn)?);
        let time = lane.time(&txn)?;
        let newest =
            none_if_corrupt(newest(base, lane, from))?.flatten().filter(|((_, at, _), _)| *at == from);
        let (mut batch, pending, before) = txn.finish_with_undo(&meta::excluded_rows())?;
        let total = newest.as_ref().map_or(0, |(_, record)| record.total.saturating_add(record.len()));
        // Without a record of the last commit, no older record can be applied any more.
        if newest.is_none() || !self.delete_old(base, &mut batch, self.horizon.since(time), total)? {
            batch.delete_range(UndoRecords::SPEC, vec![lane.tag()], vec![lane.tag() + 1]);
            self.oldest = None;
        }
        if !before.is_empty() {
            let part = newest.filter(|((_, at, _), _)| *at == height);
            let part = part.map_or(0, |((_, _, part), _)| part.saturating_add(1));
            let record = Message(Record { time, total, ..Record::new(from, &before) });
            batch.put(UndoRecords::SPEC, (lane.tag(), height, part).to_bytes(), record.encoded());
        }
        Ok((batch, pending))
    }

    /// True if the last height of `txn` is inside the horizon of `now`, in nanoseconds since 1970.
    pub fn is_inside(&self, txn: &Txn<'_>, now: i64) -> Result<bool, Error> {
        Ok(self.lane.time(txn)? >= self.horizon.since(now))
    }

    /// Deletes the records of blocks before `since`, and the oldest ones until the others, which end at `total`, fit into
    /// the horizon. False if a record is unreadable.
    fn delete_old(
        &mut self,
        base: &dyn Snapshot,
        batch: &mut Batch,
        since: i64,
        total: u64,
    ) -> Result<bool, Error> {
        let mut found = self.oldest;
        for _ in 0..MAX_DELETED {
            let Some((key, time, begins_at)) = found else {
                let start = (self.lane.tag(), 0, 0);
                match none_if_corrupt(record_after(base, &start))? {
                    Some(Some(oldest)) => found = Some(oldest),
                    Some(None) => break,
                    None => return Ok(false),
                }
                continue;
            };
            if time >= since && total.saturating_sub(begins_at) <= self.horizon.bytes {
                break;
            }
            match none_if_corrupt(record_after(base, &key))? {
                Some(Some(next)) => found = Some(next),
                // The last one stays.
                Some(None) => break,
                None => return Ok(false),
            }
            batch.delete(UndoRecords::SPEC, key.to_bytes());
        }
        self.oldest = found;
        Ok(true)
    }
}

/// The height at which a rewind of `lane` to `to` ends: `to`, or the last one before it at which a commit ended. `None` if
/// the undo log does not reach it. Only reverting the commits shows whether all records match.
pub(crate) fn landing(snapshot: &dyn Snapshot, lane: Lane, to: u64) -> Result<Option<u64>, Error> {
    let height = lane.height(snapshot)?;
    if height <= to {
        return Ok(Some(height));
    }
    let last = none_if_corrupt(newest(snapshot, lane, height))?.flatten();
    if last.is_none_or(|((_, at, _), _)| at != height) {
        return Ok(None);
    }
    let after = (lane.tag(), to, u32::MAX);
    let row = store::table::rows_after::<UndoRecords>(snapshot, &lane.tag(), &after, Order::Asc, 1);
    let row = none_if_corrupt(row.map_err(Error::from))?.unwrap_or_default().pop();
    Ok(row.map(|(_, Message(record))| record.from).filter(|from| *from <= to))
}

/// The part of the undo log of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The lowest height to which the lane can be rewound: its last height if there are no records.
    pub lowest: u64,
    /// Bytes of the records.
    pub bytes: u64,
}

/// The heights and the size of the undo log of `lane`.
pub fn extent(snapshot: &dyn Snapshot, lane: Lane) -> Result<Extent, Error> {
    let height = lane.height(snapshot)?;
    let last = none_if_corrupt(newest(snapshot, lane, height))?.flatten();
    let first = store::table::rows::<UndoRecords>(snapshot, &lane.tag(), Order::Asc, 1);
    let first = none_if_corrupt(first.map_err(Error::from))?.unwrap_or_default().pop();
    Ok(match (first, last) {
        (Some((_, Message(first))), Some(((_, at, _), last))) if at == height => {
            let end = last.total.saturating_add(last.len());
            Extent { lowest: first.from, bytes: end.saturating_sub(first.total) }
        }
        _ => Extent { lowest: height, bytes: 0 },
    })
}

/// What must hold before a commit is reverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// The rows are those that the commit has written.
    Rows,
    /// Nothing.
    Nothing,
}

/// Reverts the last commit of `lane`, in one commit. Returns false and changes nothing if there is no record of it, or if
/// the `check` fails.
pub(crate) fn revert_last_commit(store: &dyn Store, lane: Lane, check: Check) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let height = lane.height(&*snapshot)?;
    let record = none_if_corrupt(newest(&*snapshot, lane, height))?.flatten();
    let Some((key, record)) = record.filter(|(key, _)| key.1 == height) else { return Ok(false) };
    let Some(mut before) = record.before() else { return Ok(false) };
    if check == Check::Rows && !before.matches(&*snapshot)? {
        return Ok(false);
    }
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    // These numbers must only grow: caches of collection names continue after the last number they have applied.
    if before.exclude_table(NameChanges::SPEC) {
        fold::invalidate_all_names(&mut txn)?;
    }
    meta::count_rewind(&mut txn, record.from)?;
    txn.delete::<UndoRecords>(&key);
    let (mut batch, _pending) = txn.finish();
    match check {
        Check::Rows => match before.revert_into(&*snapshot, &mut batch) {
            Err(store::Error::Corrupt { .. }) => return Ok(false),
            reverted => reverted?,
        },
        Check::Nothing => before.revert_damaged_into(&*snapshot, &mut batch)?,
    }
    // The caller syncs after the last of these commits; the engine keeps their order.
    store.commit(batch, Durability::Buffered)?;
    Ok(true)
}

impl Record {
    fn new(from: u64, before: &UndoRecord) -> Self {
        let plain = before.encode();
        match zstd::bulk::compress(&plain, LEVEL) {
            Ok(packed) if packed.len() < plain.len() => {
                Self { from, before: packed, size: plain.len() as u64, ..Self::default() }
            }
            // If compression fails, the record is stored uncompressed.
            Ok(_) | Err(_) => Self { from, before: plain, ..Self::default() },
        }
    }

    /// Its size, as stored.
    fn len(&self) -> u64 {
        self.before.len() as u64
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

/// The newest record of `lane`, whose last height is `height`. A search from the end of the table would pass over the
/// records that a rewind has deleted.
fn newest(snapshot: &dyn Snapshot, lane: Lane, height: u64) -> Result<Option<(RecordKey, Record)>, Error> {
    let end = (lane.tag(), height, u32::MAX);
    let row = store::table::rows_after::<UndoRecords>(snapshot, &lane.tag(), &end, Order::Desc, 1)?.pop();
    Ok(row.map(|(key, Message(record))| (key, record)))
}

/// Key, time and `total` of the first record of the same lane after the key `after`.
fn record_after(snapshot: &dyn Snapshot, after: &RecordKey) -> Result<Option<(RecordKey, i64, u64)>, Error> {
    let row = store::table::rows_after::<UndoRecords>(snapshot, &after.0, after, Order::Asc, 1)?.pop();
    Ok(row.map(|(key, Message(record))| (key, record.time, record.total)))
}
