//! Verification of node answers against block headers.
//!
//! A header commits to its parent, to the block's transactions and to the signatures under its parent; one block later,
//! the next header commits to the part of the results that all nodes agree on (code, data, gas) and to the state after
//! them. An answer for another height, or a false one, does not reproduce the hashes. No header covers events. Evidence
//! is not checked, because it is not indexed.
//! Each check is independent and reports the height and the mismatch. Together they link blocks: a block with a checked
//! header, whose successor has it as parent, is the block on which the successor's validators built.
//! header and a successor that has it as parent is the block that the successor's validators built on.

mod receipts;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cosmrs::proto::prost::Message as _;
use cosmrs::proto::tendermint::v0_38::abci::ExecTxResult;
use thiserror::Error;

use crate::comet::header::{commit_hash, header_hash, merkle_root};
use crate::comet::{self, BlockResponse, ResultsResponse, TxResult};
use crate::hash::{Hash, to_hex, tx_hash};

pub use receipts::{
    Bound, DerivedReceipts, EthereumBlock, EvmChain, Executed, NamedReceipts, WrongReceipts, base_fee,
    check_receipts, derive_ethereum_receipts, derive_receipts, unknown_types,
};

/// Root over the transactions of a block (`header.data_hash`): leaves are the transaction hashes.
pub fn data_hash<T: AsRef<[u8]>>(raw_txs: &[T]) -> Hash {
    let leaves: Vec<Hash> = raw_txs.iter().map(|raw| tx_hash(raw.as_ref())).collect();
    merkle_root(&leaves)
}

/// Root over the results of a block, as the *next* header's `last_results_hash` has it.
pub fn results_hash(results: &[TxResult<'_>]) -> Result<Hash, base64::DecodeError> {
    let leaves: Result<Vec<Vec<u8>>, _> = results.iter().map(deterministic).collect();
    Ok(merkle_root(&leaves?))
}

/// The hash of the header differs from the answer's block id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the header of block {height} hashes to {computed}, its block_id is {named}: ask another endpoint")]
pub struct WrongHeader {
    /// Height of the block.
    pub height: u64,
    /// The recomputed hash.
    pub computed: String,
    /// `block_id.hash`.
    pub named: String,
}

/// Checks that the answer's header hashes to the answer's `block_id.hash`.
pub fn check_header(block: &BlockResponse<'_>) -> Result<(), WrongHeader> {
    let computed = header_hash(&block.full_header);
    if computed == block.hash {
        return Ok(());
    }
    let height = block.header.height;
    Err(WrongHeader { height, computed: to_hex(&computed), named: to_hex(&block.hash) })
}

/// The block's parent is not the preceding block.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the parent of block {height} is {parent}, the block before it is {previous}: \
     ask another endpoint, or the chain forked"
)]
pub struct WrongParent {
    /// Height of the block.
    pub height: u64,
    /// `header.last_block_id.hash`; empty if it has none.
    pub parent: String,
    /// Hash of the preceding block.
    pub previous: String,
}

/// Checks that the block's parent is the block with this hash.
pub fn check_parent(previous: &Hash, block: &BlockResponse<'_>) -> Result<(), WrongParent> {
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

/// Checks a block's transactions, decoded by [`BlockResponse::raw_txs`], against its own header.
///
/// A header without `data_hash` commits to nothing and fits no transactions, as in `CometBFT`.
pub fn check_txs<T: AsRef<[u8]>>(block: &BlockResponse<'_>, raw_txs: &[T]) -> Result<(), WrongTxs> {
    if block.header.data_hash == Some(data_hash(raw_txs)) {
        return Ok(());
    }
    Err(WrongTxs { height: block.header.height })
}

/// The signatures are not those that the header commits to.
#[derive(Debug, Error)]
pub enum WrongLastCommit {
    /// Their hash is another.
    #[error(
        "the signatures in last_commit of block {height} do not hash to its last_commit_hash: ask another endpoint"
    )]
    Hash {
        /// Height of the block that carries them.
        height: u64,
    },
    /// They cannot be decoded.
    #[error("block {height}: {source}: ask another endpoint")]
    Unreadable {
        /// Height of the block that carries them.
        height: u64,
        /// The error.
        source: comet::Error,
    },
}

/// Checks the signatures that a block carries against its own header.
pub fn check_last_commit(block: &BlockResponse<'_>) -> Result<(), WrongLastCommit> {
    let height = block.header.height;
    let commit = block.last_commit().map_err(|source| WrongLastCommit::Unreadable { height, source })?;
    if commit_hash(&commit) == *block.full_header.last_commit_hash {
        return Ok(());
    }
    Err(WrongLastCommit::Hash { height })
}

/// The hashes of a block's results, kept until the next header proves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Height of the results.
    pub height: u64,
    /// [`results_hash`].
    pub results_hash: Hash,
    /// The state hash after the block, if the answer has it.
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
    /// The state hash after the block.
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
        /// The member.
        member: &'static str,
        /// The position of the error.
        source: base64::DecodeError,
    },
    /// The header is not the next one, so it proves nothing about these results.
    #[error("the results of block {height} were held against header {header}, expected the next one")]
    OtherHeader {
        /// Height of the results.
        height: u64,
        /// Height of the header.
        header: u64,
    },
}

impl Claims {
    /// Computes the hashes.
    pub fn from_results(results: &ResultsResponse<'_>) -> Result<Self, WrongResults> {
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

/// The commitments of a header to its parent block; kept where the header itself is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitments {
    /// Height of the header.
    pub height: u64,
    /// `last_results_hash`.
    pub last_results_hash: Option<Hash>,
    /// `app_hash`.
    pub app_hash: Vec<u8>,
}

impl Commitments {
    /// The commitments of the header of `block`, which must itself have passed [`check_header`].
    pub fn from_block(block: &BlockResponse<'_>) -> Self {
        Self {
            height: block.header.height,
            last_results_hash: block.header.last_results_hash,
            app_hash: block.full_header.app_hash.to_vec(),
        }
    }

    /// Checks the results of the parent block.
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

/// Checks results against the next header, which must itself have passed [`check_header`].
pub fn check_results(claims: &Claims, next: &BlockResponse<'_>) -> Result<(), WrongResults> {
    Commitments::from_block(next).check(claims)
}

/// The protobuf of a result's fields that all nodes agree on (`CometBFT` `types.deterministicExecTxResult`).
fn deterministic(result: &TxResult<'_>) -> Result<Vec<u8>, base64::DecodeError> {
    let (code, gas_wanted, gas_used) = (result.code, result.gas_wanted, result.gas_used);
    let data = result.data_bytes()?.into();
    Ok(ExecTxResult { code, data, gas_wanted, gas_used, ..ExecTxResult::default() }.encode_to_vec())
}
