//! NFTs by event sourcing: an event log, and the tables of collections and tokens that are derived from it.
//!
//! The log ([`NftLog`]) holds the NFT events of each block, completed with the names and URIs that the node returned.
//! Every other table here is a fold of the log ([`fold`]), except the tables of metadata queries ([`NonCollections`],
//! [`Questions`], [`PendingEvents`], [`Renewals`]). A URI is stored once, in the log. A repair applies the whole log
//! again ([`rebuild`]).
//!
//! # Invariants
//!
//! The derived tables depend on the log alone, not on the time at which metadata arrived.

pub mod fold;
mod indexes;
mod log;
mod pending;
pub mod rebuild;
pub mod renewal;

pub use self::log::{
    Change, Entry, Mint, NewCollection, NewName, NewUri, Origin, Outcome, Place, Transfer, uris,
};
pub use self::pending::{About, PendingEvent, Question, RangeCursor, Refusals, Subject, TokenKey};
pub use self::renewal::Renewal;

use store::key::Text;
use store::{Access, List, Message, Ranked, Table, TableSpec};

use crate::keys::AccountKey;

/// Collections by address.
///
/// | collection (1 + 20 or 32) | → [`Collection`] (protobuf)
#[derive(Debug)]
pub struct Collections;

impl Table for Collections {
    const SPEC: &'static TableSpec = &TableSpec { name: "collection", tag: 0x40, access: Access::Point };
    type Key = AccountKey;
    type Value = Message<Collection>;
}

/// A collection.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Collection {
    /// Its name on this chain; empty if it has none.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its name on the chain of origin, if it was transferred by IBC.
    #[prost(string, tag = "2")]
    pub origin_name: String,
    /// Address of its creator, 20 or 32 bytes; empty if unknown.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub creator: Vec<u8>,
    /// The height that the API shows: of its creation, or on an EVM chain of the first transaction that involved it.
    #[prost(uint64, tag = "4")]
    pub height: u64,
    /// That block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "5")]
    pub time: i64,
    /// True if its name is longer than the index accepts; the name is empty then.
    #[prost(bool, tag = "6")]
    pub name_too_long: bool,
    /// The place of the query that had this name; none if it is that of its creation.
    #[prost(message, optional, tag = "7")]
    pub named: Option<Place>,
}

/// All collections, ordered by [`Collection::height`], then by address.
///
/// | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct CollectionsByHeight;

impl Table for CollectionsByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "collection_by_height", tag: 0x41, access: Access::Ranked };
    type Key = ((), (u64, AccountKey));
    type Value = ();
}

impl Ranked for CollectionsByHeight {
    type Owner = ();
    type Item = (u64, AccountKey);
}

/// Collections of which an account currently owns tokens, ordered like [`CollectionsByHeight`].
///
/// | owner (1 + 20 or 32) | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedCollections;

impl Table for OwnedCollections {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "owned_collection", tag: 0x42, access: Access::Ranked };
    type Key = (AccountKey, (u64, AccountKey));
    type Value = ();
}

impl Ranked for OwnedCollections {
    type Owner = AccountKey;
    type Item = (u64, AccountKey);
}

/// Existing tokens by collection, ordered by the bytes of their ids.
///
/// | collection (1 + 20 or 32) | token id (escaped text) | → [`Token`] (protobuf)
#[derive(Debug)]
pub struct Tokens;

impl Table for Tokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "token", tag: 0x43, access: Access::Ranked };
    type Key = (AccountKey, Text);
    type Value = Message<Token>;
}

impl Ranked for Tokens {
    type Owner = AccountKey;
    type Item = Text;
}

