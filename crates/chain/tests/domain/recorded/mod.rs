//! The recorded chains and golden replies of the repository, line by line.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test stops where a file is not as recorded")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// All recorded chains.
pub(crate) const CHAINS: [&str; 6] =
    ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2", "evm-load"];

/// A node's replies about one height.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) height: u64,
    pub(crate) block: Box<RawValue>,
    pub(crate) block_results: Box<RawValue>,
    #[serde(default)]
    pub(crate) rest_txs: Option<Vec<Value>>,
    #[serde(default)]
    pub(crate) eth_block: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) eth_receipts: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) eth_trace: Option<EthTrace>,
}

#[derive(Deserialize)]
pub(crate) struct EthTrace {
    pub(crate) result: Option<Box<RawValue>>,
}

/// Another request to a node, with its reply.
#[derive(Deserialize)]
pub(crate) struct State {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) height: Option<u64>,
    #[serde(default)]
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) answer: Option<Box<RawValue>>,
    /// Of `eth_call`.
    #[serde(default)]
    pub(crate) to: String,
    #[serde(default)]
    pub(crate) data: String,
    /// Hex; `None` if the contract refused.
    #[serde(default)]
    pub(crate) result: Option<Value>,
}

/// A request and the deployed server's reply.
#[derive(Deserialize)]
pub(crate) struct Golden {
    pub(crate) u: String,
    pub(crate) r: Answer,
}

#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Line {
    pub(crate) fn receipts(&self) -> &[u8] {
        self.eth_receipts.as_ref().map_or(b"[]", |raw| raw.get().as_bytes())
    }

    pub(crate) fn traces(&self) -> &[u8] {
        let result = self.eth_trace.as_ref().and_then(|trace| trace.result.as_ref());
        result.map_or(b"[]", |raw| raw.get().as_bytes())
    }
}

/// The heights of a recorded chain in order.
pub(crate) fn heights(chain: &str) -> impl Iterator<Item = Line> {
    lines(format!("testing/recordings/{chain}/blocks.ndjson.zst"))
}

/// The other replies of a recorded chain.
pub(crate) fn states(chain: &str) -> impl Iterator<Item = State> {
    lines(format!("testing/recordings/{chain}/state.ndjson.zst"))
}

/// The golden replies of a chain.
pub(crate) fn goldens(chain: &str) -> impl Iterator<Item = Golden> {
    lines(format!("testing/goldens/{chain}.ndjson.zst"))
}

fn lines<T: DeserializeOwned>(file: String) -> impl Iterator<Item = T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let decoder = zstd::Decoder::new(file).unwrap();
    BufReader::new(decoder).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}
