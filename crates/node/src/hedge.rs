//! Hedged requests: a second endpoint is asked if the first is slow, within a token bucket.
//!
//! # Invariants
//!
//! * The first endpoint gets twice its usual latency before the second is asked, at least 20 ms and at most 500 ms.
//! * In the long run at most one request in ten is hedged, with bursts of at most ten.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Latency of an endpoint: an exponential moving average in which the newest answer weighs a fifth.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Latency {
    average: Option<Duration>,
}

/// Shortest delay before a hedge: below it, noise would look like slowness.
const MIN_DELAY: Duration = Duration::from_millis(20);

/// Longest delay, and the delay for an endpoint without a known latency.
const MAX_DELAY: Duration = Duration::from_millis(500);

impl Latency {
    /// Records the latency of an answer.
    pub(crate) fn observe(&mut self, took: Duration) {
        self.average = Some(self.average.map_or(took, |average| (average * 4 + took) / 5));
    }

    /// Records a lower bound: the request was dropped before its answer.
    pub(crate) fn observe_at_least(&mut self, waited: Duration) {
        if self.average.is_some_and(|average| waited > average) {
            self.observe(waited);
        }
    }

    /// How long to wait for the endpoint before a hedge is sent.
    pub(crate) fn hedge_delay(&self) -> Duration {
        self.average.map_or(MAX_DELAY, |average| (average * 2).clamp(MIN_DELAY, MAX_DELAY))
    }
}

/// Token bucket for hedges: each request deposits a token, each hedge takes [`COST`].
#[derive(Debug)]
pub(crate) struct TokenBucket {
    tokens: AtomicU32,
}

/// Tokens of one hedge.
const COST: u32 = 10;

/// Most tokens in the bucket: ten hedges.
const CAPACITY: u32 = 10 * COST;

impl Default for TokenBucket {
    /// Filled for one hedge.
    fn default() -> Self {
        Self { tokens: AtomicU32::new(COST) }
    }
}

impl TokenBucket {
    /// Adds the token of one request.
    pub(crate) fn deposit(&self) {
        self.change(|tokens| Some((tokens + 1).min(CAPACITY)));
    }

    /// Takes the tokens of one hedge, if there are enough.
    pub(crate) fn try_take(&self) -> bool {
        self.change(|tokens| tokens.checked_sub(COST))
    }

    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> bool {
        self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn patience_is_twice_the_usual_within_bounds() {
        let mut latency = Latency::default();
        assert_eq!(latency.hedge_delay(), 500 * MS);
        latency.observe(MS);
        assert_eq!(latency.hedge_delay(), 20 * MS);
        for _ in 0..50 {
            latency.observe(100 * MS);
        }
        assert_eq!(latency.hedge_delay().as_millis(), 199);
        latency.observe(10_000 * MS);
        assert_eq!(latency.hedge_delay(), 500 * MS);
    }

    #[test]
    fn an_answer_that_was_not_waited_for_teaches_only_that_it_is_slow() {
        let mut latency = Latency::default();
        latency.observe_at_least(MS);
        assert_eq!(latency.hedge_delay(), 500 * MS);
        latency.observe(50 * MS);
        latency.observe_at_least(10 * MS);
        assert_eq!(latency.hedge_delay(), 100 * MS);
        latency.observe_at_least(100 * MS);
        assert_eq!(latency.hedge_delay(), 120 * MS);
    }

    #[test]
    fn one_question_in_ten_can_be_asked_twice() {
        let bucket = TokenBucket::default();
        let extra = (0..1_000).filter(|_| {
            bucket.deposit();
            bucket.try_take()
        });
        assert_eq!(extra.count(), 101);
        for _ in 0..10_000 {
            bucket.deposit();
        }
        assert_eq!((0..100).filter(|_| bucket.try_take()).count(), 10);
    }
}
