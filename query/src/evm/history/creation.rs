//! How a contract was created.

use super::Window;
use super::calls::CallsOf;
use crate::api;
use crate::evm::{Error, EvmView};

/// The creation of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreationRow {
    /// The account that sent the transaction, in hex.
    pub creator: String,
    /// The hash of the transaction in hex: that of the Cosmos transaction, if Ethereum's interface does not show it.
    pub hash: String,
    /// Its height.
    pub height: u64,
    /// The time of its block, in seconds.
    pub timestamp: u64,
    /// The contract that created it, in hex; empty if the transaction did, or the calls are not indexed.
    pub factory: String,
    /// The code that made it, in hex; empty if the calls are not indexed.
    pub code: String,
}

impl EvmView<'_> {
    /// The first creation of a contract. `None` if no transaction created it.
    ///
    /// # Errors
    /// [`Error::Off`] and [`Error::Behind`] of the index `contracts`.
    pub fn creation_of(&self, contract: [u8; 20]) -> Result<Option<CreationRow>, Error> {
        let Some(creation) = self.creations(contract)?.into_iter().next() else { return Ok(None) };
        let height = creation.height;
        let timestamp = self.timestamp(height)?.unwrap_or_default();
        let Some(hash) = self.evm_hash(&creation.cosmos_hash)? else {
            let (hash, creator) = (creation.cosmos_hash, self.cosmos_sender_of(&creation.cosmos_hash)?);
            let hash = format!("0x{}", hex::encode(hash));
            return Ok(Some(CreationRow { creator, hash, height, timestamp, ..CreationRow::default() }));
        };
        let mut row = CreationRow {
            hash: format!("0x{}", hex::encode(hash)),
            height,
            timestamp,
            ..CreationRow::default()
        };
        let found = api::evm_tx::find(self.indexer, &self.view, &hash)?;
        let Some((seq, record)) = found else { return Ok(Some(row)) };
        let address = format!("0x{}", hex::encode(contract));
        self.with_row(&mut None, (seq, &record), &mut |tx| {
            let (receipt, summary) = (tx.receipt, tx.tx.summary());
            row.creator = if summary.is_signed { receipt.from.to_string() } else { String::new() };
            if receipt.contract_address.as_ref().is_some_and(|created| *created == address.as_str()) {
                row.code = format!("0x{}", hex::encode(summary.input));
            }
            Ok(())
        })?;
        if row.creator.is_empty() {
            row.creator = self.cosmos_sender_of(&creation.cosmos_hash)?;
        }
        let window = Window { heights: 0..=0, skip: 0, take: u64::MAX, newest_first: false };
        if row.code.is_empty() && self.view.calls()?.height >= height {
            self.calls_of(CallsOf::Tx(hash), &window, &mut |call| {
                if call.frame.creates() && call.frame.to == address.as_str() {
                    row.factory = call.frame.from.to_string();
                    row.code = call.frame.input.to_string();
                }
                Ok(())
            })?;
        }
        if row.factory == row.creator {
            row.factory.clear();
        }
        Ok(Some(row))
    }

    /// The account that sent the first message of a Cosmos transaction, in hex; empty if the message has no sender.
    fn cosmos_sender_of(&self, hash: &[u8; 32]) -> Result<String, Error> {
        let Some((seq, _)) = api::tx::find(self.indexer, &self.view, hash, b"")? else {
            return Ok(String::new());
        };
        Ok(self.cosmos_sender(seq)?.map(|account| account.to_hex()).unwrap_or_default())
    }
}
