//! Blocks with their headers. They need the optional index `blocks`.

use chain::evm::header::{Contents, union_of_blooms};
use schema::evm_block::{BLOCKS, EvmBlock, EvmBlockByHash, EvmBlocks, seconds};
use schema::evm_tx::EvmTxs;
use schema::keys::hash_prefix;
use store::Message;
use store::table::read;

use super::tx::{evm_seqs, parse};
use super::{Error, EvmView};

impl EvmView<'_> {
    /// The block at `height`, with its transactions (`full`) or their hashes. `None` above the head.
    pub fn block(&self, height: u64, full: bool) -> Result<Option<Vec<u8>>, Error> {
        self.state(&BLOCKS)?;
        let Some(block) = self.stored(height)? else { return Ok(None) };
        let header = self.header(height)?.header(height)?;
        let (mut receipts, mut hashes) = (Vec::new(), vec![b'[']);
        self.each::<EvmTxs>(evm_seqs(&block), |_, record| {
            receipts.push(record.to_vec());
            Ok(())
        })?;
        let receipts = (block.first_evm_tx..)
            .zip(&receipts)
            .map(|(seq, record)| parse(seq, record))
            .collect::<Result<Vec<_>, _>>()?;
        for receipt in receipts.iter().filter(|_| !full) {
            let lead = if hashes.len() > 1 { ",\"" } else { "\"" };
            hashes.extend_from_slice(lead.as_bytes());
            hashes.extend_from_slice(receipt.transaction_hash.as_bytes());
            hashes.push(b'"');
        }
        hashes.push(b']');
        let transactions = if full { self.all_txs(&block)? } else { hashes };
        let bloom = union_of_blooms(&receipts);
        let contents = Contents { number: height, timestamp: seconds(&block), bloom: &bloom };
        let mut out = Vec::with_capacity(transactions.len() + 2048);
        header.write_json(&mut out, &contents, &transactions);
        Ok(Some(out))
    }

    /// The height of the block whose EVM header has this hash.
    ///
    /// # Errors
    /// [`Error::Behind`] if no header has it and those of later blocks are missing.
    pub fn height_of(&self, hash: &[u8; 32]) -> Result<Option<u64>, Error> {
        let state = self.state(&BLOCKS)?;
        let candidates =
            read::<EvmBlockByHash>(self.view.snapshot(), &hash_prefix(hash))?.unwrap_or_default();
        for (height, _) in candidates.into_newest_first() {
            if self.header(height)?.hash == hash {
                return Ok(Some(height));
            }
        }
        if state.height < self.head {
            return Err(self.behind(&BLOCKS, state)?);
        }
        Ok(None)
    }

    pub(super) fn header(&self, height: u64) -> Result<EvmBlock, Error> {
        if let Some(Message(header)) = read::<EvmBlocks>(self.view.snapshot(), &height)? {
            return Ok(header);
        }
        let state = self.state(&BLOCKS)?;
        if height < state.from {
            return Err(Error::Pruned { first: state.from });
        }
        Err(self.behind(&BLOCKS, state)?)
    }
}
