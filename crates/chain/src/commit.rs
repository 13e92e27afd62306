//! A block's `last_commit`: the validators' signatures under the block before.
//!
//! Read only where it is asked for: with a hundred validators it is longer than many a block. The header of the block
//! that carries it commits to the signatures ([`Commit::hash`]), not to the height, round and block id beside them;
//! those are what the signatures sign ([`crate::light`]).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use crate::hash::Hash;
use crate::header::{BadMember, BlockId, push_hex_field};
use crate::merkle::{leaf, root};
use crate::serde_lenient::{list, number, text};
use crate::time::push_timestamp;
use crate::wire::{push_bytes_field, push_message_field, push_varint_field};

/// `block_id_flag` of a validator that did not sign.
pub const ABSENT: u64 = 1;
/// `block_id_flag` of a validator that signed the block.
pub const SIGNED: u64 = 2;
/// `block_id_flag` of a validator that signed that it saw no block.
pub const NIL: u64 = 3;

/// `block.last_commit`; all empty in a chain's first block.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Commit<'a> {
    /// The height of the signed block.
    #[serde(deserialize_with = "number")]
    pub height: i64,
    /// The round in which it was decided.
    #[serde(deserialize_with = "number")]
    pub round: i64,
    /// The signed block.
    #[serde(borrow)]
    pub block_id: BlockId<'a>,
    /// One entry a validator, in the order of the set.
    #[serde(borrow, deserialize_with = "list")]
    pub signatures: Vec<CommitSig<'a>>,
}

/// A validator's part of a commit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CommitSig<'a> {
    /// [`ABSENT`], [`SIGNED`] or [`NIL`].
    #[serde(deserialize_with = "number")]
    pub block_id_flag: u64,
    /// Consensus address in hex; empty if absent.
    #[serde(borrow, deserialize_with = "text")]
    pub validator_address: Cow<'a, str>,
    /// When the validator signed; the year 1 if absent.
    #[serde(borrow, deserialize_with = "text")]
    pub timestamp: Cow<'a, str>,
    /// The signature in base64; empty if absent.
    #[serde(borrow, deserialize_with = "text")]
    pub signature: Cow<'a, str>,
}

impl Commit<'_> {
    /// The root over the signatures, as `last_commit_hash` of the header beside them has it (`CometBFT`
    /// `types.Commit.Hash`).
    pub fn hash(&self) -> Result<Hash, BadMember> {
        let leaves: Result<Vec<Hash>, _> = self.signatures.iter().map(CommitSig::leaf).collect();
        Ok(root(&leaves?))
    }
}

impl CommitSig<'_> {
    fn leaf(&self) -> Result<Hash, BadMember> {
        let mut out = Vec::with_capacity(112);
        push_varint_field(&mut out, 1, self.block_id_flag);
        push_hex_field(&mut out, 2, "last_commit.signatures[].validator_address", &self.validator_address)?;
        push_message_field(&mut out, 3, &self.time()?);
        push_bytes_field(&mut out, 4, &self.signature_bytes()?);
        Ok(leaf(&out))
    }

    /// The signature's bytes.
    pub(crate) fn signature_bytes(&self) -> Result<Vec<u8>, BadMember> {
        let wrong = |_| BadMember::NotBase64 {
            member: "last_commit.signatures[].signature",
            text: self.signature.to_string(),
        };
        BASE64.decode(self.signature.as_bytes()).map_err(wrong)
    }

    /// The protobuf of the time.
    pub(crate) fn time(&self) -> Result<Vec<u8>, BadMember> {
        let mut time = Vec::with_capacity(16);
        let member = "last_commit.signatures[].timestamp";
        push_timestamp(&mut time, &self.timestamp)
            .map_err(|source| BadMember::NotATime { member, source })?;
        Ok(time)
    }
}
