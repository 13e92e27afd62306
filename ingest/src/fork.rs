//! Fork choice: which history to follow if an endpoint contradicts the index, and how far to rewind.
//!
//! A block that does not follow the last indexed one, or a tip below it with another hash, means one of two things: the
//! endpoint is wrong, or the chain was rolled back (a reset node, a restored chain). All endpoints are polled; the
//! index follows another history only if more endpoints have it than have the indexed block. A single endpoint is
//! followed. If signatures are verified, the validators' signatures on the block after the last one outweigh any number
//! of endpoints.

mod votes;

use std::sync::Arc;
use std::time::Duration;

use chain::comet::{self, BlockAnswer};
use chain::proof;
use node::retry::Backoff;
use node::{Kind, Origin};
use schema::block::hash_at;
use store::Store;
use tokio::time::Instant;

use self::votes::{Outcome, Votes};
use crate::Error;
use crate::commit_verifier::CommitVerifier;
use crate::source::{self, RetryBackoff, retry_until};

/// Time to wait for endpoints that do not answer, before the answers so far decide.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// Flap damping: pauses between rewinds to the history of a single endpoint. An endpoint behind a load balancer may
/// alternate between two histories, and each change costs a rewind and a reindex.
#[derive(Debug, Default)]
pub(crate) struct Damping {
    last: Option<Instant>,
    in_a_row: u32,
}

impl Damping {
    /// Rewinds without a pause.
    const FREE: u32 = 3;
    /// After this long without a rewind the count is reset.
    const CALM: Duration = Duration::from_mins(30);
    /// The backoff schedule.
    const PAUSES: Backoff =
        Backoff { initial: Duration::from_secs(5), max: Duration::from_mins(5), jitter_percent: 0 };

    /// Counts a rewind and returns the pause before it.
    pub(crate) fn pause(&mut self, now: Instant) -> Option<Duration> {
        if self.last.is_none_or(|last| now.saturating_duration_since(last) > Self::CALM) {
            self.in_a_row = 0;
        }
        let pause = self.in_a_row.checked_sub(Self::FREE).map(|steps| Self::PAUSES.delay(steps));
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.last = Some(now);
        pause
    }
}

/// The decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Continue: the contradicting endpoint is distrusted, or no longer contradicts.
    Continue,
    /// The chain has another history above this height.
    RewindTo(u64),
    /// The node names a parent that it does not have: there is no history to follow.
    Contradiction,
}

/// Fork choice for one index.
pub(crate) struct ForkResolver {
    pub(crate) node: Arc<node::Node>,
    pub(crate) store: Arc<dyn Store>,
    /// The first height of the index.
    pub(crate) start_height: u64,
    pub(crate) max_rewind: u64,
    /// True unless `verify = off`: block and result hashes are checked.
    pub(crate) verified: bool,
    /// Set if signatures are verified.
    pub(crate) commit_verifier: Option<CommitVerifier>,
}

impl ForkResolver {
    /// Decides about `origin`, which shows another block at `height` than the indexed one; `last` is the last indexed
    /// height.
    pub(crate) async fn resolve(mut self, height: u64, last: u64, origin: &Origin) -> Result<Verdict, Error> {
        if hash_at(&*self.store.snapshot()?, height)?.is_none() {
            // The height is not indexed, so the endpoint contradicts itself and there is nothing to rewind.
            return Ok(Verdict::Contradiction);
        }
        let votes = self.poll_endpoints(height, origin).await?;
        let mut outcome = votes.outcome(origin);
        // Signatures on blocks below the last one were verified when they were indexed; those on the last block were
        // not.
        if height == last && outcome == Outcome::Ours {
            for by in votes.against() {
                if self.is_signed(height, by).await? {
                    outcome = Outcome::Theirs(by.clone());
                    break;
                }
            }
        }
        match outcome {
            Outcome::NoAnswers => Ok(Verdict::Continue),
            Outcome::NoConflict => Ok(Verdict::Contradiction),
            Outcome::Ours => {
                let reason = format!(
                    "its block {height} is not the one that is indexed and that as many other endpoints have"
                );
                for other in
                    votes.against().chain([origin].into_iter().filter(|origin| !votes.has_voted(origin)))
                {
                    self.node.distrust(other, &reason);
                }
                Ok(Verdict::Continue)
            }
            Outcome::Theirs(by) => self.common_ancestor(height, last, &by).await.map(Verdict::RewindTo),
        }
    }

    /// Polls the endpoints for `height`. Endpoints that fail intermittently are polled again before a rewind, while
    /// their votes could change the outcome.
    async fn poll_endpoints(&self, height: u64, origin: &Origin) -> Result<Votes, Error> {
        let (began, mut retry) = (Instant::now(), RetryBackoff::new(height));
        let mut votes = Votes::default();
        loop {
            let mut missing = 0;
            for (endpoint, answer) in self.node.comet.block_from_all(height).await {
                if votes.has_voted(&endpoint) {
                    continue;
                }
                match answer {
                    Ok(bytes) => match self.is_ours(height, &bytes)? {
                        Some(is_ours) => votes.cast(endpoint, is_ours),
                        None => missing += 1,
                    },
                    // A pruned height is no vote, except from `origin`.
                    Err(error) if error.is_pruned() && endpoint == *origin => votes.cast(endpoint, false),
                    Err(error) if error.kind() != Kind::Permanent => missing += 1,
                    Err(_has_none) => {}
                }
            }
            if votes.are_decided(missing, origin) || began.elapsed() >= POLL_TIMEOUT {
                return Ok(votes);
            }
            retry.wait(&"not every endpoint has answered which history it follows").await;
        }
    }

