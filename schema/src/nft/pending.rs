//! Pending NFT metadata: queries to the node, and the events that wait for their answers.

/// The number of the query about the event at `place` of the block at `height`.
pub fn question_number(height: u64, place: u32) -> u64 {
    (height << PLACE_BITS) | u64::from(place)
}

/// The height of a query.
pub fn question_height(number: u64) -> u64 {
    number >> PLACE_BITS
}

/// 16 million places in a block, and 10^12 heights.
const PLACE_BITS: u32 = 24;

/// A metadata query to the node at some height.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Question {
    /// The requested metadata.
    #[prost(oneof = "About", tags = "1, 2, 3")]
    pub about: Option<About>,
}

/// The requested metadata.
#[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
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
}

/// The contract or object whose metadata pending events need.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Subject {
    /// Its address, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub address: Vec<u8>,
    /// EVM: id of a token expected in the collection, in decimal; empty if no token is left.
    #[prost(string, tag = "2")]
    pub token_id: String,
    /// EVM: the owner of that token at the end of the block; empty if no token is left.
    #[prost(bytes = "vec", tag = "3")]
    pub owner: Vec<u8>,
}

/// Identifies a token like [`super::TokenName`], and serves as a hash key.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct TokenKey {
    /// Address of the collection, 20 or 32 bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub collection: Vec<u8>,
    /// The token's id in it.
    #[prost(string, tag = "2")]
    pub token_id: String,
    /// Move: its object, 32 bytes; else empty.
    #[prost(bytes = "vec", tag = "3")]
    pub object: Vec<u8>,
}

/// A pending event. Addresses are those of the event: 20 or 32 bytes, empty if there is none.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PendingEvent {
    /// The block's header time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "1")]
    pub time: i64,
    /// Sequence of the transaction; 0 outside of transactions.
    #[prost(uint64, tag = "2")]
    pub tx: u64,
    /// 1 mint, 2 transfer, 3 burn.
    #[prost(uint32, tag = "3")]
    pub kind: u32,
    /// The collection, if the event names it.
    #[prost(bytes = "vec", tag = "4")]
    pub collection: Vec<u8>,
    /// The token's id, if the event names it.
    #[prost(string, optional, tag = "5")]
    pub token_id: Option<String>,
    /// Move: the token's object.
    #[prost(bytes = "vec", tag = "6")]
    pub object: Vec<u8>,
    /// Its owner after the event.
    #[prost(bytes = "vec", tag = "7")]
    pub owner: Vec<u8>,
    /// Its URI, if the event contains it.
    #[prost(string, optional, tag = "8")]
    pub uri: Option<String>,
}
