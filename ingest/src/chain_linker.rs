//! Chain linking: each block is checked against its neighbours before it is committed. A header names the parent's hash
//! and the digests of the parent's results (`indexing.md` §17).
//!
//! ```text
//! fetched ──▶ held until the next block confirms it ──▶ committed
//!             at the head: committed at once, confirmed when the next block arrives
//! ```
//!
//! # Invariants
//! * Two blocks that do not fit together are never both released.
//! * Another endpoint decides which of the two is wrong; the endpoint that served the wrong block is distrusted.
//! * If a committed block turns out to be wrong, the lane ends with an error that names it; the daemon rewinds.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use chain::comet::BlockAnswer;
use chain::proof::{self, Claims, Commitments};
use node::Node;
use schema::meta::{self, BlockLane, Named as _, Unconfirmed};
use store::Snapshot;

use crate::Error;
use crate::commit_verifier::CommitVerifier;
use crate::confirmation::Confirmation;
use crate::derive::Block;
use crate::source::{self, BlockSource, RetryBackoff};

/// Refetches of both blocks if they do not fit and no other endpoint decides which one is wrong.
const ATTEMPTS: u32 = 10;

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

/// The data of the last released block that its successor is checked against.
#[derive(Clone, Debug)]
pub(crate) struct LastBlock {
    pub(crate) height: u64,
    pub(crate) hash: [u8; 32],
    /// Digests of its results, for its successor's header; unknown after a rollback, or if results are not verified.
    pub(crate) claims: Option<Claims>,
    /// The `/block` answer, if signatures are verified.
    pub(crate) answer: Option<Bytes>,
}

/// How two neighbouring blocks contradict each other.
enum Mismatch {
    /// The later block names another parent.
    Parent(String),
    /// The later block states other digests of the earlier block's results.
    Results(String),
}

/// The wrong one of two blocks that contradict each other.
enum Culprit {
    Earlier,
    Later,
    Unknown,
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

    fn of(block: &Block) -> Self {
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
        let is_it = |block: &BlockAnswer<'_>| block.hash == self.hash && proof::check_header(block).is_ok();
        Ok(source::fetch_indexed_block(node, self.height, is_it).await?.bytes)
    }

    /// Checks that `next` can follow this block.
    fn check(&self, next: &HeaderView<'_>) -> Result<(), Mismatch> {
        if next.parent != Some(self.hash) {
            return Err(Mismatch::Parent(Self::parent_mismatch(next, self)));
        }
        match &self.claims {
            Some(claims) => {
                next.about_previous.check(claims).map_err(|error| Mismatch::Results(error.to_string()))
            }
            None => Ok(()),
        }
    }

    fn parent_mismatch(next: &HeaderView<'_>, before: &Self) -> String {
        let parent = next.parent.map_or_else(|| "none".to_owned(), |hash| chain::hash::to_hex(&hash));
        let (height, hash) = (next.height, chain::hash::to_hex(&before.hash));
        format!("block {height} names {parent} as its parent, the block before it is {hash}")
    }
}

/// The stored digests that the next header must confirm; none if the row is malformed.
fn claims_of(row: Unconfirmed) -> Option<Claims> {
    let results_hash = row.results_hash.try_into().ok()?;
    Some(Claims { height: row.height, results_hash, app_hash: row.app_hash })
}

/// The statements of a header about the previous block.
struct HeaderView<'a> {
    height: u64,
    parent: Option<[u8; 32]>,
    about_previous: &'a Commitments,
}

impl<'a> HeaderView<'a> {
    fn of(block: &'a Block) -> Self {
        Self { height: block.height, parent: block.parent, about_previous: &block.about_previous }
    }
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

