//! The readiness check of `/readyz`.
//!
//! # Invariants
//! * A check neither queries a node nor reads the disk.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ingest::{LaneStop, ProgressReceivers};
use node::{EndpointState, Node};
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum age of the last catch-up of a follower, which normally is a few milliseconds.
const FOLLOWER_LAG: Duration = Duration::from_secs(5);

/// Maximum age of a status of the node, which normally arrives every few seconds; beyond it the lag is unknown.
const MAX_STATUS_AGE: Duration = Duration::from_mins(1);

/// The inputs of the readiness of an index.
pub(crate) struct Readiness {
    node: Arc<Node>,
    lag: u64,
    /// `None` until the node has answered the requests of the start.
    marks: OnceLock<ProgressReceivers>,
}

impl Readiness {
    pub(crate) fn new(node: Arc<Node>, lag: u64) -> Self {
        Self { node, lag, marks: OnceLock::new() }
    }

    /// Sets the progress of the indexer, once it has started.
    pub(crate) fn follow(&self, marks: ProgressReceivers) {
        // There is one indexer per process: a second call would set the same value.
        drop(self.marks.set(marks));
    }

    /// The height of the chain according to the node; `None` before its first reply.
    pub(crate) fn head(&self) -> Option<u64> {
        self.marks.get().map(|marks| marks.chain.borrow().height).filter(|height| *height > 0)
    }

