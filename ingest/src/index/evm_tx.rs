//! The rows of EVM transactions.

use schema::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use schema::keys::{Owner, Role, hash_prefix};
use schema::meta::BlockLane;
use store::Txn;

use super::BlockIndex;
use crate::Error;
use crate::derive::Block;

/// Writes the tables of [`schema::evm_tx`].
pub(super) struct EvmTxRows;

impl BlockIndex for EvmTxRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        for (seq, tx) in (before.evm_txs + 1..).zip(&block.evm_txs) {
            txn.append::<EvmTxs>(&seq, &tx.payload);
            txn.append::<EvmTxByHash>(&(hash_prefix(&tx.hash), seq), &());
            for account in &tx.involved {
                txn.push::<AccountEvmTxs>(&(Owner(*account), Role::Involved), seq)?;
            }
            txn.push::<AccountEvmTxs>(&(Owner(tx.from), Role::Signer), seq)?;
        }
        Ok(())
    }
}
