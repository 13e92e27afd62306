//! The decision about two neighbouring blocks: commit, fetch again, fork choice or rollback. Pure: no IO, no clock.

use std::cmp::Ordering;

/// Undecided contradictions between two fetched blocks before the fork choice.
const MAX_UNDECIDED: u32 = 10;

/// The state of the earlier one of two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    /// It is fetched, but not committed, so it can be fetched again.
    Held,
    /// It is committed.
    Committed,
}

/// One or both of two neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Earlier,
    Later,
    Both,
}

/// The reason why two neighbours do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// The later block is not the operator's trusted block of its height.
    Untrusted(String),
    /// The later block has another parent.
    Parent(String),
    /// The later block states other digests of the earlier block's results.
    Results(String),
    /// The later block has no valid signatures on the earlier one.
    Signatures(String),
}

impl Contradiction {
    pub(super) fn reason(&self) -> &str {
        let (Self::Untrusted(reason)
        | Self::Parent(reason)
        | Self::Results(reason)
        | Self::Signatures(reason)) = self;
        reason
    }
}

/// The other endpoints' blocks at the later block's height.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opinions {
    /// Blocks that fit after the earlier block.
    pub(super) fitting: usize,
    /// Blocks that equal the later block.
    pub(super) same: usize,
    /// True if the committed block, fetched again, fits before the later block.
    pub(super) refetched_fits: bool,
}

impl Opinions {
    /// The wrong one of the two blocks by majority; the endpoint that served the later block votes too.
    pub(super) fn culprit(&self) -> Option<Side> {
        match (self.fitting, self.same) {
            (0, 0) => None,
            (0, _) => Some(Side::Earlier),
            (_, 0) => Some(Side::Later),
            (fitting, same) => match fitting.cmp(&(same + 1)) {
                Ordering::Greater => Some(Side::Later),
                Ordering::Less => Some(Side::Earlier),
                Ordering::Equal => None,
            },
        }
    }
}

/// The next step of the linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The later block fits.
    Commit,
    /// These blocks are wrong: distrust their endpoints, and fetch them again.
    Distrust(Side),
    /// It is undecided which block is wrong: fetch these again.
    Refetch(Side),
    /// The earlier block may belong to another history than the chain.
    ChooseFork,
    /// The committed block has wrong results.
    Rollback,
}

/// The next step for a block and its predecessor, after `undecided` earlier contradictions of their parents that
/// [`Opinions`] did not decide.
pub(super) fn decide(
    earlier: Earlier,
    contradiction: Option<&Contradiction>,
    opinions: Opinions,
    undecided: u32,
) -> Action {
    use Contradiction::{Parent, Results, Signatures, Untrusted};
    use Earlier::{Committed, Held};
    let Some(contradiction) = contradiction else { return Action::Commit };
    match (contradiction, earlier, opinions.culprit()) {
        // Either may belong to a history without signatures.
        (Signatures(_), Held, _) => Action::Distrust(Side::Both),
        (Untrusted(_), _, _)
        | (Signatures(_), Committed, _)
        | (Parent(_) | Results(_), _, Some(Side::Later)) => Action::Distrust(Side::Later),
        (Parent(_) | Results(_), Held, Some(wrong)) => Action::Distrust(wrong),
        (Parent(_), Committed, Some(_)) => Action::ChooseFork,
        (Results(_), Committed, Some(_)) => Action::Rollback,
        (Parent(_), Held, None) if undecided >= MAX_UNDECIDED => Action::ChooseFork,
        (Parent(_) | Results(_), Held, None) => Action::Refetch(Side::Both),
        (Parent(_), Committed, None) if undecided > 0 => Action::ChooseFork,
        // With a single endpoint, its second reply is the only evidence.
        (Results(_), Committed, None) if opinions.refetched_fits => Action::Rollback,
        (Parent(_) | Results(_), Committed, None) => Action::Refetch(Side::Later),
    }
}

