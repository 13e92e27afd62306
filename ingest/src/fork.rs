//! Whose history is the chain's, and how far ours goes along with it.
//!
//! A block that does not follow ours, or a tip that is below ours with another hash, means one of two things: the endpoint
//! that showed it is wrong, or the chain has gone back (a node that was reset, a chain that was restored). All endpoints
//! are heard, and more of them have to say otherwise than say what we have; a single one is believed, since there is nothing
//! else to follow. Where signatures are verified, those of the validators on the block after the last one outweigh any number.

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
use crate::endorse::Endorsements;
use crate::source::{self, Patience, insist};

/// How long endpoints that do not answer are waited for before those are believed that did.
const HEARING: Duration = Duration::from_secs(20);

/// Pauses between rewinds to the history of a single endpoint. One behind a load balancer may show two histories in turn,
/// and each change takes blocks back and indexes them again.
#[derive(Debug, Default)]
pub(crate) struct Damping {
    last: Option<Instant>,
    in_a_row: u32,
}

impl Damping {
    /// Rewinds that are made at once.
    const FREE: u32 = 3;
    /// After this long without one, the count begins anew.
    const CALM: Duration = Duration::from_mins(30);
    /// The longest pause is below this.
    const PAUSES: Backoff =
        Backoff { initial: Duration::from_secs(5), max: Duration::from_mins(5), jitter_percent: 0 };

    /// Counts a rewind and gives the pause before it.
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

/// What to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: who said otherwise is no longer believed, or says so no longer.
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
    /// Whether hashes are.
    pub(crate) verified: bool,
    /// Where signatures are verified.
    pub(crate) endorsements: Option<Endorsements>,
}

impl Forks {
    /// `origin` shows another block at `height` than the one that is indexed; `last` is the last one that is.
    pub(crate) async fn judge(mut self, height: u64, last: u64, origin: &Origin) -> Result<Verdict, Error> {
        if hash_at(&*self.store.snapshot()?, height)?.is_none() {
            // It contradicts itself about what nobody has indexed: there is nothing to take back.
            return Ok(Verdict::Contradiction);
        }
        let votes = self.hear(height, origin).await?;
        let mut outcome = votes.outcome(origin);
        // What is below the last block was endorsed when it was indexed, and the last block was not.
        if height == last && outcome == Outcome::Ours {
            for by in votes.against() {
                if self.is_endorsed(height, by).await? {
                    outcome = Outcome::Theirs(by.clone());
                    break;
                }
            }
        }
        match outcome {
            Outcome::Nobody => Ok(Verdict::GoOn),
            Outcome::Nothing => Ok(Verdict::Contradiction),
            Outcome::Ours => {
                let reason = format!(
                    "its block {height} is not the one that is indexed and that as many other endpoints have"
                );
                for other in votes.against().chain([origin].into_iter().filter(|origin| !votes.heard(origin)))
                {
                    self.node.distrust(other, &reason);
                }
                Ok(Verdict::GoOn)
            }
            Outcome::Theirs(by) => self.common(height, last, &by).await.map(Verdict::GoBackTo),
        }
    }

    /// What the endpoints say of `height`. Those that fail now and then must have their say before anything is taken back, as
    /// long as it could make a difference.
    async fn hear(&self, height: u64, origin: &Origin) -> Result<Votes, Error> {
        let (began, mut patience) = (Instant::now(), Patience::new(height));
        let mut votes = Votes::default();
        loop {
            let mut missing = 0;
            for (who, said) in self.node.comet.block_from_all(height).await {
                if votes.heard(&who) {
                    continue;
                }
                match said {
                    Ok(bytes) => match self.is_ours(height, &bytes)? {
                        Some(is_ours) => votes.cast(who, is_ours),
                        None => missing += 1,
                    },
                    // Others that have no such height any more say nothing about it.
                    Err(error) if error.is_pruned() && who == *origin => votes.cast(who, false),
                    Err(error) if error.kind() != Kind::Permanent => missing += 1,
                    Err(_has_none) => {}
                }
            }
            if votes.are_decided(missing, origin) || began.elapsed() >= HEARING {
                return Ok(votes);
            }
            patience.wait(&"not every endpoint has said which history is the chain's").await;
        }
    }

