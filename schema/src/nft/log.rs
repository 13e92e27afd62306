//! What happened to NFTs, as the log has it.

use super::{Collection, TokenName};

/// What happened to NFTs in one block.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Log {
    /// The block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "1")]
    pub time: i64,
    /// In the order of their places.
    #[prost(message, repeated, tag = "2")]
    pub entries: Vec<Entry>,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Entry {
    /// Where in the block: twice the ordinal of the event, one less for a collection that the event made known.
    #[prost(uint32, tag = "1")]
    pub place: u32,
    /// Sequence of the transaction; 0 for what happened outside of one.
    #[prost(uint64, tag = "2")]
    pub tx: u64,
    /// What.
    #[prost(oneof = "Change", tags = "3, 4, 5, 6, 7, 8")]
    pub change: Option<Change>,
}

/// What can happen.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub enum Change {
    /// A collection was made, or seen for the first time.
    #[prost(message, tag = "3")]
    Collection(NewCollection),
    /// A token was minted, or seen for the first time.
    #[prost(message, tag = "4")]
    Mint(Mint),
    /// A token has another owner.
    #[prost(message, tag = "5")]
    Transfer(Transfer),
    /// A token is gone.
    #[prost(message, tag = "6")]
    Burn(TokenName),
    /// A token has another URI.
    #[prost(message, tag = "7")]
    Uri(NewUri),
    /// Collections of a name came from one of another name.
    #[prost(message, tag = "8")]
    Origin(Origin),
}

/// A collection that was not known.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NewCollection {
    /// Its address, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// What is known of it; without the origin's name.
    #[prost(message, required, tag = "2")]
    pub collection: Collection,
}

/// A token that did not exist, or was not known.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Mint {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// Address of its owner, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub owner: Vec<u8>,
    /// Its URI, if it is known.
    #[prost(string, tag = "3")]
    pub uri: String,
    /// Move: its object, 32 bytes; else empty.
    #[prost(bytes = "vec", tag = "4")]
    pub object: Vec<u8>,
    /// Number of the open question for the URI, 0 if there is none.
    #[prost(uint64, tag = "5")]
    pub question: u64,
}

/// A token that went to somebody.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Transfer {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// Address of its new owner, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "2")]
    pub owner: Vec<u8>,
}

/// A new URI of a token.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NewUri {
    /// Which.
    #[prost(message, required, tag = "1")]
    pub token: TokenName,
    /// The URI.
    #[prost(string, tag = "2")]
    pub uri: String,
}

/// Two names of one class of tokens.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Origin {
    /// The name on this chain.
    #[prost(string, tag = "1")]
    pub local: String,
    /// The name on the chain that it came from.
    #[prost(string, tag = "2")]
    pub origin: String,
}
