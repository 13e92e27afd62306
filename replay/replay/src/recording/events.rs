//! The transactions of a recording with their events, as in a node's transaction index.
//!
//! # Invariants
//!
//! - Only attributes that the node marks as indexed are listed, under the names that a search uses.
//! - The order is that of the chain.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::Height;

/// One transaction of the index.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) height: u64,
    /// The place in the block.
    pub(crate) index: usize,
    pub(crate) hash: [u8; 32],
    pub(crate) events: Vec<Event>,
}

/// An event with its indexed attributes.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) attributes: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Results {
    txs_results: Option<Vec<TxResult>>,
}

#[derive(Deserialize)]
struct TxResult {
    events: Option<Vec<RawEvent>>,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    attributes: Vec<RawAttribute>,
}

#[derive(Deserialize)]
struct RawAttribute {
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    index: bool,
}

/// The transactions of all heights. An unreadable height is skipped and logged.
pub(super) fn index(heights: impl Iterator<Item = Height>) -> Vec<Indexed> {
    let mut all = Vec::new();
    for height in heights {
        match of_height(&height) {
            Ok(txs) => all.extend(txs),
            Err(e) => tracing::warn!(height = height.height, "not in the index of transactions: {e}"),
        }
    }
    all
}

fn of_height(height: &Height) -> Result<Vec<Indexed>, String> {
    let raw_txs = height.raw_txs().map_err(|e| e.to_string())?;
    let results: Results = serde_json::from_slice(&height.block_results).map_err(|e| e.to_string())?;
    let results = results.txs_results.unwrap_or_default();
    if results.len() != raw_txs.len() {
        return Err(format!("{} transactions and {} results", raw_txs.len(), results.len()));
    }
    let mut txs = Vec::with_capacity(results.len());
    for (index, (raw, result)) in raw_txs.iter().zip(results).enumerate() {
        let bytes =
            STANDARD.decode(raw.as_bytes()).map_err(|e| format!("transaction {index} is not base64: {e}"))?;
        let events = result.events.unwrap_or_default().into_iter().map(event).collect();
        txs.push(Indexed { height: height.height, index, hash: Sha256::digest(bytes).into(), events });
    }
    Ok(txs)
}

/// `indexEvents` of CometBFT 0.38 (`state/txindex/kv/kv.go`): entries without a type or a key are skipped.
fn event(RawEvent { kind, attributes }: RawEvent) -> Event {
    let named = !kind.is_empty();
    let kept = attributes.into_iter().filter(|a| named && a.index && !a.key.is_empty());
    Event { kind, attributes: kept.map(|a| (a.key, a.value)).collect() }
}
