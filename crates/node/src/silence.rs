//! Whether a websocket keeps new blocks to itself.
//!
//! Holds: only what the status tells while one websocket is open counts against it, since it is not told blocks from
//! before; a block that it has not told is found missing by a second look, some time after the first, since one alone
//! may have overtaken an event on its way. On a chain that makes no blocks no websocket is silent.

use std::time::Duration;

use tokio::time::Instant;

/// So long after the status an event has come or never will.
pub(crate) const CHECK: Duration = Duration::from_secs(5);

/// What the status has told while a websocket was open.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Which websocket.
    socket: u64,
    /// The first height: up to here the websocket owes nothing.
    base: u64,
    /// A later one that it owes, and when it was told.
    owed: Option<(u64, Instant)>,
}

impl Silence {
    /// The status tells a height at a moment, the websocket has told blocks up to `told`. Whether it is silent.
    pub(crate) fn is_found(&mut self, socket: u64, height: u64, told: u64, now: Instant) -> bool {
        if self.socket != socket {
            *self = Self { socket, base: height, owed: None };
        }
        let told = told.max(self.base);
        let owed = self.owed.filter(|(owed, _)| told < *owed);
        self.owed = owed.or_else(|| (told < height).then_some((height, now)));
        self.owed.is_some_and(|(_, since)| now - since >= CHECK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_block_that_is_not_told_is_missed_at_a_look_some_time_later() {
        let (mut silence, now) = (Silence::default(), Instant::now());
        assert!(!silence.is_found(1, 7, 0, now));
        assert!(!silence.is_found(1, 8, 0, now + SECOND));
        assert!(!silence.is_found(1, 9, 0, now + SECOND * 5));
        assert!(silence.is_found(1, 9, 0, now + SECOND * 6));
    }

    #[test]
    fn a_websocket_that_tells_every_block_a_little_late_is_not_silent() {
        let (mut silence, now) = (Silence::default(), Instant::now());
        for look in 0..100 {
            let height = 7 + u64::from(look);
            assert!(!silence.is_found(1, height, height - 1, now + SECOND * look), "{look}");
        }
    }

    #[test]
    fn a_chain_that_rests_and_blocks_from_before_speak_against_no_websocket() {
        let (mut silence, now) = (Silence::default(), Instant::now());
        assert!(!silence.is_found(1, 7, 0, now));
        assert!(!silence.is_found(1, 7, 0, now + SECOND * 100));
        assert!(!silence.is_found(1, 8, 0, now + SECOND * 101));
        assert!(!silence.is_found(2, 20, 0, now + SECOND * 200), "another one owes what comes after it");
        assert!(!silence.is_found(2, 20, 0, now + SECOND * 300));
    }
}