    /// Refetches `held` or `next`, whichever is wrong, until they fit.
    async fn link_pair(&mut self, mut held: Block, mut next: Block) -> Result<(Block, Block), Error> {
        let mut retry = RetryBackoff::new(next.height);
        let mut attempts = 0;
        loop {
            let Err(mismatch) = LastBlock::of(&held).check(&HeaderView::of(&next)) else {
                let Some(rejection) = self.rejection(&LastBlock::of(&held), &next).await? else {
                    return Ok((held, next));
                };
                // Either may belong to a history without signatures.
                self.source.distrust_block(&next, &rejection);
                self.source.distrust_block(&held, &rejection);
                retry.wait(&rejection).await;
                held = self.link_to_tip(self.source.whole(held.height).await?).await?;
                next = self.source.whole(next.height).await?;
                continue;
            };
            let reason = mismatch.reason();
            match self.find_culprit(&LastBlock::of(&held), &next).await? {
                Culprit::Later => {
                    self.source.distrust_block(&next, &reason);
                    retry.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                Culprit::Earlier => {
                    match &mismatch {
                        Mismatch::Parent(_) => self.source.distrust_block(&held, &reason),
                        Mismatch::Results(_) => self.source.distrust_results(&held, &reason),
                    }
                    retry.wait(&reason).await;
                    held = self.link_to_tip(self.source.whole(held.height).await?).await?;
                }
                Culprit::Unknown if attempts >= ATTEMPTS && matches!(mismatch, Mismatch::Parent(_)) => {
                    return Err(fork(&LastBlock::of(&held), &next));
                }
                Culprit::Unknown => {
                    attempts += 1;
                    retry.wait(&reason).await;
                    held = self.link_to_tip(self.source.whole(held.height).await?).await?;
                    next = self.source.whole(next.height).await?;
                }
            }
        }
    }

    /// Refetches `next` until it fits behind the last released block; an error if that block is the wrong one.
    async fn link_to_tip(&mut self, mut next: Block) -> Result<Block, Error> {
        let Some(last) = self.last.clone() else { return Ok(next) };
        let mut retry = RetryBackoff::new(next.height);
        let mut asked_again = false;
        loop {
            let Err(mismatch) = last.check(&HeaderView::of(&next)) else {
                let Some(rejection) = self.rejection(&last, &next).await? else { return Ok(next) };
                self.source.distrust_block(&next, &rejection);
                retry.wait(&rejection).await;
                next = self.source.whole(next.height).await?;
                continue;
            };
            let reason = mismatch.reason();
            match (self.find_culprit(&last, &next).await?, mismatch) {
                (Culprit::Later, _) => {
                    self.source.distrust_block(&next, &reason);
                    retry.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                (Culprit::Earlier, Mismatch::Results(_)) => {
                    return Err(Error::invalid_block(last.height, reason));
                }
                (Culprit::Unknown, Mismatch::Results(_)) => {
                    // With one endpoint, its second answer is the only evidence.
                    let again = self.source.block(last.height).await?;
                    if LastBlock::of(&again).check(&HeaderView::of(&next)).is_ok() {
                        return Err(Error::invalid_block(last.height, reason));
                    }
                    retry.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                (Culprit::Earlier, Mismatch::Parent(_)) => return Err(fork(&last, &next)),
                (Culprit::Unknown, Mismatch::Parent(_)) if asked_again => return Err(fork(&last, &next)),
                (Culprit::Unknown, Mismatch::Parent(_)) => {
                    asked_again = true;
                    next = self.source.whole(next.height).await?;
                }
            }
        }
    }

    /// The reason why the validators' signatures reject `next` as the successor of `before`; none if they accept it or
    /// are not verified.
    async fn rejection(&mut self, before: &LastBlock, next: &Block) -> Result<Option<String>, Error> {
        match &next.answer {
            Some(answer) => self.rejection_of(before, answer).await,
            None => Ok(None),
        }
    }

    /// The same for a raw `/block` answer about a block that fits.
    async fn rejection_of(&mut self, before: &LastBlock, next: &Bytes) -> Result<Option<String>, Error> {
        let Some(commit_verifier) = &mut self.commit_verifier else { return Ok(None) };
        let before_answer = before.answer(&self.source.tools.node).await?;
        commit_verifier.rejection(&before.hash, &before_answer, next).await
    }

    /// Refetches `next` until it does not contradict the operator's trusted block.
    async fn ensure_trusted(&self, mut next: Block) -> Result<Block, Error> {
        let Some(commit_verifier) = &self.commit_verifier else { return Ok(next) };
        let mut retry = RetryBackoff::new(next.height);
        while let Some(rejection) = commit_verifier.trusted_mismatch(next.height, &next.hash) {
            self.source.distrust_block(&next, &rejection);
            retry.wait(&rejection).await;
            next = self.source.whole(next.height).await?;
        }
        Ok(next)
    }

    /// Fetches the height of `next` from the other endpoints; a majority decides.
    async fn find_culprit(&mut self, before: &LastBlock, next: &Block) -> Result<Culprit, Error> {
        let (mut fitting, mut same) = (0, 0);
        for other in self.source.blocks_of_others(next).await {
            let Some((fits, hash)) = check_answer(before, next.height, &other) else { continue };
            if fits {
                fitting += usize::from(self.rejection_of(before, &other).await?.is_none());
            } else if hash == next.hash {
                same += 1;
            }
        }
        Ok(match (fitting, same) {
            (0, 0) => Culprit::Unknown,
            (0, _) => Culprit::Earlier,
            (_, 0) => Culprit::Later,
            // The endpoint that served `next` counts too.
            (fitting, same) => match fitting.cmp(&(same + 1)) {
                Ordering::Greater => Culprit::Later,
                Ordering::Less => Culprit::Earlier,
                Ordering::Equal => Culprit::Unknown,
            },
        })
    }
}

/// The error for a block that does not follow `last`, which is committed.
fn fork(last: &LastBlock, next: &Block) -> Error {
    let hex = |hash: &[u8; 32]| hex::encode_upper(hash);
    Error::Fork {
        height: next.height,
        parent: next.parent.as_ref().map_or_else(|| "none".to_owned(), hex),
        stored: hex(&last.hash),
        origin: next.origins.as_ref().map(|origins| origins.block.clone()),
    }
}

/// Whether an answered block of `height` fits behind `before`, and its hash; `None` if the answer is no valid block.
fn check_answer(before: &LastBlock, height: u64, answer: &[u8]) -> Option<(bool, [u8; 32])> {
    let block = chain::comet::parse_block(answer).ok()?;
    if block.header.height != height || proof::check_header(&block).is_err() {
        return None;
    }
    let about_previous = Commitments::of(&block);
    let header = HeaderView { height, parent: block.header.last_block_hash, about_previous: &about_previous };
    Some((before.check(&header).is_ok(), block.hash))
}

impl Confirmation<Block> for ChainLinker {
    async fn push(&mut self, next: Block, is_last: bool) -> Result<Vec<Block>, Error> {
        let next = self.ensure_trusted(next).await?;
        let (mut confirmed, next) = match self.held.take() {
            Some(held) => {
                let (held, next) = Box::pin(self.link_pair(held, next)).await?;
                self.last = Some(LastBlock::of(&held));
                (vec![held], next)
            }
            None => (Vec::new(), self.link_to_tip(next).await?),
        };
        if is_last {
            self.last = Some(LastBlock::of(&next));
            confirmed.push(next);
        } else {
            self.held = Some(next);
        }
        Ok(confirmed)
    }

    fn has_pending(&self) -> bool {
        self.held.is_some()
    }

    fn flush(&mut self) -> Option<Block> {
        let held = self.held.take()?;
        self.last = Some(LastBlock::of(&held));
        Some(held)
    }
}

impl Mismatch {
    fn reason(&self) -> String {
        match self {
            Self::Parent(reason) | Self::Results(reason) => reason.clone(),
        }
    }
}
