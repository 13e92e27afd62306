//! The envelope of JSON-RPC 2.0 as go-ethereum's server reads and writes it (`rpc/json.go`, `rpc/handler.go`): lenient where
//! it is, with the same texts.
//!
//! # Invariants
//! * An id is echoed as it was sent.
//! * A body of any depth is read without recursion, and of a batch at most [`MAX_BATCH`] calls are kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::rpc_error::{INVALID_REQUEST, PARSE, RpcError};

/// Maximum calls of a batch.
pub(crate) const MAX_BATCH: usize = 1000;

/// The id of an error about no certain call.
pub(crate) const NO_ID: &str = "null";

/// One message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The JSON of the id; `None` for a notification, which gets no response.
    pub(crate) id: Option<String>,
    pub(crate) content: Content,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Call {
        method: String,
        /// The JSON of the parameters, if there are any.
        params: Option<String>,
    },
    /// No request of JSON-RPC 2.0.
    Invalid,
}

/// A request body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// An empty one, which gets an empty response.
    Empty,
    Single(Message),
    Batch(Vec<Message>),
    /// The response to a body that is not read.
    Refused(Vec<u8>),
}

/// Reads a body.
pub(crate) fn read(body: &[u8]) -> Body {
    if body.is_empty() {
        return Body::Empty;
    }
    let text = body.trim_ascii_start();
    let parsed = if text.first() == Some(&b'[') {
        let mut json = serde_json::Deserializer::from_slice(text);
        json.deserialize_seq(Batch).map(|(first, count)| match (first.first(), count) {
            (_, 0) => refuse(NO_ID, "empty batch", false),
            (Some(first), MAX_BATCH_EXCEEDED..) => refuse(first.id_or_null(), "batch too large", true),
            _ => Body::Batch(first),
        })
    } else {
        let mut json = serde_json::Deserializer::from_slice(text);
        <&RawValue>::deserialize(&mut json).map(|message| Body::Single(Message::read(message)))
    };
    parsed.unwrap_or_else(|_| {
        let mut out = Vec::new();
        write_error(&mut out, NO_ID, &RpcError::new(PARSE, "parse error"));
        Body::Refused(out)
    })
}

const MAX_BATCH_EXCEEDED: usize = MAX_BATCH + 1;

fn refuse(id: &str, message: &str, in_array: bool) -> Body {
    let mut out = Vec::new();
    if in_array {
        out.push(b'[');
    }
    write_error(&mut out, id, &RpcError::new(INVALID_REQUEST, message));
    if in_array {
        out.push(b']');
    }
    Body::Refused(out)
}

/// Appends the response to a call.
pub(crate) fn write_response(out: &mut Vec<u8>, id: &str, outcome: &Result<Vec<u8>, RpcError>) {
    match outcome {
        Ok(result) => {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(br#","result":"#);
            out.extend_from_slice(result);
            out.push(b'}');
        }
        Err(error) => write_error(out, id, error),
    }
}

/// Appends an error response.
pub(crate) fn write_error(out: &mut Vec<u8>, id: &str, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","error":"#);
    error.write(out);
    out.push(b'}');
}

/// Reads the first calls of a batch, and counts all.
struct Batch;

impl<'de> Visitor<'de> for Batch {
    type Value = (Vec<Message>, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a batch")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut calls: S) -> Result<Self::Value, S::Error> {
        let (mut first, mut count) = (Vec::new(), 0);
        while count < MAX_BATCH {
            let Some(message) = calls.next_element::<&RawValue>()? else { return Ok((first, count)) };
            first.push(Message::read(message));
            count += 1;
        }
        while calls.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok((first, count))
    }
}

/// The members of a message, as JSON. Of a repeated one the last counts, and their names have no case, as Go reads them.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut members: M) -> Result<Self, M::Error> {
        while let Some(name) = members.next_key::<Cow<'_, str>>()? {
            let value = members.next_value::<&RawValue>()?.get();
            let member = match name.to_ascii_lowercase().as_str() {
                "jsonrpc" => &mut self.jsonrpc,
                "id" => &mut self.id,
                "method" => &mut self.method,
                "params" => &mut self.params,
                _ => continue,
            };
            *member = Some(value);
        }
        Ok(self)
    }
}

impl Message {
    fn read(message: &RawValue) -> Self {
        let mut json = serde_json::Deserializer::from_str(message.get());
        // What is no object has no members.
        let members = json.deserialize_map(Members::default()).unwrap_or_default();
        let text = |member: Option<&str>| member.and_then(|json| serde_json::from_str::<String>(json).ok());
        let id = members.id.filter(|id| !id.starts_with(['{', '[']));
        let is_current = text(members.jsonrpc).as_deref() == Some("2.0");
        let method = text(members.method).filter(|method| !method.is_empty() && is_current);
        let content = match method {
            Some(method) if id.is_some() || members.id.is_none() => {
                Content::Call { method, params: members.params.map(str::to_owned) }
            }
            _ => Content::Invalid,
        };
        let id = match content {
            Content::Call { .. } => id.map(str::to_owned),
            Content::Invalid => Some(id.unwrap_or(NO_ID).to_owned()),
        };
        Self { id, content }
    }

    fn id_or_null(&self) -> &str {
        self.id.as_deref().unwrap_or(NO_ID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_more_calls_than_allowed_is_counted_and_not_kept() {
        let batch = format!("[{}]", vec!["[]"; MAX_BATCH + 1].join(","));
        let error = r#"[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}]"#;
        assert_eq!(read(batch.as_bytes()), Body::Refused(error.as_bytes().to_vec()));
        let batch = format!("[{}]", vec!["1"; MAX_BATCH].join(","));
        let Body::Batch(calls) = read(batch.as_bytes()) else { panic!() };
        assert_eq!(calls.len(), MAX_BATCH);
    }

    #[test]
    fn a_body_of_any_depth_is_read() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let deep = format!("{}1{}", open.repeat(500_000), close.repeat(500_000));
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{deep}}}"#);
            assert!(matches!(
                read(body.as_bytes()),
                Body::Single(Message { content: Content::Call { .. }, .. })
            ));
            assert!(!matches!(read(deep.as_bytes()), Body::Refused(_)));
        }
    }
}
