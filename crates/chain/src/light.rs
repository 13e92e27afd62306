//! Light-client verification: a block was committed by the validator set of its height.
//!
//! A set of validators is as its `/validators` answers say if it hashes to `validators_hash` of a trusted header. It
//! committed a block if more than two thirds of its power signed the block's id, at its height and round; the
//! signatures stand in the next block's `last_commit`. `next_validators_hash` says which set is next, so trust passes
//! from header to header. Rules and bytes are those of `CometBFT` (`types.VerifyCommitLight`,
//! `types.CanonicalizeVote`); signatures are verified by ZIP 215, as there, so that batch and single verification
//! always agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_consensus::{Signature, VerificationKeyBytes, batch};
use serde::Deserialize;
use thiserror::Error;

mod batch_factors;

use self::batch_factors::FactorSeed;
use crate::comet::BlockAnswer;
use crate::commit::{Commit, SIGNED};
use crate::hash::{Hash, to_hex};
use crate::header::BadMember;
use crate::merkle::{leaf, root};
use crate::serde_lenient::{list, number, text};
use crate::wire::{
    push_bytes_field, push_fixed64_field, push_len_prefixed, push_message_field, push_varint_field,
};

/// Validators that a set may have (`CometBFT` `types.MaxVotesCount`).
pub const MAX_VALIDATORS: usize = 10_000;
/// The power that a set may have (`CometBFT` `types.MaxTotalVotingPower`).
const MAX_POWER: u64 = i64::MAX.cast_unsigned() / 8;
/// The only kind of key that is known here.
const ED25519: &str = "tendermint/PubKeyEd25519";
/// `SIGNED_MSG_TYPE_PRECOMMIT`.
const PRECOMMIT: u64 = 2;

/// One page of `/validators`.
#[derive(Debug, Clone)]
pub struct ValidatorsPage {
    /// The height that it is for.
    pub height: u64,
    /// Validators of all pages.
    pub total: usize,
    /// Those of this page, in the order of the set.
    pub validators: Vec<Validator>,
}

/// A validator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validator {
    /// Its ed25519 key.
    pub key: [u8; 32],
    /// Its power; never 0.
    pub power: u64,
}

/// All validators of a height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    list: Vec<Validator>,
    power: u64,
    hash: Hash,
}

/// Why validators cannot be used.
#[derive(Debug, Error)]
pub enum BadValidators {
    /// The answer is no page of validators.
    #[error("the answer of /validators does not have the shape that CometBFT documents: {0}")]
    Shape(#[source] serde_json::Error),
    /// A key of another kind, or none at all.
    #[error(
        "validator {address} has a key of type {kind:?}, only {ED25519} with 32 bytes is known: signatures cannot be verified on this chain, use --verify hashes"
    )]
    Key {
        /// Its address as the node wrote it.
        address: String,
        /// The type of its key.
        kind: String,
    },
    /// More or less power than a set can have, or more validators.
    #[error(
        "{validators} validators with power {power} are no set, expected 1 to {MAX_VALIDATORS} with a power of 1 to {MAX_POWER}: ask another endpoint"
    )]
    Size {
        /// How many.
        validators: usize,
        /// Their power.
        power: u128,
    },
}

/// Reads the `result` of `/validators`.
pub fn parse_validators(answer: &[u8]) -> Result<ValidatorsPage, BadValidators> {
    let page: PageShape<'_> = serde_json::from_slice(answer).map_err(BadValidators::Shape)?;
    let validators: Result<Vec<Validator>, _> = page.validators.into_iter().map(validator).collect();
    Ok(ValidatorsPage { height: page.block_height, total: page.total, validators: validators? })
}

impl Validators {
    /// The set with these members, which must be in the order in which `/validators` has them.
    pub fn new(list: Vec<Validator>) -> Result<Self, BadValidators> {
        let power: u128 = list.iter().map(|validator| u128::from(validator.power)).sum();
        let fits = u64::try_from(power).ok().filter(|power| (1..=MAX_POWER).contains(power));
        let Some(total) = fits.filter(|_| list.len() <= MAX_VALIDATORS) else {
            return Err(BadValidators::Size { validators: list.len(), power });
        };
        let leaves: Vec<Hash> = list.iter().map(Validator::leaf).collect();
        Ok(Self { power: total, hash: root(&leaves), list })
    }