    /// The lanes other than the blocks that are stopped, with the reasons; `None` if there are none.
    pub(crate) fn remark(&self) -> Option<String> {
        let stopped = self.marks.get()?.stopped();
        let others = stopped.iter().filter(|stop| stop.lane != BLOCKS).map(describe);
        Some(others.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
    }

    /// Fails with the reason if the index is not ready.
    pub(crate) fn check(&self) -> Result<(), String> {
        let outage = self.node.outage();
        let Some(marks) = self.marks.get() else {
            let reason = outage.unwrap_or_else(|| "it has not answered yet".to_owned());
            return Err(format!("waiting for the node: {reason}"));
        };
        at_head(marks, &self.node.comet.endpoints(), self.lag).map_err(|reason| {
            let stopped = marks.stopped().iter().find(|stop| stop.lane == BLOCKS).map(describe);
            [Some(reason), stopped, outage].into_iter().flatten().collect::<Vec<_>>().join("; ")
        })
    }
}

/// The lane without which the index is not ready.
const BLOCKS: &str = "blocks";

fn describe(stop: &LaneStop) -> String {
    format!("{} stopped after height {}: {}", stop.lane, stop.height, stop.outline)
}

/// Ready if the indexed height is within `lag` of the last known height of the node, and a trusted endpoint at or above
/// the index reported its status recently: an endpoint below the index lacks the newer blocks. Lanes after the blocks
/// are ignored.
fn at_head(marks: &ProgressReceivers, endpoints: &[EndpointState], lag: u64) -> Result<(), String> {
    let (chain, blocks) = (marks.chain.borrow().height, marks.blocks.borrow().height);
    let statuses = endpoints.iter().filter_map(LastStatus::from_endpoint).collect::<Vec<_>>();
    check_freshness(&statuses, blocks.saturating_sub(lag))?;
    let behind = chain.saturating_sub(blocks);
    if behind <= lag {
        return Ok(());
    }
    Err(format!("indexed up to {blocks}, {behind} blocks behind the node; ready within {lag} (ready_lag)"))
}

/// The last status of an endpoint.
#[derive(Clone, Copy)]
struct LastStatus {
    at: Instant,
    height: u64,
    trusted: bool,
}

impl LastStatus {
    /// `None` before the first status.
    fn from_endpoint(endpoint: &EndpointState) -> Option<Self> {
        let (height, trusted) = (endpoint.height.unwrap_or(0), endpoint.is_trusted());
        Some(Self { at: endpoint.seen?, height, trusted })
    }
}

/// Ready if a trusted endpoint that has the block at `height` reported its status recently, or if there is no status
/// yet.
fn check_freshness(statuses: &[LastStatus], height: u64) -> Result<(), String> {
    let known = statuses.iter().filter(|endpoint| endpoint.trusted && endpoint.height >= height);
    match known.map(|endpoint| endpoint.at.elapsed()).min() {
        Some(ago) if ago <= MAX_STATUS_AGE => Ok(()),
        Some(ago) => Err(format!(
            "no endpoint of the node that has height {height} has answered for {} s",
            ago.as_secs()
        )),
        None if statuses.is_empty() => Ok(()),
        None => Err(format!("no trusted endpoint of the node has height {height}")),
    }
}

/// Ready while the last catch-up of the follower is recent.
pub(crate) fn keeping_up(caught_up: watch::Receiver<Instant>) -> impl Fn() -> Result<(), String> + Clone {
    move || {
        let ago = caught_up.borrow().elapsed();
        if ago <= FOLLOWER_LAG {
            return Ok(());
        }
        Err(format!("the database was last followed {} s ago; ready within {FOLLOWER_LAG:?}", ago.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use ingest::Progress;

    use super::*;

    #[test]
    fn an_index_is_ready_within_its_lag() {
        let mark = |height| watch::Sender::new(Progress { height, records: 0 });
        let (chain, blocks, nothing) = (mark(100), mark(0), mark(0));
        let stops = watch::Sender::new(Vec::new());
        let marks = ProgressReceivers {
            chain: chain.subscribe(),
            blocks: blocks.subscribe(),
            calls: nothing.subscribe(),
            rich: nothing.subscribe(),
            stops: stops.subscribe(),
            has_calls: true,
            has_rich_list: true,
        };
        let ready = || at_head(&marks, &[], 10);
        let reason = "indexed up to 0, 100 blocks behind the node; ready within 10 (ready_lag)";
        assert_eq!(ready(), Err(reason.to_owned()));
        for (height, is_ready) in [(89, false), (90, true), (101, true)] {
            blocks.send_replace(Progress { height, records: 0 });
            assert_eq!(ready().is_ok(), is_ready, "{height}");
        }
        chain.send_replace(Progress { height: 200, records: 0 });
        assert!(ready().is_err());
    }

    #[test]
    fn an_index_whose_node_is_silent_is_not_ready() {
        let now = Instant::now();
        let long_ago = now.checked_sub(MAX_STATUS_AGE + Duration::from_secs(3)).unwrap();
        let statuses = |at, height| LastStatus { at, height, trusted: true };
        let reason = "no endpoint of the node that has height 90 has answered for 63 s";
        let silent = statuses(long_ago, 100);
        assert_eq!(check_freshness(&[silent, silent], 90), Err(reason.to_owned()));
        assert_eq!(check_freshness(&[silent, statuses(now, 90)], 90), Ok(()), "one is enough");
        assert_eq!(check_freshness(&[], 90), Ok(()));

        // An endpoint that is below the index or not trusted gives no height of the chain.
        assert_eq!(check_freshness(&[silent, statuses(now, 89)], 90), Err(reason.to_owned()));
        let liar = LastStatus { trusted: false, ..statuses(now, 100) };
        assert_eq!(check_freshness(&[silent, liar], 90), Err(reason.to_owned()));
        let reason = "no trusted endpoint of the node has height 90";
        assert_eq!(check_freshness(&[liar, statuses(now, 89)], 90), Err(reason.to_owned()));
    }

    #[test]
    fn a_follower_is_ready_while_it_follows() {
        let now = Instant::now();
        let long_ago = now.checked_sub(FOLLOWER_LAG + Duration::from_secs(2)).unwrap();
        let (caught_up, last) = watch::channel(long_ago);
        let ready = keeping_up(last);
        assert_eq!(ready(), Err("the database was last followed 7 s ago; ready within 5s".to_owned()));
        caught_up.send_replace(now);
        assert_eq!(ready(), Ok(()));
    }
}
