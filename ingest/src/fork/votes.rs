//! Who has the block that is indexed, and who has another one.

use node::Origin;

/// What was said so far.
#[derive(Debug, Default)]
pub(super) struct Votes {
    /// Each endpoint once, and whether it has our block.
    said: Vec<(Origin, bool)>,
}

/// What follows from it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// NoAnswers has said anything.
    NoAnswers,
    /// Who said otherwise has our block, as everybody else.
    NoConflict,
    /// As many have our block as have another one.
    Ours,
    /// More have another one, this endpoint for example.
    Theirs(Origin),
}

impl Votes {
    pub(super) fn cast(&mut self, who: Origin, is_ours: bool) {
        self.said.push((who, is_ours));
    }

    pub(super) fn has_voted(&self, who: &Origin) -> bool {
        self.said.iter().any(|(has_voted, _)| has_voted == who)
    }

    /// Those that have another block.
    pub(super) fn against(&self) -> impl Iterator<Item = &Origin> {
        self.said.iter().filter(|(_, is_ours)| !is_ours).map(|(who, _)| who)
    }

    /// How many have our block and how many another one. `origin`, who has shown another one, is among the latter unless it
    /// has been has_voted since.
    fn count(&self, origin: &Origin) -> (usize, usize) {
        let ours = self.said.iter().filter(|(_, is_ours)| *is_ours).count();
        let theirs = self.said.len() - ours;
        (ours, theirs + usize::from(!self.has_voted(origin)))
    }

    /// Whether as many as are `missing` could not change what follows.
    pub(super) fn are_decided(&self, missing: usize, origin: &Origin) -> bool {
        let (ours, theirs) = self.count(origin);
        // `origin` may be among the missing, and have our block when it is has_voted.
        let surely_theirs = self.against().count();
        missing == 0 || !self.said.is_empty() && (surely_theirs > ours + missing || ours >= theirs + missing)
    }

    /// What follows from what was said, where `origin` has shown another block than ours.
    pub(super) fn outcome(&self, origin: &Origin) -> Outcome {
        let (ours, theirs) = self.count(origin);
        match self.against().find(|who| *who == origin).or_else(|| self.against().next()) {
            _ if self.said.is_empty() => Outcome::NoAnswers,
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
