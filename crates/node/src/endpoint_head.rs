//! Head of every endpoint of a service: the last height, hash and status that are known of it.
//!
//! # Invariants
//!
//! * A receiver has the newest state of all endpoints, in configured order, and is woken by every change of a height,
//!   a status or a count.
//! * No part of an address but host and port is in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use crate::origin::Origin;
use crate::status::{NewBlock, Status};

/// Whether an endpoint is asked, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointStatus {
    /// Answers, and is asked in its turn.
    Healthy,
    /// Failed several times in a row; asked last.
    BackingOff,
    /// Ordered a pause and is not asked until it is over.
    RateLimited,
    /// Gave a provably false answer; asked only if all others did too.
    Distrusted,
    /// Serves another chain; not asked.
    WrongChain,
    /// Has not answered anything yet; asked in its turn.
    NeverSeen,
}

/// Published state of one endpoint.
#[derive(Debug, Clone)]
pub struct EndpointState {
    /// The endpoint.
    pub origin: Origin,
    /// Height of its last block, as it reported itself.
    pub height: Option<u64>,
    /// Hash of the block at `height`, if `/status` reported it: an event does not contain it.
    pub hash: Option<[u8; 32]>,
    /// Hash of the parent block, if an event reported `height`.
    pub parent: Option<[u8; 32]>,
    /// Height of its oldest block.
    pub earliest: Option<u64>,
    /// Whether it is still syncing old blocks.
    pub catching_up: bool,
    /// When it last reported its height.
    pub seen: Option<Instant>,
    /// Status when this state was made; some end by time alone.
    pub status: EndpointStatus,
    /// Failed requests.
    pub failures: u64,
    /// Provably false answers.
    pub false_answers: u64,
    /// Text of its last fault: a failure, a gap such as a pruned height, or a false answer. "Not yet" and the
    /// rejection of a single request are no faults.
    pub last_error: Option<String>,
    /// Whether a live websocket delivers its new blocks.
    pub by_websocket: bool,
    /// Start of the current outage: its status, or several requests in a row, failed.
    pub down_since: Option<Instant>,
}

impl EndpointState {
    /// Height of an endpoint that is neither distrusted nor of another chain.
    pub(crate) fn trusted_height(&self) -> Option<u64> {
        self.height
            .filter(|_| !matches!(self.status, EndpointStatus::Distrusted | EndpointStatus::WrongChain))
    }
}

/// Head of the chain as one endpoint reported it.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndpointHead {
    pub(crate) height: Option<u64>,
    pub(crate) hash: Option<[u8; 32]>,
    pub(crate) parent: Option<[u8; 32]>,
    pub(crate) earliest: Option<u64>,
    pub(crate) catching_up: bool,
    pub(crate) seen: Option<Instant>,
    pub(crate) by_websocket: bool,
}

impl EndpointHead {
    /// Preference for a call about `height`; the least is best.
    pub(crate) fn rank(&self, height: u64) -> u8 {
        match self.height {
            Some(top) if top < height => 2,
            _ if self.earliest.is_some_and(|earliest| earliest > height) => 2,
            Some(_) => 0,
            None => 1,
        }
    }

    /// Updates from a status that was requested at `asked`. A later event is newer.
    pub(crate) fn on_status(&mut self, status: &Status, asked: Instant) {
        self.earliest = Some(status.earliest_height);
        self.catching_up = status.catching_up;
        let overtaken =
            self.seen.is_some_and(|seen| seen > asked) && self.height > Some(status.latest_height);
        if !overtaken {
            self.move_to(status.latest_height);
            self.hash = status.latest_hash;
        }
        self.seen = Some(Instant::now());
    }

    /// Updates from a websocket event. Only a higher block is news: an earlier status may have reported the same, and
    /// only a status shows that a node was reset.
    pub(crate) fn on_event(&mut self, block: &NewBlock) {
        if self.height.is_none_or(|top| top < block.height) {
            self.move_to(block.height);
            (self.parent, self.seen) = (block.parent, Some(Instant::now()));
        }
    }

    fn move_to(&mut self, height: u64) -> bool {
        let news = self.height != Some(height);
        if news {
            (self.height, self.hash, self.parent) = (Some(height), None, None);
        }
        news
    }

    /// Updates from an answer about `height`. Only raises a known height: an old block does not show the tip.
    pub(crate) fn on_answer(&mut self, height: u64) -> bool {
        self.height.is_some_and(|top| top < height) && self.move_to(height)
    }

    /// Updates from the tip in a "not yet" error.
    pub(crate) fn on_not_yet(&mut self, tip: u64, now: Instant) -> bool {
        self.seen = Some(now);
        self.move_to(tip)
    }
}

/// Highest height of any trusted endpoint of the leading service, shared by the services of a node. In a
/// [`crate::Node`] CometBFT leads: an EVM index may be far behind its chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tip(Arc<AtomicU64>);

impl Tip {
    pub(crate) fn set(&self, height: u64) {
        self.0.store(height, Ordering::Relaxed);
    }

    /// The height; 0 if none is known.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether latency matters at this height. False before a tip is known.
    pub(crate) fn is_near(&self, height: u64) -> bool {
        let tip = self.get();
        tip > 0 && height.saturating_add(NEAR) >= tip
    }
}

/// Distance from the tip within which a height is "near".
const NEAR: u64 = 2;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn known(height: Option<u64>, earliest: Option<u64>) -> EndpointHead {
        EndpointHead { height, earliest, ..EndpointHead::default() }
    }

    #[test]
    fn who_has_the_height_comes_first_and_who_has_not_comes_last() {
        assert_eq!(known(Some(9), Some(3)).rank(9), 0);
        assert_eq!(known(None, None).rank(9), 1);
        assert_eq!(known(Some(8), Some(3)).rank(9), 2);
        assert_eq!(known(Some(9), Some(3)).rank(2), 2);
    }

    #[test]
    fn an_answer_raises_a_known_height_and_does_not_make_one_up() {
        let mut known = known(Some(5), None);
        assert!(known.on_answer(6) && !known.on_answer(6) && !known.on_answer(2));
        assert_eq!(known.height, Some(6));
        assert!(!EndpointHead::default().on_answer(6));
        assert!(known.on_not_yet(4, Instant::now()), "a node can be reset");
        assert_eq!(known.height, Some(4));
    }

    #[test]
    fn a_status_that_was_overtaken_moves_nothing_and_a_later_one_may_go_back() {
        let status = |height| Status {
            chain_id: "c-1".to_owned(),
            node_version: String::new(),
            latest_height: height,
            latest_hash: Some([7; 32]),
            earliest_height: 1,
            catching_up: false,
        };
        let told = |height| NewBlock { chain_id: "c-1".to_owned(), height, parent: Some([6; 32]) };
        let (mut known, asked) = (EndpointHead::default(), Instant::now());
        known.on_event(&told(9));
        known.on_event(&told(8));
        assert_eq!((known.height, known.parent), (Some(9), Some([6; 32])));
        known.seen = Some(asked + Duration::from_secs(1));
        known.on_status(&status(8), asked);
        assert_eq!((known.height, known.hash), (Some(9), None));
        known.on_status(&status(8), Instant::now());
        assert_eq!((known.height, known.hash, known.parent), (Some(8), Some([7; 32]), None));
    }

    #[test]
    fn the_head_is_the_tip_and_two_blocks_below_it() {
        let tip = Tip::default();
        assert!(!tip.is_near(1), "no tip is known");
        tip.set(10);
        assert_eq!([7, 8, 10, 11].map(|height| tip.is_near(height)), [false, true, true, true]);
    }
}
