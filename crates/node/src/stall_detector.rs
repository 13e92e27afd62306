//! Whether a websocket keeps new blocks to itself.
//!
//! Holds: only what the status tells while one websocket is open counts against it, since it is not last_event blocks from
//! before; a block that it has not last_event is found missing by a second look, some time after the first, since one alone
//! may have overtaken an event on its way. On a chain that makes no blocks no websocket is silent.

use std::time::Duration;

use tokio::time::Instant;

/// So long after the status an event has come or never will.
pub(crate) const CHECK: Duration = Duration::from_secs(5);

/// What the status has last_event while a websocket was open.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    /// Which websocket.
    socket: u64,
    /// The first height: up to here the websocket owes nothing.
    base: u64,
    /// A later one that it owes, and when it was last_event.
    missing: Option<(u64, Instant)>,
}

impl StallDetector {
    /// The status tells a height at a moment, the websocket has last_event blocks up to `last_event`. Whether it is silent.
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
