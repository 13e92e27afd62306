//! What one URL's last answers say about asking it again.
//!
//! Holds: a URL that fails is asked last, for a time that grows with its failures and is capped; one good answer
//! forgives all failures. A pause that the server ordered is kept to, capped too, whatever is answered meanwhile: what
//! was under way when it was ordered says nothing about it.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Backoff;

/// Whether it is a URL's turn to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Ask it.
    Ready,
    /// Ask it only if the others have not helped.
    Cooling,
    /// The server ordered a pause: leave it alone for so long.
    Barred(Duration),
}

/// The record of one URL.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: u32,
    cool_until: Option<Instant>,
    barred_until: Option<Instant>,
}

/// So many failures in a row are put down to chance.
const CHANCE: u32 = 2;

/// Cool-downs after failures.
const COOL: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter_percent: 20 };

/// The longest pause that a server can order.
const LONGEST_BAR: Duration = Duration::from_mins(1);

impl Health {
    pub(crate) fn turn(&self, now: Instant) -> Turn {
        if let Some(until) = self.barred_until.filter(|until| *until > now) {
            return Turn::Barred(until - now);
        }
        if self.cool_until.is_some_and(|until| until > now) { Turn::Cooling } else { Turn::Ready }
    }

    /// Whether more of its last answers in a row were failures than chance explains.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > CHANCE
    }

    /// It answered, be it with a no: the endpoint works.
    pub(crate) fn answered(&mut self) {
        (self.failures, self.cool_until) = (0, None);
    }

    /// It failed.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if let Some(steps) = self.failures.checked_sub(CHANCE + 1) {
            self.cool_until = Some(now + COOL.delay(steps));
        }
    }

    /// It wants to be left alone; returns for how long it will be: the later of two orders counts.
    pub(crate) fn barred(&mut self, now: Instant, pause: Duration) -> Duration {
        let until = (now + pause.min(LONGEST_BAR)).max(self.barred_until.unwrap_or(now));
        self.barred_until = Some(until);
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
        assert_eq!(health.turn(now), Turn::Ready);
        health.failed(now);
        assert_eq!(health.turn(now), Turn::Cooling);
        assert_eq!(health.turn(now + SECOND * 2), Turn::Ready);
    }

    #[test]
    fn cool_downs_grow_and_stop_growing() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..5 {
            health.failed(now);
        }
        assert_eq!(health.turn(now + SECOND * 3), Turn::Cooling);
        for _ in 0..100 {
            health.failed(now);
        }
        assert_eq!(health.turn(now + SECOND * 47), Turn::Cooling);
        assert_eq!(health.turn(now + SECOND * 73), Turn::Ready);
    }

    #[test]
    fn one_answer_forgives_all_failures() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..9 {
            health.failed(now);
        }
        health.answered();
        assert_eq!(health.turn(now), Turn::Ready);
        health.failed(now);
        assert_eq!(health.turn(now), Turn::Ready);
    }

    #[test]
    fn an_ordered_pause_is_kept_to_but_not_for_ever() {
        let (mut health, now) = (Health::default(), Instant::now());
        assert_eq!(health.barred(now, SECOND * 5), SECOND * 5);
        assert_eq!(health.turn(now + SECOND), Turn::Barred(SECOND * 4));
        assert_eq!(health.turn(now + SECOND * 5), Turn::Ready);
        assert_eq!(health.barred(now, SECOND * 86_400), LONGEST_BAR);
    }

    #[test]
    fn neither_an_answer_nor_a_shorter_order_ends_an_ordered_pause() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.barred(now, SECOND * 30);
        health.answered();
        assert_eq!(health.turn(now), Turn::Barred(SECOND * 30));
        assert_eq!(health.barred(now + SECOND, SECOND * 5), SECOND * 29);
        assert_eq!(health.barred(now + SECOND, SECOND * 40), SECOND * 40);
        assert_eq!(health.turn(now + SECOND), Turn::Barred(SECOND * 40));
    }
}
