//! Transactions as a search returns them: position, result and events.
//!
//! # Invariants
//!
//! Attributes are plain text for every node version. CometBFT up to 0.34 encodes keys and values in base64, 0.37 and
//! later do not. The encoding is derived from all keys of a transaction together, because a single plain key may look
//! like base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Timestamp;
use proto::tx::{Any, Message as _, MsgExec, TxBody, TxRaw};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TxSearchHit {
    /// SHA-256 of the transaction's bytes.
    pub hash: [u8; 32],
    /// The block's height.
    pub height: u64,
    /// Position in the block, from 0. REST does not report it: 0 there.
    pub index: u32,
    /// 0 on success.
    pub code: u32,
    /// The module that defines `code`; empty if `code` is 0.
    pub codespace: String,
    /// Text of the failure, from the module (`log` of CometBFT, `raw_log` of REST). Old nodes also log successes.
    pub log: String,
    /// Events in order.
    pub events: Vec<FoundEvent>,
    /// Type URLs of its messages in order, each followed by those that it executes on behalf of others (`MsgExec`);
    /// empty for bytes that are not a transaction of the SDK.
    pub messages: Vec<String>,
}

/// One event of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEvent {
    /// For example `send_packet`.
    pub kind: String,
    /// Keys with values, in order; a key may come more than once.
    pub attributes: Vec<(String, String)>,
}

