//! A block header with all that `CometBFT` hashes, as the node wrote it, and its hash.
//!
//! Reading it borrows texts and decodes none: only computing the hash does. The hash is the Merkle root over
//! the fourteen fields in the order of `CometBFT` `types.Header.Hash`, each as the bytes of a protobuf wrapper message;
//! empty and zero fields are omitted, as in protobuf.

use std::borrow::Cow;

use serde::Deserialize;
use thiserror::Error;

use crate::hash::Hash;
use crate::merkle::{leaf, root};
use crate::serde_lenient::{number, text};
use crate::time::{BadTime, push_timestamp};
use crate::wire::{push_bytes_field, push_message_field, push_varint_field};

/// Fields of a header.
const FIELDS: usize = 14;

/// A header as the node wrote it: hashes are hex of any case, the time is RFC 3339, and nothing is checked yet.
#[derive(Debug, Clone, Deserialize)]
pub struct FullHeader<'a> {
    /// Versions of the block format and of the application.
    #[serde(default)]
    pub version: Version,
    /// The chain.
    #[serde(borrow)]
    pub chain_id: Cow<'a, str>,
    /// The height.
    #[serde(deserialize_with = "number")]
    pub height: i64,
    /// The time.
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    /// The block before; all empty in a chain's first block.
    #[serde(borrow, default)]
    pub last_block_id: BlockId<'a>,
    /// Root over the signatures of the block before: see [`crate::commit::Commit::hash`].
    #[serde(borrow, default, deserialize_with = "text")]
    pub last_commit_hash: Cow<'a, str>,
    /// Root over the transactions: see [`crate::proof::data_hash`].
    #[serde(borrow, default, deserialize_with = "text")]
    pub data_hash: Cow<'a, str>,
    /// Root over the validators of this block: see [`crate::light::Validators::hash`].
    #[serde(borrow, default, deserialize_with = "text")]
    pub validators_hash: Cow<'a, str>,
    /// Root over the validators of the next block.
    #[serde(borrow, default, deserialize_with = "text")]
    pub next_validators_hash: Cow<'a, str>,
    /// Hash of the consensus parameters.
    #[serde(borrow, default, deserialize_with = "text")]
    pub consensus_hash: Cow<'a, str>,
    /// The application's state after the block before.
    #[serde(borrow, default, deserialize_with = "text")]
    pub app_hash: Cow<'a, str>,
    /// Root over the results of the block before: see [`crate::proof::results_hash`].
    #[serde(borrow, default, deserialize_with = "text")]
    pub last_results_hash: Cow<'a, str>,
    /// Root over the evidence of misbehaviour in the block.
    #[serde(borrow, default, deserialize_with = "text")]
    pub evidence_hash: Cow<'a, str>,
    /// Consensus address of the proposer.
    #[serde(borrow, default, deserialize_with = "text")]
    pub proposer_address: Cow<'a, str>,
}

/// `header.version`; a number that is left out is 0.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Version {
    /// Of the block format.
    #[serde(deserialize_with = "number")]
    pub block: u64,
    /// Of the application.
    #[serde(deserialize_with = "number")]
    pub app: u64,
}

/// What names a block: the hash of its header, and of the parts in which it is gossiped.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct BlockId<'a> {
    /// Hash of the header in hex.
    #[serde(borrow, deserialize_with = "text")]
    pub hash: Cow<'a, str>,
    /// The parts.
    #[serde(borrow)]
    pub parts: Parts<'a>,
}

/// The parts of a gossiped block.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Parts<'a> {
    /// How many.
    #[serde(deserialize_with = "number")]
    pub total: u32,
    /// Their root in hex.
    #[serde(borrow, deserialize_with = "text")]
    pub hash: Cow<'a, str>,
}

/// A member that cannot be hashed, because it is not what it must be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadMember {
    /// Not hex.
    #[error("{member} is {text:?}, expected hex")]
    NotHex {
        /// Which member.
        member: &'static str,
        /// What stood there.
        text: String,
    },
    /// Not base64.
    #[error("{member} is {text:?}, expected base64")]
    NotBase64 {
        /// Which member.
        member: &'static str,
        /// What stood there.
        text: String,
    },
    /// No time.
    #[error("{member}: {source}")]
    NotATime {
        /// Which member.
        member: &'static str,
        /// What stood there.
        source: BadTime,
    },
}

impl FullHeader<'_> {
    /// The hash of the block, recomputed.
    pub fn hash(&self) -> Result<Hash, BadMember> {
        let mut leaves = [Hash::default(); FIELDS];
        let mut field = Vec::with_capacity(96);
        for (number, sealed) in leaves.iter_mut().enumerate() {
            field.clear();
            self.push_field(number, &mut field)?;
            *sealed = leaf(&field);
        }
        Ok(root(&leaves))
    }

    /// Appends the encoding of one field, counted from 0.
    fn push_field(&self, number: usize, out: &mut Vec<u8>) -> Result<(), BadMember> {
        match number {
            0 => {
                push_varint_field(out, 1, self.version.block);
                push_varint_field(out, 2, self.version.app);
            }
            1 => push_bytes_field(out, 1, self.chain_id.as_bytes()),
            2 => push_varint_field(out, 1, self.height.cast_unsigned()),
            3 => push_timestamp(out, &self.time)
                .map_err(|source| BadMember::NotATime { member: "header.time", source })?,
            4 => self.last_block_id.push(out, "header.last_block_id")?,
            5 => push_hex_field(out, 1, "header.last_commit_hash", &self.last_commit_hash)?,
            6 => push_hex_field(out, 1, "header.data_hash", &self.data_hash)?,
            7 => push_hex_field(out, 1, "header.validators_hash", &self.validators_hash)?,
            8 => push_hex_field(out, 1, "header.next_validators_hash", &self.next_validators_hash)?,
            9 => push_hex_field(out, 1, "header.consensus_hash", &self.consensus_hash)?,
            10 => push_hex_field(out, 1, "header.app_hash", &self.app_hash)?,
            11 => push_hex_field(out, 1, "header.last_results_hash", &self.last_results_hash)?,
            12 => push_hex_field(out, 1, "header.evidence_hash", &self.evidence_hash)?,
            _ => push_hex_field(out, 1, "header.proposer_address", &self.proposer_address)?,
        }
        Ok(())
    }
}

impl BlockId<'_> {
    /// Appends the protobuf of the id. The parts are written even where they are empty: the field is not nullable.
    pub(crate) fn push(&self, out: &mut Vec<u8>, member: &'static str) -> Result<(), BadMember> {
        push_hex_field(out, 1, member, &self.hash)?;
        let mut parts = Vec::with_capacity(40);
        push_varint_field(&mut parts, 1, u64::from(self.parts.total));
        push_hex_field(&mut parts, 2, member, &self.parts.hash)?;
        push_message_field(out, 2, &parts);
        Ok(())
    }
}

/// Appends bytes that the node wrote in hex.
pub(crate) fn push_hex_field(
    out: &mut Vec<u8>,
    number: u8,
    member: &'static str,
    text: &str,
) -> Result<(), BadMember> {
    push_bytes_field(out, number, &hex_member(member, text)?);
    Ok(())
}

/// The bytes of a member in hex.
pub(crate) fn hex_member(member: &'static str, text: &str) -> Result<Vec<u8>, BadMember> {
    hex::decode(text).map_err(|_| BadMember::NotHex { member, text: text.to_owned() })
}
