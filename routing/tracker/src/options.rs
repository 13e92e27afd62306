//! Options of the tracker: intervals, timeouts and limits.

use std::time::Duration;

/// Settings of a [`crate::Tracker`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Time after which a registered transaction that no node has is abandoned.
    pub submitted_grace: Duration,
    /// Time without progress after which a transfer is abandoned; later if a packet's own timeout is later, up to
    /// [`Options::LONGEST_STALL`] times this.
    pub stall: Duration,
    /// Time for which a finished transfer is polled for its acknowledgements.
    pub post_final_watch: Duration,
    /// Time after which a withdrawal that can be claimed is abandoned.
    pub claim_margin: Duration,
    /// Time for which an abandoned transfer is still polled, every [`Options::abandoned_recheck_every`].
    pub abandoned_recheck: Duration,
    /// The same for a transaction that no node has seen; afterwards it is deleted.
    pub unseen_kept: Duration,
    /// Interval of these polls.
    pub abandoned_recheck_every: Duration,
    /// During an outage, nothing is abandoned before this time, and an unseen transaction is deleted after it.
    pub outage_grace: Duration,
    /// Time for which a transfer is kept after its last change, once no further evidence is possible.
    pub retention: Duration,
    /// Maximum hashes that no node has seen, per client ...
    pub unseen_per_client: usize,
    /// ... and per chain. A full chain deletes the ones abandoned first.
    pub unseen_per_chain: usize,
    /// Concurrent queries per chain.
    pub concurrency: usize,
    /// Timeout of one query at a node.
    pub question_timeout: Duration,
    /// Polling schedule: (time since the last change, interval from then on), in rising order.
    pub plan: Vec<(Duration, Duration)>,
    /// Blocks of an EVM chain scanned in one query.
    pub log_range: u64,
    /// Free bytes of the file system below which nothing is registered or polled.
    pub reserve_bytes: u64,
}

impl Options {
    /// See [`Options::stall`].
    pub const LONGEST_STALL: u32 = 6;

    /// Time until the next poll after `quiet` without a change.
    pub fn pace(&self, quiet: Duration) -> Duration {
        let step = self.plan.iter().rev().find(|(after, _)| *after <= quiet);
        step.map_or(Duration::from_secs(1), |(_, every)| *every).max(Duration::from_millis(1))
    }

    /// The same for a transaction registered `quiet` ago that no node has: half of that time again, so that a made-up
    /// hash costs a bounded number of queries. The last poll is at the end of the grace time.
    pub fn unseen_pace(&self, quiet: Duration) -> Duration {
        const SHORTEST: Duration = Duration::from_secs(1);
        const LONGEST: Duration = Duration::from_mins(1);
        let wait = (quiet / 2).clamp(SHORTEST, LONGEST);
        let left = self.submitted_grace.saturating_sub(quiet);
        if left.is_zero() { wait } else { wait.min(left) }
    }
}

impl Default for Options {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            submitted_grace: Duration::from_mins(5),
            stall: Duration::from_mins(30),
            post_final_watch: Duration::from_hours(1),
            claim_margin: Duration::from_hours(7 * 24),
            abandoned_recheck: Duration::from_hours(24),
            abandoned_recheck_every: Duration::from_mins(10),
            unseen_kept: Duration::from_hours(1),
            outage_grace: Duration::from_hours(24),
            retention: Duration::from_hours(30 * 24),
            // A wallet has a few; a web site that is not configured as a proxy may have those of many users.
            unseen_per_client: 100,
            unseen_per_chain: 10_000,
            concurrency: 32,
            question_timeout: seconds(5),
            plan: vec![
                (seconds(0), seconds(1)),
                (seconds(10), seconds(3)),
                (seconds(60), seconds(10)),
                (seconds(600), seconds(60)),
                (seconds(7200), seconds(600)),
            ],
            log_range: 2_000,
            reserve_bytes: 512 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_become_rarer_the_longer_nothing_changes() {
        let options = Options::default();
        let pace = |quiet| options.pace(Duration::from_secs(quiet)).as_secs();
        let paces = [0, 9, 10, 59, 60, 599, 600, 7_199, 7_200, u64::MAX].map(pace);
        assert_eq!(paces, [1, 1, 3, 3, 10, 10, 60, 60, 600, 600]);
        let all = |quiet| options.unseen_pace(Duration::from_secs(quiet)).as_secs();
        assert_eq!([0, 2, 10, 60, 120, 270, 299, 300, 9_999].map(all), [1, 1, 5, 30, 60, 30, 1, 60, 60]);
        let none = Options { plan: Vec::new(), ..Options::default() };
        assert_eq!(none.pace(Duration::ZERO), Duration::from_secs(1));
    }
}
