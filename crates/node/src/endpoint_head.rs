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

/// How an endpoint stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndpointStatus {
    /// It is asked in its turn.
    Healthy,
    /// It failed several times in a row and is asked last.
    BackingOff,
    /// It ordered a pause and is not asked until that is over.
    RateLimited,
    /// It said something that was proved false, and is asked only if all others did too.
    Distrusted,
    /// It belongs to another chain and is not asked.
    WrongChain,
    /// It has not answered anything yet. It is asked in its turn.
    NeverSeen,
}

/// What is known of one endpoint.
#[derive(Debug, Clone)]
pub struct EndpointState {
    /// Which one.
    pub origin: Origin,
    /// Height of the last block that it is known to have, by what it says itself.
    pub height: Option<u64>,
    /// Hash of the block at `height`, where that came from `/status`: an event does not tell it.
    pub hash: Option<[u8; 32]>,
    /// Hash of the block before, where `height` came from an event.
    pub parent: Option<[u8; 32]>,
    /// Height of the oldest block that it has.
    pub earliest: Option<u64>,
    /// Whether it is still fetching old blocks.
    pub catching_up: bool,
    /// When it last told its height.
    pub seen: Option<Instant>,
    /// How it stood when this state was made; some standings end by time alone.
    pub status: EndpointStatus,
    /// Requests that failed, of all.
    pub failures: u64,
    /// Answers that were proved false.
    pub false_answers: u64,
    /// The last thing that was wrong with it in words: a failure, a lack such as a pruned height, something proved
    /// false. That it is not that far or refuses a single question is none.
    pub last_error: Option<String>,
    /// Whether its new blocks are told by a live websocket.
    pub by_websocket: bool,
    /// Since when it does not answer: neither its status nor several other questions in a row. None while it does.
    pub down_since: Option<Instant>,
}

impl EndpointState {
    /// The height that it is believed to have.
    pub(crate) fn trusted_height(&self) -> Option<u64> {
        self.height
            .filter(|_| !matches!(self.status, EndpointStatus::Distrusted | EndpointStatus::WrongChain))
    }
}

/// What an endpoint has told of its chain.
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
    /// How much speaks for asking it about a height; the least is best.
    pub(crate) fn rank(&self, height: u64) -> u8 {
        match self.height {
            Some(top) if top < height => 2,
            _ if self.earliest.is_some_and(|earliest| earliest > height) => 2,
            Some(_) => 0,
            None => 1,
        }
    }

    /// It told its status when it was asked at a moment. If an event has come since, that is newer.
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

    /// Its websocket told a new block. One that is not above the known height is no news: a status that came
    /// first said so already, and only a status tells that a node has been set back.
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

    /// It answered about a height that it was not known to have. Without a height of its own words nothing is
    /// concluded: an old block says nothing about the tip.
    pub(crate) fn on_answer(&mut self, height: u64) -> bool {
        self.height.is_some_and(|top| top < height) && self.move_to(height)
    }

    /// It named its tip in a refusal.
    pub(crate) fn on_not_yet(&mut self, tip: u64, now: Instant) -> bool {
        self.seen = Some(now);
        self.move_to(tip)
    }
}

/// The highest height that any trusted endpoint of the leading service is known to have, shared by the services of a
/// node. In a [`crate::Node`] that is CometBFT: an EVM index may be far behind the chain that it follows.
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

    /// Whether a height is so near the tip that time counts. Never before a tip is known.
    pub(crate) fn is_near(&self, height: u64) -> bool {
        let tip = self.get();
        tip > 0 && height.saturating_add(NEAR) >= tip
    }
}

/// So many blocks below the tip are still the head.
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
