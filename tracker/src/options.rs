//! How often, how long and how much: the bounds of following.

use std::time::Duration;

/// The bounds of a [`crate::Tracker`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// A registered transaction that no node has seen for so long is given up.
    pub submitted_grace: Duration,
    /// A transfer that has not moved for so long is given up; later if a packet's own timeout is later, up to
    /// [`Options::LONGEST_STALL`] times this.
    pub stall: Duration,
    /// How long the acknowledgements of a transfer that is over are waited for.
    pub settle: Duration,
    /// A withdrawal is given up when it could have been claimed for so long.
    pub claim_margin: Duration,
    /// How long a transfer that was given up is still looked at, every [`Options::background_every`].
    pub background: Duration,
    /// How often that is.
    pub background_every: Duration,
    /// While nodes do not answer, nothing is given up before this.
    pub silence: Duration,
    /// The receiving chain has to be so far past a packet's timeout before the packet counts as lost: a search may lag
    /// behind the chain.
    pub expiry_margin: Duration,
    /// Transfers that are looked at together.
    pub concurrency: usize,
    /// The longest that a node may take for one question.
    pub question_timeout: Duration,
    /// When a transfer is looked at: since the last change so long (first), every so often (second). In rising order.
    pub plan: Vec<(Duration, Duration)>,
    /// Blocks of an EVM chain that are looked through in one question.
    pub log_range: u64,
}

impl Options {
    /// See [`Options::stall`].
    pub const LONGEST_STALL: u32 = 6;

    /// How long to wait for the next look when nothing changed for `quiet`.
    pub fn pace(&self, quiet: Duration) -> Duration {
        let step = self.plan.iter().rev().find(|(after, _)| *after <= quiet);
        step.map_or(Duration::from_secs(1), |(_, every)| *every).max(Duration::from_millis(1))
    }
}

impl Default for Options {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            submitted_grace: Duration::from_mins(5),
            stall: Duration::from_mins(30),
            settle: Duration::from_hours(1),
            claim_margin: Duration::from_hours(7 * 24),
            background: Duration::from_hours(24),
            background_every: Duration::from_mins(10),
            silence: Duration::from_hours(24),
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
        let none = Options { plan: Vec::new(), ..Options::default() };
        assert_eq!(none.pace(Duration::ZERO), Duration::from_secs(1));
    }
}
