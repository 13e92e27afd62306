//! Options of the tracker: intervals, timeouts and limits.

use std::time::Duration;

/// The bounds of a [`crate::Tracker`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// A registered transaction that no node has seen for so long is abandoned.
    pub submitted_grace: Duration,
    /// A transfer that has not moved for so long is abandoned; later if a packet's own timeout is later, up to
    /// [`Options::LONGEST_STALL`] times this.
    pub stall: Duration,
    /// How long the acknowledgements of a transfer that is over are waited for.
    pub post_final_watch: Duration,
    /// A withdrawal is abandoned when it could have been claimed for so long.
    pub claim_margin: Duration,
    /// How long a transfer that was abandoned is still polled, every [`Options::abandoned_recheck_every`].
    pub abandoned_recheck: Duration,
    /// The same for a transaction that no node has seen; then it is deleted.
    pub unseen_kept: Duration,
    /// How often that is.
    pub abandoned_recheck_every: Duration,
    /// While nodes do not answer, nothing is abandoned before this, and what no node has seen is deleted after it.
    pub outage_grace: Duration,
    /// How long a transfer is kept after its last change, once nothing is left to learn of it.
    pub retention: Duration,
    /// Transactions that no node has seen: how many of them one client may have registered ...
    pub unseen_per_client: usize,
    /// ... and how many all clients together on one chain. A full chain deletes what was abandoned first.
    pub unseen_per_chain: usize,
    /// The receiving chain has to be so far past a packet's timeout before the packet counts as lost: a search may lag
    /// behind the chain.
    pub expiry_margin: Duration,
    /// Concurrent queries per chain.
    pub concurrency: usize,
    /// The longest that a node may take for one query.
    pub question_timeout: Duration,
    /// When a transfer is polled: since the last change so long (first), every so often (second). In rising order.
    pub plan: Vec<(Duration, Duration)>,
    /// Blocks of an EVM chain that are scanned in one query.
    pub log_range: u64,
    /// Bytes of the file system that are left free: below it nothing is registered or polled.
    pub reserve_bytes: u64,
}

impl Options {
    /// See [`Options::stall`].
    pub const LONGEST_STALL: u32 = 6;

    /// How long to wait for the next poll when nothing changed for `quiet`.
    pub fn pace(&self, quiet: Duration) -> Duration {
        let step = self.plan.iter().rev().find(|(after, _)| *after <= quiet);
        step.map_or(Duration::from_secs(1), |(_, every)| *every).max(Duration::from_millis(1))
    }

    /// The same for a transaction that was registered so long ago and that no node has seen: half of that time again,
    /// so that a made-up hash costs a bounded number of queries. The last poll is when the grace time is over.
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
            // A wallet has a few; a web site that is not named as a proxy may have those of many users.
            unseen_per_client: 100,
            unseen_per_chain: 10_000,
            expiry_margin: seconds(30),
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
    fn looks_become_rarer_the_longer_nothing_changes() {
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
