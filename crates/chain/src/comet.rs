//! `CometBFT`'s answers to `/block` and `/block_results`, borrowed from their bytes.
//!
//! An answer of a node that does not have the block yet must never pass for an empty block: such answers are errors
//! with [`Error::is_not_ready`]. Members that `CometBFT` leaves out get their defaults.

pub mod header;
pub mod light;
pub mod order;
pub mod proof;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::comet::header::{BlockId, Commit, FullHeader};
use crate::hash::Hash;
use crate::serde_lenient::{JsonText, list, number};
use crate::time::{BadTime, Timestamp};

/// The `result` of `/block?height=`.
#[derive(Debug)]
pub struct BlockResponse<'a> {
    /// `block_id.hash`.
    pub hash: Hash,
    /// The members of the header that the index uses, checked.
    pub header: Header,
    /// The whole header, for the computation of its hash.
    pub full_header: FullHeader,
    /// The raw transactions in base64, in block order; see [`BlockResponse::raw_txs`].
    pub txs: Vec<JsonText<'a>>,
    last_commit: Option<&'a RawValue>,
}

/// The members of a block header that the index uses.
#[derive(Debug)]
pub struct Header {
    /// The chain that the block belongs to.
    pub chain_id: String,
    /// The block's height.
    pub height: u64,
    /// The block's time.
    pub time: Timestamp,
    /// Hash of the block before; `None` in a chain's first block.
    pub last_block_hash: Option<Hash>,
    /// Merkle root over the block's transactions: see [`crate::comet::proof::data_hash`].
    pub data_hash: Option<Hash>,
    /// Merkle root over the results of the block *before*: see [`crate::comet::proof::results_hash`].
    pub last_results_hash: Option<Hash>,
    /// Consensus address of the proposer.
    pub proposer_address: [u8; 20],
}

/// The `result` of `/block_results?height=`.
#[derive(Debug, Deserialize)]
#[serde(from = "ResultsShape<'a>", bound(deserialize = "'de: 'a"))]
pub struct ResultsResponse<'a> {
    /// The height that the results belong to.
    pub height: u64,
    /// One result per transaction, in block order; empty also if the node printed `null`.
    pub txs_results: Vec<TxResult<'a>>,
    /// The application's state hash after the block, in base64; `None` before `CometBFT` 0.38.
    pub app_hash: Option<JsonText<'a>>,
    /// Events of the block itself: `finalize_block_events`, else `begin_block_events` and then `end_block_events`.
    pub finalize_block_events: Vec<Event<'a>>,
}

/// The result of one transaction.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct TxResult<'a> {
    /// 0 on success.
    #[serde(deserialize_with = "number")]
    pub code: u32,
    /// The result data in base64.
    pub data: Option<JsonText<'a>>,
    /// Empty on success, else the error; before cosmos-sdk 0.50 a JSON array on success.
    pub log: JsonText<'a>,
    /// Free text, nearly always empty.
    pub info: JsonText<'a>,
    /// The declared gas limit.
    #[serde(deserialize_with = "number")]
    pub gas_wanted: i64,
    /// The gas used.
    #[serde(deserialize_with = "number")]
    pub gas_used: i64,
    /// The events, in order.
    #[serde(deserialize_with = "list")]
    pub events: Vec<Event<'a>>,
    /// The namespace of `code`; empty on success.
    pub codespace: JsonText<'a>,
}

/// One event of a transaction or of a block.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Event<'a> {
    /// The event's type.
    #[serde(rename = "type")]
    pub kind: JsonText<'a>,
    /// The attributes, in order; keys may repeat.
    #[serde(deserialize_with = "list")]
    pub attributes: Vec<Attribute<'a>>,
}

/// One attribute of an event.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub struct Attribute<'a> {
    /// The key.
    pub key: JsonText<'a>,
    /// The value; empty also if the node printed `null`, as on the deployed server.
    pub value: JsonText<'a>,
    /// True if the answering node indexes the attribute: a setting of the node (`index-events`), not of the chain, so it is
    /// written as its default, true.
    #[serde(serialize_with = "always")]
    pub index: bool,
}

