//! The object of `eth_getLogs`: blocks, contracts and topics (go-ethereum `eth/filters/api.go`).

use std::borrow::Cow;
use std::fmt;

use chain::evm::log_filter::LogFilter;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::go_json::{self, Block};

/// Maximum contracts of a query.
pub(crate) const MAX_ADDRESSES: usize = 1000;

/// Places for topics in a log.
const MAX_TOPICS: usize = 4;

/// Maximum topics of a place.
const MAX_ALTERNATIVES: usize = 1000;

/// A query for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogQuery {
    pub(crate) blocks: Blocks,
    pub(crate) filter: LogFilter,
}

/// The blocks of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// The one with this hash.
    One([u8; 32]),
    /// Those from one to another.
    Range(Block, Block),
}

/// Its members in the order of the text, because the first malformed one is reported.
struct Members<'a>(Vec<(String, &'a str)>);

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a filter")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<Self, M::Error> {
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            let value = members.next_value::<&RawValue>()?.get();
            let name = name.to_ascii_lowercase();
            if matches!(&*name, "blockhash" | "fromblock" | "toblock" | "address" | "topics") {
                // Of a repeated member the last counts.
                self.0.retain(|(known, _)| *known != name);
                self.0.push((name, value));
            }
        }
        Ok(self)
    }
}

impl LogQuery {
    /// Reads the object.
    ///
    /// # Errors
    /// The text of go-ethereum.
    pub(crate) fn read(json: &str) -> Result<Self, String> {
        if !json.starts_with('{') && json != "null" {
            let ty = go_json::go_type(json);
            return Err(format!("json: cannot unmarshal {ty} into Go value of type filters.input"));
        }
        let mut reader = serde_json::Deserializer::from_str(json);
        let members =
            reader.deserialize_map(Members(Vec::new())).map_or_else(|_| Vec::new(), |members| members.0);
        let (mut hash, mut from, mut to, mut address, mut topics) =
            (None, None, None, Json::Null, Vec::new());
        for (name, value) in members.iter().filter(|(_, value)| *value != "null") {
            match name.as_str() {
                "blockhash" => {
                    let place = "Go struct field input.blockHash of type common.Hash";
                    hash = Some(go_json::hash(value, place)?);
                }
                "fromblock" => from = Some(go_json::block(value)?),
                "toblock" => to = Some(go_json::block(value)?),
                "address" => address = serde_json::from_str(value).map_err(|_| bad_addresses())?,
                _ => topics = list_of_topics(value)?,
            }
        }
        let blocks = match (hash, from, to) {
            (Some(hash), None, None) => Blocks::One(hash),
            (Some(_), ..) => {
                let error = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";
                return Err(error.to_owned());
            }
            (None, from, to) => Blocks::Range(from.unwrap_or(Block::Head), to.unwrap_or(Block::Head)),
        };
        let addresses = addresses(&address)?;
        if topics.len() > MAX_TOPICS {
            return Err("exceed max topics".to_owned());
        }
        let topics = topics.iter().map(alternatives).collect::<Result<_, _>>()?;
        Ok(Self { blocks, filter: LogFilter::new(addresses, topics) })
    }
}

fn bad_addresses() -> String {
    "invalid addresses in query".to_owned()
}

fn addresses(json: &Json) -> Result<Vec<[u8; 20]>, String> {
    match json {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => {
            let one = sized(text, "address").map_err(|reason| format!("invalid address: {reason}"))?;
            Ok(vec![one])
        }
        Json::Array(texts) => {
            let address = |(place, json): (usize, &Json)| {
                let text = json.as_str().ok_or_else(|| format!("non-string address at index {place}"))?;
                sized(text, "address").map_err(|reason| format!("invalid address at index {place}: {reason}"))
            };
            texts.iter().enumerate().map(address).collect()
        }
        _ => Err(bad_addresses()),
    }
}

fn list_of_topics(json: &str) -> Result<Vec<Json>, String> {
    serde_json::from_str(json).map_err(|_| {
        let ty = go_json::go_type(json);
        format!("json: cannot unmarshal {ty} into Go struct field input.topics of type []interface {{}}")
    })
}

/// The topics of a place; empty for any.
fn alternatives(json: &Json) -> Result<Vec<[u8; 32]>, String> {
    let invalid = || "invalid topic(s)".to_owned();
    match json {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok(vec![sized(text, "topic")?]),
        Json::Array(texts) if texts.len() > MAX_ALTERNATIVES => Err("exceed max topics".to_owned()),
        Json::Array(texts) => {
            let mut topics = Vec::with_capacity(texts.len());
            for json in texts {
                match json {
                    Json::Null => return Ok(Vec::new()),
                    Json::String(text) => topics.push(sized(text, "topic")?),
                    _ => return Err(invalid()),
                }
            }
            Ok(topics)
        }
        _ => Err(invalid()),
    }
}

fn sized<const N: usize>(text: &str, what: &str) -> Result<[u8; N], String> {
    let bytes = go_json::bytes(text)?;
    let length = bytes.len();
    bytes
        .try_into()
        .map_err(|_| format!("hex has invalid length {length} after decoding; expected {N} for {what}"))
}
