//! Rate-limited logging of outages: one line at the beginning, one at the end.
//!
//! # Invariants
//!
//! The beginning is logged at most once a minute, and an end only if its beginning was logged.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest interval between logged beginnings.
const AGAIN: Duration = Duration::from_mins(1);

/// Current outage, if any, and the state of its logging.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    began: Option<Instant>,
    /// True if the beginning of this outage was logged.
    logged: bool,
    last_logged: Option<Instant>,
}

impl Outage {
    /// Records a failure of a request that began at `began`. Returns true if the outage is to be logged, once it has
    /// lasted `long`.
    pub(crate) fn failed(&mut self, began: Instant, now: Instant, long: Duration) -> bool {
        let lasted = now - *self.began.get_or_insert(began);
        let due = lasted >= long && !self.logged && self.last_logged.is_none_or(|last| now - last >= AGAIN);
        if due {
            (self.logged, self.last_logged) = (true, Some(now));
        }
        due
    }

    /// Records a success. Returns the length of the outage if its end is to be logged.
    pub(crate) fn recovered(&mut self, now: Instant) -> Option<Duration> {
        let began = self.began.take()?;
        std::mem::take(&mut self.logged).then(|| now - began)
    }

    /// Start of the outage.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_outage_is_logged_once_at_each_end_with_its_whole_length() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert!(outage.failed(start, start + 10 * SECOND, Duration::ZERO));
        assert!(!outage.failed(start + 11 * SECOND, start + 20 * SECOND, Duration::ZERO));
        assert_eq!(outage.since(), Some(start));
        assert_eq!(outage.recovered(start + 30 * SECOND), Some(30 * SECOND));
        assert_eq!((outage.recovered(start + 31 * SECOND), outage.since()), (None, None));
    }

    #[test]
    fn an_endpoint_that_fails_now_and_then_is_logged_once_a_minute() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        let mut logged = Vec::new();
        for second in (0..150).step_by(2) {
            let now = start + second * SECOND;
            logged.extend(outage.failed(now, now, Duration::ZERO).then_some(second));
            outage.recovered(now + SECOND);
        }
        assert_eq!(logged, [0, 60, 120]);
    }

    #[test]
    fn an_outage_that_follows_another_at_once_is_logged_when_it_lasts() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert!(outage.failed(start, start, Duration::ZERO));
        outage.recovered(start + SECOND);
        let again = start + 2 * SECOND;
        assert!(!outage.failed(again, again, Duration::ZERO));
        assert!(outage.failed(start + 60 * SECOND, start + 60 * SECOND, Duration::ZERO));
        assert_eq!(outage.recovered(start + 70 * SECOND), Some(68 * SECOND));
    }

    #[test]
    fn a_failure_that_is_over_soon_is_not_logged_and_one_that_lasts_is_logged_once() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        assert!(!outage.failed(start, start, SECOND));
        assert_eq!((outage.since(), outage.recovered(start + SECOND / 2)), (Some(start), None));
        let again = start + 2 * SECOND;
        assert!(!outage.failed(again, again, SECOND));
        assert!(outage.failed(again + SECOND, again + SECOND, SECOND));
        assert!(!outage.failed(again + 2 * SECOND, again + 2 * SECOND, SECOND));
        assert_eq!(outage.recovered(again + 3 * SECOND), Some(3 * SECOND));
    }
}
