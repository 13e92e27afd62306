//! Whose history is the chain's, and how far ours goes along with it.
//!
//! A block that does not follow ours, or a tip that is below ours with another hash, means one of two things: the endpoint
//! that showed it is wrong, or the chain has gone back (a node that was reset, a chain that was restored). Another endpoint
//! decides if there is one; a single one is believed, since there is nothing else to follow.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use node::Origin;
use node::retry::{self, Backoff};
use schema::block::hash_at;
use store::Store;

use crate::Error;
use crate::source::{Patience, insist};

/// How long an endpoint that does not answer is waited for before the history of another is believed.
const HEARING: Duration = Duration::from_secs(20);

/// What to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: who said otherwise is no longer believed.
    GoOn,
    /// The chain has another history above this height.
    GoBackTo(u64),
    /// The node names a parent that it does not have: nothing can be followed.
    Contradiction,
}

/// Looks into forks.
pub(crate) struct Forks {
    pub(crate) node: Arc<node::Node>,
    pub(crate) store: Arc<dyn Store>,
    /// The first height of the index.
    pub(crate) start_height: u64,
    pub(crate) max_rewind: u64,
}

impl Forks {
    /// `origin` shows another block at `height` than the one that is indexed; another endpoint is asked.
    pub(crate) async fn judge(&self, height: u64, last: u64, origin: &Origin) -> Result<Verdict, Error> {
        if hash_at(&*self.store.snapshot()?, height)?.is_none() {
            // It contradicts itself about what nobody has indexed: there is nothing to take back.
            return Ok(Verdict::Contradiction);
        }
        if let Some(other) = self.another(height, origin).await
            && self.is_ours(height, &other)? == Some(true)
        {
            let reason =
                format!("its block {height} is not the one that is indexed and that another endpoint has");
            self.node.distrust(origin, &reason);
            return Ok(Verdict::GoOn);
        }
        if self.agrees(height).await? {
            return Ok(Verdict::Contradiction);
        }
        self.common(height, last).await.map(Verdict::GoBackTo)
    }

    /// The block of `height` as an endpoint has it that is not `origin`, asked for a while: one that fails now and then
    /// must have its say before anything is taken back.
    async fn another(&self, height: u64, origin: &Origin) -> Option<Bytes> {
        let asked = retry::until(Backoff::default(), "block of another endpoint", || {
            self.node.comet.block_from_other(height, origin)
        });
        match tokio::time::timeout(HEARING, asked).await {
            Ok(Ok(answer)) => answer.map(|answer| answer.bytes),
            Ok(Err(error)) => {
                tracing::warn!(height, %error, "no other endpoint says which history is the chain's");
                None
            }
            Err(_elapsed) => {
                tracing::warn!(
                    height,
                    ?HEARING,
                    "no other endpoint has said in time which history is the chain's"
                );
                None
            }
        }
    }

    /// The last height below `conflict` whose block is ours and the node's, if the index, whose last height is `last`, may
    /// go back so far.
    async fn common(&self, conflict: u64, last: u64) -> Result<u64, Error> {
        let lowest = last.saturating_sub(self.max_rewind).max(self.start_height);
        // Invariant: what is at or above `differs` is not ours, and `same` is, once it has been looked at.
        let (mut same, mut differs) = (lowest, conflict);
        let too_far = || Error::TooDeep { last, lowest, max_rewind: self.max_rewind };
        if same >= differs || !self.agrees(same).await? {
            return Err(too_far());
        }
        while differs - same > 1 {
            let middle = same + (differs - same) / 2;
            if self.agrees(middle).await? { same = middle } else { differs = middle }
        }
        Ok(same)
    }

    /// Whether the node's block at `height` is the indexed one; a node that no longer has it cannot say no.
    async fn agrees(&self, height: u64) -> Result<bool, Error> {
        let mut patience = Patience::new(height);
        loop {
            let answer = match insist(height, "block", || self.node.comet.block(height)).await {
                Err(Error::Node { source, .. }) if source.is_pruned() => return Ok(false),
                answer => answer?,
            };
            if let Some(is_ours) = self.is_ours(height, &answer.bytes)? {
                return Ok(is_ours);
            }
            patience.wait(&"it is about another height").await;
        }
    }

    /// Whether the block that is answered is the indexed one; `None` if it is not a block of `height`.
    fn is_ours(&self, height: u64, answer: &[u8]) -> Result<Option<bool>, Error> {
        let ours = hash_at(&*self.store.snapshot()?, height)?;
        let theirs = chain::comet::parse_block(answer).ok().filter(|block| block.header.height == height);
        Ok(theirs.map(|block| ours == Some(block.hash)))
    }
}
