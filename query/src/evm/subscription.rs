//! What subscriptions and filters of JSON-RPC have of a new block.

use chain::evm::header::{Contents, union_of_blooms};
use chain::evm::log_filter::LogFilter;
use schema::evm_block::{BLOCKS, seconds};
use schema::evm_tx::EvmTxs;
use tokio::sync::watch;

use super::tx::{evm_seqs, parse};
use super::{Error, EvmView, HttpError};
use crate::indexer::Indexer;
use crate::stream::head::Head;

/// Tells when there may be new blocks.
pub struct NewBlocks(watch::Receiver<Head>);

impl NewBlocks {
    /// Waits until the index has changed since the last call. False if it never changes again.
    pub async fn wait(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }

    /// The last height that is indexed, which may wait for its header; it counts as seen.
    pub fn height(&mut self) -> u64 {
        self.0.borrow_and_update().height
    }
}

impl Indexer {
    /// Follows the index.
    ///
    /// # Errors
    /// 500 if the thread that polls it cannot be started.
    pub fn new_blocks(&self) -> Result<NewBlocks, HttpError> {
        self.feed.follow().map(NewBlocks)
    }
}

impl EvmView<'_> {
    /// The hash of the CometBFT block at `height`: that of the history it is of. `None` if it is not stored.
    pub fn history(&self, height: u64) -> Result<Option<[u8; 32]>, Error> {
        Ok(schema::block::hash_at(self.view.snapshot(), height)?)
    }

    /// The header of the block at `height`, as `newHeads` has it. `None` above the head. Needs the optional index `blocks`.
    pub fn new_head(&self, height: u64) -> Result<Option<Vec<u8>>, Error> {
        self.state(&BLOCKS)?;
        let Some(block) = self.stored(height)? else { return Ok(None) };
        let (header, mut bloom) = (self.header(height)?.header(height)?, [0; 256]);
        self.each::<EvmTxs>(evm_seqs(&block), |seq, record| {
            let bits = union_of_blooms([&parse(seq, record)?]);
            bloom.iter_mut().zip(bits).for_each(|(union, bits)| *union |= bits);
            Ok(())
        })?;
        let mut out = Vec::with_capacity(2048);
        let contents = Contents { number: height, timestamp: seconds(&block), bloom: &bloom };
        header.write_new_head(&mut out, &contents);
        Ok(Some(out))
    }

    /// The hash of the header of the block at `height`, as JSON. `None` above the head. Needs the optional index `blocks`.
    pub fn block_hash(&self, height: u64) -> Result<Option<Vec<u8>>, Error> {
        self.state(&BLOCKS)?;
        if self.stored(height)?.is_none() {
            return Ok(None);
        }
        Ok(Some(format!("\"0x{}\"", hex::encode(self.header(height)?.hash)).into_bytes()))
    }

    /// The hashes of the transactions of the block at `height`, in order, each as JSON. None above the head.
    pub fn tx_hashes(&self, height: u64) -> Result<Vec<Vec<u8>>, Error> {
        let (block, mut hashes) = (self.stored(height)?, Vec::new());
        let seqs = block.map(|block| evm_seqs(&block)).unwrap_or_default();
        self.each::<EvmTxs>(seqs, |seq, record| {
            hashes.push(format!("\"{}\"", parse(seq, record)?.transaction_hash).into_bytes());
            Ok(())
        })?;
        Ok(hashes)
    }

    /// The logs of the block at `height` that `filter` selects, in order, each as JSON. They are read from its receipts, so no
    /// optional index is needed. None above the head.
    pub fn block_logs(&self, filter: &LogFilter, height: u64) -> Result<Vec<Vec<u8>>, Error> {
        let (block, mut logs) = (self.stored(height)?, Vec::new());
        let seqs = block.map(|block| evm_seqs(&block)).unwrap_or_default();
        self.each::<EvmTxs>(seqs, |seq, record| {
            for (ordinal, log) in (0..).zip(&parse(seq, record)?.logs) {
                if filter.matches(log) {
                    let mut out = Vec::with_capacity(512);
                    self.dialect.write_log(&mut out, log, ordinal);
                    logs.push(out);
                }
            }
            Ok(())
        })?;
        Ok(logs)
    }
}
