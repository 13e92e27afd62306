//! NFTs: collections, tokens, every order in which they are listed, and the log that they are made from.
//!
//! The log ([`NftLog`]) holds what happened to NFTs, block by block, with what the node said about names and URIs. Every
//! other table here, but the three about questions that are open ([`Refused`], [`Questions`], [`Waiting`]), is a fold of
//! it ([`fold`]): rolling back and repairing is cutting the log and folding it again ([`rebuild`]). What the fold makes
//! depends on the log alone, not on when an answer arrived.

pub mod fold;
mod log;
mod open;
pub mod rebuild;

pub use self::log::{Change, Entry, Log, Mint, NewCollection, NewUri, Origin, Transfer};
pub use self::open::{About, Question, Subject, TokenKey, Waiter, question_height, question_number};

use store::key::Text;
use store::{Access, List, Message, Ranked, Table, TableSpec};

use crate::keys::Owner;

/// Collections by address.
///
/// | collection (1 + 20 or 32) | → [`Collection`] (protobuf)
#[derive(Debug)]
pub struct Collections;

impl Table for Collections {
    const SPEC: &'static TableSpec = &TableSpec { name: "collection", tag: 0x40, access: Access::Point };
    type Key = Owner;
    type Value = Message<Collection>;
}

/// A collection.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Collection {
    /// Its name on this chain; empty if it has none.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its name on the chain that it came from, if it came by IBC.
    #[prost(string, tag = "2")]
    pub origin_name: String,
    /// Address of its creator, 20 or 32 bytes; empty if unknown.
    #[prost(bytes = "vec", tag = "3")]
    pub creator: Vec<u8>,
    /// The block it is shown with: of its creation, on an EVM chain of the first transaction that involved it.
    #[prost(uint64, tag = "4")]
    pub height: u64,
    /// That block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "5")]
    pub time: i64,
}

/// All collections, in the order of [`Collection::height`], then of their addresses.
///
/// | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct CollectionsByHeight;

impl Table for CollectionsByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "collection_by_height", tag: 0x41, access: Access::Scan };
    type Key = ((), (u64, Owner));
    type Value = ();
}

impl Ranked for CollectionsByHeight {
    type Owner = ();
    type Item = (u64, Owner);
}

/// Collections that an account owns tokens of now, ordered like [`CollectionsByHeight`].
///
/// | owner (1 + 20 or 32) | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedCollections;

impl Table for OwnedCollections {
    const SPEC: &'static TableSpec = &TableSpec { name: "owned_collection", tag: 0x42, access: Access::Scan };
    type Key = (Owner, (u64, Owner));
    type Value = ();
}

impl Ranked for OwnedCollections {
    type Owner = Owner;
    type Item = (u64, Owner);
}

/// Tokens that exist, by collection, in the order of their ids' bytes.
///
/// | collection (1 + 20 or 32) | token id (escaped text) | → [`Token`] (protobuf)
#[derive(Debug)]
pub struct Tokens;

impl Table for Tokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "token", tag: 0x43, access: Access::Scan };
    type Key = (Owner, Text);
    type Value = Message<Token>;
}

impl Ranked for Tokens {
    type Owner = Owner;
    type Item = Text;
}

/// A token that exists.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Token {
    /// Address of its owner, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub owner: Vec<u8>,
    /// Its URI; empty if it has none or it is not known yet.
    #[prost(string, tag = "2")]
    pub uri: String,
    /// Move: address of the token's object, 32 bytes; else empty.
    #[prost(bytes = "vec", tag = "3")]
    pub object: Vec<u8>,
    /// The block that last minted it, moved it or changed its URI.
    #[prost(uint64, tag = "4")]
    pub height: u64,
    /// That block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "5")]
    pub time: i64,
    /// If the node could not be asked for the URI yet, the number of the open question, else 0.
    #[prost(uint64, tag = "6")]
    pub question: u64,
}

/// Tokens of a collection by the height of their last change, then by id.
///
/// | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct TokensByHeight;

impl Table for TokensByHeight {
    const SPEC: &'static TableSpec = &TableSpec { name: "token_by_height", tag: 0x44, access: Access::Scan };
    type Key = (Owner, (u64, Text));
    type Value = ();
}

impl Ranked for TokensByHeight {
    type Owner = Owner;
    type Item = (u64, Text);
}

/// Tokens of an account by id, then by the height of their last change, then by collection.
///
/// | owner (1 + 20 or 32) | token id (escaped text) | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedTokens;

impl Table for OwnedTokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "owned_token", tag: 0x45, access: Access::Scan };
    type Key = (Owner, (Text, u64, Owner));
    type Value = ();
}

impl Ranked for OwnedTokens {
    type Owner = Owner;
    type Item = (Text, u64, Owner);
}

/// Tokens of an account by the height of their last change, then by id, then by collection.
///
/// | owner (1 + 20 or 32) | height (8, BE) | token id (escaped text) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedTokensByHeight;

impl Table for OwnedTokensByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "owned_token_by_height", tag: 0x46, access: Access::Scan };
    type Key = (Owner, (u64, Text, Owner));
    type Value = ();
}

