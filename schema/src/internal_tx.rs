//! Internal transactions: the call frames of EVM transactions, and their indexes.

use store::{Bounds, List as _, Message, Order, Snapshot, Table as _, TableSpec};

use crate::Error;
use crate::keys::AccountKey;
use crate::payload::Payload;
use crate::records::Records;

/// Every table of this file.
pub const TABLES: [&TableSpec; 3] = [Calls::SPEC, CallsByHeight::SPEC, AccountCalls::SPEC];

/// Its list.
pub(crate) const LISTS: [&TableSpec; 1] = [AccountCalls::SPEC];

/// The frames of the block at `height`; `None` if it has none, or is not indexed.
pub fn of_block(snapshot: &dyn Snapshot, height: u64) -> Result<Option<BlockCalls>, Error> {
    let row = store::table::read::<CallsByHeight>(snapshot, &height)?;
    Ok(row.map(|Message(calls)| calls))
}

/// The last block before `height` that has frames.
pub fn last_block_before(snapshot: &dyn Snapshot, height: u64) -> Result<Option<u64>, Error> {
    let end = height.to_be_bytes();
    let bounds = Bounds { start: &[], end: Some(&end) };
    let last = snapshot.scan(CallsByHeight::SPEC, bounds, Order::Desc, 1)?;
    let row = last.first().map(|(key, value)| store::table::decode_row::<CallsByHeight>(key, value));
    Ok(row.transpose()?.map(|(height, _)| height))
}

store::tables! {
    /// Call frames, in chunks, which have frames of several transactions.
    ///
    /// | seq of the chunk's first frame (8, BE) | → compressed records ([`crate::payload::Chunk`])
    pub table Calls("internal_tx", 0x30, Append): u64 => Payload;
}

impl Records for Calls {
    /// Frames are small and often read together.
    const MAX_RECORDS: usize = 32;
}

store::tables! {
    /// The frames of a block. Blocks without frames have no row. Those of a transaction are found through its EVM record, which
    /// has the height.
    ///
    /// | height (8, BE) | → [`BlockCalls`] (protobuf)
    pub table CallsByHeight("internal_tx_by_height", 0x32, Scan): u64 => Message<BlockCalls>;
}

/// The sequences of a block's frames.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct BlockCalls {
    /// Sequence of the first frame.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// Number of frames of each transaction, in the order of the block. Transactions without frames, which the node could
    /// not trace, are not among them.
    #[prost(uint64, repeated, tag = "2")]
    pub counts: Vec<u64>,
}

impl BlockCalls {
    /// Number of frames of the block.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

store::tables! {
    /// Frames that an account calls or is called in, oldest first; a frame that calls itself is one row.
    ///
    /// | account (1 + 20 or 32) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list AccountCalls("account_internal_tx", 0x33): AccountKey;
}
