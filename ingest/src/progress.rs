//! Progress of the lanes: their heights, published over watch channels.

use schema::meta::{self, BlockLane, CallLane, RichLane};
use store::Snapshot;
use tokio::sync::watch;

use crate::Error;

/// The height that a lane has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last indexed height; 0 before the first.
    pub height: u64,
    /// Records so far: Cosmos transactions, or call frames.
    pub records: u64,
}

/// Receivers of the progress of all lanes.
#[derive(Clone, Debug)]
pub struct ProgressReceivers {
    /// The chain's height according to the node; `records` is not used.
    pub chain: watch::Receiver<Progress>,
    /// The block lane.
    pub blocks: watch::Receiver<Progress>,
    /// The internal-transaction lane; stays at 0 on a chain without it.
    pub calls: watch::Receiver<Progress>,
    /// The rich list; stays at 0 on a chain without it. `records` is not used.
    pub rich: watch::Receiver<Progress>,
    /// True if there is a lane of internal transactions.
    pub has_calls: bool,
    /// True if there is a rich list.
    pub has_rich_list: bool,
}

impl ProgressReceivers {
    /// The lowest height of all lanes.
    pub fn done(&self) -> u64 {
        let calls = self.has_calls.then(|| self.calls.borrow().height);
        let rich = self.has_rich_list.then(|| self.rich.borrow().height);
        let others = calls.into_iter().chain(rich);
        others.fold(self.blocks.borrow().height, u64::min)
    }

    /// Waits until a lane has moved; pends for ever once the ingest has ended.
    pub async fn moved(&mut self) {
        let moved = tokio::select! {
            moved = self.blocks.changed() => moved,
            moved = self.calls.changed() => moved,
            moved = self.rich.changed() => moved,
        };
        if moved.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Senders of the progress of all lanes.
#[derive(Debug, Default)]
pub(crate) struct ProgressSenders {
    pub(crate) chain: watch::Sender<Progress>,
    pub(crate) blocks: watch::Sender<Progress>,
    pub(crate) calls: watch::Sender<Progress>,
    pub(crate) rich: watch::Sender<Progress>,
}

impl ProgressSenders {
    /// Publishes the progress stored in the database.
    pub(crate) fn read(&self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let blocks: BlockLane = meta::read(snapshot)?.unwrap_or_default();
        let calls: CallLane = meta::read(snapshot)?.unwrap_or_default();
        let rich: RichLane = meta::read(snapshot)?.unwrap_or_default();
        self.blocks.send_replace(Progress { height: blocks.height, records: blocks.txs });
        self.calls.send_replace(Progress { height: calls.height, records: calls.calls });
        self.rich.send_replace(Progress { height: rich.height, records: 0 });
        Ok(())
    }
}

/// The first height that is not indexed.
pub(crate) fn next_height(lane: &BlockLane, start_height: u64) -> u64 {
    lane.height.saturating_add(1).max(start_height)
}
