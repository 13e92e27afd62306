//! Who may be asked a question, and in which order.
//!
//! Holds: an endpoint of another chain is in no round, a distrusted one only if all that are left are distrusted,
//! those with the fewest lies first; else those that are known to have the height come first.

use tokio::time::Instant;

use crate::endpoint::Call;
use crate::error::Error;
use crate::health::Turn;
use crate::member::Member;
use crate::origin::Origin;

/// The endpoints for one question.
pub(crate) struct Round<'a> {
    /// To be asked one after the other.
    pub(crate) ready: Vec<&'a Member>,
    /// To be asked if that has not helped.
    pub(crate) cooling: Vec<&'a Member>,
    /// What speaks for one that is not asked: the one whose pause ends first, else one of another chain.
    pub(crate) unasked: Option<Error>,
}

/// One endpoint at the moment of the question.
struct Candidate<'a> {
    member: &'a Member,
    turn: Turn,
    lost: bool,
    lies: u64,
    rank: u8,
}

impl<'a> Round<'a> {
    /// `members` in the order that applies where nothing else decides; `not` is left out.
    pub(crate) fn new(members: impl Iterator<Item = &'a Member>, call: &Call, not: Option<&Origin>) -> Self {
        let now = Instant::now();
        let mut foreign = None;
        let mut candidates: Vec<_> = members
            .filter_map(|member| {
                let candidate = Candidate::of(member, call, now);
                foreign = foreign.take().or(candidate.as_ref().err().cloned());
                candidate.ok()
            })
            .collect();
        if candidates.iter().any(|candidate| !candidate.lost) {
            candidates.retain(|candidate| !candidate.lost);
            candidates.sort_by_key(|candidate| candidate.rank);
        } else {
            candidates.sort_by_key(|candidate| candidate.lies);
        }
        candidates.retain(|candidate| not != Some(&candidate.member.origin));
        let mut round = Self { ready: Vec::new(), cooling: Vec::new(), unasked: None };
        let mut shortest = None;
        for Candidate { member, turn, .. } in candidates {
            match turn {
                Turn::Ready => round.ready.push(member),
                Turn::Cooling => round.cooling.push(member),
                Turn::Barred(left) if shortest.is_none_or(|shortest| left < shortest) => {
                    shortest = Some(left);
                    round.unasked = Some(Error::Resting { at: member.endpoint.site(call), left });
                }
                Turn::Barred(_) => {}
            }
        }
        if not.is_none() && round.is_empty() {
            round.unasked = foreign;
        }
        round
    }

    /// Whether there is nobody, not even one that rests.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.cooling.is_empty() && self.unasked.is_none()
    }
}

impl<'a> Candidate<'a> {
    /// The error is that it belongs to another chain.
    fn of(member: &'a Member, call: &Call, now: Instant) -> Result<Self, Error> {
        let record = member.record();
        if let Some(foreign) = record.foreign.clone() {
            let at = member.endpoint.site(call);
            return Err(Error::WrongChain { at, want: foreign.want, got: foreign.got });
        }
        Ok(Self {
            member,
            turn: record.health.turn(now),
            lost: record.trust.is_lost(now),
            lies: record.trust.lies(),
            rank: call.height.map_or(0, |height| record.known.rank(height)),
        })
    }
}