impl Ranked for OwnedTokensByHeight {
    type Owner = Owner;
    type Item = (u64, Text, Owner);
}

/// Tokens of an account in one collection, by id.
///
/// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct Holdings;

impl Table for Holdings {
    const SPEC: &'static TableSpec = &TableSpec { name: "holding", tag: 0x47, access: Access::Scan };
    type Key = ((Owner, Owner), Text);
    type Value = ();
}

impl Ranked for Holdings {
    type Owner = (Owner, Owner);
    type Item = Text;
}

/// Tokens of an account in one collection, by the height of their last change, then by id.
///
/// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct HoldingsByHeight;

impl Table for HoldingsByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "holding_by_height", tag: 0x48, access: Access::Scan };
    type Key = ((Owner, Owner), (u64, Text));
    type Value = ();
}

impl Ranked for HoldingsByHeight {
    type Owner = (Owner, Owner);
    type Item = (u64, Text);
}

/// Transactions that minted, moved or burnt a token, oldest first; kept when it is burnt. Not on Move chains, where they
/// are those of the token's object ([`crate::tx::AccountTxs`]).
///
/// | collection (1 + 20 or 32) | token id (escaped text) | ordinal (8, BE) | → seq (varint)
#[derive(Debug)]
pub struct TokenTxs;

impl List for TokenTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "token_tx", tag: 0x49, access: Access::Scan };
    type Owner = (Owner, Text);
}

/// Move: the object of a token; kept when it is burnt.
///
/// | collection (1 + 20 or 32) | token id (escaped text) | → address of the object (32)
#[derive(Debug)]
pub struct TokenObjects;

impl Table for TokenObjects {
    const SPEC: &'static TableSpec = &TableSpec { name: "token_object", tag: 0x4a, access: Access::Point };
    type Key = (Owner, Text);
    type Value = Vec<u8>;
}

/// Move: the token that an object is; kept when it is burnt.
///
/// | object (1 + 20 or 32) | → [`TokenName`] (protobuf)
#[derive(Debug)]
pub struct ObjectTokens;

impl Table for ObjectTokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "object_token", tag: 0x4b, access: Access::Point };
    type Key = Owner;
    type Value = Message<TokenName>;
}

/// Which token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TokenName {
    /// Address of the collection, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub collection: Vec<u8>,
    /// The token's id in it.
    #[prost(string, tag = "2")]
    pub token_id: String,
}

/// Names of collections on the chains that they came from, by their name here (`indexing.md` §9).
///
/// | name here (escaped text) | → name there (UTF-8)
#[derive(Debug)]
pub struct OriginNames;

impl Table for OriginNames {
    const SPEC: &'static TableSpec = &TableSpec { name: "origin_name", tag: 0x4c, access: Access::Point };
    type Key = Text;
    type Value = String;
}

/// Collections by exact name.
///
/// | name (escaped text) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct CollectionsByName;

impl Table for CollectionsByName {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "collection_by_name", tag: 0x4d, access: Access::Scan };
    type Key = (Text, Owner);
    type Value = ();
}

/// Collections in the order in which they were made or got another name: who keeps their names in memory reads on from
/// the last number he knows. A row without an address means that all is to be read again. Not part of the digest.
///
/// | number (8, BE) | → address of the collection (20, 32 or 0)
#[derive(Debug)]
pub struct NameChanges;

impl Table for NameChanges {
    const SPEC: &'static TableSpec = &TableSpec { name: "name_change", tag: 0x4e, access: Access::Scan };
    type Key = u64;
    type Value = Vec<u8>;
}

/// What happened to NFTs in a block. Blocks without have no row.
///
/// | height (8, BE) | → [`Log`] (protobuf)
#[derive(Debug)]
pub struct NftLog;

impl Table for NftLog {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_log", tag: 0x4f, access: Access::Scan };
    type Key = u64;
    type Value = Message<Log>;
}

/// Contracts and objects that are no NFTs though an event looked like it: they are not asked about again.
///
/// | address (1 + 20 or 32) | → height at which that was found out (varint)
#[derive(Debug)]
pub struct Refused;

impl Table for Refused {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_refused", tag: 0x50, access: Access::Point };
    type Key = Owner;
    type Value = u64;
}

/// Questions that the node could not answer yet; they are asked until it can. A question's number is its height times
/// 2^24 and the place of the event that it is about.
///
/// | number (8, BE) | → [`Question`] (protobuf)
#[derive(Debug)]
pub struct Questions;

impl Table for Questions {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_question", tag: 0x51, access: Access::Scan };
    type Key = u64;
    type Value = Message<Question>;
}

/// Events that wait for the answer to a question about their subject.
///
/// | subject (1 + 20 or 32) | height (8, BE) | place (4, BE) | → [`Waiter`] (protobuf)
#[derive(Debug)]
pub struct Waiting;

impl Table for Waiting {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_waiting", tag: 0x52, access: Access::Scan };
    type Key = (Owner, u64, u32);
    type Value = Message<Waiter>;
}
