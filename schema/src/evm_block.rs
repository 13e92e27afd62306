//! The optional index `blocks`: headers of EVM blocks, which the node computes.
//!
//! It is the only index that needs a node: a header is no record, and follows from nothing that is stored.

use chain::U256;
use chain::evm::header::{Bloom, Contents, EMPTY_ROOT, Header, OfComet, union_of_blooms};
use chain::evm::{Log, Receipt};
use store::{Message, Snapshot, Table as _};

use crate::Error;
use crate::block::{Block, Blocks, hash_at};
use crate::evm_tx::EvmTxs;
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::index_writer::Headers;
use crate::keys::{HashPrefix, hash_prefix};
use crate::payload::Codec;
use crate::postings::Postings;
use crate::records::damaged;

/// The index.
pub const BLOCKS: Index = Index {
    name: "blocks",
    version: 1,
    tables: &[EvmBlocks::SPEC, EvmBlockByHash::SPEC],
    replies: &[],
    input: Input::Headers,
    needs_evm: true,
    rows,
};

store::tables! {
    /// The headers of EVM blocks.
    ///
    /// | height (8, BE) | → [`EvmBlock`] (protobuf)
    pub table EvmBlocks("evm_block", 0x25, Scan): u64 => Message<EvmBlock>;

    /// EVM blocks by hash.
    ///
    /// | first 8 bytes of the hash | → heights, each with a 0 ([`Postings`])
    pub table EvmBlockByHash("evm_block_by_hash", 0x26, Hash): HashPrefix => Postings;
}

/// A header: what does not follow from the records of the block.
#[derive(Clone, PartialEq, serde::Serialize, prost::Message)]
pub struct EvmBlock {
    /// Its hash.
    #[prost(bytes = "vec", tag = "1")]
    pub hash: Vec<u8>,
    /// The hash of the header before, which is that of the row before unless the node has rebuilt its EVM index between them.
    #[prost(bytes = "vec", tag = "2")]
    pub parent: Vec<u8>,
    /// The root of its transactions; absent for that of none.
    #[prost(bytes = "vec", tag = "3")]
    pub tx_root: Vec<u8>,
    /// The root of its receipts; absent for that of none.
    #[prost(bytes = "vec", tag = "4")]
    pub receipts_root: Vec<u8>,
    /// Its gas limit.
    #[prost(uint64, tag = "5")]
    pub gas_limit: u64,
    /// The gas used by its Cosmos transactions.
    #[prost(uint64, tag = "6")]
    pub gas_used: u64,
    /// Its base fee per gas, big-endian without leading zeros.
    #[prost(bytes = "vec", tag = "7")]
    pub base_fee: Vec<u8>,
    /// The account of its proposer; absent on a minievm, as are the next ones.
    #[prost(bytes = "vec", tag = "8")]
    pub miner: Vec<u8>,
    /// The root of the state before it.
    #[prost(bytes = "vec", tag = "9")]
    pub state_root: Vec<u8>,
    /// Its size in bytes.
    #[prost(uint64, tag = "10")]
    pub size: u64,
    /// It has the members of Cancun and Prague.
    #[prost(bool, tag = "11")]
    pub is_prague: bool,
}

impl EvmBlock {
    /// The row of a header.
    pub fn of(header: &Header) -> Self {
        let root = |root: &[u8; 32]| if *root == EMPTY_ROOT { Vec::new() } else { root.to_vec() };
        Self {
            hash: header.hash.to_vec(),
            parent: header.parent.to_vec(),
            tx_root: root(&header.tx_root),
            receipts_root: root(&header.receipts_root),
            gas_limit: header.gas_limit,
            gas_used: header.gas_used,
            base_fee: header.base_fee.to_be_bytes_trimmed_vec(),
            miner: header.of_comet.map(|members| members.miner.to_vec()).unwrap_or_default(),
            state_root: header.of_comet.map(|members| members.state_root.to_vec()).unwrap_or_default(),
            size: header.of_comet.map_or(0, |members| members.size),
            is_prague: header.of_comet.is_some_and(|members| members.is_prague),
        }
    }