    /// Whether validators have signed the block at `height` of endpoint `by`, above the indexed block below it.
    async fn is_signed(&mut self, height: u64, by: &Origin) -> Result<bool, Error> {
        let Some(before) = height.checked_sub(1).filter(|before| *before >= self.start_height) else {
            return Ok(false);
        };
        let Some(ours) = hash_at(&*self.store.snapshot()?, before)? else { return Ok(false) };
        let Some(commit_verifier) = &mut self.commit_verifier else { return Ok(false) };
        let is_it = |block: &BlockAnswer<'_>| block.hash == ours && proof::check_header(block).is_ok();
        let before = match source::fetch_indexed_block(&self.node, before, is_it).await {
            // No endpoint has the block below, so there is no validator set to verify with.
            Err(Error::ConflictingBlock { .. }) => return Ok(false),
            before => before?.bytes,
        };
        let (Ok(block), Ok(next)) =
            (self.node.comet.block_by(height, by).await, self.node.comet.block_by(height + 1, by).await)
        else {
            return Ok(false);
        };
        let Some(hash) =
            follows(&before, &block.bytes).filter(|_| follows(&block.bytes, &next.bytes).is_some())
        else {
            return Ok(false);
        };
        // The first check binds the validator set to the one that the indexed block announced.
        Ok(commit_verifier.rejection(&ours, &before, &block.bytes).await?.is_none()
            && commit_verifier.rejection(&hash, &block.bytes, &next.bytes).await?.is_none())
    }

    /// The last common height below `conflict` of the index, whose last height is `last`, and endpoint `by`; an error
    /// if a rewind to it is not allowed.
    async fn common_ancestor(&self, conflict: u64, last: u64, by: &Origin) -> Result<u64, Error> {
        if last == self.start_height {
            return Ok(last.saturating_sub(1)); // There is nothing but the block that differs.
        }
        let lowest = last.saturating_sub(self.max_rewind).max(self.start_height);
        // Bisection. Invariant: `differs` is not on the indexed history, `same` is (checked below).
        let (mut same, mut differs) = (lowest, conflict);
        if same >= differs || !self.has_our_block(same, by).await? {
            // A larger `max_rewind` helps only if a lower block is common.
            let hopeless = lowest == self.start_height || self.is_restarted(conflict, by).await?;
            let too_deep = Error::TooDeep { last, lowest, max_rewind: self.max_rewind };
            return Err(if hopeless { Error::OtherHistory { last } } else { too_deep });
        }
        while differs - same > 1 {
            let middle = same + (differs - same) / 2;
            if self.has_our_block(middle, by).await? { same = middle } else { differs = middle }
        }
        Ok(same)
    }

    /// Whether the chain of `by`, which differs at `conflict`, has another block at the first indexed height.
    async fn is_restarted(&self, conflict: u64, by: &Origin) -> Result<bool, Error> {
        let first = self.start_height;
        if first >= conflict {
            return Ok(true);
        }
        // Asked once: without an answer the error names the setting, which does no harm.
        match self.node.comet.block_by(first, by).await {
            Ok(answer) => Ok(self.is_ours(first, &answer.bytes)? == Some(false)),
            Err(_) => Ok(false),
        }
    }

    /// Whether endpoint `by`, or another one if it does not answer, has the indexed block at `height`. False if the
    /// height is pruned.
    async fn has_our_block(&self, height: u64, by: &Origin) -> Result<bool, Error> {
        let mut retry = RetryBackoff::new(height);
        loop {
            let answer = match retry_until(height, "block", || self.node.comet.block_by(height, by)).await {
                Err(Error::Node { source, .. }) if source.is_pruned() => return Ok(false),
                answer => answer?,
            };
            if let Some(is_ours) = self.is_ours(height, &answer.bytes)? {
                return Ok(is_ours);
            }
            retry.wait(&"it is about another height, or not what its hash says").await;
        }
    }

    /// Whether an answered block is the indexed one; `None` if it is not a valid block of `height`.
    fn is_ours(&self, height: u64, answer: &[u8]) -> Result<Option<bool>, Error> {
        let ours = hash_at(&*self.store.snapshot()?, height)?;
        let theirs = comet::parse_block(answer).ok().filter(|block| {
            block.header.height == height && (!self.verified || proof::check_header(block).is_ok())
        });
        Ok(theirs.map(|block| ours == Some(block.hash)))
    }
}

/// The hash of `block` if it is valid and follows `before`.
fn follows(before: &[u8], block: &[u8]) -> Option<[u8; 32]> {
    let (before, block) = (comet::parse_block(before).ok()?, comet::parse_block(block).ok()?);
    let fits = block.header.last_block_hash == Some(before.hash) && proof::check_header(&block).is_ok();
    fits.then_some(block.hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewinds_in_a_row_are_made_ever_more_slowly_until_there_is_calm() {
        let (mut damping, mut now) = (Damping::default(), Instant::now());
        let mut seconds = |damping: &mut Damping, after: Duration| {
            now += after;
            damping.pause(now).map_or(0, |pause| pause.as_secs())
        };
        let minute = Duration::from_mins(1);
        let paused: Vec<u64> = (0..11).map(|_| seconds(&mut damping, minute)).collect();
        assert_eq!(paused, [0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(seconds(&mut damping, 31 * minute), 0);
    }
}
