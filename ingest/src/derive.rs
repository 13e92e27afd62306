//! Derivation of one height: raw node answers → the input of its indexes. Pure: no IO, no clock, no stored state.
//!
//! Most CPU time of an ingest is spent here (parsing, rendering, compression), so several heights are derived in
//! parallel. Work that depends on the order of heights belongs to the indexes.

mod block;
mod frames;
mod worker_state;

use std::fmt::Display;

use bytes::Bytes;
use chain::comet::proof::{Claims, Commitments};
use chain::evm::erc20::Erc20Event;
use chain::record::Proposer;
use chain::{Account, Timestamp};
use schema::payload::Packed;

use crate::nft::{NftAt, Replies};

pub(crate) use self::block::erc20_events;
pub use self::block::{BlockResponses, EvmResponse, Rendered, Unrendered, block, confirms};
pub(crate) use self::frames::is_readable;
pub use self::frames::{Call, Retraced, Traced, frames};
pub use self::worker_state::{Rules, WorkerPool, WorkerState};

/// The reason why a height could not be derived.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A well-formed answer is wrong or premature: the request must be repeated.
    #[error("{0}")]
    AskAgain(String),
    /// Fewer receipts than required: not indexed yet, or pruned.
    #[error("{0}")]
    ReceiptsMissing(String),
    /// This reply contradicts the hashes that commit to it, for the given reason: its endpoint must be distrusted.
    #[error("{1}")]
    Invalid(Part, String),
    /// Transactions that the loaded descriptors do not cover.
    #[error("{} transactions cannot be rendered", .0.len())]
    Unrendered(Vec<Unrendered>),
    /// EVM transactions, by hash, that the node failed to trace within the block.
    #[error("{} transactions are not traced", .0.len())]
    Untraced(Vec<[u8; 32]>),
}

impl Failure {
    pub(crate) fn ask_again(reason: impl Display) -> Self {
        Self::AskAgain(reason.to_string())
    }
}

/// A reply that is part of a block's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `/block`.
    Block,
    /// `/block_results`.
    Results,
    /// `eth_getBlockReceipts`, or `eth_getBlockByNumber` in its place.
    Receipts,
}

/// The endpoints that a block was fetched from.
#[derive(Clone, Debug)]
pub struct BlockOrigins {
    /// The block itself.
    pub block: node::Origin,
    /// Its results.
    pub results: node::Origin,
}

/// A block with all its transactions, ready to be indexed.
#[derive(Debug)]
pub struct Block {
    /// Its height.
    pub height: u64,
    /// Its hash.
    pub hash: [u8; 32],
    /// The parent hash in its header; none at the chain's first height.
    pub parent: Option<[u8; 32]>,
    /// Digests of its results, which the next header must contain; none if results are not verified.
    pub claims: Option<Claims>,
    /// Digests of the previous block's results, as its header states them.
    pub about_previous: Commitments,
    /// The `/block` answer; kept only if signatures are verified.
    pub answer: Option<Bytes>,
    /// The endpoints that it was fetched from, if known.
    pub origins: Option<BlockOrigins>,
    /// The chain in its header.
    pub chain_id: String,
    /// Header time.
    pub time: Timestamp,
    /// Gas used by its transactions, failed ones included.
    pub gas_used: i128,
    /// Gas wanted by its transactions.
    pub gas_wanted: i128,
    /// Declared fees by denom: sorted, summed, without zeros; amounts in base units.
    pub fees: Vec<(String, String)>,
    /// Consensus address of its proposer.
    pub proposer_address: [u8; 20],
    /// The proposer's validator; looked up after deriving.
    pub proposer: Proposer,
    /// True if the node did not say which validator that is: it is asked again.
    pub proposer_is_open: bool,
    /// Its events outside of transactions, as a JSON array; empty if there are none.
    pub events: Vec<u8>,
    /// Its Cosmos transactions, in order.
    pub txs: Vec<Tx>,
    /// The records of its Cosmos transactions, in order.
    pub tx_records: Vec<Packed>,
    /// Its EVM transactions, in order.
    pub evm_txs: Vec<EvmTx>,
    /// The records of its EVM transactions, in order.
    pub evm_tx_records: Vec<Packed>,
    /// How many of them have a type that is unknown here, so that only what is outside of their bytes is indexed.
    pub unknown_types: usize,
    /// Its NFT events, in order.
    pub nfts: Vec<NftAt>,
    /// NFT metadata from the node; fetched after deriving.
    pub answers: Replies,
    /// Its ERC-20 events, in order.
    pub erc20: Vec<Erc20Event>,
    /// A test that the state after this block passes and earlier states fail; `None` if no transaction yields one.
    pub probe: Option<node::Probe>,
}

/// A Cosmos transaction.
#[derive(Debug)]
pub struct Tx {
    /// SHA-256 of its bytes.
    pub hash: [u8; 32],
    /// The accounts that it involves, signers included, each once.
    pub involved: Vec<Account>,
    /// The accounts that signed it, each once.
    pub signers: Vec<Account>,
    /// Its message-type set: distinct names of its top-level messages, sorted.
    pub types: Vec<String>,
}

/// An EVM transaction.
#[derive(Debug)]
pub struct EvmTx {
    /// Its EVM hash.
    pub hash: [u8; 32],
    /// The accounts that it involves, each once.
    pub involved: Vec<Account>,
    /// Its sender; the zero address for a Cosmos transaction that the node shows as an EVM transaction.
    pub from: Account,
}

/// The call frames of one block.
#[derive(Debug)]
pub struct BlockFrames {
    /// The block's height.
    pub height: u64,
    /// For each of its EVM transactions, in order, and each of that one's frames, depth first, the calling and called
    /// accounts. Empty for a block that cannot be traced.
    pub txs: Vec<Vec<Parties>>,
    /// The records of their frames, in order; a chunk may have frames of several transactions.
    pub records: Vec<Packed>,
    /// The errors of those that failed, each with its place among all of them.
    pub errors: Vec<(u64, String)>,
    /// True if the node cannot trace some of its transactions, which have no frames.
    pub untraced: bool,
}

/// Caller and callee of a frame; only one of them if both are the same or one is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parties(pub [Option<Account>; 2]);

impl Parties {
    /// Each account once.
    pub fn iter(&self) -> impl Iterator<Item = Account> {
        let [from, to] = self.0;
        from.into_iter().chain(to.filter(|to| Some(*to) != from))
    }
}