    /// The header of the block at `height`.
    pub fn header(&self, height: u64) -> Result<Header, Error> {
        let hash = |bytes: &[u8]| {
            <[u8; 32]>::try_from(bytes).map_err(|_| damaged_header(height, "a hash has not 32 bytes"))
        };
        let root = |bytes: &[u8]| if bytes.is_empty() { Ok(EMPTY_ROOT) } else { hash(bytes) };
        Ok(Header {
            hash: hash(&self.hash)?,
            parent: hash(&self.parent)?,
            tx_root: root(&self.tx_root)?,
            receipts_root: root(&self.receipts_root)?,
            gas_limit: self.gas_limit,
            gas_used: self.gas_used,
            base_fee: U256::try_from_be_slice(&self.base_fee).unwrap_or(U256::MAX),
            of_comet: match &self.miner[..] {
                [] => None,
                miner => Some(OfComet {
                    miner: miner
                        .try_into()
                        .map_err(|_| damaged_header(height, "an address has not 20 bytes"))?,
                    state_root: hash(&self.state_root)?,
                    size: self.size,
                    is_prague: self.is_prague,
                }),
            },
        })
    }
}

/// The part of the block at `height` that its header follows from: its time in seconds, the blooms of its receipts, the hashes
/// of its EVM transactions. `None` if the block is not stored.
pub fn summary(snapshot: &dyn Snapshot, codec: &Codec, height: u64) -> Result<Option<Summary>, Error> {
    let Some(Message(block)) = store::table::read::<Blocks>(snapshot, &height)? else { return Ok(None) };
    let (mut bloom, mut hashes, mut block_hash) = ([0; 256], Vec::new(), None);
    StoredBlock::stored(height, &block, snapshot, codec, None).evm_txs(|seq, record| {
        let receipt: Receipt<'_> =
            serde_json::from_slice(record).map_err(|error| damaged::<EvmTxs>(seq, &error.to_string()))?;
        hashes.push(receipt.hash().map_err(|error| damaged::<EvmTxs>(seq, &error.to_string()))?);
        block_hash = Log::topic_bytes(&receipt.block_hash);
        let bits = union_of_blooms([&receipt]);
        bloom.iter_mut().zip(bits).for_each(|(union, bits)| *union |= bits);
        Ok(())
    })?;
    Ok(Some(Summary { height, timestamp: seconds(&block), bloom, hashes, block_hash }))
}

/// What a header follows from.
#[derive(Clone, Debug)]
pub struct Summary {
    height: u64,
    timestamp: u64,
    bloom: Bloom,
    /// The hashes of its transactions, in order.
    pub hashes: Vec<[u8; 32]>,
    /// The hash of the EVM block in its receipts, if it has any.
    pub block_hash: Option<[u8; 32]>,
}

impl Summary {
    /// What the hash of the header covers.
    pub fn contents(&self) -> Contents<'_> {
        Contents { number: self.height, timestamp: self.timestamp, bloom: &self.bloom }
    }
}

/// The time of a block as its EVM header has it.
pub fn seconds(block: &Block) -> u64 {
    u64::try_from(block.time.div_euclid(1_000_000_000)).unwrap_or_default()
}

fn damaged_header(height: u64, reason: &str) -> Error {
    Error::Record { table: EvmBlocks::SPEC.name, key: height.to_string(), reason: reason.to_owned() }
}

/// The stored headers of the blocks `from` to `to`, each with the hash of its content.
pub fn stored(snapshot: &dyn Snapshot, codec: &Codec, from: u64, to: u64) -> Result<Headers, Error> {
    let mut headers = Vec::new();
    for height in from..=to {
        let row = store::table::read::<EvmBlocks>(snapshot, &height)?;
        let Message(row) = row.ok_or_else(|| damaged_header(height, "the header is missing"))?;
        let header = row.header(height)?;
        let summary = summary(snapshot, codec, height)?
            .ok_or_else(|| damaged_header(height, "the block is missing"))?;
        let computed = match header.of_comet {
            Some(_) => hash_at(snapshot, height)?.unwrap_or_default(),
            None => header.computed_hash(&summary.contents()),
        };
        if computed != header.hash {
            return Err(damaged_header(height, "the header has another hash than its content"));
        }
        headers.push(header);
    }
    Ok(Headers { first: from, headers })
}

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    // The writer asks for the rows of blocks with a header only.
    let header = block.header().ok_or_else(|| damaged_header(block.height, "the header is missing"))?;
    rows.put::<EvmBlocks>(&block.height, &Message(EvmBlock::of(header)));
    rows.append::<EvmBlockByHash>(&hash_prefix(&header.hash), &Postings::one(block.height, 0));
    Ok(())
}
