//! Candidate selection: the endpoints that may be asked for one call, in order of preference.
//!
//! # Invariants
//!
//! * An endpoint of another chain is never a candidate.
//! * A distrusted endpoint is a candidate only if all others are distrusted too; then the fewest false answers come
//!   first.
//! * Otherwise endpoints that are known to have the height come first.

use tokio::time::Instant;

use crate::availability::Availability;
use crate::endpoint::Call;
use crate::error::Error;
use crate::origin::Origin;
use crate::pooled_endpoint::PooledEndpoint;

/// Endpoints for one call.
pub(crate) struct Candidates<'a> {
    /// Asked first, one after the other.
    pub(crate) ready: Vec<&'a PooledEndpoint>,
    /// Asked if none of `ready` has answered.
    pub(crate) backing_off: Vec<&'a PooledEndpoint>,
    /// The error to return if no endpoint could be asked: the shortest rate-limit wait, else the wrong chain.
    pub(crate) rejection: Option<Error>,
}

/// One endpoint at the time of the call.
struct Candidate<'a> {
    member: &'a PooledEndpoint,
    availability: Availability,
    distrusted: bool,
    false_answers: u64,
    rank: u8,
}

impl<'a> Candidates<'a> {
    /// `members` in the order that breaks ties; `not` is excluded.
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
        let mut selected = Self { ready: Vec::new(), backing_off: Vec::new(), rejection: None };
        let mut shortest = None;
        for Candidate { member, availability, .. } in candidates {
            match availability {
                Availability::Ready => selected.ready.push(member),
                Availability::BackingOff => selected.backing_off.push(member),
                Availability::RateLimited(left) if shortest.is_none_or(|shortest| left < shortest) => {
                    shortest = Some(left);
                    selected.rejection = Some(Error::RateLimited { at: member.endpoint.site(call), left });
                }
                Availability::RateLimited(_) => {}
            }
        }
        if not.is_none() && selected.is_empty() {
            selected.rejection = chain_mismatch;
        }
        selected
    }

    /// Whether there is no endpoint, not even a rate-limited one.
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.backing_off.is_empty() && self.rejection.is_none()
    }
}

impl<'a> Candidate<'a> {
    /// Fails with [`Error::WrongChain`] for an endpoint of another chain.
    fn of(member: &'a PooledEndpoint, call: &Call, now: Instant) -> Result<Self, Error> {
        let stats = member.stats();
        if let Some(chain_mismatch) = stats.chain_mismatch.clone() {
            let at = member.endpoint.site(call);
            return Err(Error::WrongChain { at, want: chain_mismatch.want, got: chain_mismatch.got });
        }
        Ok(Self {
            member,
            availability: stats.health.availability(now),
            distrusted: stats.trust.is_distrusted(now),
            false_answers: stats.trust.false_answers(),
            rank: call.height.map_or(0, |height| stats.head.rank(height)),
        })
    }
}
