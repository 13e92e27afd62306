//! Call traces of heights whose state the node has pruned: the internal-transaction lane continues at the first height
//! that can be traced, and its row says from which height on it is complete.

use schema::meta::{self, CallLane};
use schema::undo;
use store::{Counts, Durability, Txn};

use crate::daemon::Ingest;
use crate::source::{CALL_TRACES, insist};
use crate::{Error, Mark};

/// The height whose traces are pruned, if that is what `error` says.
pub(crate) fn pruned_height(error: &Error) -> Option<u64> {
    match error {
        Error::Node { height, what: CALL_TRACES, source } if source.is_pruned() => Some(*height),
        _ => None,
    }
}

impl Ingest {
    /// Moves the lane of internal transactions, which does not run, from `pruned` to the first height that can be traced.
    /// False if there is none yet: then the block lane is so far behind that it only has heights that are pruned.
    pub(crate) async fn skip_pruned(&self, pruned: u64, reason: &Error) -> Result<bool, Error> {
        let last = self.published.blocks.borrow().height;
        if last <= pruned || !self.is_traceable(last).await? {
            return Ok(false);
        }
        // Invariant: `gone` is pruned, and `there` is not.
        let (mut gone, mut there) = (pruned, last);
        while there - gone > 1 {
            let middle = gone + (there - gone) / 2;
            if self.is_traceable(middle).await? { there = middle } else { gone = middle }
        }
        tracing::error!(
            from = pruned,
            to = gone,
            reason = %crate::daemon::causes(reason),
            "internal transactions of these heights are missing: the node has pruned the state that traces need; to add \
             them, run `cairn db reindex` from the first of these heights with a node that has all state"
        );
        let snapshot = self.store.snapshot()?;
        let before: CallLane = meta::read(&*snapshot)?.unwrap_or_default();
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let lane = CallLane { height: gone, complete_from: there, ..before };
        meta::put(&mut txn, &lane);
        let (batch, _pending) = undo::finish_with_undo_record(txn, undo::Lane::InternalTxs)?;
        drop(snapshot);
        self.store.commit(batch, Durability::Synced)?;
        self.published.calls.send_replace(Mark { height: gone, records: lane.calls });
        Ok(true)
    }

    async fn is_traceable(&self, height: u64) -> Result<bool, Error> {
        let Some(evm) = &self.node.evm else { return Ok(false) };
        match insist(height, CALL_TRACES, || evm.trace_block(height)).await {
            Ok(_) => Ok(true),
            Err(error) if pruned_height(&error).is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
