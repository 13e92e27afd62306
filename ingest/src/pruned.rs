//! Pruned call traces: the internal-transaction lane continues at the first traceable height, and its row records from
//! which height on it is complete.

use schema::call_errors::{self, CALL_ERRORS};
use schema::meta::{self, CallLane};
use schema::undo::{Lane, UndoLog};
use store::{Counts, Durability, Txn};

use crate::ingest::Ingest;
use crate::retry::retry_until;
use crate::source::CALL_TRACES;
use crate::{Error, Progress};

/// The height of the pruned traces, if `error` reports that.
pub(crate) fn pruned_height(error: &Error) -> Option<u64> {
    match error {
        Error::Node { height, what: CALL_TRACES, source } if source.is_pruned() => Some(*height),
        _ => None,
    }
}

impl Ingest {
    /// Moves the stopped lane of internal transactions from `pruned` to the first traceable height. False if there is
    /// none yet: the block lane is so far behind that it only has pruned heights.
    pub(crate) async fn skip_pruned(&self, pruned: u64, reason: &Error) -> Result<bool, Error> {
        let last = self.progress.blocks.borrow().height;
        if last <= pruned || !self.is_traceable(last).await? {
            return Ok(false);
        }
        // Bisection. Invariant: `gone` is pruned, `there` is not.
        let (mut gone, mut there) = (pruned, last);
        while there - gone > 1 {
            let middle = gone + (there - gone) / 2;
            if self.is_traceable(middle).await? { there = middle } else { gone = middle }
        }
        tracing::error!(
            from = pruned,
            to = gone,
            reason = %crate::error::causes(reason),
            "internal transactions missing, state pruned: to add them, run `cairn db reindex` from the first height \
             with an archive node"
        );
        let snapshot = self.store.snapshot()?;
        let before: CallLane = meta::read(&*snapshot)?.unwrap_or_default();
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let lane = CallLane { height: gone, complete_from: there, ..before };
        meta::put(&mut txn, &lane);
        if self.config.indexes.contains(&&CALL_ERRORS) {
            // There are no calls that could have failed.
            call_errors::Writer::new(
                &*self.store,
                before.height.saturating_add(1).max(self.identity.start_height),
            )?
            .write(&mut txn, gone, std::iter::empty());
        }
        let (batch, _pending) = UndoLog::new(Lane::InternalTxs, self.config.undo).finish(txn)?;
        drop(snapshot);
        self.store.commit(batch, Durability::Synced)?;
        self.progress.calls.send_replace(Progress { height: gone, records: lane.calls });
        Ok(true)
    }

    async fn is_traceable(&self, height: u64) -> Result<bool, Error> {
        let Some(evm) = &self.node.evm else { return Ok(false) };
        match retry_until(height, CALL_TRACES, || evm.trace_block(height)).await {
            Ok(_) => Ok(true),
            Err(error) if pruned_height(&error).is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