/// A token that exists.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Token {
    /// Address of its owner, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub owner: Vec<u8>,
    /// The log entry that holds its URI.
    #[prost(message, required, tag = "2")]
    pub uri: Place,
    /// Move: address of the token's object, 32 bytes; else empty.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub object: Vec<u8>,
    /// The block that last minted it, moved it or changed its URI.
    #[prost(uint64, tag = "4")]
    pub height: u64,
    /// That block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "5")]
    pub time: i64,
    /// What the entry `uri` knows of the URI.
    #[prost(enumeration = "Outcome", tag = "6")]
    pub outcome: i32,
    /// The newest entry that waits for an answer about the URI, unless a newer one has it.
    #[prost(message, optional, tag = "7")]
    pub open: Option<Place>,
    /// How many queries for the URI in turn the contract has refused.
    #[prost(uint32, tag = "8")]
    pub refusals: u32,
    /// Where it was minted, or first seen.
    #[prost(message, required, tag = "9")]
    pub minted: Place,
}

impl Token {
    /// The newest entry about the URI.
    pub fn asked(&self) -> &Place {
        self.open.as_ref().unwrap_or(&self.uri)
    }
}

/// Tokens of a collection by the height of their last change, then by id.
///
/// | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct TokensByHeight;

impl Table for TokensByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "token_by_height", tag: 0x44, access: Access::Ranked };
    type Key = (AccountKey, (u64, Text));
    type Value = ();
}

impl Ranked for TokensByHeight {
    type Owner = AccountKey;
    type Item = (u64, Text);
}

/// Tokens of an account by id, then by the height of their last change, then by collection.
///
/// | owner (1 + 20 or 32) | token id (escaped text) | height (8, BE) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedTokens;

impl Table for OwnedTokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "owned_token", tag: 0x45, access: Access::Ranked };
    type Key = (AccountKey, (Text, u64, AccountKey));
    type Value = ();
}

impl Ranked for OwnedTokens {
    type Owner = AccountKey;
    type Item = (Text, u64, AccountKey);
}

/// Tokens of an account by the height of their last change, then by id, then by collection.
///
/// | owner (1 + 20 or 32) | height (8, BE) | token id (escaped text) | collection (1 + 20 or 32) | → nothing
#[derive(Debug)]
pub struct OwnedTokensByHeight;

impl Table for OwnedTokensByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "owned_token_by_height", tag: 0x46, access: Access::Ranked };
    type Key = (AccountKey, (u64, Text, AccountKey));
    type Value = ();
}

impl Ranked for OwnedTokensByHeight {
    type Owner = AccountKey;
    type Item = (u64, Text, AccountKey);
}

/// Tokens of an account in one collection, by id.
///
/// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct Holdings;

impl Table for Holdings {
    const SPEC: &'static TableSpec = &TableSpec { name: "holding", tag: 0x47, access: Access::Ranked };
    type Key = ((AccountKey, AccountKey), Text);
    type Value = ();
}

impl Ranked for Holdings {
    type Owner = (AccountKey, AccountKey);
    type Item = Text;
}

/// Tokens of an account in one collection, by the height of their last change, then by id.
///
/// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
#[derive(Debug)]
pub struct HoldingsByHeight;

impl Table for HoldingsByHeight {
    const SPEC: &'static TableSpec =
        &TableSpec { name: "holding_by_height", tag: 0x48, access: Access::Ranked };
    type Key = ((AccountKey, AccountKey), (u64, Text));
    type Value = ();
}

impl Ranked for HoldingsByHeight {
    type Owner = (AccountKey, AccountKey);
    type Item = (u64, Text);
}

/// Transactions that minted, moved or burnt a token, oldest first; kept after a burn. Empty on Move chains, which use
/// the transactions of the token's object ([`crate::tx::AccountTxs`]).
///
/// | collection (1 + 20 or 32) | token id (escaped text) | first ordinal (8, BE) | → up to 32 seqs (varints)
#[derive(Debug)]
pub struct TokenTxs;

impl List for TokenTxs {
    const SPEC: &'static TableSpec = &TableSpec { name: "token_tx", tag: 0x49, access: Access::Scan };
    type Owner = (AccountKey, Text);
}

