//! The transactions of a chain's newest blocks, for chains whose nodes have no index: each block is read once for all
//! transactions that are looked for.
//!
//! # Invariants
//!
//! * A block counts as searched only after it was read; one that was missed is not read later.
//! * Memory is bounded by [`BLOCKS`] and [`TXS`].

use std::collections::BTreeMap;

use chain::hash::Hash;
use node::Comet;
use tokio::sync::Mutex;

/// Blocks read at once, newest last.
const READ: u64 = 64;
/// Blocks kept ...
const BLOCKS: usize = 1_024;
/// ... and transactions of them.
const TXS: usize = 100_000;

#[derive(Default)]
pub(crate) struct RecentBlocks {
    /// Hashes by height. Locked while blocks are read, so that other polls find them read.
    blocks: Mutex<BTreeMap<u64, Vec<Hash>>>,
}

impl RecentBlocks {
    /// The height of a transaction, if it is in one of the newest blocks up to `tip`.
    pub(crate) async fn height_of(
        &self,
        comet: &Comet,
        tip: u64,
        hash: Hash,
    ) -> Result<Option<u64>, node::Error> {
        let mut blocks = self.blocks.lock().await;
        let next = blocks.last_key_value().map_or(1, |(last, _)| last + 1);
        for height in next.max(tip.saturating_sub(READ - 1))..=tip {
            let txs = match comet.txs_of_block(height).await {
                Err(error) if error.is_pruned() => Vec::new(),
                txs => txs?,
            };
            blocks.insert(height, txs.into_iter().map(|tx| tx.hash).collect());
            while blocks.len() > BLOCKS
                || (blocks.len() > 1 && blocks.values().map(Vec::len).sum::<usize>() > TXS)
            {
                blocks.pop_first();
            }
        }
        Ok(blocks.iter().rev().find(|(_, txs)| txs.contains(&hash)).map(|(height, _)| *height))
    }
}
