//! `CometBFT` headers and commits, and the hashes of these and of validator sets: Merkle roots (RFC 6962) over protobuf.
//!
//! Messages and Merkle tree are those of `tendermint-proto` and `tendermint`. The raw messages are used instead of
//! tendermint's domain types, because those refuse values that chains have. JSON is read by types of ours, because the
//! decoders of `tendermint-proto` panic on some malformed base64 and times.

use cosmrs::proto::Timestamp;
use cosmrs::proto::prost::Message as _;
use cosmrs::proto::tendermint::v0_38::crypto::{PublicKey, public_key::Sum};
use cosmrs::proto::tendermint::v0_38::types::{CommitSig as RawCommitSig, SimpleValidator};
use cosmrs::proto::tendermint::v0_38::version::Consensus;
use cosmrs::tendermint::crypto::default::Sha256;
use cosmrs::tendermint::merkle::simple_hash_from_byte_vectors;
use serde::Deserialize;

pub use cosmrs::proto::tendermint::v0_38::types::BlockId;

use crate::hash::Hash;
use crate::serde_lenient::{HexBytes, base64, list, number};
use crate::time::rfc3339;

/// A header.
#[derive(Debug, Clone, Deserialize)]
pub struct FullHeader {
    /// Versions of the block format and of the application.
    #[serde(default)]
    pub version: Consensus,
    /// The chain.
    pub chain_id: String,
    /// The height.
    #[serde(deserialize_with = "number")]
    pub height: i64,
    /// The time.
    #[serde(deserialize_with = "rfc3339")]
    pub time: Timestamp,
    /// The parent block; empty in a chain's first block.
    #[serde(default)]
    pub last_block_id: BlockId,
    /// Root over the signatures of the parent block: see [`commit_hash`].
    pub last_commit_hash: HexBytes,
    /// Root over the transactions: see [`crate::comet::proof::data_hash`].
    pub data_hash: HexBytes,
    /// Root over the validators of this block: see [`crate::comet::light::Validators::hash`].
    pub validators_hash: HexBytes,
    /// Root over the validators of the next block.
    pub next_validators_hash: HexBytes,
    /// Hash of the consensus parameters.
    pub consensus_hash: HexBytes,
    /// The application's state hash after the parent block.
    pub app_hash: HexBytes,
    /// Root over the results of the parent block: see [`crate::comet::proof::results_hash`].
    pub last_results_hash: HexBytes,
    /// Root over the evidence of misbehaviour in the block.
    pub evidence_hash: HexBytes,
    /// Consensus address of the proposer.
    pub proposer_address: HexBytes,
}

/// A block's `last_commit`: the validators' signatures under the parent block; all empty in a chain's first block.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Commit {
    /// The height of the signed block.
    #[serde(deserialize_with = "number")]
    pub height: i64,
    /// The round in which the block was decided.
    #[serde(deserialize_with = "number")]
    pub round: i64,
    /// The signed block.
    pub block_id: BlockId,
    /// One entry per validator, in the order of the set.
    #[serde(deserialize_with = "list")]
    pub signatures: Vec<CommitSig>,
}

/// A validator's part of a commit.
#[derive(Debug, Clone, Deserialize)]
pub struct CommitSig {
    /// The number of a [`cosmrs::proto::tendermint::v0_38::types::BlockIdFlag`]: absent, for the block, or for none.
    #[serde(deserialize_with = "number")]
    pub block_id_flag: i32,
    /// Consensus address; empty if absent.
    pub validator_address: HexBytes,
    /// The time of the signature; the year 1 if absent.
    #[serde(deserialize_with = "rfc3339")]
    pub timestamp: Timestamp,
    /// The signature; empty if absent.
    #[serde(default, deserialize_with = "base64")]
    pub signature: Vec<u8>,
}

/// The root over `leaves`.
pub(crate) fn merkle_root(leaves: &[impl AsRef<[u8]>]) -> Hash {
    simple_hash_from_byte_vectors::<Sha256>(leaves)
}

/// The hash of a header: the root over its fields, each as a protobuf wrapper message (`CometBFT` `types.Header.Hash`).
pub fn header_hash(header: &FullHeader) -> Hash {
    // The parts are not nullable: they are written even if they are empty.
    let parts = header.last_block_id.part_set_header.clone().unwrap_or_default();
    let last_block_id = BlockId { part_set_header: Some(parts), ..header.last_block_id.clone() };
    merkle_root(&[
        header.version.encode_to_vec(),
        header.chain_id.encode_to_vec(),
        header.height.encode_to_vec(),
        header.time.encode_to_vec(),
        last_block_id.encode_to_vec(),
        header.last_commit_hash.0.encode_to_vec(),
        header.data_hash.0.encode_to_vec(),
        header.validators_hash.0.encode_to_vec(),
        header.next_validators_hash.0.encode_to_vec(),
        header.consensus_hash.0.encode_to_vec(),
        header.app_hash.0.encode_to_vec(),
        header.last_results_hash.0.encode_to_vec(),
        header.evidence_hash.0.encode_to_vec(),
        header.proposer_address.0.encode_to_vec(),
    ])
}

/// The hash of a commit, as in `last_commit_hash` of the same block's header (`CometBFT` `types.Commit.Hash`).
///
/// It covers the signatures, not the commit's height, round and block id; the signatures cover those
/// ([`crate::comet::light`]).
pub fn commit_hash(commit: &Commit) -> Hash {
    let leaf = |signature: &CommitSig| RawCommitSig {
        block_id_flag: signature.block_id_flag,
        validator_address: signature.validator_address.to_vec(),
        timestamp: Some(signature.timestamp),
        signature: signature.signature.clone(),
    };
    let leaves: Vec<Vec<u8>> = commit.signatures.iter().map(|sig| leaf(sig).encode_to_vec()).collect();
    merkle_root(&leaves)
}

/// The hash of a validator set, given as ed25519 keys with their powers (`CometBFT` `types.ValidatorSet.Hash`).
pub(crate) fn validators_hash(validators: impl Iterator<Item = ([u8; 32], u64)>) -> Hash {
    let leaf = |(key, power): ([u8; 32], u64)| SimpleValidator {
        pub_key: Some(PublicKey { sum: Some(Sum::Ed25519(key.to_vec())) }),
        voting_power: power.cast_signed(),
    };
    let leaves: Vec<Vec<u8>> = validators.map(|validator| leaf(validator).encode_to_vec()).collect();
    merkle_root(&leaves)
}
