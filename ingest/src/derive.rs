//! Raw node answers of one height → everything that its indexes need. Pure: no IO, no clock, no stored state.
//!
//! This is where the time of an ingest goes (parsing, rendering, compressing), so it runs for several heights at once;
//! what must be in order is left to the indexes.

mod block;
mod frames;
mod worker_state;

use std::fmt::Display;

use bytes::Bytes;
use chain::erc20::Erc20Event;
use chain::proof::{Claims, Commitments};
use chain::record::Proposer;
use chain::{Account, Timestamp};
use schema::payload::Payload;

use crate::nft::{Answers, NftAt};

pub use self::block::{BlockAnswers, Rendered, Unrendered, block, confirms};
pub use self::frames::{Retraced, frames};
pub use self::worker_state::{Rules, WorkerPool, WorkerState};

/// An answer that is whole and cannot be right, or not yet: the same question is to be asked again.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AskAgain(String);

impl AskAgain {
    pub(crate) fn because(reason: impl Display) -> Self {
        Self(reason.to_string())
    }
}

/// Why a height could not be derived.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The answers are not right.
    #[error(transparent)]
    AskAgain(#[from] AskAgain),
    /// Fewer receipts than there must be: not indexed yet, or pruned.
    #[error("{0}")]
    ReceiptsMissing(String),
    /// This answer contradicts what binds it, for the given reason: whoever gave it is not to be believed.
    #[error("{1}")]
    Invalid(Part, String),
    /// Transactions that our descriptors do not cover.
    #[error("{} transactions cannot be rendered", .0.len())]
    Unrendered(Vec<Unrendered>),
    /// EVM transactions, by hash, that the node failed to trace within the block.
    #[error("{} transactions are not traced", .0.len())]
    Untraced(Vec<[u8; 32]>),
}

/// Which answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `/block`.
    Block,
    /// `/block_results`.
    Results,
    /// `eth_getBlockReceipts`.
    Receipts,
}

/// Who told a block.
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
    /// The hash of the block before it, as its header names it; none at the chain's first height.
    pub parent: Option<[u8; 32]>,
    /// What its results come to, as the next header has to say; nothing if it is not to be verified.
    pub claims: Option<Claims>,
    /// What its header says about the results of the block before.
    pub about_previous: Commitments,
    /// The `/block` answer, where the signatures in it are to be verified.
    pub answer: Option<Bytes>,
    /// Who told it, where that is known.
    pub origins: Option<BlockOrigins>,
    /// The chain that its header names.
    pub chain_id: String,
    /// Header time.
    pub time: Timestamp,
    /// Gas used by its transactions, failed ones included.
    pub gas_used: i128,
    /// Gas wanted by its transactions.
    pub gas_wanted: i128,
    /// Declared fees by denom: sorted, summed, without zeros; amounts in base units.
    pub fees: Vec<(String, String)>,
    /// Consensus address of who proposed it.
    pub proposer_address: [u8; 20],
    /// Who that is; looked up after deriving.
    pub proposer: Proposer,
    /// Its Cosmos transactions, in order.
    pub txs: Vec<Tx>,
    /// Its EVM transactions, in order.
    pub evm_txs: Vec<EvmTx>,
    /// What happened to NFTs, in order.
    pub nfts: Vec<NftAt>,
    /// What the node says about them; looked up after deriving.
    pub answers: Answers,
    /// What happened to balances of ERC-20s, in order.
    pub erc20: Vec<Erc20Event>,
    /// What the state after it passes and no state before, where a transaction gives that.
    pub probe: Option<node::Probe>,
}

/// A Cosmos transaction.
#[derive(Debug)]
pub struct Tx {
    /// SHA-256 of its bytes.
    pub hash: [u8; 32],
    /// Its record.
    pub payload: Payload,
    /// The accounts that it involves (`indexing.md` §5.1), signers included, each once.
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
    /// Its record.
    pub payload: Payload,
    /// The accounts that it involves (`indexing.md` §6.2), each once.
    pub involved: Vec<Account>,
    /// Who sent it; the zero address for a Cosmos transaction that the node shows as an EVM one.
    pub from: Account,
}

/// The call frames of one block.
#[derive(Debug)]
pub struct BlockFrames {
    /// The block's height.
    pub height: u64,
    /// Its traced transactions, in order.
    pub txs: Vec<TxFrames>,
}

/// The call frames of one EVM transaction, depth first.
#[derive(Debug)]
pub struct TxFrames {
    /// The transaction's EVM hash.
    pub hash: [u8; 32],
    /// The frames' records.
    pub chunks: Vec<Chunk>,
    /// For each frame, the accounts that call or are called.
    pub parties: Vec<Parties>,
}

/// Some consecutive frames.
#[derive(Debug)]
pub struct Chunk {
    /// How many.
    pub frames: u64,
    /// Their records.
    pub payload: Payload,
}

/// Caller and callee of a frame; one of them where both are the same or one is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parties(pub [Option<Account>; 2]);

impl Parties {
    /// Each account once.
    pub fn iter(&self) -> impl Iterator<Item = Account> {
        let [from, to] = self.0;
        from.into_iter().chain(to.filter(|to| Some(*to) != from))
    }
}
