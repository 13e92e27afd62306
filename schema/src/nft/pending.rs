//! Pending metadata: queries to the node about NFTs and proposers, and the events that wait for their answers.

use store::{Order, Snapshot};

use super::{NonCollections, Place};
use crate::keys::AccountKey;

/// A metadata query to the node at the height of its key.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Question {
    /// The requested metadata.
    #[prost(oneof = "About", tags = "1, 2, 3, 4, 7, 8")]
    pub about: Option<About>,
    /// Transfers of the token since, at which the query is repeated as long as the contract refuses it.
    #[prost(message, repeated, tag = "5")]
    pub later: Vec<Place>,
    /// True if the answer is known, and the rest of the events that waited for it, from this place on, is to be applied.
    #[prost(bool, tag = "6")]
    pub rest: bool,
}

/// The requested metadata.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, prost::Oneof)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Whether an address is a collection, and its name and creator.
    #[prost(message, tag = "1")]
    Collection(Subject),
    /// Move: whether an object is a token, and its id.
    #[prost(message, tag = "2")]
    Object(Subject),
    /// The URI of a token.
    #[prost(message, tag = "3")]
    Uri(TokenKey),
    /// The URIs of the tokens of a renewal ([`super::Renewals`]).
    #[prost(message, tag = "4")]
    Range(RangeCursor),
    /// The validator that proposed the block, by its consensus address.
    #[prost(message, tag = "7")]
    Proposer(Subject),
    /// The name of a collection, which may have changed.
    #[prost(message, tag = "8")]
    Name(Subject),
}

/// The contract or object whose metadata pending events need.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, prost::Message)]
pub struct Subject {
    /// Its address, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// EVM: id of a token expected in the collection, in decimal; empty if no token is left.
    #[prost(string, tag = "2")]
    pub token_id: String,
    /// EVM: the owner of that token at the end of the block; empty if no token is left.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub owner: Vec<u8>,
}

/// Identifies a token like [`super::TokenName`], and serves as a hash key.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, prost::Message)]
pub struct TokenKey {
    /// Address of the collection, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub collection: Vec<u8>,
    /// The token's id in it.
    #[prost(string, tag = "2")]
    pub token_id: String,
    /// Move: its object, 32 bytes; else empty.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub object: Vec<u8>,
}

/// How far a renewal has come: its tokens are queried in the order of their ids.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize, prost::Message)]
pub struct RangeCursor {
    /// Address of the collection, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub collection: Vec<u8>,
    /// The last id that was reached; empty before the first.
    #[prost(string, tag = "2")]
    pub after: String,
}

/// A pending event. Addresses are those of the event: 20 or 32 bytes, empty if there is none.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct PendingEvent {
    /// The block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "1")]
    pub time: i64,
    /// Sequence of the transaction; 0 outside of transactions.
    #[prost(uint64, tag = "2")]
    pub tx: u64,
    /// 0 instantiation, 1 mint, 2 transfer, 3 burn, 4 new URI, 5 metadata update, 6 new name.
    #[prost(uint32, tag = "3")]
    pub kind: u32,
    /// The collection, if the event names it.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "4")]
    pub collection: Vec<u8>,
    /// The token's id, if the event names it.
    #[prost(string, optional, tag = "5")]
    pub token_id: Option<String>,
    /// Move: the token's object.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "6")]
    pub object: Vec<u8>,
    /// Its owner after the event.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "7")]
    pub owner: Vec<u8>,
    /// Its URI, if the event contains it.
    #[prost(string, optional, tag = "8")]
    pub uri: Option<String>,
    /// The first and the last id of a metadata update of a range, 32 bytes each; else empty.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "9")]
    pub range: Vec<u8>,
}

/// The queries whether an address is a collection that the node denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    first: u64,
    last: u64,
}

impl Refusals {
    /// Those about `address`; `None` if there are none.
    pub fn read(snapshot: &dyn Snapshot, address: AccountKey) -> Result<Option<Self>, store::Error> {
        let end = |order| store::table::rows::<NonCollections>(snapshot, &address, order, 1);
        let Some(((_, last), ())) = end(Order::Desc)?.pop() else { return Ok(None) };
        let first = end(Order::Asc)?.pop().map_or(last, |((_, first), ())| first);
        Ok(Some(Self { first, last }))
    }

    /// Whether an event of `height` may raise the query again: the time without it doubles with each refusal, so a
    /// contract costs as many queries as the chain's height has digits in binary.
    pub fn may_ask(&self, height: u64) -> bool {
        let pause = (self.last - self.first).max(1);
        height >= self.last.saturating_add(pause)
    }
}
