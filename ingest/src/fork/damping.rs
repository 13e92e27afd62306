//! Flap damping: pauses between rewinds to the history of a single endpoint. An endpoint behind a load balancer may
//! alternate between two histories, and each change costs a rewind and a reindex.

use std::time::Duration;

use node::retry::Backoff;
use tokio::time::Instant;

/// Counts rewinds.
#[derive(Debug, Default)]
pub(crate) struct Damping {
    last: Option<Instant>,
    in_a_row: u32,
}

impl Damping {
    /// Rewinds without a pause.
    const FREE: u32 = 3;
    /// Time without a rewind after which the count is reset.
    const CALM: Duration = Duration::from_mins(30);
    /// The backoff schedule.
    const PAUSES: Backoff =
        Backoff { initial: Duration::from_secs(5), max: Duration::from_mins(5), jitter: false };

    /// Counts a rewind and returns the pause before it.
    pub(crate) fn pause(&mut self, now: Instant) -> Option<Duration> {
        if self.last.is_none_or(|last| now.saturating_duration_since(last) > Self::CALM) {
            self.in_a_row = 0;
        }
        let pause = self.in_a_row.checked_sub(Self::FREE).map(|steps| Self::PAUSES.delay(steps));
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(now);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_rewinds_have_growing_pauses_that_are_reset_after_a_quiet_time() {
        let (mut damping, mut now) = (Damping::default(), Instant::now());
        let mut seconds = |damping: &mut Damping, after: Duration| {
            now += after;
            damping.pause(now).map_or(0, |pause| pause.as_secs())
        };
        let minute = Duration::from_mins(1);
        let paused: Vec<u64> = (0..11).map(|_| seconds(&mut damping, minute)).collect();
        assert_eq!(paused, [0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(seconds(&mut damping, 31 * minute), 0);
    }
}
