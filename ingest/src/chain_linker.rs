//! Chain linking: each block is checked against its neighbours before it is committed. A header has the parent's hash
//! and the digests of the parent's results.
//!
//! ```text
//! fetched ──▶ held until the next block confirms it ──▶ committed
//!             at the head: committed at once, confirmed when the next block arrives
//! ```
//!
//! # Invariants
//! * Two blocks that do not fit together are never both released.
//! * Another endpoint decides which of the two is wrong; the endpoint that served the wrong block is distrusted.
//! * If a committed block turns out to be wrong, the lane ends with an error for that block; the daemon rewinds.

mod decision;

use std::sync::Arc;

use bytes::Bytes;
use chain::comet::proof::{self, Claims, Commitments};
use node::Node;
use schema::meta::{self, BlockLane, Named as _, Unconfirmed};
use store::Snapshot;

use self::decision::{Action, Contradiction, Earlier, Opinions, Side, decide};
use crate::Error;
use crate::commit_verifier::CommitVerifier;
use crate::confirmation::Confirmation;
use crate::derive::{Block, Part};
use crate::retry::RetryBackoff;
use crate::source::{self, BlockSource};

/// Confirmation of blocks by their successors.
pub(crate) struct ChainLinker {
    source: Arc<BlockSource>,
    /// Set if signatures are verified.
    commit_verifier: Option<CommitVerifier>,
    /// The block that waits for its successor.
    held: Option<Block>,
    /// The last released block; none at the beginning of an index.
    last: Option<LastBlock>,
}

/// The data of a block that its successor is checked against.
#[derive(Clone, Debug)]
pub(crate) struct LastBlock {
    height: u64,
    hash: [u8; 32],
    /// Digests of its results, for its successor's header; unknown after a rollback, or if results are not verified.
    claims: Option<Claims>,
    /// The `/block` answer, if signatures are verified.
    answer: Option<Bytes>,
}

impl LastBlock {
    /// The last committed block, if there is one.
    pub(crate) fn read(snapshot: &dyn Snapshot, at: &BlockLane) -> Result<Option<Self>, Error> {
        if at.height == 0 {
            return Ok(None);
        }
        let unconfirmed = meta::read::<Unconfirmed>(snapshot)?.filter(|row| row.height == at.height);
        let hash = at.hash.as_slice().try_into().map_err(|_| {
            Error::Schema(schema::Error::Record {
                table: "meta",
                key: BlockLane::NAME.to_owned(),
                reason: "its hash is not of 32 bytes".to_owned(),
            })
        })?;
        Ok(Some(Self { height: at.height, hash, claims: unconfirmed.and_then(claims_of), answer: None }))
    }

    fn from_block(block: &Block) -> Self {
        Self {
            height: block.height,
            hash: block.hash,
            claims: block.claims.clone(),
            answer: block.answer.clone(),
        }
    }

    /// The `/block` answer of this block. The last block of an earlier run is fetched again; its hash shows that it is
    /// the block whose header was checked.
    async fn answer(&self, node: &Node) -> Result<Bytes, Error> {
        if let Some(answer) = &self.answer {
            return Ok(answer.clone());
        }
        Ok(source::fetch_indexed_block(node, self.height, self.hash, true).await?.bytes)
    }

    /// Checks that a block with this `parent` and these statements about its parent's results can follow.
    fn check(&self, parent: Option<[u8; 32]>, about_previous: &Commitments) -> Result<(), Contradiction> {
        if parent != Some(self.hash) {
            let parent = parent.map_or_else(|| "none".to_owned(), |hash| chain::hash::to_hex(&hash));
            let (next, hash) = (self.height.saturating_add(1), chain::hash::to_hex(&self.hash));
            let reason = format!("block {next} names {parent} as its parent, the block before it is {hash}");
            return Err(Contradiction::Parent(reason));
        }
        let check = |claims| about_previous.check(claims);
        self.claims.as_ref().map_or(Ok(()), check).map_err(|error| Contradiction::Results(error.to_string()))
    }