    /// What `validators_hash` of a header of theirs is.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Whether a hash in a header, in hex, is theirs: `validators_hash`, or `next_validators_hash`.
    pub fn are_named(&self, by: &str) -> bool {
        hex::decode(by).is_ok_and(|named| named == self.hash)
    }
}

impl Validator {
    /// The protobuf of `SimpleValidator`, hashed.
    fn leaf(&self) -> Hash {
        let (mut key, mut out) = (Vec::with_capacity(34), Vec::with_capacity(48));
        push_bytes_field(&mut key, 1, &self.key);
        push_message_field(&mut out, 1, &key);
        push_varint_field(&mut out, 2, self.power);
        leaf(&out)
    }
}

/// A block's header names another set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "validators_hash of block {height} is {named}, the validators of /validators hash to {computed}: ask another endpoint"
)]
pub struct WrongValidators {
    /// Height of the block.
    pub height: u64,
    /// What the header says.
    pub named: String,
    /// The hash of the set.
    pub computed: String,
}

/// Checks that these are the validators of a block, whose header must itself have passed
/// [`crate::proof::check_header`].
pub fn check_validators(block: &BlockAnswer<'_>, set: &Validators) -> Result<(), WrongValidators> {
    let named = &block.full_header.validators_hash;
    if set.are_named(named) {
        return Ok(());
    }
    let height = block.header.height;
    Err(WrongValidators { height, named: named.to_string(), computed: to_hex(&set.hash) })
}

/// How much of a set's power signed a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// What signed, as far as it was counted: more than two thirds.
    pub signed: u64,
    /// All of it.
    pub total: u64,
}

/// A block was not decided by these validators.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WrongCommit {
    /// The commit is of another block.
    #[error("the commit for block {height} signs block {of} with id {signed}: ask another endpoint")]
    OtherBlock {
        /// Height of the block.
        height: u64,
        /// What the commit is for.
        of: i64,
        /// The id that it signs.
        signed: String,
    },
    /// There is not one entry a validator.
    #[error(
        "the commit for block {height} has {signatures} entries for {validators} validators: ask another endpoint"
    )]
    Size {
        /// Height of the block.
        height: u64,
        /// Entries.
        signatures: usize,
        /// Validators of the set.
        validators: usize,
    },
    /// Too few signed.
    #[error(
        "validators with power {signed} of {total} signed block {height}, more than two thirds must: ask another endpoint"
    )]
    TooFew {
        /// Height of the block.
        height: u64,
        /// Their power.
        signed: u64,
        /// All power.
        total: u64,
    },
    /// A signature is wrong.
    #[error(
        "the signature of validator {validator} under block {height} does not verify: ask another endpoint"
    )]
    Signature {
        /// Height of the block.
        height: u64,
        /// The validator's place in the set, from 0.
        validator: usize,
    },
    /// A member cannot be read.
    #[error("the commit for block {height} cannot be read, {source}: ask another endpoint")]
    Member {
        /// Height of the block.
        height: u64,
        /// Which member.
        source: BadMember,
    },
}

/// Checks that `set` decided the block with this height and hash. `commit` is the next block's `last_commit`.
///
/// As in `CometBFT`'s light client, signatures beyond two thirds of the power are not looked at; that they are the ones
/// in the chain is for [`crate::proof::check_last_commit`] to say. What was signed for no block counts for nothing.
pub fn check_commit(
    chain_id: &str,
    height: u64,
    hash: &Hash,
    commit: &Commit<'_>,
    set: &Validators,
) -> Result<Power, WrongCommit> {
    let signs_it = hex::decode(&*commit.block_id.hash).is_ok_and(|signed| signed == hash);
    if u64::try_from(commit.height) != Ok(height) || !signs_it {
        let signed = commit.block_id.hash.to_string();
        return Err(WrongCommit::OtherBlock { height, of: commit.height, signed });
    }
    let (signatures, validators) = (commit.signatures.len(), set.list.len());
    if signatures != validators {
        return Err(WrongCommit::Size { height, signatures, validators });
    }
    let (votes, signed) =
        votes(chain_id, commit, set).map_err(|source| WrongCommit::Member { height, source })?;
    // Nothing can overflow: power is at most an eighth of what fits.
    if signed <= set.power * 2 / 3 {
        return Err(WrongCommit::TooFew { height, signed, total: set.power });
    }
    match first_wrong(&votes, hash) {
        Some(validator) => Err(WrongCommit::Signature { height, validator }),
        None => Ok(Power { signed, total: set.power }),
    }
}

