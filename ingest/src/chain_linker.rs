//! Blocks against their neighbours, before they are committed: each names the hash of the one before and what its results
//! come to (`indexing.md` §17).
//!
//! ```text
//! fetched ──▶ held until the next one confirms it ──▶ committed
//!             at the head: committed at once, and confirmed by the next one as soon as there is one
//! ```
//!
//! What must hold: two blocks that do not fit are never both handed on; who of them is wrong is decided by asking another
//! endpoint, and the one that told it is distrusted; a block that was committed and turns out wrong ends the lane with an
//! error that says so, for whoever can take it back.

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

/// How often two blocks that do not link_to_tip each other are both asked for again, where nobody says which is wrong.
const ATTEMPTS: u32 = 10;

/// The block lane's confirmation.
pub(crate) struct ChainLinker {
    source: Arc<BlockSource>,
    /// Where signatures are to be verified.
    commit_verifier: Option<CommitVerifier>,
    /// Waits for its successor.
    held: Option<Block>,
    /// The last that was handed on; none at the beginning of an index.
    last: Option<LastBlock>,
}

/// What is kept of a block that was handed on.
#[derive(Clone, Debug)]
pub(crate) struct LastBlock {
    pub(crate) height: u64,
    pub(crate) hash: [u8; 32],
    /// What its successor has to say of its results; unknown in a database that was made or rolled back without.
    pub(crate) claims: Option<Claims>,
    /// The `/block` answer, where signatures are to be verified.
    pub(crate) answer: Option<Bytes>,
}

/// How two blocks do not fit.
enum Mismatch {
    /// The later names another parent.
    Parent(String),
    /// The later says something else about the results of the earlier.
    Results(String),
}

/// Who is wrong when two blocks do not fit.
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

    /// The `/block` answer about it, which is asked for again of an earlier run's last block: its hash says that it is the
    /// one whose header was checked.
    async fn answer(&self, node: &Node) -> Result<Bytes, Error> {
        if let Some(answer) = &self.answer {
            return Ok(answer.clone());
        }
        let is_it = |block: &BlockAnswer<'_>| block.hash == self.hash && proof::check_header(block).is_ok();
        Ok(source::fetch_indexed_block(node, self.height, is_it).await?.bytes)
    }

    /// Whether `next` can link_to_tip.
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

/// What was kept for the next header to confirm; nothing if the row is none.
fn claims_of(row: Unconfirmed) -> Option<Claims> {
    let results_hash = row.results_hash.try_into().ok()?;
    Some(Claims { height: row.height, results_hash, app_hash: row.app_hash })
}

/// What a block says about the one before.
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
    /// Goes on after `last`, the last committed block.
    pub(crate) fn new(
        source: Arc<BlockSource>,
        commit_verifier: Option<CommitVerifier>,
        last: Option<LastBlock>,
    ) -> Self {
        Self { source, commit_verifier, held: None, last }
    }

    /// Makes `held` and `next` fit, by asking again whichever is wrong.
    async fn link_pair(&mut self, mut held: Block, mut next: Block) -> Result<(Block, Block), Error> {
        let mut retry = RetryBackoff::new(next.height);
        let mut attempts = 0;
        loop {
            let Err(mismatch) = LastBlock::of(&held).check(&HeaderView::of(&next)) else {
                let Some(rejection) = self.rejection(&LastBlock::of(&held), &next).await? else {
                    return Ok((held, next));
                };
                // Either may be of a history that nobody signed.
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

    /// Makes `next` fit behind what was handed on; an error if it is that which is wrong.
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
                    // With one endpoint, its own second answer is all there is.
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

    /// What the validators' signatures say against `next` behind `before`, where they are to be verified.
    async fn rejection(&mut self, before: &LastBlock, next: &Block) -> Result<Option<String>, Error> {
        match &next.answer {
            Some(answer) => self.rejection_of(before, answer).await,
            None => Ok(None),
        }
    }

    /// The same against a `/block` answer that is about a block that fits.
    async fn rejection_of(&mut self, before: &LastBlock, next: &Bytes) -> Result<Option<String>, Error> {
        let Some(commit_verifier) = &mut self.commit_verifier else { return Ok(None) };
        let before_answer = before.answer(&self.source.tools.node).await?;
        commit_verifier.rejection(&before.hash, &before_answer, next).await
    }

    /// `next`, or what is told instead if it is not the block that is known from elsewhere.
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

    /// Asks the endpoints that did not tell `next` for it. Where they differ, the number of those decides that have it.
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
            // Who told `next` is one more for it.
            (fitting, same) => match fitting.cmp(&(same + 1)) {
                Ordering::Greater => Culprit::Later,
                Ordering::Less => Culprit::Earlier,
                Ordering::Equal => Culprit::Unknown,
            },
        })
    }
}

/// The error of a block that does not link_to_tip `last`, which is committed.
fn fork(last: &LastBlock, next: &Block) -> Error {
    let hex = |hash: &[u8; 32]| hex::encode_upper(hash);
    Error::Fork {
        height: next.height,
        parent: next.parent.as_ref().map_or_else(|| "none".to_owned(), hex),
        stored: hex(&last.hash),
        origin: next.origins.as_ref().map(|origins| origins.block.clone()),
    }
}

/// Whether the block of `height` that is answered fits behind `before`, and its hash; `None` if it is no true block.
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
