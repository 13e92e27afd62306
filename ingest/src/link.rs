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
use crate::derive::Block;
use crate::endorse::Endorsements;
use crate::release::Release;
use crate::source::{self, BlockSource, Patience};

/// How often two blocks that do not follow each other are both asked for again, where nobody says which is wrong.
const ATTEMPTS: u32 = 10;

/// The block lane's release.
pub(crate) struct Links {
    source: Arc<BlockSource>,
    /// Where signatures are to be verified.
    endorsements: Option<Endorsements>,
    /// Waits for its successor.
    held: Option<Block>,
    /// The last that was handed on; none at the beginning of an index.
    tail: Option<Tail>,
}

/// What is kept of a block that was handed on.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    pub(crate) height: u64,
    pub(crate) hash: [u8; 32],
    /// What its successor has to say of its results; unknown in a database that was made or rolled back without.
    pub(crate) claims: Option<Claims>,
    /// The `/block` answer, where signatures are to be verified.
    pub(crate) answer: Option<Bytes>,
}

/// How two blocks do not fit.
enum Misfit {
    /// The later names another parent.
    Parent(String),
    /// The later says something else about the results of the earlier.
    Results(String),
}

/// Who is wrong when two blocks do not fit.
enum Wrong {
    Earlier,
    Later,
    Unknown,
}

impl Tail {
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
        Ok(source::known(node, self.height, is_it).await?.bytes)
    }

    /// Whether `next` can follow.
    fn check(&self, next: &View<'_>) -> Result<(), Misfit> {
        if next.parent != Some(self.hash) {
            return Err(Misfit::Parent(Self::other_parent(next, self)));
        }
        match &self.claims {
            Some(claims) => {
                next.about_previous.check(claims).map_err(|error| Misfit::Results(error.to_string()))
            }
            None => Ok(()),
        }
    }

    fn other_parent(next: &View<'_>, before: &Self) -> String {
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
struct View<'a> {
    height: u64,
    parent: Option<[u8; 32]>,
    about_previous: &'a Commitments,
}

impl<'a> View<'a> {
    fn of(block: &'a Block) -> Self {
        Self { height: block.height, parent: block.parent, about_previous: &block.about_previous }
    }
}

impl Links {
    /// Goes on after `tail`, the last committed block.
    pub(crate) fn new(
        source: Arc<BlockSource>,
        endorsements: Option<Endorsements>,
        tail: Option<Tail>,
    ) -> Self {
        Self { source, endorsements, held: None, tail }
    }

