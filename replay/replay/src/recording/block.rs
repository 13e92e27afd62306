//! One recorded height: the raw text of the node's replies about it.
//!
//! A line is scanned once, never parsed into a tree; the members are slices of the one copy of the line's text.
//! Accessors of inner values (raw transactions, one receipt of many) parse on demand.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The raw replies about one height.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Height {
    /// The height.
    pub height: u64,
    /// The `result` of `CometBFT` `/block`.
    pub block: Bytes,
    /// The `result` of `CometBFT` `/block_results`.
    pub block_results: Bytes,
    /// All `txs[]` of REST `/cosmos/tx/v1beta1/txs/block/{height}`; absent if not recorded and on empty blocks.
    pub rest_txs: Option<Bytes>,
    /// `eth_getBlockByNumber(height, false)`.
    pub eth_block: Option<Bytes>,
    /// `eth_getBlockReceipts(height)`; absent with `eth_block` if the node cannot read them.
    pub eth_receipts: Option<Bytes>,
    /// `debug_traceBlockByNumber(height, callTracer)`; absent on blocks without transactions.
    pub eth_trace: Option<Trace>,
}

/// The answer to `debug_traceBlockByNumber`: the raw `result`, or the raw `error` object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trace {
    /// The traces, an array.
    Result(Bytes),
    /// The node's error object (`code`, `message`).
    Error(Bytes),
}

/// The members of a block that `/status` needs.
#[derive(Debug, Deserialize)]
pub(crate) struct Head<'a> {
    /// The block hash, upper-case hex.
    #[serde(skip)]
    pub(crate) hash: &'a str,
    pub(crate) app_hash: &'a str,
    pub(crate) time: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    height: u64,
    #[serde(borrow)]
    block: &'a RawValue,
    block_results: &'a RawValue,
    #[serde(default)]
    rest_txs: Option<&'a RawValue>,
    #[serde(default)]
    eth_block: Option<&'a RawValue>,
    #[serde(default)]
    eth_receipts: Option<&'a RawValue>,
    #[serde(default)]
    eth_trace: Option<TraceLine<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceLine<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Height {
    /// Parses a line of `blocks.ndjson`; the error gives the reason.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = Bytes::copy_from_slice(text);
        let line: Line<'_> = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
        let slice = |raw: &RawValue| text.slice_ref(raw.get().as_bytes());
        let eth_trace = match line.eth_trace {
            None => None,
            Some(TraceLine { result: Some(result), error: None }) => Some(Trace::Result(slice(result))),
            Some(TraceLine { result: None, error: Some(error) }) => Some(Trace::Error(slice(error))),
            Some(_) => return Err("eth_trace must be null or have one of `result` and `error`".to_owned()),
        };
        Ok(Self {
            height: line.height,
            block: slice(line.block),
            block_results: slice(line.block_results),
            rest_txs: line.rest_txs.map(slice),
            eth_block: line.eth_block.map(slice),
            eth_receipts: line.eth_receipts.map(slice),
            eth_trace,
        })
    }

    /// The raw transactions of the block, in the node's base64.
    pub fn raw_txs(&self) -> Result<Vec<Cow<'_, str>>, serde_json::Error> {
        raw_txs(&self.block)
    }

    /// Hash, time and application hash of the block.
    pub(crate) fn head(&self) -> Result<Head<'_>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Id<'a> {
            hash: &'a str,
        }
        #[derive(Deserialize)]
        struct Inner<'a> {
            #[serde(borrow)]
            header: Head<'a>,
        }
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            block_id: Id<'a>,
            block: Inner<'a>,
        }
        let outer: Outer<'_> = serde_json::from_slice(&self.block)?;
        Ok(Head { hash: outer.block_id.hash, ..outer.block.header })
    }
}

/// The raw transactions of a `/block` result.
pub(crate) fn raw_txs(block: &[u8]) -> Result<Vec<Cow<'_, str>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Data<'a> {
        #[serde(borrow)]
        txs: Vec<Cow<'a, str>>,
    }
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        data: Data<'a>,
    }
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        block: Inner<'a>,
    }
    let outer: Outer<'_> = serde_json::from_slice(block)?;
    Ok(outer.block.data.txs)
}

/// The items of a raw JSON array, raw.
pub(crate) fn items(array: &[u8]) -> Result<Vec<&RawValue>, serde_json::Error> {
    serde_json::from_slice(array)
}

/// A line of `blocks.ndjson`.
pub(super) fn block_line(height: &Height, evm: bool) -> Vec<u8> {
    let mut line = format!(r#"{{"height":{},"block":"#, height.height).into_bytes();
    line.extend_from_slice(&height.block);
    let mut member = |name: &str, value: &[u8]| {
        line.extend_from_slice(name.as_bytes());
        line.extend_from_slice(value);
    };
    member(r#","block_results":"#, &height.block_results);
    if let Some(txs) = &height.rest_txs {
        member(r#","rest_txs":"#, txs);
    }
    if evm {
        member(r#","eth_block":"#, height.eth_block.as_deref().unwrap_or(b"null"));
        member(r#","eth_receipts":"#, height.eth_receipts.as_deref().unwrap_or(b"null"));
        match &height.eth_trace {
            None => member(r#","eth_trace":"#, b"null"),
            Some(Trace::Result(result)) => member(r#","eth_trace":{"result":"#, result),
            Some(Trace::Error(error)) => member(r#","eth_trace":{"error":"#, error),
        }
        if height.eth_trace.is_some() {
            line.push(b'}');
        }
    }
    line.push(b'}');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_into_its_members_without_change() {
        let text = br#"{"height":7,"block":{"a": [1]},"block_results":{},"eth_receipts":[],"eth_trace":{"result":[{}]}}"#;
        let height = Height::parse(text).unwrap();
        assert_eq!(&height.block[..], br#"{"a": [1]}"#);
        assert_eq!(height.eth_receipts.as_deref(), Some(&b"[]"[..]));
        assert_eq!(height.eth_trace, Some(Trace::Result(Bytes::from_static(b"[{}]"))));
        assert!(height.rest_txs.is_none());
    }

    #[test]
    fn a_trace_with_both_or_neither_outcome_is_an_error() {
        for trace in ["{}", r#"{"result":[],"error":{}}"#, r#"{"result":[],"more":1}"#] {
            let text = format!(r#"{{"height":1,"block":{{}},"block_results":{{}},"eth_trace":{trace}}}"#);
            assert!(Height::parse(text.as_bytes()).is_err(), "{trace}");
        }
    }

    #[test]
    fn an_unknown_member_is_an_error() {
        let message = Height::parse(br#"{"height":1,"block":{},"block_results":{},"wasm":1}"#).unwrap_err();
        assert!(message.contains("wasm"), "{message}");
    }
}
