//! Light-client verification: a block was committed by the validator set of its height.
//!
//! A set of validators is trusted if it hashes to `validators_hash` of a trusted header. It committed a block if more
//! than two thirds of its power signed the block's id, at its height and round; the signatures are in the next block's
//! `last_commit`. `next_validators_hash` commits to the next set, so trust passes from header to header. Rules and
//! bytes are those of `CometBFT` (`types.VerifyCommitLight`, `types.CanonicalizeVote`); signatures are verified by ZIP
//! 215, as in `CometBFT`, so that batch and single verification always agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cosmrs::proto::prost::Message as _;
use cosmrs::proto::tendermint::v0_38::types::{BlockIdFlag, SignedMsgType};
use cosmrs::proto::tendermint::v0_38::types::{CanonicalBlockId, CanonicalPartSetHeader, CanonicalVote};
use ed25519_consensus::{Signature, VerificationKeyBytes, batch};
use serde::Deserialize;
use thiserror::Error;

mod batch_factors;

use self::batch_factors::FactorSeed;
use crate::comet::BlockResponse;
use crate::comet::header::{Commit, CommitSig, validators_hash};
use crate::hash::{Hash, to_hex};
use crate::serde_lenient::{JsonText, list, number};

/// Maximum number of validators of a set (`CometBFT` `types.MaxVotesCount`).
pub const MAX_VALIDATORS: usize = 10_000;
/// Maximum power of a set (`CometBFT` `types.MaxTotalVotingPower`).
const MAX_POWER: u64 = i64::MAX.cast_unsigned() / 8;
/// The only supported type of key.
const ED25519: &str = "tendermint/PubKeyEd25519";

/// One page of `/validators`.
#[derive(Debug, Clone)]
pub struct ValidatorsPage {
    /// The height of the set.
    pub height: u64,
    /// Number of validators on all pages.
    pub total: usize,
    /// The validators of this page, in the order of the set.
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

/// Errors of an answer with validators.
#[derive(Debug, Error)]
pub enum BadValidators {
    /// The answer is not a page of validators.
    #[error("the answer of /validators does not have the shape that CometBFT documents: {0}")]
    Shape(#[source] serde_json::Error),
    /// A key of another type, or a malformed key.
    #[error(
        "validator {address} has a key of type {kind:?}, only {ED25519} with 32 bytes is supported: \
         signatures cannot be verified on this chain, use --verify hashes"
    )]
    Key {
        /// Its address as the node wrote it.
        address: String,
        /// The type of its key.
        kind: String,
    },
    /// More or less power than a set can have, or too many validators.
    #[error(
        "{validators} validators with power {power} are not a set, expected 1 to {MAX_VALIDATORS} with a \
         power of 1 to {MAX_POWER}: ask another endpoint"
    )]
    Size {
        /// Number of validators.
        validators: usize,
        /// Their total power.
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
    /// The set with these members, which must be in the order of `/validators`.
    pub fn new(list: Vec<Validator>) -> Result<Self, BadValidators> {
        let power: u128 = list.iter().map(|validator| u128::from(validator.power)).sum();
        let fits = u64::try_from(power).ok().filter(|power| (1..=MAX_POWER).contains(power));
        let Some(total) = fits.filter(|_| list.len() <= MAX_VALIDATORS) else {
            return Err(BadValidators::Size { validators: list.len(), power });
        };
        let hash = validators_hash(list.iter().map(|validator| (validator.key, validator.power)));
        Ok(Self { power: total, hash, list })
    }

    /// The hash of the set, as in `validators_hash`.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// True if `hash`, a header's `validators_hash` or `next_validators_hash`, is the hash of this set.
    pub fn are_named(&self, by: &[u8]) -> bool {
        by == self.hash
    }
}

/// A block's header commits to another set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "validators_hash of block {height} is {named}, the validators of /validators hash to {computed}: \
     ask another endpoint"
)]
pub struct WrongValidators {
    /// Height of the block.
    pub height: u64,
    /// The hash in the header.
    pub named: String,
    /// The hash of the set.
    pub computed: String,
}

/// Checks that these are the validators of a block, whose header must itself have passed
/// [`crate::comet::proof::check_header`].
pub fn check_validators(block: &BlockResponse<'_>, set: &Validators) -> Result<(), WrongValidators> {
    let named = &block.full_header.validators_hash;
    if set.are_named(named) {
        return Ok(());
    }
    let height = block.header.height;
    Err(WrongValidators { height, named: hex::encode_upper(&**named), computed: to_hex(&set.hash) })
}

/// The share of a set's power that signed a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Power {
    /// The counted power that signed: more than two thirds.
    pub signed: u64,
    /// The total power.
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
        /// The height of the commit.
        of: i64,
        /// The signed block id.
        signed: String,
    },
    /// The number of entries differs from that of the validators.
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
    /// Signatures of too little power.
    #[error(
        "validators with power {signed} of {total} signed block {height}, more than two thirds must: \
         ask another endpoint"
    )]
    TooFew {
        /// Height of the block.
        height: u64,
        /// The power that signed.
        signed: u64,
        /// The total power.
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
}

