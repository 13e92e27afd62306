//! Who may be asked a question, and in which order.
//!
//! Holds: an endpoint of another chain is in no this, a distrusted one only if all that are left are distrusted,
//! those with the fewest false_answers first; else those that are known to have the height come first.

use tokio::time::Instant;

use crate::availability::Availability;
use crate::endpoint::Call;
use crate::error::Error;
use crate::origin::Origin;
use crate::pooled_endpoint::PooledEndpoint;

/// The endpoints for one question.
pub(crate) struct Candidates<'a> {
    /// To be asked one after the other.
    pub(crate) ready: Vec<&'a PooledEndpoint>,
    /// To be asked if that has not helped.
    pub(crate) backing_off: Vec<&'a PooledEndpoint>,
    /// What speaks for one that is not asked: the one whose pause ends first, else one of another chain.
    pub(crate) rejection: Option<Error>,
}

/// One endpoint at the moment of the question.
struct Candidate<'a> {
    member: &'a PooledEndpoint,
    turn: Availability,
    distrusted: bool,
    false_answers: u64,
    rank: u8,
}

impl<'a> Candidates<'a> {
    /// `members` in the order that applies where nothing else decides; `not` is left out.
    pub(crate) fn new(
        members: impl Iterator<Item = &'a PooledEndpoint>,
        call: &Call,
        not: Option<&Origin>,
    ) -> Self {
        let now = Instant::now();
        let mut chain_mismatch = None;
        let mut candidates: Vec<_> = members
            .filter_map(|member| {
                let candidate = Candidate::of(member, call, now);
                chain_mismatch = chain_mismatch.take().or(candidate.as_ref().err().cloned());
                candidate.ok()
            })
            .collect();
        if candidates.iter().any(|candidate| !candidate.distrusted) {
            candidates.retain(|candidate| !candidate.distrusted);
            candidates.sort_by_key(|candidate| candidate.rank);
        } else {
            candidates.sort_by_key(|candidate| candidate.false_answers);
        }
        candidates.retain(|candidate| not != Some(&candidate.member.origin));
        let mut this = Self { ready: Vec::new(), backing_off: Vec::new(), rejection: None };
        let mut shortest = None;
        for Candidate { member, turn, .. } in candidates {
            match turn {
                Availability::Ready => this.ready.push(member),
                Availability::BackingOff => this.backing_off.push(member),
                Availability::RateLimited(left) if shortest.is_none_or(|shortest| left < shortest) => {
                    shortest = Some(left);
                    this.rejection = Some(Error::RateLimited { at: member.endpoint.site(call), left });
                }
                Availability::RateLimited(_) => {}
            }
        }
        if not.is_none() && this.is_empty() {
            this.rejection = chain_mismatch;
        }
        this
    }

    /// Whether there is nobody, not even one that rests.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.backing_off.is_empty() && self.rejection.is_none()
    }
}

impl<'a> Candidate<'a> {
    /// The error is that it belongs to another chain.
    fn of(member: &'a PooledEndpoint, call: &Call, now: Instant) -> Result<Self, Error> {
        let record = member.stats();
        if let Some(chain_mismatch) = record.chain_mismatch.clone() {
            let at = member.endpoint.site(call);
            return Err(Error::WrongChain { at, want: chain_mismatch.want, got: chain_mismatch.got });
        }
        Ok(Self {
            member,
            turn: record.health.availability(now),
            distrusted: record.trust.is_distrusted(now),
            false_answers: record.trust.false_answers(),
            rank: call.height.map_or(0, |height| record.head.rank(height)),
        })
    }
}
