//! Results that are not in the transfer cache: fetched again, and verified against the same hashes as in the block
//! lane.

use chain::comet;
use chain::comet::proof::Claims;
use chain::evm::erc20::Erc20Event;
use chain::evm::ethereum_events;
use chain::tx::DecodedTx;
use node::{Node, Reply};
use schema::block::hash_at;
use schema::meta::{self, Unconfirmed};
use store::Store;

use crate::Error;
use crate::derive::{self, Rules};
use crate::retry::{RetryBackoff, retry_until};
use crate::source;

/// The transfers of the indexed block of `height`; retries until the results are proved, by the next header, or for the
/// last block by the digests that were stored with it.
pub(super) async fn transfers(
    node: &Node,
    store: &dyn Store,
    height: u64,
    rules: &Rules,
) -> Result<Vec<Erc20Event>, Error> {
    let verified = rules.verified;
    let mut retry = RetryBackoff::new(height);
    loop {
        let (hash, next_hash, row) = {
            let snapshot = store.snapshot()?;
            let hash = hash_at(&*snapshot, height)?.ok_or(Error::BlockMissing { height })?;
            let row = meta::read::<Unconfirmed>(&*snapshot)?.filter(|row| verified && row.height == height);
            (hash, hash_at(&*snapshot, height.saturating_add(1))?.filter(|_| verified), row)
        };
        let block = source::fetch_indexed_block(node, height, hash, verified).await?;
        let request = || node.comet.block_results_by(height, &block.origin);
        let results = retry_until(height, "block results", request).await?;
        let next = match next_hash {
            Some(hash) => Some(source::fetch_indexed_block(node, height + 1, hash, verified).await?),
            None => None,
        };
        if is_proved(&block, &results, next.as_ref(), row.as_ref())
            && let Some(events) = events(&block, &results, rules)
        {
            return Ok(events);
        }
        let reason = "the results are not those of the indexed block";
        if next.is_some() {
            node.distrust(&results.origin, reason);
        }
        retry.wait(&reason).await;
    }
}

/// Whether `results` are those of `block`. Without evidence they must come from the endpoint of the block.
fn is_proved(block: &Reply, results: &Reply, next: Option<&Reply>, row: Option<&Unconfirmed>) -> bool {
    match (next, row) {
        (Some(next), _) => derive::confirms(&next.bytes, &block.bytes, &results.bytes) == Some(true),
        (None, Some(row)) => {
            let claims = comet::parse_results(&results.bytes)
                .ok()
                .and_then(|results| Claims::from_results(&results).ok());
            claims.is_some_and(|claims| {
                claims.results_hash.as_slice() == row.results_hash && claims.app_hash == row.app_hash
            })
        }
        (None, None) => results.origin == block.origin,
    }
}

/// The events of `results`; `None` if they are malformed or of another height than `block`.
fn events(block: &Reply, results: &Reply, rules: &Rules) -> Option<Vec<Erc20Event>> {
    let block = comet::parse_block(&block.bytes).ok()?;
    let mut results = comet::parse_results(&results.bytes).ok()?;
    comet::check_pair(&block, &results).ok()?;
    if rules.flavour.has_ethereum_messages() {
        let txs: Vec<_> = block.raw_txs().ok()?.iter().map(|raw| DecodedTx::decode(raw).ok()).collect();
        ethereum_events::add_evm_events(&txs, &mut results);
    }
    Some(derive::erc20_events(&results, rules))
}
