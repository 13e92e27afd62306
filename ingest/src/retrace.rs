//! Blocks with transactions that the node could not trace: once it traces them, the lane of internal transactions goes
//! back and indexes them again.
//!
//! Sequences are dense, so a block is not completed in place. The lane goes back with the undo log; below it only a
//! reindex adds what is missing.

use schema::meta::{self, CallLane};
use schema::rewind;

use crate::ingest::{Ingest, change};
use crate::source::CallSource;
use crate::{Error, Progress};

/// Polls of the node's height between two attempts to trace such blocks.
const RETRACE_POLLS: u32 = 60;

impl Ingest {
    /// Waits until the node traces a block that it could not trace before, and returns the height before that block.
    pub(crate) async fn traces_again(&self, source: &CallSource) -> u64 {
        loop {
            tokio::time::sleep(self.config.poll * RETRACE_POLLS).await;
            match self.traceable(source).await {
                Ok(Some(height)) => return height - 1,
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "blocks without call traces were not traced again"),
            }
        }
    }

    /// The first block with missing frames, within reach of the undo log, if the node traces it now.
    async fn traceable(&self, source: &CallSource) -> Result<Option<u64>, Error> {
        let snapshot = self.store.snapshot()?;
        let lane: CallLane = meta::read(&*snapshot)?.unwrap_or_default();
        for height in lane.untraced {
            if rewind::covers_calls(&*snapshot, height - 1)? {
                drop(snapshot);
                return Ok(source.can_trace(height).await?.then_some(height));
            }
        }
        Ok(None)
    }

    /// Removes the internal transactions above `to`. Their lane must not run.
    pub(crate) async fn rewind_calls(&self, to: u64) -> Result<(), Error> {
        change(&self.store, "rewind of internal transactions", move |store| {
            Ok(rewind::rewind_calls(store, to)?)
        })
        .await?;
        let lane: CallLane = meta::read(&*self.store.snapshot()?)?.unwrap_or_default();
        self.progress.calls.send_replace(Progress { height: lane.height, records: lane.calls });
        tracing::info!(
            height = to + 1,
            "the node traces a block again: internal transactions are indexed again"
        );
        Ok(())
    }
}
