//! Events of all blocks that change the state of IBC and of the optimistic bridge.
//!
//! # Invariants
//!
//! - Events of transactions that succeeded, and of blocks, in the order of the chain.

use serde::Deserialize;

use super::Height;

/// The kinds of these events.
const KINDS: [&str; 9] = [
    "send_packet",
    "recv_packet",
    "write_acknowledgement",
    "acknowledge_packet",
    "timeout_packet",
    "propose_output",
    "delete_output",
    "finalize_token_withdrawal",
    "finalize_token_deposit",
];

/// One event.
#[derive(Debug)]
pub(crate) struct Bridging {
    pub(crate) height: u64,
    /// Of the block, as in its header.
    pub(crate) time: String,
    pub(crate) kind: String,
    attributes: Vec<Attribute>,
}

impl Bridging {
    /// The value of an attribute; empty if the event lacks it.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.attributes.iter().find(|a| a.key == key).map_or("", |a| a.value.as_str())
    }

    /// The number in an attribute.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).parse().ok()
    }
}

#[derive(Deserialize)]
struct Results {
    txs_results: Option<Vec<TxResult>>,
    finalize_block_events: Option<Vec<Event>>,
}

#[derive(Deserialize)]
struct TxResult {
    #[serde(default)]
    code: u32,
    events: Option<Vec<Event>>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    attributes: Vec<Attribute>,
}

#[derive(Debug, Deserialize)]
struct Attribute {
    key: String,
    #[serde(default)]
    value: String,
}

/// The events of all heights. An unreadable height is skipped and logged.
pub(super) fn index(heights: impl Iterator<Item = Height>) -> Vec<Bridging> {
    let mut all = Vec::new();
    for height in heights {
        match of_height(&height) {
            Ok(events) => all.extend(events),
            Err(e) => tracing::warn!(height = height.height, "no state of modules follows from it: {e}"),
        }
    }
    all
}

fn of_height(height: &Height) -> Result<Vec<Bridging>, serde_json::Error> {
    let results: Results = serde_json::from_slice(&height.block_results)?;
    let txs = results.txs_results.unwrap_or_default().into_iter().filter(|tx| tx.code == 0);
    let of_txs = txs.flat_map(|tx| tx.events.unwrap_or_default());
    let events = of_txs.chain(results.finalize_block_events.unwrap_or_default());
    let mut found = Vec::new();
    for Event { kind, attributes } in events.filter(|event| KINDS.contains(&event.kind.as_str())) {
        let time = height.head()?.time.to_owned();
        found.push(Bridging { height: height.height, time, kind, attributes });
    }
    Ok(found)
}
