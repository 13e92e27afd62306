//! Progress of the lanes: their heights, published over watch channels.

use schema::meta::{self, BlockLane, CallLane, RichLane};
use store::Snapshot;
use tokio::sync::watch;

use crate::Error;
use crate::error::causes;

/// The height that a lane has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The last indexed height; 0 before the first.
    pub height: u64,
    /// Records so far: Cosmos transactions, or call frames.
    pub records: u64,
}

/// The failure that stopped a lane. It is over when the lane has passed `height`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneStop {
    /// `blocks`, `internal_txs` or `rich_list`.
    pub lane: &'static str,
    /// The lane's last height.
    pub height: u64,
    /// The reason in words for strangers: without an address and without a text of the node.
    pub outline: String,
    /// The whole reason, to know whether it is another one.
    pub(crate) error: String,
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
    /// The last failure of each lane.
    pub stops: watch::Receiver<Vec<LaneStop>>,
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

    /// The lanes that are stopped.
    pub fn stopped(&self) -> Vec<LaneStop> {
        let height = |lane| match lane {
            "internal_txs" => self.calls.borrow().height,
            "rich_list" => self.rich.borrow().height,
            _ => self.blocks.borrow().height,
        };
        self.stops.borrow().iter().filter(|stop| height(stop.lane) == stop.height).cloned().collect()
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
    pub(crate) stops: watch::Sender<Vec<LaneStop>>,
}

impl ProgressSenders {
    /// Records that a lane stopped at `height`. Returns true if it is to be logged: a lane that stops again at the same
    /// height for the same reason is not.
    pub(crate) fn stop(&self, lane: &'static str, height: u64, error: &Error) -> bool {
        let stop = LaneStop { lane, height, outline: error.outline(), error: causes(error) };
        self.stops.send_if_modified(|stops| {
            let is_known = stops.contains(&stop);
            stops.retain(|other| other.lane != lane);
            stops.push(stop);
            !is_known
        })
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_that_stops_again_for_the_same_reason_is_not_news_until_it_has_moved() {
        let progress = ProgressSenders::default();
        let (off, full) = (Error::Setup("set `rest`"), Error::TooManySets);
        assert!(progress.stop("rich_list", 5, &off) && !progress.stop("rich_list", 5, &off));
        assert!(progress.stop("internal_txs", 5, &off), "another lane");
        assert!(progress.stop("rich_list", 5, &full) && progress.stop("rich_list", 6, &full));
        let receivers = ProgressReceivers {
            chain: progress.chain.subscribe(),
            blocks: progress.blocks.subscribe(),
            calls: progress.calls.subscribe(),
            rich: progress.rich.subscribe(),
            stops: progress.stops.subscribe(),
            has_calls: true,
            has_rich_list: true,
        };
        let stopped =
            || receivers.stopped().into_iter().map(|stop| (stop.lane, stop.outline)).collect::<Vec<_>>();
        assert_eq!(stopped(), [], "both lanes have moved since");
        progress.calls.send_replace(Progress { height: 5, records: 0 });
        assert_eq!(stopped(), [("internal_txs", "set `rest`".to_owned())]);
        progress.calls.send_replace(Progress { height: 6, records: 0 });
        assert_eq!(stopped(), []);
    }
}
