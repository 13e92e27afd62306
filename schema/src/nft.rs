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

use store::Message;
use store::key::Text;

use crate::keys::AccountKey;

store::tables! {
    /// Collections by address.
    ///
    /// | collection (1 + 20 or 32) | → [`Collection`] (protobuf)
    pub table Collections("collection", 0x40, Point): AccountKey => Message<Collection>;
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

store::tables! {
    /// All collections, ordered by [`Collection::height`], then by address.
    ///
    /// | height (8, BE) | collection (1 + 20 or 32) | → nothing
    pub set CollectionsByHeight("collection_by_height", 0x41): (), (u64, AccountKey) => ();

    /// Collections of which an account currently owns tokens, ordered like [`CollectionsByHeight`].
    ///
    /// | owner (1 + 20 or 32) | height (8, BE) | collection (1 + 20 or 32) | → nothing
    pub set OwnedCollections("owned_collection", 0x42): AccountKey, (u64, AccountKey) => ();

    /// Existing tokens by collection, ordered by the bytes of their ids.
    ///
    /// | collection (1 + 20 or 32) | token id (escaped text) | → [`Token`] (protobuf)
    pub set Tokens("token", 0x43): AccountKey, Text => Message<Token>;
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

store::tables! {
    /// Tokens of a collection by the height of their last change, then by id.
    ///
    /// | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
    pub set TokensByHeight("token_by_height", 0x44): AccountKey, (u64, Text) => ();

    /// Tokens of an account by id, then by the height of their last change, then by collection.
    ///
    /// | owner (1 + 20 or 32) | token id (escaped text) | height (8, BE) | collection (1 + 20 or 32) | → nothing
    pub set OwnedTokens("owned_token", 0x45): AccountKey, (Text, u64, AccountKey) => ();

    /// Tokens of an account by the height of their last change, then by id, then by collection.
    ///
    /// | owner (1 + 20 or 32) | height (8, BE) | token id (escaped text) | collection (1 + 20 or 32) | → nothing
    pub set OwnedTokensByHeight("owned_token_by_height", 0x46): AccountKey, (u64, Text, AccountKey) => ();

    /// Tokens of an account in one collection, by id.
    ///
    /// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | token id (escaped text) | → nothing
    pub set Holdings("holding", 0x47): (AccountKey, AccountKey), Text => ();

    /// Tokens of an account in one collection, by the height of their last change, then by id.
    ///
    /// | owner (1 + 20 or 32) | collection (1 + 20 or 32) | height (8, BE) | token id (escaped text) | → nothing
    pub set HoldingsByHeight("holding_by_height", 0x48): (AccountKey, AccountKey), (u64, Text) => ();

    /// Transactions that minted, moved or burnt a token, oldest first; kept after a burn. Empty on Move chains, which use
    /// the transactions of the token's object ([`crate::tx::AccountTxs`]).
    ///
    /// | collection (1 + 20 or 32) | token id (escaped text) | first ordinal (8, BE) | → up to 32 seqs (varints)
    pub list TokenTxs("token_tx", 0x49): (AccountKey, Text);

    /// Move: the object of a token; kept after a burn.
    ///
    /// | collection (1 + 20 or 32) | token id (escaped text) | → address of the object (32)
    pub table TokenObjects("token_object", 0x4a, Point): (AccountKey, Text) => Vec<u8>;

    /// Move: the token that an object represents; kept after a burn.
    ///
    /// | object (1 + 20 or 32) | → [`TokenName`] (protobuf)
    pub table ObjectTokens("object_token", 0x4b, Point): AccountKey => Message<TokenName>;
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

store::tables! {
    /// Names of collections on their chain of origin, by their name on this chain.
    ///
    /// | name here (escaped text) | → name there (UTF-8)
    pub table OriginNames("origin_name", 0x4c, Point): Text => String;

    /// Collections by exact name.
    ///
    /// | name (escaped text) | collection (1 + 20 or 32) | → nothing
    pub table CollectionsByName("collection_by_name", 0x4d, Scan): (Text, AccountKey) => ();

    /// Change log of collection names: an entry for each new or renamed collection. A cache of names reads on from the last
    /// number it has applied. A row without an address invalidates all names. Not part of the digest.
    ///
    /// | number (8, BE) | → address of the collection (20, 32 or 0)
    pub table NameChanges("name_change", 0x4e, Scan): u64 => Vec<u8>;

    /// The NFT event log. An entry holds what an event, completed by the node's answers, changes.
    ///
    /// | height (8, BE) | position in the block (4, BE) | part (escaped text) | → [`Entry`] (protobuf)
    pub table NftLog("nft_log", 0x4f, Scan): Place => Message<Entry>;

    /// Contracts and objects that emitted an NFT-like event but were not NFTs when the node was queried ([`Refusals`]).
    ///
    /// | address (1 + 20 or 32) | height at which that was found out (8, BE) | → nothing
    pub table NonCollections("nft_refused", 0x50, Scan): (AccountKey, u64) => ();

    /// Pending metadata queries, retried until the node answers, by the event that raised them: the key of the log entry
    /// that the answer completes. A query about the block itself has position 0.
    ///
    /// | height (8, BE) | position in the block (4, BE) | part (escaped text) | → [`Question`] (protobuf)
    pub table Questions("nft_question", 0x51, Scan): Place => Message<Question>;

    /// Pending events: they wait for the metadata query about their contract or object.
    ///
    /// | subject (1 + 20 or 32) | height (8, BE) | position in the block (4, BE) | → [`PendingEvent`] (protobuf)
    pub table PendingEvents("nft_waiting", 0x52, Scan): (AccountKey, u64, u32) => Message<PendingEvent>;

    /// Renewals by contract. Kept when they are done, to delay the next one.
    ///
    /// | collection (1 + 20 or 32) | height (8, BE) | position in the block (4, BE) | → [`Renewal`] (protobuf)
    pub table Renewals("nft_renewal", 0x53, Scan): (AccountKey, u64, u32) => Message<Renewal>;
}