impl FoundEvent {
    /// The value of the first attribute with this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// `result` of CometBFT's `/tx`, and an item of `/tx_search`.
#[derive(Deserialize)]
pub(crate) struct CometTx {
    hash: String,
    height: String,
    #[serde(default)]
    index: u32,
    tx_result: CometResult,
    #[serde(default)]
    tx: String,
}

#[derive(Deserialize)]
struct CometResult {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    codespace: String,
    log: Option<String>,
    events: Option<Vec<Event>>,
}

/// `tx_response` of REST.
#[derive(Deserialize)]
pub(crate) struct RestTx {
    txhash: String,
    height: String,
    #[serde(default)]
    code: u32,
    #[serde(default)]
    codespace: String,
    #[serde(default)]
    raw_log: String,
    events: Option<Vec<Event>>,
    timestamp: String,
    #[serde(default)]
    tx: Value,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    attributes: Option<Vec<Attribute>>,
}

#[derive(Deserialize)]
struct Attribute {
    key: Option<String>,
    value: Option<String>,
}

/// The `result` of `/block_results`.
#[derive(Deserialize)]
pub(crate) struct BlockResults {
    txs_results: Option<Vec<CometResult>>,
}

impl BlockResults {
    /// With the transactions of the block, which is a `result` of `/block`.
    pub(crate) fn found(self, height: u64, block: &[u8]) -> Result<Vec<TxSearchHit>, String> {
        #[derive(Deserialize)]
        struct Data {
            txs: Option<Vec<String>>,
        }
        #[derive(Deserialize)]
        struct Inner {
            data: Data,
        }
        #[derive(Deserialize)]
        struct Outer {
            block: Inner,
        }
        let outer: Outer = serde_json::from_slice(block).map_err(|e| e.to_string())?;
        let (txs, results) = (outer.block.data.txs.unwrap_or_default(), self.txs_results.unwrap_or_default());
        if txs.len() != results.len() {
            return Err(format!("{} transactions and {} results", txs.len(), results.len()));
        }
        let found = (0_u32..).zip(txs.into_iter().zip(results)).map(|(index, (tx, tx_result))| {
            let bytes = STANDARD.decode(&tx).map_err(|e| format!("transaction {index}: {e}"))?;
            let hash = hex::encode(Sha256::digest(bytes));
            CometTx { hash, height: height.to_string(), index, tx_result, tx }.found()
        });
        found.collect()
    }
}

impl CometTx {
    /// Fails with the name of the invalid member.
    pub(crate) fn found(self) -> Result<TxSearchHit, String> {
        let CometResult { code, codespace, log, events } = self.tx_result;
        Ok(TxSearchHit {
            hash: hash_of(&self.hash)?,
            height: height_of(&self.height)?,
            index: self.index,
            code,
            codespace,
            log: log.unwrap_or_default(),
            events: events_of(events.unwrap_or_default()),
            messages: STANDARD.decode(self.tx).ok().and_then(|bytes| messages_of(&bytes)).unwrap_or_default(),
        })
    }
}

impl TxSearchHit {
    /// The transaction of a record in the form of REST, with the time of its block.
    ///
    /// # Errors
    /// The invalid member.
    pub fn of_record(json: &[u8]) -> Result<(Self, Timestamp), String> {
        serde_json::from_slice::<RestTx>(json).map_err(|e| e.to_string())?.found()
    }
}

impl RestTx {
    /// With the time of its block, which REST cuts to seconds.
    pub(crate) fn found(self) -> Result<(TxSearchHit, Timestamp), String> {
        let found = TxSearchHit {
            hash: hash_of(&self.txhash)?,
            height: height_of(&self.height)?,
            index: 0,
            code: self.code,
            codespace: self.codespace,
            log: self.raw_log,
            events: events_of(self.events.unwrap_or_default()),
            messages: messages_in(&self.tx),
        };
        let time = Timestamp::parse(&self.timestamp).map_err(|e| format!("timestamp: {e}"))?;
        Ok((found, time))
    }
}

/// 32 bytes in hex, of either case, with or without `0x`.
pub(crate) fn hash_of(text: &str) -> Result<[u8; 32], String> {
    let mut hash = [0; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut hash)
        .map_err(|e| format!("{text:?} is not a hash of 32 bytes: {e}"))?;
    Ok(hash)
}

/// Levels of messages within messages that are read.
const NESTED: usize = 8;

/// The type URLs of the messages of a transaction in a block.
fn messages_of(tx: &[u8]) -> Option<Vec<String>> {
    let body = TxBody::decode(TxRaw::decode(tx).ok()?.body_bytes.as_slice()).ok()?;
    let mut found = Vec::new();
    list(body.messages, NESTED, &mut found);
    Some(found)
}

fn list(messages: Vec<Any>, levels: usize, found: &mut Vec<String>) {
    for Any { type_url, value } in messages {
        let is_exec = type_url.ends_with(".MsgExec") && levels > 0;
        found.push(type_url);
        if let Some(exec) = is_exec.then(|| MsgExec::decode(value.as_slice()).ok()).flatten() {
            list(exec.msgs, levels - 1, found);
        }
    }
}

/// The same of the gateway's JSON of a transaction.
fn messages_in(tx: &Value) -> Vec<String> {
    fn list(messages: Option<&Value>, levels: usize, found: &mut Vec<String>) {
        for message in messages.and_then(Value::as_array).into_iter().flatten() {
            let Some(type_url) = message.get("@type").and_then(Value::as_str) else { continue };
            found.push(type_url.to_owned());
            if type_url.ends_with(".MsgExec") && levels > 0 {
                list(message.get("msgs"), levels - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    list(tx.pointer("/body/messages"), NESTED, &mut found);
    found
}

fn height_of(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a height"))
}

fn events_of(events: Vec<Event>) -> Vec<FoundEvent> {
    let coded = are_coded(&events);
    let text = |text: Option<String>| {
        let text = text.unwrap_or_default();
        if coded { decoded(&text).unwrap_or(text) } else { text }
    };
    let attribute = |Attribute { key, value }: Attribute| (text(key), text(value));
    let found = |Event { kind, attributes }: Event| FoundEvent {
        kind,
        attributes: attributes.unwrap_or_default().into_iter().map(attribute).collect(),
    };
    events.into_iter().map(found).collect()
}

/// True if every key is base64 of a plain word. A transaction always has some plain keys that are not: the letters of
/// `sender` are not valid base64, those of `receiver` are base64 of bytes that are not text.
fn are_coded(events: &[Event]) -> bool {
    let mut keys = events.iter().flat_map(|event| event.attributes.iter().flatten()).peekable();
    let is_word = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic());
    keys.peek().is_some()
        && keys.all(|attribute| {
            attribute.key.as_deref().is_none_or(|key| decoded(key).is_some_and(|key| is_word(&key)))
        })
}

/// Bytes that are not UTF-8 are replaced, as newer nodes do.
fn decoded(text: &str) -> Option<String> {
    STANDARD.decode(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(json: &str) -> Vec<FoundEvent> {
        events_of(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn plain_attributes_are_unchanged_even_if_a_key_looks_like_base64() {
        let found = events(
            r#"[{"type":"t","attributes":[{"key":"receiver","value":"AQ=="},{"key":"data","value":null},{"key":"sender","value":"a"}]},{"type":"u"}]"#,
        );
        assert_eq!(found[0].get("receiver"), Some("AQ=="));
        assert_eq!((found[0].get("data"), found[0].get("nothing")), (Some(""), None));
        assert_eq!((found[1].kind.as_str(), found[1].attributes.len()), ("u", 0));
        // Alone, `receiver` is base64 as well, of bytes that are not a word.
        let alone = events(r#"[{"type":"t","attributes":[{"key":"receiver","value":"eA=="}]}]"#);
        assert_eq!(alone[0].get("receiver"), Some("eA=="));
    }

    #[test]
    fn attributes_in_base64_are_decoded() {
        // packet_sequence = 42, receiver = x, and a value that is not text.
        let found = events(
            r#"[{"type":"send_packet","attributes":[{"key":"cGFja2V0X3NlcXVlbmNl","value":"NDI=","index":true},{"key":"cmVjZWl2ZXI=","value":"eA=="},{"key":"ZGF0YQ==","value":"/w=="},{"key":"bWVtbw==","value":null}]}]"#,
        );
        assert_eq!((found[0].get("packet_sequence"), found[0].get("receiver")), (Some("42"), Some("x")));
        assert_eq!((found[0].get("data"), found[0].get("memo")), (Some("\u{fffd}"), Some("")));
    }

    #[test]
    fn an_invalid_member_is_reported() {
        let tx = |hash: &str, height: &str| {
            let text = format!(r#"{{"hash":"{hash}","height":"{height}","tx_result":{{}}}}"#);
            serde_json::from_str::<CometTx>(&text).unwrap().found()
        };
        let whole = tx(&"AB".repeat(32), "7").unwrap();
        assert_eq!((whole.hash, whole.height, whole.code), ([0xab; 32], 7, 0));
        assert!(tx("AB", "7").unwrap_err().contains("\"AB\""));
        assert!(tx(&"AB".repeat(32), "x").unwrap_err().contains("\"x\""));
    }
}
