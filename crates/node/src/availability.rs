//! Availability of an endpoint: exponential backoff after failures, and rate limits that its server ordered.
//!
//! # Invariants
//!
//! * A failing endpoint is asked last, for a capped time that grows with its failures; one answer resets the backoff.
//! * A pause that the server ordered is kept, capped. An answer does not end it: its request was sent before the
//!   order.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Backoff;

/// Whether a URL may be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Asked first.
    Ready,
    /// Failing: asked only after the others.
    BackingOff,
    /// The server ordered a pause that lasts this much longer.
    RateLimited(Duration),
}

/// Recent failures and rate limits of one URL.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: u32,
    backoff_until: Option<Instant>,
    rate_limited_until: Option<Instant>,
}

/// Consecutive failures without backoff.
const TOLERATED_FAILURES: u32 = 2;

/// Pauses after further failures.
const BACKOFF: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter_percent: 20 };

/// Longest pause that a server can order.
const MAX_PAUSE: Duration = Duration::from_mins(1);

impl Health {
    pub(crate) fn availability(&self, now: Instant) -> Availability {
        if let Some(until) = self.rate_limited_until.filter(|until| *until > now) {
            return Availability::RateLimited(until - now);
        }
        if self.backoff_until.is_some_and(|until| until > now) {
            Availability::BackingOff
        } else {
            Availability::Ready
        }
    }

    /// Whether it failed more often in a row than is tolerated.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > TOLERATED_FAILURES
    }

    /// Records an answer, be it a rejection: the endpoint works.
    pub(crate) fn answered(&mut self) {
        (self.failures, self.backoff_until) = (0, None);
    }

    /// Records a transient failure.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if let Some(steps) = self.failures.checked_sub(TOLERATED_FAILURES + 1) {
            self.backoff_until = Some(now + BACKOFF.delay(steps));
        }
    }

    /// Records a pause that the server ordered. Returns how long it lasts: the later of two orders counts.
    pub(crate) fn rate_limited(&mut self, now: Instant, pause: Duration) -> Duration {
        let until = (now + pause.min(MAX_PAUSE)).max(self.rate_limited_until.unwrap_or(now));
        self.rate_limited_until = Some(until);
        until - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_third_failure_in_a_row_cools_an_endpoint_down() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.failed(now);
        health.failed(now);
        assert_eq!(health.availability(now), Availability::Ready);
        health.failed(now);
        assert_eq!(health.availability(now), Availability::BackingOff);
        assert_eq!(health.availability(now + SECOND * 2), Availability::Ready);
    }

    #[test]
    fn cool_downs_grow_and_stop_growing() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..5 {
            health.failed(now);
        }
        assert_eq!(health.availability(now + SECOND * 3), Availability::BackingOff);
        for _ in 0..100 {
            health.failed(now);
        }
        assert_eq!(health.availability(now + SECOND * 47), Availability::BackingOff);
        assert_eq!(health.availability(now + SECOND * 73), Availability::Ready);
    }

    #[test]
    fn one_answer_forgives_all_failures() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..9 {
            health.failed(now);
        }
        health.answered();
        assert_eq!(health.availability(now), Availability::Ready);
        health.failed(now);
        assert_eq!(health.availability(now), Availability::Ready);
    }

    #[test]
    fn an_ordered_pause_is_kept_to_but_not_for_ever() {
        let (mut health, now) = (Health::default(), Instant::now());
        assert_eq!(health.rate_limited(now, SECOND * 5), SECOND * 5);
        assert_eq!(health.availability(now + SECOND), Availability::RateLimited(SECOND * 4));
        assert_eq!(health.availability(now + SECOND * 5), Availability::Ready);
        assert_eq!(health.rate_limited(now, SECOND * 86_400), MAX_PAUSE);
    }

    #[test]
    fn neither_an_answer_nor_a_shorter_order_ends_an_ordered_pause() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.rate_limited(now, SECOND * 30);
        health.answered();
        assert_eq!(health.availability(now), Availability::RateLimited(SECOND * 30));
        assert_eq!(health.rate_limited(now + SECOND, SECOND * 5), SECOND * 29);
        assert_eq!(health.rate_limited(now + SECOND, SECOND * 40), SECOND * 40);
        assert_eq!(health.availability(now + SECOND), Availability::RateLimited(SECOND * 40));
    }
}
