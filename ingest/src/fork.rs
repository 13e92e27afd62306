//! Whose history is the chain's, and how far ours goes along with it.
//!
//! A block that does not follow ours, or a tip that is below ours with another hash, means one of two things: the endpoint
//! that showed it is wrong, or the chain has gone back (a node that was reset, a chain that was restored). Another endpoint
//! decides if there is one; a single one is believed, since there is nothing else to follow.

use std::sync::Arc;

use node::Origin;
use schema::block::hash_at;
use store::Store;

use crate::Error;
use crate::source::insist;

/// What to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: who said otherwise is no longer believed.
    GoOn,
    /// The chain has another history above this height.
    GoBackTo(u64),
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
    /// `origin` shows another block at `height`, which is indexed, than `ours`; another endpoint is asked.
    pub(crate) async fn judge(&self, height: u64, last: u64, origin: &Origin) -> Result<Verdict, Error> {
        let comet = &self.node.comet;
        match comet.block_from_other(height, origin).await {
            Ok(Some(other)) if self.is_ours(height, &other.bytes)? => {
                let reason = format!("its block {height} is not the one that is indexed and that another endpoint has");
                self.node.distrust(origin, &reason);
                Ok(Verdict::GoOn)
            }
            Ok(_) => self.common(height, last).await.map(Verdict::GoBackTo),
            Err(error) => {
                tracing::warn!(height, %error, "no other endpoint says which history is the chain's");
                self.common(height, last).await.map(Verdict::GoBackTo)
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
        let answer = match insist(height, "block", || self.node.comet.block(height)).await {
            Err(Error::Node { source, .. }) if source.is_pruned() => return Ok(false),
            answer => answer?,
        };
        self.is_ours(height, &answer.bytes)
    }

    fn is_ours(&self, height: u64, answer: &[u8]) -> Result<bool, Error> {
        let ours = hash_at(&*self.store.snapshot()?, height)?;
        let theirs = chain::comet::parse_block(answer).ok().map(|block| block.hash);
        Ok(ours.is_some() && ours == theirs)
    }
}
