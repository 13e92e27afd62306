//! The indexes: a derived block in, rows out.
//!
//! An index is a plain function of the block and the stored rows; it does no IO of its own, and no other index writes
//! its tables. All indexes of a lane write into one batch, with the lane's height.

mod block;
mod evm_tx;
mod internal_tx;
mod nft;
mod tx;

use std::sync::Arc;

use chain::Vm;
use schema::meta::BlockLane;
use schema::payload::Codec;
use store::{Snapshot, Txn};

use crate::Error;
use crate::derive::Block;
use crate::nft::LateReply;

pub(crate) use self::internal_tx::write_calls;

/// An index of the block lane.
pub(crate) trait BlockIndex: Send {
    /// Writes the rows of `block`; `before` is the lane after the previous block.
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error>;

    /// Writes the changes from a reply that arrived after its block.
    fn late(&mut self, _: &LateReply, _: &mut Txn<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// Properties of the chain and the database that indexes need.
pub(crate) struct IndexContext {
    pub(crate) vm: Vm,
    /// Human-readable part of account addresses.
    pub(crate) prefix: String,
    /// True if the index begins after the chain.
    pub(crate) mid_chain: bool,
    pub(crate) codec: Arc<Codec>,
}

/// Every index of the block lane, continuing the database of `snapshot`. Later ones read rows of earlier ones.
pub(crate) fn of_blocks(
    context: IndexContext,
    snapshot: &dyn Snapshot,
) -> Result<Vec<Box<dyn BlockIndex>>, Error> {
    Ok(vec![
        Box::new(block::BlockRows),
        Box::new(tx::TxRows::new(snapshot)?),
        Box::new(evm_tx::EvmTxRows),
        Box::new(nft::NftRows::new(context)),
    ])
}
