//! Fork choice: which history to follow if an endpoint contradicts the index, and how far to rewind.
//!
//! A block that does not follow the last indexed one, or a tip below it with another hash, means one of two things: the
//! endpoint is wrong, or the chain was rolled back (a reset node, a restored chain). All endpoints are polled; the
//! index follows another history only if more endpoints have it than have the indexed block. A single endpoint is
//! followed. If signatures are verified, the validators' signatures on the block after the last one outweigh any number
//! of endpoints.

mod choice;
pub(crate) mod damping;

use std::time::Duration;

use chain::{comet, comet::proof};
use node::{Kind, Origin};
use schema::block::hash_at;
use tokio::time::Instant;

use self::choice::{Choice, Votes};
use crate::Error;
use crate::config::Verify;
use crate::ingest::Ingest;
use crate::retry::{RetryBackoff, retry_until};
use crate::source;

/// Time to wait for endpoints that do not answer, before the replies so far decide.
const POLL_TIMEOUT: Duration = Duration::from_secs(20);

/// The decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Continue: the contradicting endpoint is distrusted, or no longer contradicts.
    Continue,
    /// The chain has another history above this height.
    RewindTo(u64),
    /// The node's parent hash is of a block that it does not have, so there is no history to follow.
    Contradiction,
}

impl Ingest {
    /// Decides about `origin`, which has another block at `height` than the indexed one.
    pub(crate) async fn resolve_fork(&self, height: u64, origin: &Origin) -> Result<Verdict, Error> {
        let last = self.progress.blocks.borrow().height;
        if hash_at(&*self.store.snapshot()?, height)?.is_none() {
            // The height is not indexed, so the endpoint contradicts itself and there is nothing to rewind.
            return Ok(Verdict::Contradiction);
        }
        let votes = self.poll_endpoints(height, origin).await?;
        let mut choice = votes.choose(origin);
        // Signatures on blocks below the last one were verified when they were indexed; those on the last block were
        // not.
        if height == last && matches!(choice, Choice::Keep { .. }) {
            for by in votes.against() {
                if self.is_signed(height, by).await? {
                    choice = Choice::Follow(by.clone());
                    break;
                }
            }
        }
        match choice {
            Choice::NoConflict => Ok(Verdict::Contradiction),
            Choice::Keep { wrong } => {
                let reason = format!("as many endpoints have the indexed block {height} as have another one");
                for endpoint in &wrong {
                    self.node.distrust(endpoint, &reason);
                }
                Ok(Verdict::Continue)
            }
            Choice::Follow(by) => self.common_ancestor(height, last, &by).await.map(Verdict::RewindTo),
        }
    }

    /// Polls the endpoints for `height`. Endpoints that fail intermittently are polled again before a rewind, while
    /// their votes could change the outcome.
    async fn poll_endpoints(&self, height: u64, origin: &Origin) -> Result<Votes<Origin>, Error> {
        let (began, mut retry) = (Instant::now(), RetryBackoff::new(height));
        let mut votes = Votes::new();
        loop {
            let mut missing = 0;
            for (endpoint, answer) in self.node.comet.block_from_all(height).await {
                if votes.has_voted(&endpoint) {
                    continue;
                }
                match answer {
                    Ok(bytes) => match self.is_indexed(height, &bytes)? {
                        Some(has_indexed) => votes.cast(endpoint, has_indexed),
                        None => missing += 1,
                    },
                    // A pruned height is not a vote, except from `origin`.
                    Err(error) if error.is_pruned() && endpoint == *origin => votes.cast(endpoint, false),
                    Err(error) if error.kind() != Kind::Permanent => missing += 1,
                    Err(_has_none) => {}
                }
            }
            if votes.are_decided(missing, origin) || began.elapsed() >= POLL_TIMEOUT {
                return Ok(votes);
            }
            retry.wait(&"endpoints have not answered yet").await;
        }
    }

    /// Whether validators have signed the block at `height` of endpoint `by`, above the indexed block below it.
    async fn is_signed(&self, height: u64, by: &Origin) -> Result<bool, Error> {
        let Some(before) = height.checked_sub(1).filter(|before| *before >= self.identity.start_height)
        else {
            return Ok(false);
        };
        let Some(ours) = hash_at(&*self.store.snapshot()?, before)? else { return Ok(false) };
        let Some(mut commit_verifier) = self.commit_verifier() else { return Ok(false) };
        let before = match source::fetch_indexed_block(&self.node, before, ours, true).await {
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
        // The first check binds the validator set to the one to which the indexed block commits.
        Ok(commit_verifier.rejection(&ours, &before, &block.bytes).await?.is_none()
            && commit_verifier.rejection(&hash, &block.bytes, &next.bytes).await?.is_none())
    }

    /// The last common height below `conflict` of the index, whose last height is `last`, and endpoint `by`; an error
    /// if a rewind to it is not allowed.
    async fn common_ancestor(&self, conflict: u64, last: u64, by: &Origin) -> Result<u64, Error> {
        if last == self.identity.start_height {
            return Ok(last.saturating_sub(1)); // Only the differing block is indexed.
        }
        let lowest = last.saturating_sub(self.config.max_rewind).max(self.identity.start_height);
        // Bisection. Invariant: `differs` is not on the indexed history, `same` is (checked below).
        let (mut same, mut differs) = (lowest, conflict);
        if same >= differs || self.has_indexed_block(same, by).await? != Some(true) {
            // A larger `max_rewind` helps only if a lower block is common.
            let first = self.identity.start_height;
            let hopeless = lowest == first || self.has_indexed_block(first, by).await? == Some(false);
            let too_deep = Error::TooDeep { last, lowest, max_rewind: self.config.max_rewind };
            return Err(if hopeless { Error::OtherHistory { last } } else { too_deep });
        }
        while differs - same > 1 {
            let middle = same + (differs - same) / 2;
            match self.has_indexed_block(middle, by).await? {
                Some(true) => same = middle,
                Some(false) | None => differs = middle,
            }
        }
        Ok(same)
    }

    /// Whether endpoint `by`, or another one if it does not answer, has the indexed block at `height`; `None` if it has
    /// pruned the height.
    async fn has_indexed_block(&self, height: u64, by: &Origin) -> Result<Option<bool>, Error> {
        let mut retry = RetryBackoff::new(height);
        loop {
            let answer = match retry_until(height, "block", || self.node.comet.block_by(height, by)).await {
                Err(Error::Node { source, .. }) if source.is_pruned() => return Ok(None),
                answer => answer?,
            };
            let is_indexed = self.is_indexed(height, &answer.bytes)?;
            if is_indexed.is_some() {
                return Ok(is_indexed);
            }
            retry.wait(&"the block has another height or hash than its header").await;
        }
    }

    /// Whether an answered block is the indexed one; `None` if it is not a valid block of `height`.
    fn is_indexed(&self, height: u64, answer: &[u8]) -> Result<Option<bool>, Error> {
        let ours = hash_at(&*self.store.snapshot()?, height)?;
        let verified = self.config.verify != Verify::Off;
        let theirs = comet::parse_block(answer).ok().filter(|block| {
            block.header.height == height && (!verified || proof::check_header(block).is_ok())
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
