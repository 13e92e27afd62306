//! The rows of a block.

use chain::record::{BlockRecord, Proposer, with_proposer, write_block_record};
use chain::time::Timestamp;
use schema::block::{Block as Row, BlockEvents, Blocks};
use schema::meta::BlockLane;
use schema::nft::Subject;
use store::{Message, Txn};

use super::BlockIndex;
use crate::Error;
use crate::derive::Block;

/// Writes [`Blocks`] and [`BlockEvents`].
pub(super) struct BlockRows;

impl BlockIndex for BlockRows {
    fn apply(&mut self, block: &Block, before: &BlockLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        // The first indexed block has no predecessor to measure the block time from.
        let since_last = if before.height == 0 {
            0
        } else {
            block.time.millis_since(Timestamp::from_unix_nanos(before.time))
        };
        let mut json = Vec::with_capacity(512);
        write_block_record(
            &mut json,
            &BlockRecord {
                chain_id: &block.chain_id,
                height: block.height,
                hash: &block.hash,
                block_time_ms: since_last,
                timestamp: block.time,
                gas_used: block.gas_used,
                gas_wanted: block.gas_wanted,
                tx_count: block.txs.len() as u64,
                total_fee: &block.fees,
                proposer: &block.proposer,
            },
        );
        let row = Row {
            first_tx: before.txs + 1,
            txs: block.txs.len() as u64,
            first_evm_tx: before.evm_txs + 1,
            evm_txs: block.evm_txs.len() as u64,
            time: block.time.unix_nanos(),
            json,
        };
        txn.put_unread::<Blocks>(&block.height, &Message(row));
        if !block.events.is_empty() {
            txn.put_unread::<BlockEvents>(&block.height, &block.events);
        }
        Ok(())
    }
}

/// Sets the proposer of a block that was stored without its name, because the node did not list its validators.
pub(super) fn set_proposer(
    txn: &mut Txn<'_>,
    height: u64,
    (prefix, asked): (&str, &Subject),
    proposer: &Proposer,
) -> Result<(), Error> {
    let Ok(address) = <[u8; 20]>::try_from(&asked.address[..]) else { return Ok(()) };
    let Some(Message(row)) = txn.get::<Blocks>(&height)? else { return Ok(()) };
    if let Some(json) = with_proposer(&row.json, &Proposer::unnamed(prefix, &address), proposer) {
        txn.put::<Blocks>(&height, &Message(Row { json, ..row }));
    }
    Ok(())
}