/// Why an answer of `CometBFT` cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is not UTF-8.
    #[error("the answer of {route} is not utf-8: {source}")]
    NotUtf8 {
        /// The route.
        route: &'static str,
        /// The position of the error.
        source: std::str::Utf8Error,
    },
    /// The answer is not JSON of the expected shape.
    #[error("the answer of {route} does not have the shape that CometBFT 0.34 to 1.x documents: {source}")]
    Shape {
        /// The route.
        route: &'static str,
        /// The error of serde, with line and column.
        source: serde_json::Error,
    },
    /// `block: null` or an empty block id: the node lists the height but does not have the block.
    #[error("the node has no block in its answer of /block: ask again")]
    BlockMissing,
    /// There are transactions but no results: the node has not executed the block yet.
    #[error("block {height} has {txs} transactions and the node has no results for it: ask again")]
    ResultsMissing {
        /// Height of the block.
        height: u64,
        /// Transactions in the block.
        txs: usize,
    },
    /// The numbers of transactions and of results differ.
    #[error("block {height} has {txs} transactions and {results} results: ask again, or another endpoint")]
    CountMismatch {
        /// Height of the block.
        height: u64,
        /// Transactions in the block.
        txs: usize,
        /// Results in the answer.
        results: usize,
    },
    /// The results belong to another height.
    #[error("the results of height {results} came for block {block}: ask again, or another endpoint")]
    HeightMismatch {
        /// Height of the block.
        block: u64,
        /// Height in the results.
        results: u64,
    },
    /// A hash or address has the wrong length.
    #[error("{member} is {text:?}, expected {bytes} bytes in hex")]
    BadLength {
        /// The member of the answer.
        member: &'static str,
        /// The value in hex.
        text: String,
        /// The expected length.
        bytes: usize,
    },
    /// The header's height is below 0.
    #[error("block.header.height is {height}, expected 0 or more")]
    BadHeight {
        /// The value.
        height: i64,
    },
    /// The header's time is out of range.
    #[error("block.header.time: {0}")]
    BadTime(#[from] BadTime),
    /// A raw transaction is not base64.
    #[error("block.data.txs[{index}] is not base64: {source}")]
    BadTx {
        /// Position in the block.
        index: usize,
        /// The position of the error.
        source: base64::DecodeError,
    },
}

impl Error {
    /// True if a repeated request may return the right answer.
    pub fn is_not_ready(&self) -> bool {
        matches!(
            self,
            Self::BlockMissing
                | Self::ResultsMissing { .. }
                | Self::CountMismatch { .. }
                | Self::HeightMismatch { .. }
        )
    }
}

/// Reads the `result` of `/block`.
pub fn parse_block(answer: &[u8]) -> Result<BlockResponse<'_>, Error> {
    let shape: BlockShape<'_> = parse("/block", answer)?;
    let (id, block) = match (shape.block_id, shape.block) {
        (Some(id), Some(block)) if !id.hash.is_empty() => (id, block),
        _ => return Err(Error::BlockMissing),
    };
    Ok(BlockResponse {
        hash: sized("block_id.hash", &id.hash)?,
        header: header(&block.header)?,
        full_header: block.header,
        txs: block.data.txs,
        last_commit: block.last_commit,
    })
}

/// Reads the `result` of `/block_results`.
pub fn parse_results(answer: &[u8]) -> Result<ResultsResponse<'_>, Error> {
    parse("/block_results", answer)
}

/// Checks that both answers are of one height and that each transaction has a result.
pub fn check_pair(block: &BlockResponse<'_>, results: &ResultsResponse<'_>) -> Result<(), Error> {
    let (height, txs) = (block.header.height, block.txs.len());
    if results.height != height {
        return Err(Error::HeightMismatch { block: height, results: results.height });
    }
    match results.txs_results.len() {
        count if count == txs => Ok(()),
        0 => Err(Error::ResultsMissing { height, txs }),
        results => Err(Error::CountMismatch { height, txs, results }),
    }
}

impl BlockResponse<'_> {
    /// The raw bytes of each transaction, in block order.
    pub fn raw_txs(&self) -> Result<Vec<Vec<u8>>, Error> {
        let decode = |(index, tx): (usize, &JsonText<'_>)| {
            BASE64.decode(tx.as_bytes()).map_err(|source| Error::BadTx { index, source })
        };
        self.txs.iter().enumerate().map(decode).collect()
    }

    /// The signatures under the parent block; all empty if the node has none.
    pub fn last_commit(&self) -> Result<Commit, Error> {
        let Some(commit) = self.last_commit else { return Ok(Commit::default()) };
        serde_json::from_str(commit.get())
            .map_err(|source| Error::Shape { route: "/block (last_commit)", source })
    }
}

impl TxResult<'_> {
    /// The result data: protobuf, empty if there is none.
    pub fn data_bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
        BASE64.decode(self.data.as_deref().unwrap_or_default())
    }
}

impl<'a> Event<'a> {
    /// An event with these values of one key.
    pub(crate) fn of(kind: &'a str, key: &'a str, values: impl IntoIterator<Item = String>) -> Self {
        let attribute = |value: String| Attribute { key: key.into(), value: value.into(), index: true };
        Self { kind: kind.into(), attributes: values.into_iter().map(attribute).collect() }
    }