/// A validator's signature and what it signed.
struct Vote {
    validator: usize,
    key: VerificationKeyBytes,
    /// None if it is no signature at all.
    signature: Option<Signature>,
    bytes: Vec<u8>,
}

/// The votes for the block, up to those that make more than two thirds; and their power.
fn votes(chain_id: &str, commit: &Commit<'_>, set: &Validators) -> Result<(Vec<Vote>, u64), BadMember> {
    let (mut votes, mut signed) = (Vec::new(), 0);
    let mut block_id = Vec::with_capacity(80);
    commit.block_id.push(&mut block_id, "last_commit.block_id")?;
    for (place, (entry, validator)) in commit.signatures.iter().zip(&set.list).enumerate() {
        if entry.block_id_flag != SIGNED {
            continue;
        }
        let signature = entry.signature_bytes()?;
        votes.push(Vote {
            validator: place,
            key: VerificationKeyBytes::from(validator.key),
            signature: <[u8; 64]>::try_from(signature).ok().map(Signature::from),
            bytes: sign_bytes(chain_id, commit, &block_id, &entry.time()?),
        });
        signed += validator.power;
        if signed > set.power * 2 / 3 {
            break;
        }
    }
    Ok((votes, signed))
}

/// What a validator signs: the protobuf of `CanonicalVote`, after its length.
fn sign_bytes(chain_id: &str, commit: &Commit<'_>, block_id: &[u8], time: &[u8]) -> Vec<u8> {
    let mut vote = Vec::with_capacity(160);
    push_varint_field(&mut vote, 1, PRECOMMIT);
    push_fixed64_field(&mut vote, 2, commit.height);
    push_fixed64_field(&mut vote, 3, commit.round);
    push_message_field(&mut vote, 4, block_id);
    push_message_field(&mut vote, 5, time);
    push_bytes_field(&mut vote, 6, chain_id.as_bytes());
    let mut out = Vec::with_capacity(vote.len() + 2);
    push_len_prefixed(&mut out, &vote);
    out
}

/// The first validator whose signature does not verify.
fn first_wrong(votes: &[Vote], block: &Hash) -> Option<usize> {
    let verifies = |vote: &Vote| {
        let item = vote.signature.map(|signature| batch::Item::from((vote.key, signature, &vote.bytes)));
        item.is_some_and(|item| item.verify_single().is_ok())
    };
    if votes.len() > 1 && all_verify(votes, block) {
        return None;
    }
    votes.iter().find(|vote| !verifies(vote)).map(|vote| vote.validator)
}

/// Whether all verify together.
fn all_verify(votes: &[Vote], block: &Hash) -> bool {
    let (mut batch, mut factors) = (batch::Verifier::new(), FactorSeed::new(block));
    for vote in votes {
        let Some(signature) = vote.signature else { return false };
        factors.absorb(vote.key.as_bytes(), &signature.to_bytes(), &vote.bytes);
        batch.queue((vote.key, signature, &vote.bytes));
    }
    batch.verify(factors.finish()).is_ok()
}

#[derive(Deserialize)]
struct PageShape<'a> {
    #[serde(deserialize_with = "number")]
    block_height: u64,
    #[serde(borrow, default, deserialize_with = "list")]
    validators: Vec<ValidatorShape<'a>>,
    #[serde(default, deserialize_with = "number")]
    total: usize,
}

#[derive(Deserialize)]
struct ValidatorShape<'a> {
    #[serde(borrow, default, deserialize_with = "text")]
    address: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pub_key: KeyShape<'a>,
    #[serde(deserialize_with = "number")]
    voting_power: u64,
}

#[derive(Deserialize)]
struct KeyShape<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    value: std::borrow::Cow<'a, str>,
}

fn validator(shape: ValidatorShape<'_>) -> Result<Validator, BadValidators> {
    let key = BASE64.decode(shape.pub_key.value.as_bytes()).ok().and_then(|key| key.try_into().ok());
    match key {
        Some(key) if shape.pub_key.kind == ED25519 => Ok(Validator { key, power: shape.voting_power }),
        _ => Err(BadValidators::Key {
            address: shape.address.into_owned(),
            kind: shape.pub_key.kind.into_owned(),
        }),
    }
}
