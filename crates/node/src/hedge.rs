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
const LEAST: Duration = Duration::from_millis(20);

/// The most, and what an endpoint without a record gets.
const MOST: Duration = Duration::from_millis(500);

impl Latency {
    /// An answer took so long.
    pub(crate) fn learn(&mut self, took: Duration) {
        self.average = Some(self.average.map_or(took, |average| (average * 4 + took) / 5));
    }

    /// An answer would have taken longer than this.
    pub(crate) fn learn_at_least(&mut self, waited: Duration) {
        if self.average.is_some_and(|average| waited > average) {
            self.learn(waited);
        }
    }

    /// How long to wait for it alone.
    pub(crate) fn patience(&self) -> Duration {
        self.average.map_or(MOST, |average| (average * 2).clamp(LEAST, MOST))
    }
}

/// What may be spent on asking twice.
#[derive(Debug)]
pub(crate) struct Budget {
    coins: AtomicU32,
}

/// The price of one extra request in questions asked.
const PRICE: u32 = 10;

/// Savings beyond ten extra requests are lost.
const PURSE: u32 = 10 * PRICE;

impl Default for Budget {
    /// Enough for one.
    fn default() -> Self {
        Self { coins: AtomicU32::new(PRICE) }
    }
}

impl Budget {
    /// A question is asked once.
    pub(crate) fn earn(&self) {
        self.change(|coins| Some((coins + 1).min(PURSE)));
    }

    /// Whether one more request can be paid for; it then is.
    pub(crate) fn spend(&self) -> bool {
        self.change(|coins| coins.checked_sub(PRICE))
    }

    fn change(&self, next: impl Fn(u32) -> Option<u32>) -> bool {
        self.coins.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn patience_is_twice_the_usual_within_bounds() {
        let mut latency = Latency::default();
        assert_eq!(latency.patience(), 500 * MS);
        latency.learn(MS);
        assert_eq!(latency.patience(), 20 * MS);
        for _ in 0..50 {
            latency.learn(100 * MS);
        }
        assert_eq!(latency.patience().as_millis(), 199);
        latency.learn(10_000 * MS);
        assert_eq!(latency.patience(), 500 * MS);
    }

    #[test]
    fn an_answer_that_was_not_waited_for_teaches_only_that_it_is_slow() {
        let mut latency = Latency::default();
        latency.learn_at_least(MS);
        assert_eq!(latency.patience(), 500 * MS);
        latency.learn(50 * MS);
        latency.learn_at_least(10 * MS);
        assert_eq!(latency.patience(), 100 * MS);
        latency.learn_at_least(100 * MS);
        assert_eq!(latency.patience(), 120 * MS);
    }

    #[test]
    fn one_question_in_ten_can_be_asked_twice() {
        let budget = Budget::default();
        let extra = (0..1_000).filter(|_| {
            budget.earn();
            budget.spend()
        });
        assert_eq!(extra.count(), 101);
        for _ in 0..10_000 {
            budget.earn();
        }
        assert_eq!((0..100).filter(|_| budget.spend()).count(), 10);
    }
}
