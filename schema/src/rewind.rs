//! Taking back the last heights of an index that is running, by the records that its lanes keep ([`crate::undo`]).
//!
//! Each record is one commit, the newest first, and none of them leaves a lane ahead of the blocks: what is interrupted is a
//! database like any other, with fewer heights to take back. Where a record is missing or does not fit, all that is left is
//! taken back the slow way ([`rollback`]), which needs none.

use store::Store;

use crate::rollback::{self, Impossible};
use crate::undo::{self, Lane};
use crate::{Error, rich};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// How.
    pub by: By,
    /// The last height before.
    pub from: u64,
    /// The last height now.
    pub to: u64,
}

/// How an index is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By the records of its last commits: time grows with what is taken back.
    UndoRecords,
    /// Without them ([`rollback`]): time grows with what is taken back, with the lists of accounts, and with the log of NFTs if
    /// that is cut.
    FullRollback,
}

/// Takes back every height above `to`, of every lane. No lane may run meanwhile; requests may.
///
/// By records, an answer about an NFT goes too that came after `to` and is about a height before: it is asked for again.
pub fn rewind(store: &dyn Store, to: u64) -> Result<Rewound, Impossible> {
    rollback::finish_pending(store)?;
    let from = rollback::last_height(store, to)?;
    if by_records(store, to)? {
        return Ok(Rewound { by: By::UndoRecords, from, to });
    }
    rollback::rollback(store, to)?;
    Ok(Rewound { by: By::FullRollback, from, to })
}

/// Whether it could be done; if not, perhaps a part of it was.
fn by_records(store: &dyn Store, to: u64) -> Result<bool, Error> {
    for lane in Lane::ALL {
        if !undo::reaches(&*store.snapshot()?, lane, to)? {
            return Ok(false);
        }
    }
    for lane in Lane::ALL {
        if lane == Lane::Blocks {
            rich::go_back(store, to)?;
        }
        while lane.height(&*store.snapshot()?)? > to {
            if !undo::take_back_last(store, lane, to)? {
                return Ok(false);
            }
        }
    }
    store.sync()?;
    Ok(true)
}
