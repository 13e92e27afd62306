//! Verification of node answers against block headers.
//!
//! A header commits to its parent, to the block's transactions and to the signatures under its parent; one block later,
//! the next header commits to the part of the results that all nodes agree on (code, data, gas) and to the state after
//! them. An answer for another height, or a false one, does not reproduce the hashes. No header covers events. Evidence
//! is not checked, because nothing of it is indexed.
//!
//! Each check is independent and names the height and the mismatch. Together they chain: a block whose header is
//! checked and whose successor has it as parent is the block that the successor's validators built on.

mod receipts;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use thiserror::Error;

use crate::comet::{self, BlockAnswer, ResultsAnswer, TxResult};
use crate::hash::{Hash, to_hex, tx_hash};
use crate::header::BadMember;
use crate::merkle::{leaf, root};
use crate::wire::{push_bytes_field, push_varint_field};

pub use receipts::{Bound, EvmChain, Executed, WrongReceipts, check_receipts};

/// Root over the transactions of a block (`header.data_hash`): leaves are the transaction hashes.
pub fn data_hash<T: AsRef<[u8]>>(raw_txs: &[T]) -> Hash {
    let leaves: Vec<Hash> = raw_txs.iter().map(|raw| leaf(&tx_hash(raw.as_ref()))).collect();
    root(&leaves)
}

/// Root over the results of a block, as the *next* header's `last_results_hash` has it.
pub fn results_hash(results: &[TxResult<'_>]) -> Result<Hash, base64::DecodeError> {
    let leaves: Result<Vec<Hash>, _> =
        results.iter().map(|result| Ok(leaf(&deterministic(result)?))).collect();
    Ok(root(&leaves?))
}

/// The header is not the one that the answer's block id names.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongHeader {
    /// It hashes to something else.
    #[error(
        "the header of block {height} hashes to {computed}, its block_id is {named}: ask another endpoint"
    )]
    Hash {
        /// Height of the block.
        height: u64,
        /// The recomputed hash.
        computed: String,
        /// `block_id.hash`.
        named: String,
    },
    /// A field cannot be hashed.
    #[error("the header of block {height} cannot be hashed, {source}: ask another endpoint")]
    Member {
        /// Height of the block.
        height: u64,
        /// Which field.
        source: BadMember,
    },
}

/// Checks that the answer's header hashes to the answer's `block_id.hash`.
pub fn check_header(block: &BlockAnswer<'_>) -> Result<(), WrongHeader> {
    let height = block.header.height;
    let computed = block.full_header.hash().map_err(|source| WrongHeader::Member { height, source })?;
    if computed == block.hash {
        return Ok(());
    }
    Err(WrongHeader::Hash { height, computed: to_hex(&computed), named: to_hex(&block.hash) })
}

/// The block does not follow the block that is known before it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the parent of block {height} is {parent}, the block before it is {previous}: ask another endpoint, or the chain forked"
)]
pub struct WrongParent {
    /// Height of the block.
    pub height: u64,
    /// `header.last_block_id.hash`; empty if it has none.
    pub parent: String,
    /// Hash of the block before.
    pub previous: String,
}

/// Checks that the block's parent is the block with this hash.
pub fn check_parent(previous: &Hash, block: &BlockAnswer<'_>) -> Result<(), WrongParent> {
    match &block.header.last_block_hash {
        Some(parent) if parent == previous => Ok(()),
        other => Err(WrongParent {
            height: block.header.height,
            parent: other.as_ref().map(to_hex).unwrap_or_default(),
            previous: to_hex(previous),
        }),
    }
}

/// The transactions are not those that the header commits to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the transactions of block {height} do not hash to its data_hash: ask another endpoint")]
pub struct WrongTxs {
    /// Height of the block.
    pub height: u64,
}

/// Checks a block's transactions, decoded by [`BlockAnswer::raw_txs`], against its own header.
///
/// A header without `data_hash` commits to nothing and fits no transactions, as in `CometBFT`.
pub fn check_txs<T: AsRef<[u8]>>(block: &BlockAnswer<'_>, raw_txs: &[T]) -> Result<(), WrongTxs> {
    if block.header.data_hash == Some(data_hash(raw_txs)) {
        return Ok(());
    }
    Err(WrongTxs { height: block.header.height })
}

/// The signatures are not those that the header commits to.
#[derive(Debug, Error)]
pub enum WrongLastCommit {
    /// They hash to something else.
    #[error(
        "the signatures in last_commit of block {height} do not hash to its last_commit_hash: ask another endpoint"
    )]
    Hash {
        /// Height of the block that carries them.
        height: u64,
    },
    /// One cannot be hashed.
    #[error("block {height} has a signature that cannot be hashed, {source}: ask another endpoint")]
    Member {
        /// Height of the block that carries it.
        height: u64,
        /// Which member.
        source: BadMember,
    },
    /// There are none to be read.
    #[error("block {height}: {source}: ask another endpoint")]
    Unreadable {
        /// Height of the block that carries them.
        height: u64,
        /// What is wrong.
        source: comet::Error,
    },
}

