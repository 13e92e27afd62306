//! Lookup of the height of a sequence, in a database whose block rows may be damaged. Memory: 24 bytes per block.
//!
//! # Invariants
//!
//! The returned height may be below the true one, but never above it, provided that at least one block row up to
//! there is intact.

use store::{Bounds, Message, Snapshot, Table as _};

use crate::Error;
use crate::block::Blocks;
use crate::internal_tx::CallsByHeight;

/// The first sequences of blocks.
#[derive(Clone, Debug)]
pub struct Heights {
    start: u64,
    /// Pairs of the greatest first sequence up to a height, and the height.
    txs: Vec<(u64, u64)>,
    evm_txs: Vec<(u64, u64)>,
    calls: Vec<(u64, u64)>,
}

impl Heights {
    /// Reads every block's row; skips those that do not decode.
    pub fn read(snapshot: &dyn Snapshot, start: u64) -> Result<Self, Error> {
        let mut heights = Self { start, txs: Vec::new(), evm_txs: Vec::new(), calls: Vec::new() };
        store::for_each_row(snapshot, Blocks::SPEC, Bounds::all(), |key, value| {
            if let Ok((height, Message(block))) = store::table::decode_row::<Blocks>(key, value) {
                push(&mut heights.txs, block.first_tx, height);
                push(&mut heights.evm_txs, block.first_evm_tx, height);
            }
            Ok::<(), Error>(())
        })?;
        store::for_each_row(snapshot, CallsByHeight::SPEC, Bounds::all(), |key, value| {
            if let Ok((height, Message(calls))) = store::table::decode_row::<CallsByHeight>(key, value) {
                push(&mut heights.calls, calls.first, height);
            }
            Ok::<(), Error>(())
        })?;
        Ok(heights)
    }

    /// The height of a Cosmos transaction.
    pub fn of_tx(&self, seq: u64) -> u64 {
        self.of(&self.txs, seq)
    }

    /// The height of an EVM transaction.
    pub fn of_evm_tx(&self, seq: u64) -> u64 {
        self.of(&self.evm_txs, seq)
    }

    /// The height of a call frame.
    pub fn of_call(&self, seq: u64) -> u64 {
        self.of(&self.calls, seq)
    }

    fn of(&self, firsts: &[(u64, u64)], seq: u64) -> u64 {
        let beyond = firsts.partition_point(|(first, _)| *first <= seq);
        let height = beyond.checked_sub(1).and_then(|last| firsts.get(last)).map(|(_, height)| *height);
        height.unwrap_or(self.start).max(self.start)
    }
}

fn push(firsts: &mut Vec<(u64, u64)>, first: u64, height: u64) {
    let greatest = firsts.last().map_or(first, |(before, _)| first.max(*before));
    firsts.push((greatest, height));
}
