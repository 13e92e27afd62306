//! The envelope of JSON-RPC 2.0, read as leniently as go-ethereum's server reads it (`rpc/json.go`, `rpc/handler.go`).
//!
//! # Invariants
//! * An id is echoed as it was sent.
//! * A body of any depth is read without recursion, and of a batch at most [`MAX_BATCH`] calls are kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize as _;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Maximum calls of a batch.
pub const MAX_BATCH: usize = 1000;

/// The id of an error about no certain call.
pub const NO_ID: &str = "null";

/// One message of a client.
#[derive(Debug, PartialEq, Eq)]
pub struct Message {
    /// The JSON of the id; `None` for a notification, which gets no response.
    pub id: Option<String>,
    /// What it asks for.
    pub content: Content,
}

/// What it asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A call.
    Call {
        /// The name of the method.
        method: String,
        /// The JSON of the parameters, if there are any.
        params: Option<String>,
    },
    /// No request of JSON-RPC 2.0.
    Invalid,
}

/// A request body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// An empty one, which gets an empty response.
    Empty,
    /// One message.
    Single(Message),
    /// Several.
    Batch(Vec<Message>),
    /// One that is not read.
    Refused(Refusal),
}

/// Why a body is not read.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not JSON.
    NoJson,
    /// It is a batch of no calls.
    EmptyBatch,
    /// It is a batch of more than [`MAX_BATCH`] calls.
    LargeBatch {
        /// The id of the first one.
        id: String,
    },
}

/// Reads a body.
pub fn read(body: &[u8]) -> Body {
    if body.is_empty() {
        return Body::Empty;
    }
    let text = body.trim_ascii_start();
    let parsed = if text.first() == Some(&b'[') {
        let mut json = serde_json::Deserializer::from_slice(text);
        json.deserialize_seq(Batch).map(|(first, count)| match (first.first(), count) {
            (_, 0) => Body::Refused(Refusal::EmptyBatch),
            (Some(first), MAX_BATCH_EXCEEDED..) => {
                Body::Refused(Refusal::LargeBatch { id: first.id_or_null().to_owned() })
            }
            _ => Body::Batch(first),
        })
    } else {
        let mut json = serde_json::Deserializer::from_slice(text);
        <&RawValue>::deserialize(&mut json).map(|message| Body::Single(Message::read(message)))
    };
    parsed.unwrap_or(Body::Refused(Refusal::NoJson))
}

const MAX_BATCH_EXCEEDED: usize = MAX_BATCH + 1;

/// Appends the response to a call with this JSON as result.
pub fn write_result(out: &mut Vec<u8>, id: &str, result: &[u8]) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result);
    out.push(b'}');
}

/// Appends an error response with this JSON as error.
pub fn write_error(out: &mut Vec<u8>, id: &str, error: &[u8]) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error);
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
        assert_eq!(read(batch.as_bytes()), Body::Refused(Refusal::LargeBatch { id: NO_ID.to_owned() }));
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
