//! When a second endpoint is asked the same question because the first takes long.
//!
//! Holds: the first is given twice the time that its answers took lately, 20 to 500 ms; in the long run no more
//! than one question in ten is asked twice, and never more than ten in a row above that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long an endpoint's answers took lately: a moving average that weighs the newest with a fifth.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Latency {
    average: Option<Duration>,
}

/// The least patience: below, noise would be taken for slowness.
const MIN_DELAY: Duration = Duration::from_millis(20);

/// The most, and what an endpoint without a record gets.
const MAX_DELAY: Duration = Duration::from_millis(500);

impl Latency {
    /// An answer took so long.
    pub(crate) fn observe(&mut self, took: Duration) {
        self.average = Some(self.average.map_or(took, |average| (average * 4 + took) / 5));
    }

    /// An answer would have taken longer than this.
    pub(crate) fn observe_at_least(&mut self, waited: Duration) {
        if self.average.is_some_and(|average| waited > average) {
            self.observe(waited);
        }
    }

    /// How long to wait for it alone.
    pub(crate) fn hedge_delay(&self) -> Duration {
        self.average.map_or(MAX_DELAY, |average| (average * 2).clamp(MIN_DELAY, MAX_DELAY))
    }
}

/// What may be spent on asking twice.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    tokens: AtomicU32,
}

/// The price of one extra request in questions asked.
const COST: u32 = 10;

/// Savings beyond ten extra requests are distrusted.
const CAPACITY: u32 = 10 * COST;

impl Default for TokenBucket {
    /// Enough for one.
    fn default() -> Self {
        Self { tokens: AtomicU32::new(COST) }
    }
}

impl TokenBucket {
    /// A question is asked once.
    pub(crate) fn deposit(&self) {
        self.change(|tokens| Some((tokens + 1).min(CAPACITY)));
    }

    /// Whether one more request can be paid for; it then is.
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
