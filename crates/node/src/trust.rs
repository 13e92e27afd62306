//! Distrust of an endpoint after false answers: an exponential penalty.
//!
//! # Invariants
//!
//! * The first penalty lasts a minute, each later one twice the last, up to an hour.
//! * A false answer during a penalty is counted and does not start another: its request may have been under way
//!   before.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Backoff;

/// False answers and penalties of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    false_answers: u64,
    penalties: u32,
    until: Option<Instant>,
    last_logged: Option<Instant>,
}

/// Consequence of a false answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Penalty {
    /// How much longer the endpoint is distrusted.
    pub(crate) left: Duration,
    /// False answers so far, with this one.
    pub(crate) false_answers: u64,
    /// Whether to log it.
    pub(crate) log: bool,
}

/// Durations of the penalties.
const PENALTY: Backoff =
    Backoff { initial: Duration::from_mins(1), max: Duration::from_hours(1), jitter_percent: 0 };

/// An endpoint whose answers are all false is logged this often.
const REMINDER: Duration = Duration::from_secs(30);

impl Trust {
    /// Records a provably false answer.
    pub(crate) fn report_false(&mut self, now: Instant) -> Penalty {
        self.false_answers = self.false_answers.saturating_add(1);
        let until = self.until.filter(|until| *until > now).unwrap_or_else(|| {
            let steps = self.penalties;
            self.penalties = self.penalties.saturating_add(1);
            now + PENALTY.delay(steps)
        });
        self.until = Some(until);
        let log = self.last_logged.is_none_or(|log| now - log >= REMINDER);
        if log {
            self.last_logged = Some(now);
        }
        Penalty { left: until - now, false_answers: self.false_answers, log }
    }

    pub(crate) fn is_distrusted(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }

    pub(crate) fn false_answers(&self) -> u64 {
        self.false_answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn an_offence_costs_a_minute_and_each_later_one_twice_the_last_up_to_an_hour() {
        let (mut trust, mut now) = (Trust::default(), Instant::now());
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert!(!trust.is_distrusted(now));
            assert_eq!(trust.report_false(now).left, MINUTE * minutes);
            now += MINUTE * (minutes - 1);
            assert!(trust.is_distrusted(now + Duration::from_millis(59_999)));
            now += MINUTE;
        }
        assert_eq!(trust.false_answers(), 8);
    }

    #[test]
    fn answers_that_were_under_way_count_and_do_not_lengthen_the_sentence() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        trust.report_false(now);
        let second = trust.report_false(now + Duration::from_secs(10));
        assert_eq!((second.left, second.false_answers), (Duration::from_secs(50), 2));
    }

    #[test]
    fn the_log_hears_of_the_first_lie_and_then_every_thirty_seconds() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        let mut log = Vec::new();
        for second in 0..100 {
            if trust.report_false(now + Duration::from_secs(second)).log {
                log.push(second);
            }
        }
        assert_eq!(log, [0, 30, 60, 90]);
    }
}
