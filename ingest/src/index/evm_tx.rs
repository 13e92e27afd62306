//! The rows of EVM transactions.

use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::keys::{AccountKey, Role, hash_prefix};
use schema::meta::BlockLane;
use schema::postings;
use schema::records;
use store::Txn;

use super::BlockIndex;
use crate::Error;
use crate::derive::Block;

/// Writes the tables of [`schema::evm_tx`].
pub(super) struct EvmTxRows;

impl BlockIndex for EvmTxRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        records::put_unread::<EvmTxs>(txn, before.evm_txs + 1, &block.evm_tx_records);
        let places = (before.evm_txs + 1..).zip(records::places(&block.evm_tx_records));
        let hashes = places.zip(&block.evm_txs).map(|((seq, place), tx)| (hash_prefix(&tx.hash), seq, place));
        postings::add::<EvmTxByHash>(txn, hashes);
        for (seq, tx) in (before.evm_txs + 1..).zip(&block.evm_txs) {
            for account in &tx.involved {
                txn.push::<AccountEvmTxs>(&(AccountKey(*account), Role::Involved), seq)?;
            }
            txn.push::<AccountEvmTxs>(&(AccountKey(tx.from), Role::Signer), seq)?;
        }
        Ok(())
    }
}
