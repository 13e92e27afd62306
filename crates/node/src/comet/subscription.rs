//! State machine of the subscription to one endpoint's blocks: a websocket, with status polls as the fallback.
//!
//! Pure: `watch` turns its state into requests. A stalled websocket is found by comparing statuses with events.
//!
//! # Invariants
//!
//! * A websocket is live from its first event on; while it is, the status is polled at most every [`CHECK`].
//! * Only heights above the first status after the websocket was opened count as missing: older blocks have no event.
//! * A missing event counts only at a second status [`CHECK`] later: the first may have overtaken the event. On a chain
//!   without new blocks no websocket is stalled.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Backoff;

/// Interval of status polls next to a live websocket; an event that is this late is missing.
pub(crate) const CHECK: Duration = Duration::from_secs(5);

/// Pauses between attempts to open a websocket.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter: true };

#[derive(Debug, Default)]
pub(crate) struct Subscription {
    socket: Socket,
    /// Websockets opened so far.
    opened: u64,
    /// Failures since the last event.
    failures: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Socket {
    #[default]
    Closed,
    Open {
        /// Height of the last event; 0 before the first.
        last_event: u64,
        /// Height of the first status: no events are expected up to it.
        base: Option<u64>,
        /// A later height whose event is missing, and when a status reported it.
        missing: Option<(u64, Instant)>,
        stalled: bool,
    },
}

impl Subscription {
    /// Number of the open websocket.
    pub(crate) fn open_socket(&self) -> Option<u64> {
        matches!(self.socket, Socket::Open { .. }).then_some(self.opened)
    }

    /// True if the websocket has delivered events.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.socket, Socket::Open { last_event: 1.., .. })
    }

    /// True if the websocket is to be replaced.
    pub(crate) fn is_stalled(&self) -> bool {
        matches!(self.socket, Socket::Open { stalled: true, .. })
    }

    /// Interval until the next status poll.
    pub(crate) fn poll_interval(&self, poll: Duration) -> Duration {
        if self.is_live() { poll.max(CHECK) } else { poll }
    }

    pub(crate) fn on_opened(&mut self) {
        self.opened += 1;
        self.socket = Socket::Open { last_event: 0, base: None, missing: None, stalled: false };
    }

    pub(crate) fn on_event(&mut self, height: u64) {
        if let Socket::Open { last_event, .. } = &mut self.socket {
            (*last_event, self.failures) = (height, 0);
        }
    }

    /// Records that the websocket could not be opened or broke. Returns the pause before the next attempt.
    pub(crate) fn on_closed(&mut self) -> Duration {
        self.socket = Socket::Closed;
        self.failures = self.failures.saturating_add(1);
        BACKOFF.delay(self.failures - 1)
    }

    /// Records a status that was requested while the websocket `socket` was open.
    pub(crate) fn on_status(&mut self, socket: Option<u64>, height: u64, now: Instant) {
        if self.open_socket().is_none() || self.open_socket() != socket {
            return;
        }
        let Socket::Open { last_event, base, missing, stalled } = &mut self.socket else { return };
        let last_event = *base.get_or_insert(height).max(last_event);
        *missing = missing
            .filter(|(missing, _)| last_event < *missing)
            .or_else(|| (last_event < height).then_some((height, now)));
        *stalled = missing.is_some_and(|(_, since)| now - since >= CHECK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A subscription with an open websocket.
    fn open() -> Subscription {
        let mut subscription = Subscription::default();
        subscription.on_opened();
        subscription
    }

    #[test]
    fn a_websocket_is_live_from_its_first_event_until_it_closes() {
        let mut subscription = Subscription::default();
        let seen = |subscription: &Subscription| (subscription.open_socket(), subscription.is_live());
        assert_eq!(seen(&subscription), (None, false));
        subscription.on_event(7);
        assert_eq!(seen(&subscription), (None, false), "an event without a websocket");
        subscription.on_opened();
        assert_eq!(seen(&subscription), (Some(1), false));
        subscription.on_event(7);
        assert_eq!(seen(&subscription), (Some(1), true));
        subscription.on_closed();
        assert_eq!(seen(&subscription), (None, false));
        subscription.on_opened();
        assert_eq!(seen(&subscription), (Some(2), false));
    }

    #[test]
    fn the_status_is_polled_rarely_beside_a_live_websocket_only() {
        let mut subscription = open();
        assert_eq!(subscription.poll_interval(SECOND), SECOND);
        subscription.on_event(7);
        assert_eq!([SECOND, SECOND * 9].map(|poll| subscription.poll_interval(poll)), [CHECK, SECOND * 9]);
        subscription.on_closed();
        assert_eq!(subscription.poll_interval(SECOND), SECOND);
    }

    #[test]
    fn pauses_between_attempts_grow_until_an_event_resets_them() {
        let mut subscription = Subscription::default();
        assert!(subscription.on_closed() <= SECOND);
        for _ in 0..10 {
            subscription.on_closed();
        }
        assert!(subscription.on_closed() >= SECOND * 30);
        subscription.on_opened();
        assert!(subscription.on_closed() >= SECOND * 30, "an open websocket alone proves nothing");
        subscription.on_opened();
        subscription.on_event(7);
        assert!(subscription.on_closed() <= SECOND);
    }

    #[test]
    fn a_block_without_an_event_stalls_the_websocket_at_a_second_status_some_time_later() {
        let (mut subscription, now) = (open(), Instant::now());
        for (height, second, stalled) in [(7, 0, false), (8, 1, false), (9, 5, false), (9, 6, true)] {
            subscription.on_status(Some(1), height, now + SECOND * second);
            assert_eq!(subscription.is_stalled(), stalled, "{second}");
        }
        subscription.on_closed();
        subscription.on_opened();
        assert!(!subscription.is_stalled(), "the next websocket begins anew");
    }

    #[test]
    fn a_websocket_that_delivers_every_block_a_little_late_is_not_stalled() {
        let (mut subscription, now) = (open(), Instant::now());
        for second in 0..100 {
            let height = 7 + u64::from(second);
            subscription.on_event(height - 1);
            subscription.on_status(Some(1), height, now + SECOND * second);
            assert!(!subscription.is_stalled(), "{second}");
        }
    }

    #[test]
    fn neither_a_chain_without_new_blocks_nor_a_status_of_another_websocket_stalls_one() {
        let (mut subscription, now) = (open(), Instant::now());
        subscription.on_status(Some(1), 7, now);
        subscription.on_status(Some(1), 7, now + SECOND * 100);
        subscription.on_status(None, 9, now + SECOND * 101);
        subscription.on_status(Some(2), 9, now + SECOND * 102);
        subscription.on_status(None, 9, now + SECOND * 200);
        assert!(!subscription.is_stalled());
        subscription.on_closed();
        subscription.on_opened();
        subscription.on_status(Some(2), 20, now + SECOND * 300);
        subscription.on_status(Some(2), 20, now + SECOND * 400);
        assert!(!subscription.is_stalled(), "blocks from before it was opened have no event");
    }
}
