//! Reads recorded chains: descriptors, raw transactions and the JSON of the node's REST for them.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto::json::Registry;
use serde_json::value::RawValue;

/// One block's transactions.
pub(crate) struct Block {
    pub(crate) height: u64,
    pub(crate) raw: Vec<Vec<u8>>,
    pub(crate) rest: Vec<Json>,
}

/// The types of a recorded chain.
pub(crate) fn registry(chain: &str) -> Registry {
    Registry::from_descriptors(&descriptors(chain)).unwrap()
}

/// The chain's recorded answer to the FileDescriptors request.
pub(crate) fn descriptors(chain: &str) -> Vec<u8> {
    let line = lines(chain, "state.ndjson.zst")
        .find(|line| line.contains(&proto::reflection::PATH[1..]) && line.contains("\"cometbft\""))
        .expect("every recording has the descriptors");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let response = ["/answer/result/response/value", "/answer/response/value"];
    let value = response.iter().find_map(|path| line.pointer(path)).unwrap();
    STANDARD.decode(value.as_str().unwrap()).unwrap()
}

/// The blocks of a recorded chain that have transactions.
pub(crate) fn blocks(chain: &str) -> impl Iterator<Item = Block> {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        height: u64,
        #[serde(borrow)]
        block: Outer<'a>,
        // Left out of blocks without transactions.
        #[serde(borrow, default)]
        rest_txs: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        block: Inner<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        txs: Vec<&'a str>,
    }
    lines(chain, "blocks.ndjson.zst").map(|line| {
        let line: Line = serde_json::from_str(&line).unwrap();
        Block {
            height: line.height,
            raw: line.block.block.data.txs.iter().map(|tx| STANDARD.decode(tx).unwrap()).collect(),
            rest: line.rest_txs.iter().map(|tx| Json::parse(tx.get().as_bytes())).collect(),
        }
    })
}

fn lines(chain: &str, file: &str) -> impl Iterator<Item = String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testing/recordings").join(chain).join(file);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(zstd::Decoder::new(file).unwrap()).lines().map(Result::unwrap)
}

/// JSON that keeps the order of members and their repetitions; equal if both are the same.
#[derive(PartialEq, Clone)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn parse(text: &[u8]) -> Self {
        serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
            Self::List(items) => items.fmt(f),
            Self::Object(members) => f.debug_map().entries(members.iter().map(|(k, v)| (k, v))).finish(),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> serde::de::Visitor<'de> for Visitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(serde_json::Number::from_f64(value).unwrap()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}