    /// The same, of the message at `place`.
    pub(crate) fn of_message(mut self, place: usize) -> Self {
        let value = place.to_string().into();
        self.attributes.push(Attribute { key: "msg_index".into(), value, index: true });
        self
    }

    /// The value of the first attribute with this key.
    pub fn value(&self, key: &str) -> Option<&JsonText<'a>> {
        self.attributes.iter().find(|attribute| attribute.key == key).map(|attribute| &attribute.value)
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct BlockShape<'a> {
    block_id: Option<BlockId>,
    block: Option<BlockBody<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct BlockBody<'a> {
    header: FullHeader,
    #[serde(default)]
    data: DataShape<'a>,
    last_commit: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct DataShape<'a> {
    #[serde(deserialize_with = "list")]
    txs: Vec<JsonText<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ResultsShape<'a> {
    #[serde(deserialize_with = "number")]
    height: u64,
    #[serde(deserialize_with = "list")]
    txs_results: Vec<TxResult<'a>>,
    app_hash: Option<JsonText<'a>>,
    #[serde(deserialize_with = "present")]
    finalize_block_events: Option<Vec<Event<'a>>>,
    #[serde(deserialize_with = "list")]
    begin_block_events: Vec<Event<'a>>,
    #[serde(deserialize_with = "list")]
    end_block_events: Vec<Event<'a>>,
}

impl<'a> From<ResultsShape<'a>> for ResultsResponse<'a> {
    fn from(shape: ResultsShape<'a>) -> Self {
        let is_old = shape.finalize_block_events.is_none() && shape.app_hash.is_none();
        let old = || shape.begin_block_events.into_iter().chain(shape.end_block_events).collect();
        let mut results = Self {
            height: shape.height,
            txs_results: shape.txs_results,
            app_hash: shape.app_hash,
            finalize_block_events: shape.finalize_block_events.unwrap_or_else(old),
        };
        if is_old {
            results.decode_attributes();
        }
        results
    }
}

impl ResultsResponse<'_> {
    /// Decodes attributes that are base64, as Tendermint before 0.37 writes them: if all keys and values are base64, and all
    /// keys are that of text.
    fn decode_attributes(&mut self) {
        let of_txs = self.txs_results.iter_mut().flat_map(|result| &mut result.events);
        let events = of_txs.chain(&mut self.finalize_block_events);
        let mut attributes: Vec<_> = events.flat_map(|event| &mut event.attributes).collect();
        let decode = |attribute: &Attribute<'_>| {
            let key = String::from_utf8(BASE64.decode(attribute.key.as_bytes()).ok()?).ok()?;
            let value = BASE64.decode(attribute.value.as_bytes()).ok()?;
            (!key.is_empty()).then(|| (key, String::from_utf8_lossy(&value).into_owned()))
        };
        let decoded: Option<Vec<_>> = attributes.iter().map(|attribute| decode(attribute)).collect();
        for (attribute, (key, value)) in attributes.iter_mut().zip(decoded.into_iter().flatten()) {
            (attribute.key, attribute.value) = (key.into(), value.into());
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn always<S: Serializer>(_: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(true)
}

/// A list that is present and not `null`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Vec<T>>, D::Error> {
    Option::deserialize(from)
}

fn parse<'a, T: Deserialize<'a>>(route: &'static str, answer: &'a [u8]) -> Result<T, Error> {
    // One pass over the whole answer is much cheaper than serde's check of every string.
    let text = std::str::from_utf8(answer).map_err(|source| Error::NotUtf8 { route, source })?;
    serde_json::from_str(text).map_err(|source| Error::Shape { route, source })
}

fn header(full: &FullHeader) -> Result<Header, Error> {
    Ok(Header {
        height: u64::try_from(full.height).map_err(|_| Error::BadHeight { height: full.height })?,
        time: full.time.try_into()?,
        last_block_hash: optional_hash("block.header.last_block_id.hash", &full.last_block_id.hash)?,
        data_hash: optional_hash("block.header.data_hash", &full.data_hash)?,
        last_results_hash: optional_hash("block.header.last_results_hash", &full.last_results_hash)?,
        proposer_address: sized("block.header.proposer_address", &full.proposer_address)?,
        chain_id: full.chain_id.clone(),
    })
}

fn optional_hash(member: &'static str, bytes: &[u8]) -> Result<Option<Hash>, Error> {
    if bytes.is_empty() { Ok(None) } else { sized(member, bytes).map(Some) }
}

fn sized<const N: usize>(member: &'static str, bytes: &[u8]) -> Result<[u8; N], Error> {
    bytes.try_into().map_err(|_| Error::BadLength { member, text: hex::encode_upper(bytes), bytes: N })
}
