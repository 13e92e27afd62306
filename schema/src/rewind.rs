//! Rewind: removal of the last heights with the undo log ([`crate::undo`]), without stopping the API; and of all heights.
//!
//! # Invariants
//!
//! After each commit no lane is ahead of the blocks, so an interrupted rewind leaves a consistent database.

use store::{Counts, Durability, Snapshot, Store, Table, Txn};

use crate::descriptors::Descriptors;
use crate::keys::KEY_END;
use crate::meta::{self, BlockLane, CallLane, Identity, Meta, PendingReindex, RichLane};
use crate::nft::{NameChanges, fold};
use crate::payload::Dictionary;
use crate::undo::{self, Lane};
use crate::{Error, INDEXES, TABLES, balances, index_writer, open, rich, supply};

/// The outcome of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// The last height before.
    pub from: u64,
    /// The last height now: the requested one, or the last one before it at which a commit ended.
    pub to: u64,
}

/// The reason why a rewind is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// The height is not indexed.
    #[error("cannot go back to height {to}: the database holds {first} to {last}")]
    OutOfRange {
        /// The requested height.
        to: u64,
        /// The first indexed height.
        first: u64,
        /// The last indexed height.
        last: u64,
    },
    /// The undo log does not reach the height.
    #[error(
        "cannot go back to height {to}: the undo log of the heights up to {last} reaches back to {lowest} (settings \
         undo_horizon and undo_bytes). Restore a backup of a height up to {to} (cairn db restore: minutes), or index again \
         (cairn db reindex: about a minute for a million transactions)"
    )]
    BeyondUndoLog {
        /// The requested height.
        to: u64,
        /// The lowest possible height.
        lowest: u64,
        /// The last indexed height.
        last: u64,
    },
    /// The rows are not those that the last commit has written.
    #[error(
        "cannot go below height {height}: its undo record does not match the rows, so the database is damaged. Restore a \
         backup (cairn db restore), or index again (cairn db reindex)"
    )]
    Mismatch {
        /// The last height of the lane.
        height: u64,
    },
    /// The database is damaged or unreadable.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<store::Error> for RewindError {
    fn from(error: store::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The height at which a rewind to `to` would end.
pub fn landing(store: &dyn Store, to: u64) -> Result<u64, RewindError> {
    let Identity { start_height: first, .. } = open::existing(store)?;
    let snapshot = store.snapshot()?;
    let last = Lane::Blocks.height(&*snapshot)?;
    if to < first || to > last {
        return Err(RewindError::OutOfRange { to, first, last });
    }
    if let Some(end) = undo::landing(&*snapshot, Lane::Blocks, to)?.filter(|end| *end >= first)
        && undo::landing(&*snapshot, Lane::InternalTxs, end)?.is_some()
    {
        return Ok(end);
    }
    let lowest = Lane::ALL.map(|lane| undo::extent(&*snapshot, lane).map(|extent| extent.lowest));
    let lowest = lowest.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or(last);
    Err(RewindError::BeyondUndoLog { to, lowest: lowest.max(first), last })
}

/// Removes every height above `to`, of every lane; those of a commit that ended above `to` too. No lane may run
/// meanwhile; API requests may.
///
/// NFT metadata that arrived after `to` for a lower height is removed too; it is requested from the node again.
pub fn rewind(store: &dyn Store, to: u64) -> Result<Rewound, RewindError> {
    rewind_with(store, to, undo::Check::Rows)
}

/// The same for a copy of a database that may be damaged: rows that the commits have changed get their values from before,
/// whatever they hold now.
pub fn rewind_unchecked(store: &dyn Store, to: u64) -> Result<Rewound, RewindError> {
    rewind_with(store, to, undo::Check::Nothing)
}

fn rewind_with(store: &dyn Store, to: u64, check: undo::Check) -> Result<Rewound, RewindError> {
    let to = landing(store, to)?;
    let from = Lane::Blocks.height(&*store.snapshot()?)?;
    // They follow from movements that the next step removes.
    balances::rewind(store, to)?;
    supply::rewind(store, to)?;
    for index in INDEXES {
        index_writer::rewind(store, index, to, |store, lane| undo::revert_last_commit(store, lane, check))?;
    }
    for lane in Lane::ALL {
        if lane == Lane::Blocks {
            rich::rewind(store, to)?;
        }
        loop {
            let height = lane.height(&*store.snapshot()?)?;
            if height <= to {
                break;
            }
            if !undo::revert_last_commit(store, lane, check)? {
                return Err(RewindError::Mismatch { height });
            }
        }
    }
    store.sync()?;
    Ok(Rewound { from, to })
}

/// Whether [`rewind_calls`] may reach `to`.
pub fn covers_calls(snapshot: &dyn Snapshot, to: u64) -> Result<bool, Error> {
    Ok(undo::landing(snapshot, Lane::InternalTxs, to)?.is_some())
}

/// Removes the internal transactions of the heights above `to`, or of the last ones as far as undo records match. Their
/// lane must not run meanwhile; others may.
pub fn rewind_calls(store: &dyn Store, to: u64) -> Result<(), Error> {
    while Lane::InternalTxs.height(&*store.snapshot()?)? > to
        && undo::revert_last_commit(store, Lane::InternalTxs, undo::Check::Rows)?
    {}
    Ok(store.sync()?)
}

/// Removes all heights in one commit, whatever state their rows are in; the identity and what compresses and renders
/// records stay. With `reindex`, writes in the same commit that the heights are to be indexed again.
pub fn clear(store: &dyn Store, reindex: Option<&PendingReindex>) -> Result<(), Error> {
    let Identity { start_height, .. } = open::existing(store)?;
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    for lane in [meta::key::<BlockLane>(), meta::key::<CallLane>(), meta::key::<RichLane>()] {
        txn.delete::<Meta>(&lane);
    }
    for index in INDEXES {
        txn.delete::<Meta>(&index.key());
    }
    meta::count_rewind(&mut txn, start_height.saturating_sub(1))?;
    match reindex {
        Some(reindex) => meta::put(&mut txn, reindex),
        None => fold::invalidate_all_names(&mut txn)?,
    }
    let (mut batch, _) = txn.finish();
    let kept = [Meta::SPEC, Dictionary::SPEC, Descriptors::SPEC, NameChanges::SPEC];
    for spec in TABLES.iter().filter(|spec| !kept.contains(spec)) {
        batch.delete_range(spec, Vec::new(), KEY_END.to_vec());
    }
    Ok(store.commit(batch, Durability::Synced)?)
}
