//! A forged fork of a recorded chain: equal up to a height, different and internally consistent above it.
//!
//! A fork omits some transactions, selected by the seed, with their results, receipts and traces. Indexes and running
//! sums of the remaining ones are those that a node would compute. All header times are shifted by the same number of
//! milliseconds.
//!
//! # Invariants
//!
//! - All links between heights are valid: `data_hash`, `last_results_hash`, `last_block_id.hash` and `block_id.hash`
//!   are those of the forged contents, `app_hash` is that of the forged results before, and EVM blocks have the hashes
//!   of their headers and name their parents.
//!
//! # Limits
//!
//! A fork has no valid signatures (`last_commit` keeps those of the recorded blocks, which do not sign the forged
//! ones), no part sets (`parts.hash` is unchanged), no roots of EVM transactions and receipts (they are other numbers),
//! and no state: the replies about state are those of the recorded chain at the height or below; an object
//! without one does not exist.

mod block;
mod evm;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::recording::{Height, Recording, items};
use crate::seeded_rng::{mix, random_at, unit};

/// The share of transactions omitted from a fork.
const DROPPED: f64 = 0.25;

/// The hashes by which a forged height refers to the previous one; `None` means the recorded hash.
#[derive(Debug, Default)]
struct Before {
    block: Option<String>,
    app: Option<Vec<u8>>,
    results: Option<String>,
    eth_block: Option<String>,
}

/// The changes that a seed determines.
#[derive(Debug, Clone, Copy)]
struct Fork {
    seed: u64,
}

impl Recording {
    /// A chain with the same heights up to and including `at`, and a forged but consistent history above it; see
    /// [`crate::fork`]. With `at` one below the first height, all heights are forged.
    ///
    /// Fails if `at` is any other height, or a height above it has an invalid format.
    pub fn forked(&self, at: u64, seed: u64) -> Result<Self, Error> {
        let (first, last) = (self.first(), self.last());
        if at.saturating_add(1) < first || at > last {
            return Err(Error::NoSuchHeight { height: at, first, last });
        }
        let (fork, mut before) = (Fork { seed }, Before::default());
        let mut above = Vec::new();
        for height in self.recorded_heights().filter(|height| height.height > at) {
            let forged = fork.forge(&height, before);
            let (forged, links) = forged.map_err(|message| Error::Fork { height: height.height, message })?;
            before = links;
            above.push(forged);
        }
        let name = format!("{}, forked at {at} by {seed}", self.summary().name);
        Ok(self.with_last(name, &above)?.forking_above(at))
    }
}

impl Fork {
    /// The forged height after `before`, and the hashes by which the next height refers to it.
    fn forge(self, height: &Height, before: Before) -> Result<(Height, Before), String> {
        let txs = height.raw_txs().map_err(|e| e.to_string())?.len();
        let kept: Vec<bool> = (0..txs).map(|tx| self.keeps(height.height, tx)).collect();
        let results = block::results(&height.block_results, &kept, self)?;
        let block = block::block(&height.block, &kept, &before, self)?;
        let evm = evm::forge(height, &kept, &before, &block, self)?;
        let links = Before {
            block: Some(block.hash),
            app: Some(results.app_hash),
            results: Some(results.hash),
            eth_block: evm.hash,
        };
        let rest_txs = height.rest_txs.as_deref().map(|txs| only(txs, &kept)).transpose()?;
        let forged = Height {
            height: height.height,
            block: block.text,
            block_results: results.text,
            rest_txs,
            eth_block: evm.block,
            eth_receipts: evm.receipts,
            eth_trace: evm.trace,
        };
        Ok((forged, links))
    }

    fn keeps(self, height: u64, tx: usize) -> bool {
        let tx = u64::try_from(tx).unwrap_or(u64::MAX);
        unit(random_at(self.seed, &[height, tx])) >= DROPPED
    }

    /// Delay of its blocks: 1 to 1,000 ms.
    fn delay_millis(self) -> i64 {
        1 + i64::try_from(mix(self.seed) % 1000).unwrap_or(0)
    }

    /// A substitute for a hash that only a node can compute.
    fn instead_of(self, hash: &[u8]) -> Vec<u8> {
        Sha256::new().chain_update(self.seed.to_be_bytes()).chain_update(hash).finalize().to_vec()
    }
}

/// The items of a raw array that are kept.
fn only(array: &[u8], kept: &[bool]) -> Result<bytes::Bytes, String> {
    let items = items(array).map_err(|e| e.to_string())?;
    if items.len() != kept.len() {
        return Err(format!("{} items for {} transactions", items.len(), kept.len()));
    }
    let kept: Vec<&str> =
        items.iter().zip(kept).filter(|(_, kept)| **kept).map(|(item, _)| item.get()).collect();
    Ok(format!("[{}]", kept.join(",")).into())
}
