//! Light client: verifies that the validators of its height signed a block. The signatures (the commit) are in the next
//! block.
//!
//! Trust passes from header to header: the first block is trusted (or the configured one), and each header commits to
//! the next validator set.
//!
//! # Invariants
//! * Blocks below the trusted height are not verified.
//! * A block above it is never accepted with signatures that do not verify.

use std::sync::Arc;

use bytes::Bytes;
use chain::comet::light::{self, BadValidators, Validators, WrongValidators};
use chain::comet::proof;
use chain::comet::{BlockResponse, parse_block};
use node::Node;

use crate::Error;
use crate::retry::{RetryBackoff, retry_until};

/// Verifies commits of one chain with its current validator set.
pub(crate) struct CommitVerifier {
    node: Arc<Node>,
    chain_id: String,
    /// A height and its block's hash that the operator trusts.
    trusted: Option<(u64, [u8; 32])>,
    /// The validator set of the last verified block.
    set: Option<Validators>,
}

impl CommitVerifier {
    pub(crate) fn new(node: Arc<Node>, chain_id: String, trusted: Option<(u64, [u8; 32])>) -> Self {
        Self { node, chain_id, trusted, set: None }
    }

    /// The reason to reject `next`, a `/block` answer, as the successor of `before`, the reply for the block with
    /// `hash`; `None` if the validators of `before` signed it.
    pub(crate) async fn rejection(
        &mut self,
        hash: &[u8; 32],
        before: &Bytes,
        next: &Bytes,
    ) -> Result<Option<String>, Error> {
        let parsed = (parse_block(before), parse_block(next));
        let (Ok(before), Ok(next)) = &parsed else {
            return Ok(Some("the answer cannot be read again".to_owned()));
        };
        let height = before.header.height;
        match self.trusted {
            Some((trusted, _)) if height < trusted => return Ok(None),
            _ => {}
        }
        if let Some(rejection) = self.trusted_mismatch(height, hash) {
            return Ok(Some(rejection));
        }
        if next.full_header.validators_hash != before.full_header.next_validators_hash {
            return Ok(Some(format!(
                "block {} names other validators than block {height} announced",
                height + 1
            )));
        }
        self.update_validators(before).await?;
        let Some(set) = &self.set else { return Ok(Some("no validator set".to_owned())) };
        Ok(signed(&self.chain_id, hash, before, next, set).err())
    }

    /// The mismatch with the operator's trusted block, if `height` is its height and `hash` is not its hash.
    pub(crate) fn trusted_mismatch(&self, height: u64, hash: &[u8; 32]) -> Option<String> {
        let (_, trusted) = self.trusted.filter(|(trusted_height, _)| *trusted_height == height)?;
        (trusted != *hash).then(|| {
            let hash = chain::hash::to_hex(hash);
            format!("block {height} is {hash}, which is not the one that `trusted` names")
        })
    }

    /// Fetches the validator set of `block` until it matches the hash in the header. An error if every endpoint returns
    /// keys of an unknown type.
    async fn update_validators(&mut self, block: &BlockResponse<'_>) -> Result<(), Error> {
        if self.set.as_ref().is_some_and(|set| light::check_validators(block, set).is_ok()) {
            return Ok(());
        }
        let height = block.header.height;
        let mut retry = RetryBackoff::new(height);
        let mut unknown_keys = 0;
        loop {
            let pages = retry_until(height, "validators", || self.node.comet.validators(height)).await?;
            match parse_validator_set(block, pages.iter().map(|page| &*page.bytes)) {
                Ok(set) => {
                    self.set = Some(set);
                    return Ok(());
                }
                Err(error) => {
                    let reason = error.to_string();
                    unknown_keys +=
                        usize::from(matches!(error, InvalidValidators::Bad(BadValidators::Key { .. })));
                    if unknown_keys > self.node.comet.endpoints().len() {
                        return Err(Error::Unverifiable { height, reason });
                    }
                    if let Some(page) = pages.first() {
                        self.node.distrust(&page.origin, &reason);
                    }
                    retry.wait(&reason).await;
                }
            }
        }
    }
}

/// The reason why pages are not the validator set of a block.
#[derive(Debug, thiserror::Error)]
enum InvalidValidators {
    #[error(transparent)]
    Bad(#[from] BadValidators),
    #[error(transparent)]
    Wrong(#[from] WrongValidators),
}

/// The validators of `block` from the pages of `/validators`.
fn parse_validator_set<'a>(
    block: &BlockResponse<'_>,
    pages: impl Iterator<Item = &'a [u8]>,
) -> Result<Validators, InvalidValidators> {
    let mut list = Vec::new();
    for page in pages {
        list.extend(light::parse_validators(page)?.validators);
    }
    let set = Validators::new(list)?;
    light::check_validators(block, &set)?;
    Ok(set)
}

/// Checks that `set` signed `before`, by the commit in `next`.
fn signed(
    chain_id: &str,
    hash: &[u8; 32],
    before: &BlockResponse<'_>,
    next: &BlockResponse<'_>,
    set: &Validators,
) -> Result<(), String> {
    proof::check_last_commit(next).map_err(|error| error.to_string())?;
    let commit = next.last_commit().map_err(|error| error.to_string())?;
    light::check_commit(chain_id, before.header.height, hash, &commit, set)
        .map_err(|error| error.to_string())?;
    Ok(())
}
