//! Votes of the endpoints: the indexed block, or another one.

use node::Origin;

/// The votes so far.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Each endpoint once, and whether it has our block.
    votes: Vec<(Origin, bool)>,
}

/// The result of the votes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No endpoint has answered.
    NoAnswers,
    /// Every endpoint has the indexed block, also the one that contradicted.
    NoConflict,
    /// At least as many endpoints have the indexed block as have another one.
    Ours,
    /// More have another block, this endpoint for example.
    Theirs(Origin),
}

impl Votes {
    pub(super) fn cast(&mut self, endpoint: Origin, is_ours: bool) {
        self.votes.push((endpoint, is_ours));
    }

    pub(super) fn has_voted(&self, who: &Origin) -> bool {
        self.votes.iter().any(|(has_voted, _)| has_voted == who)
    }

    /// The endpoints with another block.
    pub(super) fn against(&self) -> impl Iterator<Item = &Origin> {
        self.votes.iter().filter(|(_, is_ours)| !is_ours).map(|(who, _)| who)
    }

    /// The number of endpoints with our block and with another one. `origin`, which has shown another one, counts for
    /// the latter unless it has voted since.
    fn count(&self, origin: &Origin) -> (usize, usize) {
        let ours = self.votes.iter().filter(|(_, is_ours)| *is_ours).count();
        let theirs = self.votes.len() - ours;
        (ours, theirs + usize::from(!self.has_voted(origin)))
    }

    /// Whether `missing` further votes could not change the outcome.
    pub(super) fn are_decided(&self, missing: usize, origin: &Origin) -> bool {
        let (ours, theirs) = self.count(origin);
        // `origin` may be among the missing, and vote for our block.
        let surely_theirs = self.against().count();
        missing == 0 || !self.votes.is_empty() && (surely_theirs > ours + missing || ours >= theirs + missing)
    }

    /// The outcome, if `origin` has shown another block than ours.
    pub(super) fn outcome(&self, origin: &Origin) -> Outcome {
        let (ours, theirs) = self.count(origin);
        match self.against().find(|who| *who == origin).or_else(|| self.against().next()) {
            _ if self.votes.is_empty() => Outcome::NoAnswers,
            None if self.has_voted(origin) => Outcome::NoConflict,
            Some(by) if theirs > ours => Outcome::Theirs(by.clone()),
            _ => Outcome::Ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use node::{Endpoints, Limits, Node};

    use super::*;

    /// Some endpoints.
    fn who(many: u16) -> Vec<Origin> {
        let comet = (1..=many).map(|port| format!("http://127.0.0.1:{port}").parse().unwrap()).collect();
        let node = Node::new(Endpoints { comet, ..Endpoints::default() }, Limits::default()).unwrap();
        node.comet.endpoints().iter().map(|endpoint| endpoint.origin.clone()).collect()
    }

    fn votes(said: &[(&Origin, bool)]) -> Votes {
        let mut votes = Votes::default();
        for (who, is_ours) in said {
            votes.cast((*who).clone(), *is_ours);
        }
        votes
    }

    #[tokio::test]
    async fn more_must_say_otherwise_than_have_our_block() {
        let [a, b, c] = &who(3)[..] else { panic!("three") };
        let outcome = |said: &[(&Origin, bool)]| votes(said).outcome(a);
        assert_eq!(outcome(&[]), Outcome::NoAnswers);
        assert_eq!(outcome(&[(a, true)]), Outcome::NoConflict);
        assert_eq!(outcome(&[(a, true), (b, true)]), Outcome::NoConflict);
        assert_eq!(outcome(&[(a, false)]), Outcome::Theirs(a.clone()));
        assert_eq!(outcome(&[(b, false)]), Outcome::Theirs(b.clone()));
        assert_eq!(outcome(&[(b, true)]), Outcome::Ours);
        assert_eq!(outcome(&[(a, false), (b, true)]), Outcome::Ours);
        assert_eq!(outcome(&[(a, true), (b, false)]), Outcome::Ours);
        assert_eq!(outcome(&[(b, true), (c, false), (a, false)]), Outcome::Theirs(a.clone()));
        assert_eq!(outcome(&[(b, true), (c, true), (a, false)]), Outcome::Ours);
    }

    #[tokio::test]
    async fn nobody_is_waited_for_who_could_not_change_it() {
        let [a, b, c, d] = &who(4)[..] else { panic!("four") };
        let decided = |said: &[(&Origin, bool)], missing| votes(said).are_decided(missing, a);
        assert!(!decided(&[], 3) && decided(&[], 0));
        assert!(!decided(&[(a, false)], 1) && decided(&[(a, false)], 0));
        assert!(decided(&[(a, false), (b, false)], 1));
        assert!(!decided(&[(a, false), (b, false)], 2));
        assert!(decided(&[(b, true), (c, true)], 1));
        assert!(!decided(&[(a, false), (b, true)], 1));
        assert!(
            !decided(&[(b, true), (c, false), (d, false)], 1),
            "the one that showed another block may take it back"
        );
    }
}
