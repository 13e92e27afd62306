//! Results that are not in the transfer cache: fetched again, and verified against the same hashes as in the block
//! lane.

use chain::comet::{self, BlockAnswer};
use chain::erc20::{self, Erc20Event};
use chain::proof::{self, Claims, Commitments};
use node::{Answer, Node};
use schema::block::hash_at;
use schema::meta::{self, Unconfirmed};
use store::Store;

use crate::Error;
use crate::source::{self, RetryBackoff, retry_until};

/// The evidence that results are those of the indexed block.
enum Proof {
    /// The header of the next block, given by its hash.
    Next([u8; 32]),
    /// There is no next block yet: the digests that were stored when the block was indexed.
    Row(Unconfirmed),
    /// Nothing: hashes are not verified.
    None,
}

/// The transfers of the indexed block of `height`; retries until the results are proved.
pub(super) async fn transfers(
    node: &Node,
    store: &dyn Store,
    height: u64,
    verified: bool,
) -> Result<Vec<Erc20Event>, Error> {
    let mut retry = RetryBackoff::new(height);
    loop {
        let (hash, proof) = expected(store, height, verified)?;
        let block = indexed(node, height, hash, verified).await?;
        let results =
            retry_until(height, "block results", || node.comet.block_results_by(height, &block.origin))
                .await?;
        let next = match &proof {
            Proof::Next(hash) => Some(indexed(node, height + 1, *hash, verified).await?),
            Proof::Row(_) | Proof::None => None,
        };
        match events(&block, &results, next.as_ref(), &proof) {
            Ok(events) => return Ok(events),
            Err(reason) => {
                if next.is_some() {
                    node.distrust(&results.origin, &reason);
                }
                retry.wait(&reason).await;
            }
        }
    }
}

/// The hash of the indexed block, and the evidence for its results.
fn expected(store: &dyn Store, height: u64, verified: bool) -> Result<([u8; 32], Proof), Error> {
    let snapshot = store.snapshot()?;
    let hash = hash_at(&*snapshot, height)?.ok_or(Error::BlockMissing { height })?;
    if !verified {
        return Ok((hash, Proof::None));
    }
    let proof = match hash_at(&*snapshot, height.saturating_add(1))? {
        Some(next) => Proof::Next(next),
        None => meta::read::<Unconfirmed>(&*snapshot)?
            .filter(|row| row.height == height)
            .map_or(Proof::None, Proof::Row),
    };
    Ok((hash, proof))
}

async fn indexed(node: &Node, height: u64, hash: [u8; 32], verified: bool) -> Result<Answer, Error> {
    let is_it =
        |block: &BlockAnswer<'_>| block.hash == hash && (!verified || proof::check_header(block).is_ok());
    source::fetch_indexed_block(node, height, is_it).await
}

fn events(
    block: &Answer,
    results: &Answer,
    next: Option<&Answer>,
    proof: &Proof,
) -> Result<Vec<Erc20Event>, String> {
    let parsed = comet::parse_block(&block.bytes).map_err(|error| error.to_string())?;
    let found = comet::parse_results(&results.bytes).map_err(|error| error.to_string())?;
    comet::check_pair(&parsed, &found).map_err(|error| error.to_string())?;
    let claims = Claims::of(&found).map_err(|error| error.to_string())?;
    let is_true = match (proof, next) {
        (Proof::Next(_), Some(next)) => {
            let next = comet::parse_block(&next.bytes).map_err(|error| error.to_string())?;
            Commitments::of(&next).check(&claims).is_ok()
        }
        (Proof::Row(row), _) => {
            claims.results_hash.as_slice() == row.results_hash && claims.app_hash == row.app_hash
        }
        _ => results.origin == block.origin,
    };
    if is_true {
        Ok(erc20::events(&found))
    } else {
        Err("these are not the results of the indexed block".to_owned())
    }
}
