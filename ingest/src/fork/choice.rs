//! The choice between the indexed history and another one, by the votes of the endpoints. Pure: no IO, no clock.

/// Votes for a block of one height: the indexed one, or another one. `E` identifies an endpoint.
#[derive(Debug)]
pub(super) struct Votes<E> {
    /// Each endpoint once, with true if it has the indexed block.
    votes: Vec<(E, bool)>,
}

/// The result of the votes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice<E> {
    /// Every endpoint has the indexed block, also the one that contradicted it.
    NoConflict,
    /// At least as many endpoints have the indexed block as another one. The listed endpoints have another one and are
    /// to be distrusted; empty if no endpoint has answered.
    Keep { wrong: Vec<E> },
    /// More endpoints have another block; one of them is given.
    Follow(E),
}

impl<E: Clone + PartialEq> Votes<E> {
    pub(super) fn new() -> Self {
        Self { votes: Vec::new() }
    }

    pub(super) fn cast(&mut self, endpoint: E, has_indexed: bool) {
        self.votes.push((endpoint, has_indexed));
    }

    pub(super) fn has_voted(&self, endpoint: &E) -> bool {
        self.votes.iter().any(|(voter, _)| voter == endpoint)
    }

    /// The endpoints with another block.
    pub(super) fn against(&self) -> impl Iterator<Item = &E> {
        self.votes.iter().filter(|(_, has_indexed)| !has_indexed).map(|(endpoint, _)| endpoint)
    }

    /// The number of endpoints with the indexed block and with another one. `origin`, which has shown another one,
    /// counts for the latter until it votes.
    fn count(&self, origin: &E) -> (usize, usize) {
        let against = self.against().count();
        (self.votes.len() - against, against + usize::from(!self.has_voted(origin)))
    }

    /// True if `missing` further votes could not change the choice.
    pub(super) fn are_decided(&self, missing: usize, origin: &E) -> bool {
        let (indexed, other) = self.count(origin);
        // `origin` may be among the missing, and vote for the indexed block.
        let surely_other = self.against().count();
        missing == 0
            || !self.votes.is_empty() && (surely_other > indexed + missing || indexed >= other + missing)
    }

    /// The choice, if `origin` has shown another block than the indexed one.
    pub(super) fn choose(&self, origin: &E) -> Choice<E> {
        let (indexed, other) = self.count(origin);
        let mut wrong: Vec<E> = self.against().cloned().collect();
        match wrong.iter().find(|endpoint| *endpoint == origin).or(wrong.first()) {
            _ if self.votes.is_empty() => Choice::Keep { wrong },
            None if self.has_voted(origin) => Choice::NoConflict,
            Some(endpoint) if other > indexed => Choice::Follow(endpoint.clone()),
            _ => {
                wrong.extend((!self.has_voted(origin)).then(|| origin.clone()));
                Choice::Keep { wrong }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes such as `"a+ b-"`: endpoint `a` has the indexed block, `b` another one.
    fn votes(text: &str) -> Votes<char> {
        let mut votes = Votes::new();
        for vote in text.split_whitespace() {
            votes.cast(vote.chars().next().unwrap(), vote.ends_with('+'));
        }
        votes
    }

    #[test]
    fn more_endpoints_must_have_another_block_than_the_indexed_one() {
        let keep = |wrong: &str| Choice::Keep { wrong: wrong.chars().collect() };
        let rows = [
            ("", keep("")),
            ("a+", Choice::NoConflict),
            ("a+ b+", Choice::NoConflict),
            ("a-", Choice::Follow('a')),
            ("b-", Choice::Follow('b')),
            ("b+", keep("a")),
            ("a- b+", keep("a")),
            ("a+ b-", keep("b")),
            ("b+ c- a-", Choice::Follow('a')),
            ("b+ c-", Choice::Follow('c')),
            ("b+ c+ a-", keep("a")),
            ("b+ c+ d-", keep("da")),
        ];
        for (text, choice) in rows {
            assert_eq!(votes(text).choose(&'a'), choice, "{text}");
        }
    }

    #[test]
    fn the_votes_are_decided_when_the_missing_ones_could_not_change_the_choice() {
        let rows = [
            ("", 3, false),
            ("", 0, true),
            ("a-", 1, false),
            ("a-", 0, true),
            ("a- b-", 1, true),
            ("a- b-", 2, false),
            ("b+ c+", 1, true),
            ("a- b+", 1, false),
            // `a`, which showed another block, may still vote for the indexed one.
            ("b+ c- d-", 1, false),
        ];
        for (text, missing, decided) in rows {
            assert_eq!(votes(text).are_decided(missing, &'a'), decided, "{text} and {missing} missing");
        }
    }
}
