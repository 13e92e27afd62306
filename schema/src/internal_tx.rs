//! Internal transactions: the call frames of EVM transactions, and their indexes.

use store::{Access, List, Message, Table, TableSpec};

use crate::keys::{AccountKey, HashPrefix};
use crate::payload::Payload;
use crate::postings::Postings;
use crate::records::Records;

/// Call frames, in chunks, which have frames of several transactions.
///
/// | seq of the chunk's first frame (8, BE) | → compressed records ([`crate::payload::Chunk`])
#[derive(Debug)]
pub struct Calls;

impl Table for Calls {
    const SPEC: &'static TableSpec = &TableSpec { name: "internal_tx", tag: 0x30, access: Access::Append };
    type Key = u64;
    type Value = Payload;
}

impl Records for Calls {
    /// Frames are small and often read together.
    const MOST: usize = 32;
}

/// The frames of a transaction, by its EVM hash: the sequence of the first one, with their number.
///
/// | first 8 bytes of the hash | → sequences with their numbers ([`Postings`])
#[derive(Debug)]
pub struct CallsByHash;

impl Table for CallsByHash {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "internal_tx_by_hash", tag: 0x31, access: Access::Point };
    type Key = HashPrefix;
    type Value = Postings;
}

/// The frames of a block. Blocks without frames have no row.
///
/// | height (8, BE) | → [`BlockCalls`] (protobuf)
#[derive(Debug)]
pub struct CallsByHeight;

impl Table for CallsByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "internal_tx_by_height", tag: 0x32, access: Access::Scan };
    type Key = u64;
    type Value = Message<BlockCalls>;
}

/// The sequences of a block's frames.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BlockCalls {
    /// Sequence of the first frame.
    #[prost(uint64, tag = "1")]
    pub first: u64,
    /// Number of frames.
    #[prost(uint64, tag = "2")]
    pub count: u64,
}

/// Frames that an account calls or is called in, oldest first; a frame that calls itself is one row.
///
/// | account (1 + 20 or 32) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct AccountCalls;

impl List for AccountCalls {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "account_internal_tx", tag: 0x33, access: Access::Scan };
    type Owner = AccountKey;
}