    /// Whether an answered block fits after this one, and its hash; `None` if it is not a valid successor's height.
    fn check_answer(&self, answer: &[u8]) -> Option<(bool, [u8; 32])> {
        let block = chain::comet::parse_block(answer).ok()?;
        if block.header.height.checked_sub(1) != Some(self.height) || proof::check_header(&block).is_err() {
            return None;
        }
        Some((self.check(block.header.last_block_hash, &Commitments::from_block(&block)).is_ok(), block.hash))
    }
}

/// The stored digests that the next header must confirm; `None` if the row is malformed.
fn claims_of(row: Unconfirmed) -> Option<Claims> {
    let results_hash = row.results_hash.try_into().ok()?;
    Some(Claims { height: row.height, results_hash, app_hash: row.app_hash })
}

impl ChainLinker {
    /// Continues after `last`, the last committed block.
    pub(crate) fn new(
        source: Arc<BlockSource>,
        commit_verifier: Option<CommitVerifier>,
        last: Option<LastBlock>,
    ) -> Self {
        Self { source, commit_verifier, held: None, last }
    }

    /// Fetches `held` and `next` again until they fit; without `held`, until `next` fits after the last released block.
    async fn link(
        &mut self,
        mut held: Option<Block>,
        mut next: Block,
    ) -> Result<(Option<Block>, Block), Error> {
        let mut retry = RetryBackoff::new(next.height);
        // Contradictions of two fetched blocks, and of a fetched block with the last released one.
        let (mut undecided_held, mut undecided_committed) = (0, 0);
        // A `held` that was fetched again must first fit after the last released block.
        let mut held_is_new = false;
        loop {
            let (state, earlier, later) = match &held {
                Some(held) if held_is_new => (Earlier::Committed, self.last.clone(), held),
                Some(held) => (Earlier::Held, Some(LastBlock::from_block(held)), &next),
                None => (Earlier::Committed, self.last.clone(), &next),
            };
            let undecided = match state {
                Earlier::Held => &mut undecided_held,
                Earlier::Committed => &mut undecided_committed,
            };
            let contradiction = self.contradiction(earlier.as_ref(), later).await?;
            let opinions = self.opinions(earlier.as_ref(), state, later, contradiction.as_ref()).await?;
            let reason = contradiction.as_ref().map_or("", Contradiction::reason);
            let (side, is_wrong) = match decide(state, contradiction.as_ref(), opinions, *undecided) {
                Action::Commit if held_is_new => {
                    (held_is_new, undecided_committed) = (false, 0);
                    continue;
                }
                Action::Commit => return Ok((held, next)),
                Action::ChooseFork => return Err(fork(earlier.as_ref(), later)),
                Action::Rollback => {
                    return Err(Error::invalid_block(later.height.saturating_sub(1), reason.to_owned()));
                }
                Action::Distrust(side) => (side, true),
                Action::Refetch(side) => (side, false),
            };
            if is_wrong && side != Side::Earlier {
                self.source.distrust_block(later, Part::Block, reason);
            }
            if let Some(held) = held.as_ref().filter(|_| is_wrong && side != Side::Later) {
                let results = matches!(contradiction, Some(Contradiction::Results(_)));
                let part = if results { Part::Results } else { Part::Block };
                self.source.distrust_block(held, part, reason);
            }
            *undecided += u32::from(!is_wrong && matches!(contradiction, Some(Contradiction::Parent(_))));
            retry.wait(&reason).await;
            if !held_is_new && side != Side::Earlier {
                next = self.source.whole(next.height).await?;
            }
            if let Some(height) =
                held.as_ref().map(|held| held.height).filter(|_| held_is_new || side != Side::Later)
            {
                held = Some(self.source.whole(height).await?);
                held_is_new = true;
            }
        }
    }

    /// The contradiction between `next` and the block before it, or the operator's trusted block.
    async fn contradiction(
        &mut self,
        earlier: Option<&LastBlock>,
        next: &Block,
    ) -> Result<Option<Contradiction>, Error> {
        let trusted = self.commit_verifier.as_ref();
        if let Some(reason) = trusted.and_then(|verifier| verifier.trusted_mismatch(next.height, &next.hash))
        {
            return Ok(Some(Contradiction::Untrusted(reason)));
        }
        let Some(earlier) = earlier else { return Ok(None) };
        if let Err(contradiction) = earlier.check(next.parent, &next.about_previous) {
            return Ok(Some(contradiction));
        }
        let Some(answer) = &next.answer else { return Ok(None) };
        Ok(self.rejection(earlier, answer).await?.map(Contradiction::Signatures))
    }

