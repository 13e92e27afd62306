//! The recorded chains and golden answers of the repository, line by line.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// All recorded chains.
pub const CHAINS: [&str; 6] =
    ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2", "evm-load"];

/// What a node said of one height.
#[derive(Deserialize)]
pub struct Height {
    pub height: u64,
    pub block: Box<RawValue>,
    pub block_results: Box<RawValue>,
    #[serde(default)]
    pub rest_txs: Option<Vec<Value>>,
    #[serde(default)]
    pub eth_receipts: Option<Box<RawValue>>,
    #[serde(default)]
    pub eth_trace: Option<EthTrace>,
}

#[derive(Deserialize)]
pub struct EthTrace {
    pub result: Option<Box<RawValue>>,
}

/// A question and the deployed server's answer.
#[derive(Deserialize)]
pub struct Golden {
    pub u: String,
    pub r: Answer,
}

#[derive(Deserialize)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Height {
    pub fn receipts(&self) -> &[u8] {
        self.eth_receipts.as_ref().map_or(b"[]", |raw| raw.get().as_bytes())
    }

    pub fn traces(&self) -> &[u8] {
        let result = self.eth_trace.as_ref().and_then(|trace| trace.result.as_ref());
        result.map_or(b"[]", |raw| raw.get().as_bytes())
    }
}

/// The heights of a recorded chain in order.
pub fn heights(chain: &str) -> impl Iterator<Item = Height> {
    lines(&format!("recordings/{chain}/blocks.ndjson.zst"))
}

/// The golden answers of a chain.
pub fn goldens(chain: &str) -> impl Iterator<Item = Golden> {
    lines(&format!("goldens/{chain}.ndjson.zst"))
}

fn lines<T: DeserializeOwned>(file: &str) -> impl Iterator<Item = T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let decoder = zstd::Decoder::new(file).unwrap();
    BufReader::new(decoder).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}