#[cfg(test)]
mod tests {
    use super::Action::{ChooseFork, Commit, Distrust, Refetch, Rollback};
    use super::Earlier::{Committed, Held};
    use super::*;

    fn opinions(fitting: usize, same: usize) -> Opinions {
        Opinions { fitting, same, refetched_fits: false }
    }

    #[test]
    fn the_majority_decides_which_block_is_wrong_and_the_endpoint_of_the_later_block_votes_for_it() {
        let rows = [
            (0, 0, None),
            (0, 1, Some(Side::Earlier)),
            (0, 3, Some(Side::Earlier)),
            (1, 0, Some(Side::Later)),
            (3, 0, Some(Side::Later)),
            (1, 1, Some(Side::Earlier)),
            (2, 1, None),
            (3, 1, Some(Side::Later)),
            (2, 2, Some(Side::Earlier)),
            (3, 2, None),
        ];
        for (fitting, same, culprit) in rows {
            assert_eq!(opinions(fitting, same).culprit(), culprit, "{fitting} fit, {same} are the same");
        }
    }

    #[test]
    fn every_contradiction_has_one_action() {
        let parent = || Some(Contradiction::Parent("parent".to_owned()));
        let results = || Some(Contradiction::Results("results".to_owned()));
        let signatures = || Some(Contradiction::Signatures("signatures".to_owned()));
        let untrusted = || Some(Contradiction::Untrusted("untrusted".to_owned()));
        let (unknown, later, earlier) = (opinions(0, 0), opinions(1, 0), opinions(0, 1));
        let refetched = Opinions { refetched_fits: true, ..unknown };
        let rows = [
            (Held, None, unknown, 0, Commit),
            (Committed, None, unknown, 9, Commit),
            (Held, untrusted(), unknown, 0, Distrust(Side::Later)),
            (Committed, untrusted(), unknown, 0, Distrust(Side::Later)),
            (Held, signatures(), unknown, 0, Distrust(Side::Both)),
            (Committed, signatures(), unknown, 0, Distrust(Side::Later)),
            (Held, parent(), later, 0, Distrust(Side::Later)),
            (Held, parent(), later, MAX_UNDECIDED, Distrust(Side::Later)),
            (Held, parent(), earlier, 0, Distrust(Side::Earlier)),
            (Held, parent(), earlier, MAX_UNDECIDED, Distrust(Side::Earlier)),
            (Held, parent(), unknown, 0, Refetch(Side::Both)),
            (Held, parent(), unknown, MAX_UNDECIDED - 1, Refetch(Side::Both)),
            (Held, parent(), unknown, MAX_UNDECIDED, ChooseFork),
            (Held, results(), later, 0, Distrust(Side::Later)),
            (Held, results(), earlier, 0, Distrust(Side::Earlier)),
            (Held, results(), unknown, 0, Refetch(Side::Both)),
            (Held, results(), unknown, MAX_UNDECIDED, Refetch(Side::Both)),
            (Committed, parent(), later, 0, Distrust(Side::Later)),
            (Committed, parent(), later, 1, Distrust(Side::Later)),
            (Committed, parent(), earlier, 0, ChooseFork),
            (Committed, parent(), unknown, 0, Refetch(Side::Later)),
            (Committed, parent(), unknown, 1, ChooseFork),
            (Committed, parent(), refetched, 0, Refetch(Side::Later)),
            (Committed, results(), later, 0, Distrust(Side::Later)),
            (Committed, results(), earlier, 0, Rollback),
            (Committed, results(), unknown, 0, Refetch(Side::Later)),
            (Committed, results(), unknown, 9, Refetch(Side::Later)),
            (Committed, results(), refetched, 0, Rollback),
        ];
        for (state, contradiction, opinions, undecided, action) in rows {
            let decided = decide(state, contradiction.as_ref(), opinions, undecided);
            assert_eq!(decided, action, "{state:?} {contradiction:?} {opinions:?} {undecided}");
        }
    }
}
