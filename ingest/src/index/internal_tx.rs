//! The rows of call frames.

use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHeight};
use schema::keys::AccountKey;
use schema::meta::CallLane;
use schema::records;
use store::{Message, Txn};

use crate::Error;
use crate::derive::BlockFrames;

/// Writes the tables of [`schema::internal_tx`]; `before` is the lane after the previous block.
pub(crate) fn write_calls(frames: &BlockFrames, before: &CallLane, txn: &mut Txn<'_>) -> Result<(), Error> {
    let first = before.calls + 1;
    records::put_unread::<Calls>(txn, first, &frames.records);
    for (seq, parties) in (first..).zip(frames.txs.iter().flatten()) {
        for account in parties.iter() {
            txn.push::<AccountCalls>(&AccountKey(account), seq)?;
        }
    }
    let counts: Vec<u64> = frames.txs.iter().map(|tx| tx.len() as u64).filter(|frames| *frames > 0).collect();
    if !counts.is_empty() {
        txn.put_unread::<CallsByHeight>(&frames.height, &Message(BlockCalls { first, counts }));
    }
    Ok(())
}