    /// Whether validators have signed the block at `height` that `by` has, above what we have below it.
    async fn is_endorsed(&mut self, height: u64, by: &Origin) -> Result<bool, Error> {
        let Some(before) = height.checked_sub(1).filter(|before| *before >= self.start_height) else {
            return Ok(false);
        };
        let Some(ours) = hash_at(&*self.store.snapshot()?, before)? else { return Ok(false) };
        let Some(endorsements) = &mut self.endorsements else { return Ok(false) };
        let is_it = |block: &BlockAnswer<'_>| block.hash == ours && proof::check_header(block).is_ok();
        let before = match source::known(&self.node, before, is_it).await {
            // No endpoint has it: there is nothing that the signatures could be held against.
            Err(Error::Elsewhere { .. }) => return Ok(false),
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
        // The first of the two binds the set of validators to the one that ours announced.
        Ok(endorsements.objection(&ours, &before, &block.bytes).await?.is_none()
            && endorsements.objection(&hash, &block.bytes, &next.bytes).await?.is_none())
    }

    /// The last height below `conflict` whose block is ours and that of `by`, if the index, whose last height is `last`, may
    /// go back so far.
    async fn common(&self, conflict: u64, last: u64, by: &Origin) -> Result<u64, Error> {
        if last == self.start_height {
            return Ok(last.saturating_sub(1)); // There is nothing but the block that differs.
        }
        let lowest = last.saturating_sub(self.max_rewind).max(self.start_height);
        // Invariant: what is at or above `differs` is not ours, and `same` is, once it has been looked at.
        let (mut same, mut differs) = (lowest, conflict);
        if same >= differs || !self.agrees(same, by).await? {
            // A larger `max_rewind` helps only if there is a block below that is the same.
            let hopeless = lowest == self.start_height || self.is_begun_anew(conflict, by).await?;
            let too_deep = Error::TooDeep { last, lowest, max_rewind: self.max_rewind };
            return Err(if hopeless { Error::OtherHistory { last } } else { too_deep });
        }
        while differs - same > 1 {
            let middle = same + (differs - same) / 2;
            if self.agrees(middle, by).await? { same = middle } else { differs = middle }
        }
        Ok(same)
    }

    /// Whether the first indexed block is another one on the chain of `by`, which differs at `conflict`.
    async fn is_begun_anew(&self, conflict: u64, by: &Origin) -> Result<bool, Error> {
        let first = self.start_height;
        if first >= conflict {
            return Ok(true);
        }
        // Asked once: where there is no answer, the error names the setting, which does no harm.
        match self.node.comet.block_by(first, by).await {
            Ok(answer) => Ok(self.is_ours(first, &answer.bytes)? == Some(false)),
            Err(_) => Ok(false),
        }
    }

    /// Whether the block of `by` at `height` is the indexed one, or that of another endpoint where `by` does not answer; one
    /// that no longer has it cannot say yes.
    async fn agrees(&self, height: u64, by: &Origin) -> Result<bool, Error> {
        let mut patience = Patience::new(height);
        loop {
            let answer = match insist(height, "block", || self.node.comet.block_by(height, by)).await {
                Err(Error::Node { source, .. }) if source.is_pruned() => return Ok(false),
                answer => answer?,
            };
            if let Some(is_ours) = self.is_ours(height, &answer.bytes)? {
                return Ok(is_ours);
            }
            patience.wait(&"it is about another height, or not what its hash says").await;
        }
    }

    /// Whether the block that is answered is the indexed one; `None` if it is not a block of `height`, or no true one.
    fn is_ours(&self, height: u64, answer: &[u8]) -> Result<Option<bool>, Error> {
        let ours = hash_at(&*self.store.snapshot()?, height)?;
        let theirs = comet::parse_block(answer).ok().filter(|block| {
            block.header.height == height && (!self.verified || proof::check_header(block).is_ok())
        });
        Ok(theirs.map(|block| ours == Some(block.hash)))
    }
}

/// The hash of `block` if it is a true one that follows `before`.
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
