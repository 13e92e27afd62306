//! The rows of call frames.

use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHash, CallsByHeight};
use schema::keys::{AccountKey, hash_prefix};
use schema::meta::CallLane;
use schema::postings;
use schema::records;
use store::{Message, Txn};

use crate::Error;
use crate::derive::BlockFrames;

/// Writes the tables of [`schema::internal_tx`]; `before` is the lane after the previous block.
pub(crate) fn write_calls(frames: &BlockFrames, before: &CallLane, txn: &mut Txn<'_>) -> Result<(), Error> {
    let first = before.calls + 1;
    records::put_unread::<Calls>(txn, first, &frames.records);
    let (mut seq, mut hashes) = (first, Vec::new());
    // A transaction without a trace has no row: its first frame would be another transaction's.
    for tx in frames.txs.iter().filter(|tx| !tx.parties.is_empty()) {
        hashes.push((hash_prefix(&tx.hash), seq, tx.parties.len() as u64));
        for parties in &tx.parties {
            for account in parties.iter() {
                txn.push::<AccountCalls>(&AccountKey(account), seq)?;
            }
            seq += 1;
        }
    }
    postings::add::<CallsByHash>(txn, hashes);
    if seq > first {
        let row = BlockCalls { first, count: seq - first };
        txn.put_unread::<CallsByHeight>(&frames.height, &Message(row));
    }
    Ok(())
}