    /// Makes `held` and `next` fit, by asking again whichever is wrong.
    async fn settle(&mut self, mut held: Block, mut next: Block) -> Result<(Block, Block), Error> {
        let mut patience = Patience::new(next.height);
        let mut attempts = 0;
        loop {
            let Err(misfit) = Tail::of(&held).check(&View::of(&next)) else {
                let Some(objection) = self.objection(&Tail::of(&held), &next).await? else {
                    return Ok((held, next));
                };
                // Either may be of a history that nobody signed.
                self.source.distrust_block(&next, &objection);
                self.source.distrust_block(&held, &objection);
                patience.wait(&objection).await;
                held = self.follow(self.source.whole(held.height).await?).await?;
                next = self.source.whole(next.height).await?;
                continue;
            };
            let reason = misfit.reason();
            match self.who_is_wrong(&Tail::of(&held), &next).await? {
                Wrong::Later => {
                    self.source.distrust_block(&next, &reason);
                    patience.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                Wrong::Earlier => {
                    match &misfit {
                        Misfit::Parent(_) => self.source.distrust_block(&held, &reason),
                        Misfit::Results(_) => self.source.distrust_results(&held, &reason),
                    }
                    patience.wait(&reason).await;
                    held = self.follow(self.source.whole(held.height).await?).await?;
                }
                Wrong::Unknown if attempts >= ATTEMPTS && matches!(misfit, Misfit::Parent(_)) => {
                    return Err(fork(&Tail::of(&held), &next));
                }
                Wrong::Unknown => {
                    attempts += 1;
                    patience.wait(&reason).await;
                    held = self.follow(self.source.whole(held.height).await?).await?;
                    next = self.source.whole(next.height).await?;
                }
            }
        }
    }

    /// Makes `next` fit behind what was handed on; an error if it is that which is wrong.
    async fn follow(&mut self, mut next: Block) -> Result<Block, Error> {
        let Some(tail) = self.tail.clone() else { return Ok(next) };
        let mut patience = Patience::new(next.height);
        let mut asked_again = false;
        loop {
            let Err(misfit) = tail.check(&View::of(&next)) else {
                let Some(objection) = self.objection(&tail, &next).await? else { return Ok(next) };
                self.source.distrust_block(&next, &objection);
                patience.wait(&objection).await;
                next = self.source.whole(next.height).await?;
                continue;
            };
            let reason = misfit.reason();
            match (self.who_is_wrong(&tail, &next).await?, misfit) {
                (Wrong::Later, _) => {
                    self.source.distrust_block(&next, &reason);
                    patience.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                (Wrong::Earlier, Misfit::Results(_)) => return Err(Error::untrue(tail.height, reason)),
                (Wrong::Unknown, Misfit::Results(_)) => {
                    // With one endpoint, its own second answer is all there is.
                    let again = self.source.block(tail.height).await?;
                    if Tail::of(&again).check(&View::of(&next)).is_ok() {
                        return Err(Error::untrue(tail.height, reason));
                    }
                    patience.wait(&reason).await;
                    next = self.source.whole(next.height).await?;
                }
                (Wrong::Earlier, Misfit::Parent(_)) => return Err(fork(&tail, &next)),
                (Wrong::Unknown, Misfit::Parent(_)) if asked_again => return Err(fork(&tail, &next)),
                (Wrong::Unknown, Misfit::Parent(_)) => {
                    asked_again = true;
                    next = self.source.whole(next.height).await?;
                }
            }
        }
    }

    /// What the validators' signatures say against `next` behind `before`, where they are to be verified.
    async fn objection(&mut self, before: &Tail, next: &Block) -> Result<Option<String>, Error> {
        match &next.answer {
            Some(answer) => self.objection_to(before, answer).await,
            None => Ok(None),
        }
    }

    /// The same against a `/block` answer that is about a block that fits.
    async fn objection_to(&mut self, before: &Tail, next: &Bytes) -> Result<Option<String>, Error> {
        let Some(endorsements) = &mut self.endorsements else { return Ok(None) };
        let before_answer = before.answer(&self.source.tools.node).await?;
        endorsements.objection(&before.hash, &before_answer, next).await
    }

    /// `next`, or what is told instead if it is not the block that is known from elsewhere.
    async fn as_trusted(&self, mut next: Block) -> Result<Block, Error> {
        let Some(endorsements) = &self.endorsements else { return Ok(next) };
        let mut patience = Patience::new(next.height);
        while let Some(objection) = endorsements.objection_to_trusted(next.height, &next.hash) {
            self.source.distrust_block(&next, &objection);
            patience.wait(&objection).await;
            next = self.source.whole(next.height).await?;
        }
        Ok(next)
    }

    /// Asks the endpoints that did not tell `next` for it. Where they differ, the number of those decides that have it.
    async fn who_is_wrong(&mut self, before: &Tail, next: &Block) -> Result<Wrong, Error> {
        let (mut fitting, mut same) = (0, 0);
        for other in self.source.other_opinions(next).await {
            let Some((fits, hash)) = opinion(before, next.height, &other) else { continue };
            if fits {
                fitting += usize::from(self.objection_to(before, &other).await?.is_none());
            } else if hash == next.hash {
                same += 1;
            }
        }
        Ok(match (fitting, same) {
            (0, 0) => Wrong::Unknown,
            (0, _) => Wrong::Earlier,
            (_, 0) => Wrong::Later,
            // Who told `next` is one more for it.
            (fitting, same) => match fitting.cmp(&(same + 1)) {
                Ordering::Greater => Wrong::Later,
                Ordering::Less => Wrong::Earlier,
                Ordering::Equal => Wrong::Unknown,
            },
        })
    }
}

/// The error of a block that does not follow `last`, which is committed.
fn fork(last: &Tail, next: &Block) -> Error {
    let hex = |hash: &[u8; 32]| hex::encode_upper(hash);
    Error::Fork {
        height: next.height,
        parent: next.parent.as_ref().map_or_else(|| "none".to_owned(), hex),
        stored: hex(&last.hash),
        told_by: next.told_by.as_ref().map(|told_by| told_by.block.clone()),
    }
}

/// Whether the block of `height` that is answered fits behind `before`, and its hash; `None` if it is no true block.
fn opinion(before: &Tail, height: u64, answer: &[u8]) -> Option<(bool, [u8; 32])> {
    let block = chain::comet::parse_block(answer).ok()?;
    if block.header.height != height || proof::check_header(&block).is_err() {
        return None;
    }
    let about_previous = Commitments::of(&block);
    let view = View { height, parent: block.header.last_block_hash, about_previous: &about_previous };
    Some((before.check(&view).is_ok(), block.hash))
}

impl Release<Block> for Links {
    async fn pass(&mut self, next: Block, is_last: bool) -> Result<Vec<Block>, Error> {
        let next = self.as_trusted(next).await?;
        let (mut released, next) = match self.held.take() {
            Some(held) => {
                let (held, next) = Box::pin(self.settle(held, next)).await?;
                self.tail = Some(Tail::of(&held));
                (vec![held], next)
            }
            None => (Vec::new(), self.follow(next).await?),
        };
        if is_last {
            self.tail = Some(Tail::of(&next));
            released.push(next);
        } else {
            self.held = Some(next);
        }
        Ok(released)
    }

    fn holds(&self) -> bool {
        self.held.is_some()
    }

    fn let_go(&mut self) -> Option<Block> {
        let held = self.held.take()?;
        self.tail = Some(Tail::of(&held));
        Some(held)
    }
}

impl Misfit {
    fn reason(&self) -> String {
        match self {
            Self::Parent(reason) | Self::Results(reason) => reason.clone(),
        }
    }
}
