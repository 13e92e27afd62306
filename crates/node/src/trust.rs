//! What an endpoint is believed after it has said something that is proved false.
//!
//! Holds: an offence costs a minute of trust, every later one twice as much as the last, up to an hour; what comes
//! of questions that were already under way when it was found out counts as a lie and not as a new offence.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Backoff;

/// The record of one endpoint.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    lies: u64,
    offences: u32,
    until: Option<Instant>,
    told: Option<Instant>,
}

/// What a lie came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// For how long it will not be believed.
    pub(crate) left: Duration,
    /// Lies so far, with this one.
    pub(crate) lies: u64,
    /// Whether the log is to hear of it.
    pub(crate) told: bool,
}

/// How long an offence costs trust.
const SENTENCE: Backoff =
    Backoff { initial: Duration::from_mins(1), max: Duration::from_hours(1), jitter_percent: 0 };

/// An endpoint that lies all the time is named this often.
const REMINDER: Duration = Duration::from_secs(30);

impl Trust {
    /// It has said something that is proved false.
    pub(crate) fn lied(&mut self, now: Instant) -> Sentence {
        self.lies = self.lies.saturating_add(1);
        let until = self.until.filter(|until| *until > now).unwrap_or_else(|| {
            let steps = self.offences;
            self.offences = self.offences.saturating_add(1);
            now + SENTENCE.delay(steps)
        });
        self.until = Some(until);
        let told = self.told.is_none_or(|told| now - told >= REMINDER);
        if told {
            self.told = Some(now);
        }
        Sentence { left: until - now, lies: self.lies, told }
    }

    pub(crate) fn is_lost(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until > now)
    }

    pub(crate) fn lies(&self) -> u64 {
        self.lies
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
            assert!(!trust.is_lost(now));
            assert_eq!(trust.lied(now).left, MINUTE * minutes);
            now += MINUTE * (minutes - 1);
            assert!(trust.is_lost(now + Duration::from_millis(59_999)));
            now += MINUTE;
        }
        assert_eq!(trust.lies(), 8);
    }

    #[test]
    fn answers_that_were_under_way_count_and_do_not_lengthen_the_sentence() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        trust.lied(now);
        let second = trust.lied(now + Duration::from_secs(10));
        assert_eq!((second.left, second.lies), (Duration::from_secs(50), 2));
    }

    #[test]
    fn the_log_hears_of_the_first_lie_and_then_every_thirty_seconds() {
        let (mut trust, now) = (Trust::default(), Instant::now());
        let mut told = Vec::new();
        for second in 0..100 {
            if trust.lied(now + Duration::from_secs(second)).told {
                told.push(second);
            }
        }
        assert_eq!(told, [0, 30, 60, 90]);
    }
}
