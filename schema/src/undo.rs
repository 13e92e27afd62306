//! How the last heights of a lane are taken back: what its rows were before each of its commits.
//!
//! What must hold: a record stands in the same commit as the changes that it takes back; it is applied to the state that
//! they left and to no other; records of a lane are of its last heights, without a gap. Whatever is changed without a
//! record makes records that no longer fit, and what is taken back then is taken back the slow way ([`crate::rollback`]).
//!
//! The rich list keeps records of its own ([`crate::rich::RichUndo`]): it has nothing else that it could be made again from.

use store::{
    Access, Batch, Bounds, Counts, Durability, Key as _, Message, Order, Pending, Snapshot, Store, Table,
    TableSpec, Txn, UndoRecord, prefix_end,
};

use crate::meta::{self, BlockLane, CallLane};
use crate::nft::{NameChanges, fold};
use crate::{Error, TABLES};

/// Heights of a lane that can be taken back. A rollup has one sequencer and no forks: what is ever taken back is what a
/// node lost that was restarted from a copy, or the last output of the chain that was challenged. That is rarely more than
/// some minutes of blocks; what is more is taken back too, but slower ([`crate::rollback`]).
pub const HEIGHTS: u64 = 256;

/// zstd's quickest: a record lives for some minutes.
const LEVEL: i32 = 1;

/// A record of more bytes is taken for damage: a block of 20 MB of transactions makes a tenth of it.
const MAX_RECORD: u64 = 256 << 20;

/// What rows were before the last commits of a lane. A commit that is no height's is the next part of the last height. Not
/// part of the digest.
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

/// How a commit is taken back.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Record {
    /// The lane's height before the commit.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// What the rows were ([`UndoRecord::encode`]), by zstd if that is shorter.
    #[prost(bytes = "vec", tag = "2")]
    pub before: Vec<u8>,
    /// Number of bytes that zstd makes of it; 0 if it is as it was.
    #[prost(uint64, tag = "3")]
    pub size: u64,
}

/// A lane whose commits carry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Blocks, with transactions and NFTs.
    Blocks,
    /// Internal transactions.
    InternalTxs,
}

impl Lane {
    /// Every lane, in the order in which they are taken back: none is ever ahead of the blocks.
    pub const ALL: [Self; 2] = [Self::InternalTxs, Self::Blocks];

    fn tag(self) -> u8 {
        match self {
            Self::Blocks => 1,
            Self::InternalTxs => 2,
        }
    }

    /// The lane of a record's key.
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

/// Finishes a transaction of `lane`, which brings it one height further or belongs to its last height, with the record that
/// takes it back; and forgets what is too old. Rows that are [passing](meta::passing) are not taken back. A commit of several
/// heights can only be taken back whole.
pub fn seal(txn: Txn<'_>, lane: Lane) -> Result<(Batch, Pending), Error> {
    let base = txn.base();
    let (from, height) = (lane.height(base)?, lane.height(&txn)?);
    let (after, upto) = (from.saturating_sub(HEIGHTS), height.saturating_sub(HEIGHTS));
    let (newest, outdated) = match sparing(newest(base, lane))? {
        Some(Some(((_, at, part), _))) if at == from => {
            (Some((at, part)), sparing(keys(base, lane, after, upto))?)
        }
        // Something was committed without a record since: nothing that is older can be taken back.
        Some(_) => (None, sparing(keys(base, lane, 0, u64::MAX))?),
        None => (None, None),
    };
    // Of those that cannot be read, all that is known is how their keys begin. The others stay, and fit no state.
    let outdated = outdated.unwrap_or_else(|| first_parts(lane, after, upto));
    let (mut batch, pending, before) = txn.finish_with_undo(&meta::passing())?;
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

/// Whether there may be records that take `lane` back to `to`. Only taking back tells whether all of them fit.
pub(crate) fn reaches(snapshot: &dyn Snapshot, lane: Lane, to: u64) -> Result<bool, Error> {
    if lane.height(snapshot)? <= to {
        return Ok(true);
    }
    let before = (lane.tag(), to, u32::MAX);
    let row = store::table::rows_after::<UndoRecords>(snapshot, &lane.tag(), &before, Order::Asc, 1);
    let row = sparing(row.map_err(Error::from))?.unwrap_or_default();
    Ok(row.first().is_some_and(|(_, Message(record))| record.from == to))
}

/// Takes back the last commit of `lane`, in one commit. False, and nothing is done, if it has no record that fits, or if
/// that leads beyond `to`.
pub(crate) fn take_back_last(store: &dyn Store, lane: Lane, to: u64) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let height = lane.height(&*snapshot)?;
    let Some((key, record)) = sparing(newest(&*snapshot, lane))?.flatten() else { return Ok(false) };
    if key.1 != height || record.from < to {
        return Ok(false);
    }
    let Some(mut before) = record.before() else { return Ok(false) };
    if !before.matches(&*snapshot)? {
        return Ok(false);
    }
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    // Their numbers only ever grow, so that who keeps names reads on from his last one.
    if before.exclude_table(NameChanges::SPEC) {
        fold::everything_changed(&mut txn)?;
    }
    meta::count_rewind(&mut txn, to)?;
    txn.delete::<UndoRecords>(&key);
    let (mut batch, _pending) = txn.finish();
    before.revert_into(&mut batch);
    // Another order than that of commits would be no state: the last one is synced.
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
            // Whatever it was, the plain bytes are as good.
            Ok(_) | Err(_) => Self { from, before: plain, size: 0 },
        }
    }

    /// What the rows were; `None` if the record is damaged.
    pub fn before(&self) -> Option<UndoRecord> {
        let size = usize::try_from(Some(self.size).filter(|size| *size <= MAX_RECORD)?).ok()?;
        if size == 0 {
            return UndoRecord::decode(&self.before, TABLES);
        }
        let plain = zstd::bulk::decompress(&self.before, size).ok()?;
        UndoRecord::decode(&plain, TABLES)
    }
}

/// Deletes the records of heights above `to` with `batch`. None is read: they may be damaged.
pub(crate) fn forget_above(batch: &mut Batch, to: u64) {
    for lane in Lane::ALL {
        let start = (lane.tag(), to.saturating_add(1)).to_bytes();
        batch.delete_range(UndoRecords::SPEC, start, vec![lane.tag() + 1]);
    }
}

/// What was read of the records; `None` if they are damaged. Everything can be done without them.
fn sparing<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
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

/// The keys of the first parts of what [`keys`] gives, without a look at what there is: the last [`HEIGHTS`] of them.
fn first_parts(lane: Lane, after: u64, upto: u64) -> Vec<Vec<u8>> {
    let heights = after.max(upto.saturating_sub(HEIGHTS)) + 1..=upto;
    heights.map(|height| (lane.tag(), height, 0_u32).to_bytes()).collect()
}
