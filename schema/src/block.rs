//! Blocks by height.

use store::{Message, Snapshot, Table as _};

use crate::Error;

store::tables! {
    /// A block.
    ///
    /// | height (8, BE) | → [`Block`] (protobuf)
    ///
    /// Neighbouring blocks differ little, so they are compressed together in the table's blocks, not one by one.
    pub table Blocks("block", 0x10, Scan): u64 => Message<Block>;

    /// The events of a block outside of its transactions, as the node gives them; no row if there are none.
    ///
    /// | height (8, BE) | → a JSON array of events
    pub table BlockEvents("block_event", 0x16, Scan): u64 => Vec<u8>;
}

/// A block's record and its range of sequences. The transactions of a block have consecutive sequences, so the first
/// one and the count replace an index by height.
#[derive(Clone, PartialEq, serde::Serialize, prost::Message)]
pub struct Block {
    /// Sequence of the block's first Cosmos transaction (of the next one to come if the block has none).
    #[prost(uint64, tag = "1")]
    pub first_tx: u64,
    /// Number of Cosmos transactions, undecodable ones included.
    #[prost(uint64, tag = "2")]
    pub txs: u64,
    /// Sequence of the block's first EVM transaction, like `first_tx`.
    #[prost(uint64, tag = "3")]
    pub first_evm_tx: u64,
    /// Number of EVM transactions.
    #[prost(uint64, tag = "4")]
    pub evm_txs: u64,
    /// Header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "5")]
    pub time: i64,
    /// The JSON record that the API returns.
    #[serde(serialize_with = "crate::json::record")]
    #[prost(bytes = "vec", tag = "6")]
    pub json: Vec<u8>,
}

/// The hash of the block at `height`; `None` if it is not indexed.
pub fn hash_at(snapshot: &dyn Snapshot, height: u64) -> Result<Option<[u8; 32]>, Error> {
    /// The member of the record that is needed here.
    #[derive(serde::Deserialize)]
    struct Hashed<'a> {
        hash: &'a str,
    }
    let Some(Message(block)) = store::table::read::<Blocks>(snapshot, &height)? else { return Ok(None) };
    let hash = serde_json::from_slice::<Hashed<'_>>(&block.json).map_err(|error| error.to_string()).and_then(
        |block| {
            let mut hash = [0; 32];
            hex::decode_to_slice(block.hash, &mut hash).map_err(|error| format!("its hash: {error}"))?;
            Ok(hash)
        },
    );
    let invalid = |reason| Error::Record { table: Blocks::SPEC.name, key: height.to_string(), reason };
    hash.map(Some).map_err(invalid)
}
