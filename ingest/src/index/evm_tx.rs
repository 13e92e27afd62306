//! The rows of EVM transactions.

use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::keys::{AccountKey, Role};
use schema::meta::BlockLane;
use schema::postings;
use store::Txn;

use super::BlockIndex;
use crate::Error;
use crate::derive::Block;

/// Writes the tables of [`schema::evm_tx`].
pub(super) struct EvmTxRows;

impl BlockIndex for EvmTxRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        let hashes = block.evm_txs.iter().map(|tx| &tx.hash);
        postings::put_hashed::<EvmTxs>(txn, before.evm_txs + 1, &block.evm_tx_records, hashes);
        for (seq, tx) in (before.evm_txs + 1..).zip(&block.evm_txs) {
            for account in &tx.involved {
                txn.push::<AccountEvmTxs>(&(AccountKey(*account), Role::Involved), seq)?;
            }
            txn.push::<AccountEvmTxs>(&(AccountKey(tx.from), Role::Signer), seq)?;
        }
        Ok(())
    }
}