/// Move: the object of a token; kept after a burn.
///
/// | collection (1 + 20 or 32) | token id (escaped text) | → address of the object (32)
#[derive(Debug)]
pub struct TokenObjects;

impl Table for TokenObjects {
    const SPEC: &'static TableSpec = &TableSpec { name: "token_object", tag: 0x4a, access: Access::Point };
    type Key = (AccountKey, Text);
    type Value = Vec<u8>;
}

/// Move: the token that an object represents; kept after a burn.
///
/// | object (1 + 20 or 32) | → [`TokenName`] (protobuf)
#[derive(Debug)]
pub struct ObjectTokens;

impl Table for ObjectTokens {
    const SPEC: &'static TableSpec = &TableSpec { name: "object_token", tag: 0x4b, access: Access::Point };
    type Key = AccountKey;
    type Value = Message<TokenName>;
}

/// Identifies a token.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct TokenName {
    /// Address of the collection, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub collection: Vec<u8>,
    /// The token's id in it.
    #[prost(string, tag = "2")]
    pub token_id: String,
}

/// Names of collections on their chain of origin, by their name on this chain.
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
    type Key = (Text, AccountKey);
    type Value = ();
}

/// Change log of collection names: an entry for each new or renamed collection. A cache of names reads on from the last
/// number it has applied. A row without an address invalidates all names. Not part of the digest.
///
/// | number (8, BE) | → address of the collection (20, 32 or 0)
#[derive(Debug)]
pub struct NameChanges;

impl Table for NameChanges {
    const SPEC: &'static TableSpec = &TableSpec { name: "name_change", tag: 0x4e, access: Access::Scan };
    type Key = u64;
    type Value = Vec<u8>;
}

/// The NFT event log. An entry holds what an event, completed by the node's answers, changes.
///
/// | height (8, BE) | position in the block (4, BE) | part (escaped text) | → [`Entry`] (protobuf)
#[derive(Debug)]
pub struct NftLog;

impl Table for NftLog {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_log", tag: 0x4f, access: Access::Scan };
    type Key = Place;
    type Value = Message<Entry>;
}

/// Contracts and objects that emitted an NFT-like event but were not NFTs when the node was queried ([`Refusals`]).
///
/// | address (1 + 20 or 32) | height at which that was found out (8, BE) | → nothing
#[derive(Debug)]
pub struct NonCollections;

impl Table for NonCollections {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_refused", tag: 0x50, access: Access::Scan };
    type Key = (AccountKey, u64);
    type Value = ();
}

/// Pending metadata queries, retried until the node answers, by the event that raised them: the key of the log entry
/// that the answer completes. A query about the block itself has position 0.
///
/// | height (8, BE) | position in the block (4, BE) | part (escaped text) | → [`Question`] (protobuf)
#[derive(Debug)]
pub struct Questions;

impl Table for Questions {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_question", tag: 0x51, access: Access::Scan };
    type Key = Place;
    type Value = Message<Question>;
}

/// Pending events: they wait for the metadata query about their contract or object.
///
/// | subject (1 + 20 or 32) | height (8, BE) | position in the block (4, BE) | → [`PendingEvent`] (protobuf)
#[derive(Debug)]
pub struct PendingEvents;

impl Table for PendingEvents {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_waiting", tag: 0x52, access: Access::Scan };
    type Key = (AccountKey, u64, u32);
    type Value = Message<PendingEvent>;
}

/// Renewals by contract. Kept when they are done, to delay the next one.
///
/// | collection (1 + 20 or 32) | height (8, BE) | position in the block (4, BE) | → [`Renewal`] (protobuf)
#[derive(Debug)]
pub struct Renewals;

impl Table for Renewals {
    const SPEC: &'static TableSpec = &TableSpec { name: "nft_renewal", tag: 0x53, access: Access::Scan };
    type Key = (AccountKey, u64, u32);
    type Value = Message<Renewal>;
}
