//! Entries of the NFT event log.

use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use store::key::Text;
use store::{Key, Message, Snapshot, Table as _};

use super::{Collection, NftLog, Token, TokenName};
use crate::Error;
use crate::keys::AccountKey;

/// A place in the log, in chain order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Message)]
pub struct Place {
    /// The block.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// The position in the block: twice the ordinal of the event, minus one for a collection first seen with that
    /// event; the greatest number for what happens at the end of the block.
    #[prost(uint32, tag = "2")]
    pub ordinal: u32,
    /// Distinguishes the entries that follow from one event; empty for the event itself.
    #[prost(string, tag = "3")]
    pub part: String,
}

impl Place {
    /// The place of an event itself.
    pub fn of_event(height: u64, ordinal: u32) -> Self {
        Self { height, ordinal, part: String::new() }
    }

    /// The place of what an event at this place means for `token`.
    #[must_use]
    pub fn of_token(&self, token: &TokenName) -> Self {
        let part = format!("{}/{}", hex::encode(&token.collection), token.token_id);
        Self { part, ..self.clone() }
    }
}

/// As in keys: its components.
impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.height, self.ordinal, &self.part).serialize(serializer)
    }
}

impl Key for Place {
    fn put(&self, out: &mut Vec<u8>) {
        self.height.put(out);
        self.ordinal.put(out);
        Text(self.part.clone()).put(out);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.extend([self.height.into(), self.ordinal.into(), self.part.as_str().into()]);
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let (height, ordinal, Text(part)) = Key::take(input)?;
        Some(Self { height, ordinal, part })
    }
}

/// One NFT event.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Entry {
    /// The block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "1")]
    pub time: i64,
    /// Sequence of the transaction; 0 outside of transactions.
    #[prost(uint64, tag = "2")]
    pub tx: u64,
    /// The change.
    #[prost(oneof = "Change", tags = "3, 4, 5, 6, 7, 8, 9")]
    pub change: Option<Change>,
}

impl Entry {
    /// The URI in the entry of a mint or of a new URI.
    pub fn uri(self) -> Option<String> {
        match self.change? {
            Change::Mint(mint) => Some(mint.uri),
            Change::Uri(new) => Some(new.uri),
            _ => None,
        }
    }
}

/// The kinds of event.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Oneof)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A collection was created, or seen for the first time.
    #[prost(message, tag = "3")]
    Collection(NewCollection),
    /// A token was minted, or seen for the first time.
    #[prost(message, tag = "4")]
    Mint(Mint),
    /// A token has another owner.
    #[prost(message, tag = "5")]
    Transfer(Transfer),
    /// A token was burnt.
    #[prost(message, tag = "6")]
    Burn(TokenName),
    /// A token has another URI.
    #[prost(message, tag = "7")]
    Uri(NewUri),
    /// A class of tokens has another name on its chain of origin.
    #[prost(message, tag = "8")]
    Origin(Origin),
    /// A collection has another name, or the same one again.
    #[prost(message, tag = "9")]
    Name(NewName),
}

impl Change {
    /// The token that changes; `None` for a change of a collection.
    pub fn token(&self) -> Option<&TokenName> {
        match self {
            Self::Mint(mint) => Some(&mint.token),
            Self::Transfer(transfer) => Some(&transfer.token),
            Self::Burn(token) => Some(token),
            Self::Uri(uri) => Some(&uri.token),
            Self::Collection(_) | Self::Origin(_) | Self::Name(_) => None,
        }
    }

    /// Move: the object that a mint gives its token.
    pub fn object(&self) -> Option<&[u8]> {
        match self {
            Self::Mint(mint) => Some(mint.object.as_slice()).filter(|object| !object.is_empty()),
            _ => None,
        }
    }
}

/// The URIs of `tokens`, in their order; empty where it is not [`Outcome::Known`].
pub fn uris(snapshot: &dyn Snapshot, tokens: &[&Token]) -> Result<Vec<String>, store::Error> {
    let known = tokens.iter().filter(|token| token.outcome() == Outcome::Known);
    let places: Vec<Place> = known.map(|token| token.uri.clone()).collect();
    let mut entries = store::table::read_many::<NftLog>(snapshot, &places)?.into_iter().zip(&places);
    let mut uri = |token: &&Token| {
        let (entry, place) = (token.outcome() == Outcome::Known).then(|| entries.next()).flatten()?;
        Some(entry.and_then(|Message(entry)| entry.uri()).ok_or(place))
    };
    let missing = |place: &Place| {
        store::table::corrupt(NftLog::SPEC, &place.to_bytes(), "the entry with the URI of a token is missing")
    };
    tokens.iter().map(|token| uri(token).unwrap_or_else(|| Ok(String::new())).map_err(missing)).collect()
}

/// The key of a token's rows.
pub(super) fn token_key(token: &TokenName) -> Result<(AccountKey, Text), Error> {
    Ok((account(&token.collection)?, Text(token.token_id.clone())))
}

/// The account in an entry or in a token.
pub(super) fn account(bytes: &[u8]) -> Result<AccountKey, Error> {
    let account = chain::Account::from_bytes(bytes);
    account.map(AccountKey).ok_or_else(|| damaged("nft_log", "", "an address has neither 20 nor 32 bytes"))
}

/// A contradiction in the log, or of a table to it.
pub(super) fn damaged(table: &'static str, key: &str, reason: &str) -> Error {
    Error::Record { table, key: key.to_owned(), reason: reason.to_owned() }
}

/// A new or previously unknown collection.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct NewCollection {
    /// Its address, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// Its metadata, without the name on the chain of origin.
    #[prost(message, required, tag = "2")]
    pub collection: Collection,
}

/// A new or previously unknown token.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Mint {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// Address of its owner, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub owner: Vec<u8>,
    /// Its URI, if it is known.
    #[prost(string, tag = "3")]
    pub uri: String,
    /// Move: its object, 32 bytes; else empty.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "4")]
    pub object: Vec<u8>,
    /// What is known of the URI.
    #[prost(enumeration = "Outcome", tag = "5")]
    pub outcome: i32,
}

/// A change of a token's owner.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Transfer {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// Address of its new owner, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub owner: Vec<u8>,
}

/// A new URI of a token, or a query for it.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct NewUri {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// The URI, if it is known.
    #[prost(string, tag = "2")]
    pub uri: String,
    /// What is known of the URI.
    #[prost(enumeration = "Outcome", tag = "3")]
    pub outcome: i32,
    /// How many queries in turn the contract had refused before this one.
    #[prost(uint32, tag = "4")]
    pub refusals: u32,
}

/// What is known of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Outcome {
    /// The URI itself; empty if the token has none.
    Known = 0,
    /// Nothing: the query is pending ([`super::Questions`]).
    Open = 1,
    /// The contract refused the query.
    Refused = 2,
    /// It is longer than the index accepts.
    TooLong = 3,
}

/// The name of a collection after an event that may have changed it.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct NewName {
    /// Its address, 20 or 32 bytes.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// The name; empty if it has none.
    #[prost(string, tag = "2")]
    pub name: String,
    /// True if it is longer than the index accepts; the name is empty then.
    #[prost(bool, tag = "3")]
    pub name_too_long: bool,
}

/// The two names of a token class that was transferred by IBC.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Origin {
    /// The name on this chain.
    #[prost(string, tag = "1")]
    pub local: String,
    /// The name on the chain of origin.
    #[prost(string, tag = "2")]
    pub origin: String,
}