/// Checks that `set` decided the block with this height and hash. `commit` is the next block's `last_commit`.
///
/// As in `CometBFT`'s light client, signatures beyond two thirds of the power are not verified, and signatures for no
/// block do not count. [`crate::comet::proof::check_last_commit`] checks that all signatures are those in the chain.
pub fn check_commit(
    chain_id: &str,
    height: u64,
    hash: &Hash,
    commit: &Commit,
    set: &Validators,
) -> Result<Power, WrongCommit> {
    let signed = &commit.block_id.hash;
    if u64::try_from(commit.height) != Ok(height) || signed != hash {
        let signed = hex::encode_upper(signed);
        return Err(WrongCommit::OtherBlock { height, of: commit.height, signed });
    }
    let (signatures, validators) = (commit.signatures.len(), set.list.len());
    if signatures != validators {
        return Err(WrongCommit::Size { height, signatures, validators });
    }
    let (votes, signed) = votes(chain_id, commit, set);
    // No overflow: power is at most an eighth of the type's maximum.
    if signed <= set.power * 2 / 3 {
        return Err(WrongCommit::TooFew { height, signed, total: set.power });
    }
    match first_wrong(&votes, hash) {
        Some(validator) => Err(WrongCommit::Signature { height, validator }),
        None => Ok(Power { signed, total: set.power }),
    }
}

/// A validator's signature and the signed bytes.
struct Vote {
    validator: usize,
    key: VerificationKeyBytes,
    /// `None` if it is malformed.
    signature: Option<Signature>,
    bytes: Vec<u8>,
}

/// The votes for the block, until they exceed two thirds of the power; and their power.
fn votes(chain_id: &str, commit: &Commit, set: &Validators) -> (Vec<Vote>, u64) {
    let (mut votes, mut signed) = (Vec::new(), 0);
    let canonical = canonical_vote(chain_id, commit);
    for (place, (entry, validator)) in commit.signatures.iter().zip(&set.list).enumerate() {
        if entry.block_id_flag != i32::from(BlockIdFlag::Commit) {
            continue;
        }
        votes.push(Vote {
            validator: place,
            key: VerificationKeyBytes::from(validator.key),
            signature: <[u8; 64]>::try_from(&*entry.signature).ok().map(Signature::from),
            bytes: sign_bytes(&canonical, entry),
        });
        signed += validator.power;
        if signed > set.power * 2 / 3 {
            break;
        }
    }
    (votes, signed)
}

/// The part of a vote that is equal for all validators.
fn canonical_vote(chain_id: &str, commit: &Commit) -> CanonicalVote {
    let block_id = commit.block_id.clone();
    let parts = block_id.part_set_header.unwrap_or_default();
    CanonicalVote {
        r#type: SignedMsgType::Precommit.into(),
        height: commit.height,
        round: commit.round,
        block_id: Some(CanonicalBlockId {
            hash: block_id.hash,
            part_set_header: Some(CanonicalPartSetHeader { total: parts.total, hash: parts.hash }),
        }),
        timestamp: None,
        chain_id: chain_id.to_owned(),
    }
}

/// The bytes that a validator signs: the vote with the validator's time, after its length.
fn sign_bytes(vote: &CanonicalVote, entry: &CommitSig) -> Vec<u8> {
    CanonicalVote { timestamp: Some(entry.timestamp), ..vote.clone() }.encode_length_delimited_to_vec()
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

/// True if all signatures verify together.
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
#[serde(bound(deserialize = "'de: 'a"))]
struct PageShape<'a> {
    #[serde(deserialize_with = "number")]
    block_height: u64,
    #[serde(default, deserialize_with = "list")]
    validators: Vec<ValidatorShape<'a>>,
    #[serde(default, deserialize_with = "number")]
    total: usize,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct ValidatorShape<'a> {
    address: JsonText<'a>,
    pub_key: KeyShape<'a>,
    #[serde(deserialize_with = "number")]
    voting_power: u64,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct KeyShape<'a> {
    #[serde(rename = "type")]
    kind: JsonText<'a>,
    value: JsonText<'a>,
}

fn validator(shape: ValidatorShape<'_>) -> Result<Validator, BadValidators> {
    let key = BASE64.decode(shape.pub_key.value.as_bytes()).ok().and_then(|key| key.try_into().ok());
    match key {
        Some(key) if shape.pub_key.kind == ED25519 => Ok(Validator { key, power: shape.voting_power }),
        _ => Err(BadValidators::Key {
            address: shape.address.to_string(),
            kind: shape.pub_key.kind.to_string(),
        }),
    }
}