    /// The reason why the validators' signatures reject `next`, a `/block` answer that fits after `earlier`; `None` if
    /// they accept it or are not verified.
    async fn rejection(&mut self, earlier: &LastBlock, next: &Bytes) -> Result<Option<String>, Error> {
        let Some(commit_verifier) = &mut self.commit_verifier else { return Ok(None) };
        let earlier_answer = earlier.answer(&self.source.tools.node).await?;
        commit_verifier.rejection(&earlier.hash, &earlier_answer, next).await
    }

    /// The votes of the other endpoints on a contradiction that they can decide.
    async fn opinions(
        &mut self,
        earlier: Option<&LastBlock>,
        state: Earlier,
        next: &Block,
        contradiction: Option<&Contradiction>,
    ) -> Result<Opinions, Error> {
        let mut opinions = Opinions::default();
        let (Some(earlier), Some(Contradiction::Parent(_) | Contradiction::Results(_))) =
            (earlier, contradiction)
        else {
            return Ok(opinions);
        };
        for other in self.source.blocks_of_others(next).await {
            match earlier.check_answer(&other) {
                Some((true, _)) => {
                    opinions.fitting += usize::from(self.rejection(earlier, &other).await?.is_none());
                }
                Some((false, hash)) => opinions.same += usize::from(hash == next.hash),
                None => {}
            }
        }
        if state == Earlier::Committed
            && matches!(contradiction, Some(Contradiction::Results(_)))
            && opinions.culprit().is_none()
        {
            let refetched = LastBlock::from_block(&self.source.block(earlier.height).await?);
            opinions.refetched_fits = refetched.check(next.parent, &next.about_previous).is_ok();
        }
        Ok(opinions)
    }
}

/// The error for a block that does not follow `last`, which is committed.
fn fork(last: Option<&LastBlock>, next: &Block) -> Error {
    let stored = last.map(|last| last.hash);
    let origin = next.origins.as_ref().map(|origins| origins.block.clone());
    Error::fork(next.height, next.parent, stored.as_ref().map_or(&[][..], |hash| &hash[..]), origin)
}

impl Confirmation<Block> for ChainLinker {
    async fn push(&mut self, next: Block, is_last: bool) -> Result<Vec<Block>, Error> {
        let held = self.held.take();
        let (held, next) = Box::pin(self.link(held, next)).await?;
        let mut confirmed = Vec::from_iter(held);
        if is_last {
            confirmed.push(next);
        } else {
            self.held = Some(next);
        }
        self.last = confirmed.last().map(LastBlock::from_block).or_else(|| self.last.take());
        Ok(confirmed)
    }

    fn flush(&mut self) -> Option<Block> {
        let held = self.held.take()?;
        self.last = Some(LastBlock::from_block(&held));
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_follows_if_it_has_the_parent_hash_and_the_digests_of_the_results() {
        let claims = Claims { height: 7, results_hash: [2; 32], app_hash: Some(vec![3]) };
        let last = LastBlock { height: 7, hash: [1; 32], claims: Some(claims), answer: None };
        let without_claims = LastBlock { claims: None, ..last.clone() };
        let about = |results, app| Commitments {
            height: 8,
            last_results_hash: Some([results; 32]),
            app_hash: vec![app],
        };
        let is_parent = |checked| matches!(checked, Err(Contradiction::Parent(_)));
        let is_results = |checked| matches!(checked, Err(Contradiction::Results(_)));
        assert_eq!(last.check(Some([1; 32]), &about(2, 3)), Ok(()));
        assert!(is_parent(last.check(Some([9; 32]), &about(2, 3))));
        assert!(is_parent(last.check(None, &about(2, 3))));
        assert!(is_parent(last.check(Some([9; 32]), &about(9, 9))));
        assert!(is_results(last.check(Some([1; 32]), &about(9, 3))));
        assert!(is_results(last.check(Some([1; 32]), &about(2, 9))));
        assert_eq!(without_claims.check(Some([1; 32]), &about(9, 9)), Ok(()));
    }
}