/// Checks the signatures that a block carries against its own header.
pub fn check_last_commit(block: &BlockAnswer<'_>) -> Result<(), WrongLastCommit> {
    let height = block.header.height;
    let commit = block.last_commit().map_err(|source| WrongLastCommit::Unreadable { height, source })?;
    let computed = commit.hash().map_err(|source| WrongLastCommit::Member { height, source })?;
    if hex::decode(&*block.full_header.last_commit_hash).is_ok_and(|named| named == computed) {
        return Ok(());
    }
    Err(WrongLastCommit::Hash { height })
}

/// What the results of a block claim, to be kept until the next header proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Height of the results.
    pub height: u64,
    /// [`results_hash`].
    pub results_hash: Hash,
    /// The state after the block, if the answer has it.
    pub app_hash: Option<Vec<u8>>,
}

/// The results are not those that the next header commits to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongResults {
    /// Code, data or gas of some transaction.
    #[error(
        "the results of block {height} do not hash to last_results_hash of block {}: ask another endpoint", .height + 1
    )]
    Results {
        /// Height of the results.
        height: u64,
    },
    /// The state after the block.
    #[error("app_hash in the results of block {height} is not the one in header {}: ask another endpoint", .height + 1)]
    App {
        /// Height of the results.
        height: u64,
    },
    /// A member cannot be hashed.
    #[error("{member} in the results of block {height} is not base64 ({source}): ask another endpoint")]
    NotBase64 {
        /// Height of the results.
        height: u64,
        /// Which member.
        member: &'static str,
        /// Where it breaks.
        source: base64::DecodeError,
    },
    /// The header is not the next one: it proves nothing about these results.
    #[error("the results of block {height} were held against header {header}, expected the next one")]
    OtherHeader {
        /// Height of the results.
        height: u64,
        /// Height of the header.
        header: u64,
    },
}

impl Claims {
    /// What these results claim.
    pub fn of(results: &ResultsAnswer<'_>) -> Result<Self, WrongResults> {
        let height = results.height;
        let wrong = |member| move |source| WrongResults::NotBase64 { height, member, source };
        let app_hash = results.app_hash.as_deref().map(|text| BASE64.decode(text.as_bytes())).transpose();
        Ok(Self {
            height,
            results_hash: results_hash(&results.txs_results).map_err(wrong("txs_results[].data"))?,
            app_hash: app_hash.map_err(wrong("app_hash"))?,
        })
    }
}

/// What a header says about the block before it; kept where the header itself is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitments {
    /// Height of the header.
    pub height: u64,
    /// `last_results_hash`.
    pub last_results_hash: Option<Hash>,
    /// `app_hash`; empty if it is not hex.
    pub app_hash: Vec<u8>,
}

impl Commitments {
    /// What the header of `block` says; it must itself have passed [`check_header`].
    pub fn of(block: &BlockAnswer<'_>) -> Self {
        Self {
            height: block.header.height,
            last_results_hash: block.header.last_results_hash,
            app_hash: hex::decode(&*block.full_header.app_hash).unwrap_or_default(),
        }
    }

    /// Checks the results of the block before.
    pub fn check(&self, claims: &Claims) -> Result<(), WrongResults> {
        let height = claims.height;
        if self.height.checked_sub(1) != Some(height) {
            return Err(WrongResults::OtherHeader { height, header: self.height });
        }
        if self.last_results_hash != Some(claims.results_hash) {
            return Err(WrongResults::Results { height });
        }
        match &claims.app_hash {
            Some(claimed) if self.app_hash != *claimed => Err(WrongResults::App { height }),
            _ => Ok(()),
        }
    }
}

/// Checks results against the header after theirs, which must itself have passed [`check_header`].
pub fn check_results(claims: &Claims, next: &BlockAnswer<'_>) -> Result<(), WrongResults> {
    Commitments::of(next).check(claims)
}

/// The protobuf of a result's fields that all nodes agree on (`CometBFT` `types.deterministicExecTxResult`).
fn deterministic(result: &TxResult<'_>) -> Result<Vec<u8>, base64::DecodeError> {
    let mut out = Vec::new();
    push_varint_field(&mut out, 1, u64::from(result.code));
    push_bytes_field(&mut out, 2, &result.data_bytes()?);
    // Protobuf writes an int64 as the varint of its two's complement.
    push_varint_field(&mut out, 5, result.gas_wanted.cast_unsigned());
    push_varint_field(&mut out, 6, result.gas_used.cast_unsigned());
    Ok(out)
}
