//! Stall detector of a websocket: the status shows new blocks and the websocket sends no event.
//!
//! # Invariants
//!
//! * Only heights above the first status after the websocket was opened count: older blocks have no event.
//! * A missing event counts only at a second status [`CHECK`] later: the first may have overtaken the event.
//! * On a chain without new blocks no websocket is stalled.

use std::time::Duration;

use tokio::time::Instant;

/// An event that is this late will not come.
pub(crate) const CHECK: Duration = Duration::from_secs(5);

/// Heights that the status has reported while a websocket was open.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    /// Number of the websocket.
    socket: u64,
    /// The first height: no event is due up to it.
    base: u64,
    /// A later height whose event is missing, and when the status reported it.
    missing: Option<(u64, Instant)>,
}

impl StallDetector {
    /// Compares a status with the last event. Returns whether the websocket is stalled.
    pub(crate) fn check(&mut self, socket: u64, height: u64, last_event: u64, now: Instant) -> bool {
        if self.socket != socket {
            *self = Self { socket, base: height, missing: None };
        }
        let last_event = last_event.max(self.base);
        let missing = self.missing.filter(|(missing, _)| last_event < *missing);
        self.missing = missing.or_else(|| (last_event < height).then_some((height, now)));
        self.missing.is_some_and(|(_, since)| now - since >= CHECK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_block_that_is_not_told_is_missed_at_a_look_some_time_later() {
        let (mut detector, now) = (StallDetector::default(), Instant::now());
        assert!(!detector.check(1, 7, 0, now));
        assert!(!detector.check(1, 8, 0, now + SECOND));
        assert!(!detector.check(1, 9, 0, now + SECOND * 5));
        assert!(detector.check(1, 9, 0, now + SECOND * 6));
    }

    #[test]
    fn a_websocket_that_tells_every_block_a_little_late_is_not_silent() {
        let (mut detector, now) = (StallDetector::default(), Instant::now());
        for look in 0..100 {
            let height = 7 + u64::from(look);
            assert!(!detector.check(1, height, height - 1, now + SECOND * look), "{look}");
        }
    }

    #[test]
    fn a_chain_that_rests_and_blocks_from_before_speak_against_no_websocket() {
        let (mut detector, now) = (StallDetector::default(), Instant::now());
        assert!(!detector.check(1, 7, 0, now));
        assert!(!detector.check(1, 7, 0, now + SECOND * 100));
        assert!(!detector.check(1, 8, 0, now + SECOND * 101));
        assert!(!detector.check(2, 20, 0, now + SECOND * 200), "another one owes what comes after it");
        assert!(!detector.check(2, 20, 0, now + SECOND * 300));
    }
}
