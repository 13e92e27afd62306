//! The rows of call frames.

use schema::internal_tx::{AccountCalls, BlockCalls, Calls, CallsByHash, CallsByHeight};
use schema::keys::{Owner, hash_prefix};
use schema::meta::CallLane;
use store::{Message, Txn};

use super::CallIndex;
use crate::Error;
use crate::derive::BlockFrames;

/// Writes the tables of [`schema::internal_tx`].
pub(super) struct CallRows;

impl CallIndex for CallRows {
    fn apply(&mut self, frames: &BlockFrames, before: &CallLane, txn: &mut Txn<'_>) -> Result<(), Error> {
        let first = before.calls + 1;
        let mut seq = first;
        // A transaction without a trace has no row: its first frame would be another transaction's.
        for tx in frames.txs.iter().filter(|tx| !tx.parties.is_empty()) {
            txn.append::<CallsByHash>(&(hash_prefix(&tx.hash), seq), &(tx.parties.len() as u64));
            let mut chunk_at = seq;
            for chunk in &tx.chunks {
                txn.append::<Calls>(&chunk_at, &chunk.payload);
                chunk_at += chunk.frames;
            }
            for (seq, parties) in (seq..).zip(&tx.parties) {
                for account in parties.iter() {
                    txn.push::<AccountCalls>(&Owner(account), seq)?;
                }
            }
            seq = chunk_at;
        }
        if seq > first {
            let row = BlockCalls { first, count: seq - first };
            txn.append::<CallsByHeight>(&frames.height, &Message(row));
        }
        Ok(())
    }
}
