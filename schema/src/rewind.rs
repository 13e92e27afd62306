//! Rewind: removal of the last heights with the undo log ([`crate::undo`]), without stopping the API.
//!
//! Undo records are applied from the newest on, one commit each. If a record is missing or does not match the current
//! state, [`rollback`] removes the remaining heights without the undo log.
//!
//! # Invariants
//!
//! After each commit no lane is ahead of the blocks, so an interrupted rewind leaves a consistent database.

use store::{Snapshot, Store};

use crate::rollback::{self, RollbackError};
use crate::undo::{self, Lane};
use crate::{Error, rich};

/// The outcome of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// The method.
    pub by: By,
    /// The last height before.
    pub from: u64,
    /// The last height now.
    pub to: u64,
}

/// The method of a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// With the undo log: time is proportional to the removed rows.
    UndoRecords,
    /// Without it ([`rollback`]): time also grows with the number of account lists and, if the NFT log is truncated,
    /// with the length of that log.
    FullRollback,
}

/// Removes every height above `to`, of every lane. No lane may run meanwhile; API requests may.
///
/// The undo log also reverts NFT metadata that arrived after `to` for a lower height; it is requested from the node
/// again.
pub fn rewind(store: &dyn Store, to: u64) -> Result<Rewound, RollbackError> {
    rollback::finish_pending(store)?;
    let from = rollback::last_height(store, to)?;
    if by_records(store, to)? {
        return Ok(Rewound { by: By::UndoRecords, from, to });
    }
    rollback::rollback(store, to)?;
    Ok(Rewound { by: By::FullRollback, from, to })
}

/// Whether [`rewind_calls`] may reach `to`.
pub fn covers_calls(snapshot: &dyn Snapshot, to: u64) -> Result<bool, Error> {
    undo::covers(snapshot, Lane::InternalTxs, to)
}

/// Removes the internal transactions of the heights above `to`, or of the last ones as far as undo records match. Their
/// lane must not run meanwhile; others may.
pub fn rewind_calls(store: &dyn Store, to: u64) -> Result<(), Error> {
    while Lane::InternalTxs.height(&*store.snapshot()?)? > to
        && undo::revert_last_commit(store, Lane::InternalTxs, to)?
    {}
    Ok(store.sync()?)
}

/// Rewinds with the undo log. If it returns false, some of the heights may have been removed already.
fn by_records(store: &dyn Store, to: u64) -> Result<bool, Error> {
    for lane in Lane::ALL {
        if !undo::covers(&*store.snapshot()?, lane, to)? {
            return Ok(false);
        }
    }
    for lane in Lane::ALL {
        if lane == Lane::Blocks {
            rich::rewind(store, to)?;
        }
        while lane.height(&*store.snapshot()?)? > to {
            if !undo::revert_last_commit(store, lane, to)? {
                return Ok(false);
            }
        }
    }
    store.sync()?;
    Ok(true)
}
