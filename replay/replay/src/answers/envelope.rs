//! The JSON-RPC 2.0 envelope of `CometBFT` and the EVM's JSON-RPC: single calls and batches.
//!
//! A reply is the recorded text in its envelope; it is not parsed or serialised again.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Maximum calls of a batch; minievm's default `batch-request-limit`.
pub(super) const MAX_BATCH: usize = 1000;

/// One call.
#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
}

/// The calls of a body.
#[derive(Debug)]
pub(super) enum Calls<'a> {
    One(Call<'a>),
    Many(Vec<Call<'a>>),
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The raw `result`.
    Result(Bytes),
    /// The raw `error` object.
    Error(Bytes),
}

const NULL: &[u8] = b"null";

impl<'a> Calls<'a> {
    /// Parses a body; the error is the reply to send.
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, Reply> {
        let bad = |e: serde_json::Error| Reply::error(-32700, &format!("parse error: {e}"), None);
        if body.trim_ascii_start().first() != Some(&b'[') {
            return serde_json::from_slice(body).map(Self::One).map_err(bad);
        }
        let calls: Vec<Call<'a>> = serde_json::from_slice(body).map_err(bad)?;
        match calls.len() {
            0 => Err(Reply::error(-32600, "empty batch", None)),
            1..=MAX_BATCH => Ok(Self::Many(calls)),
            _ => Err(Reply::error(-32600, "batch too large", None)),
        }
    }

    /// The body with the replies to all calls.
    pub(super) fn answer(&self, mut reply: impl FnMut(&Call<'_>) -> Reply) -> Bytes {
        let calls = match self {
            Self::One(call) => return reply(call).body(call.id()),
            Self::Many(calls) => calls,
        };
        let replies: Vec<Bytes> = calls.iter().map(|call| reply(call).body(call.id())).collect();
        [&b"["[..], &replies.join(&b","[..])[..], b"]"].concat().into()
    }
}

impl Call<'_> {
    fn id(&self) -> &[u8] {
        self.id.map_or(NULL, |id| id.get().as_bytes())
    }
}

impl Reply {
    pub(super) fn text(result: impl Into<String>) -> Self {
        Self::Result(Bytes::from(result.into()))
    }

    pub(super) fn null() -> Self {
        Self::Result(Bytes::from_static(NULL))
    }

    pub(super) fn error(code: i64, message: &str, data: Option<&str>) -> Self {
        let mut error = serde_json::json!({ "code": code, "message": message });
        if let Some(data) = data {
            error["data"] = data.into();
        }
        Self::Error(Bytes::from(error.to_string()))
    }

    /// The whole body of the answer to one call.
    pub(super) fn body(&self, id: &[u8]) -> Bytes {
        let (name, raw) = match self {
            Self::Result(raw) => (&br#","result":"#[..], &raw[..]),
            Self::Error(raw) => (&br#","error":"#[..], &raw[..]),
        };
        [&br#"{"jsonrpc":"2.0","id":"#[..], id, name, raw, b"}"].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_of_its_call() {
        let one = Calls::parse(br#"{"id":"x","method":"m","params":[]}"#).unwrap();
        let body = one.answer(|_| Reply::text("5"));
        assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":"x","result":5}"#);
        let reply = Reply::error(-1, "no", Some("why"));
        let expected = br#"{"jsonrpc":"2.0","id":12,"error":{"code":-1,"data":"why","message":"no"}}"#;
        assert_eq!(&reply.body(b"12")[..], expected);
    }

    #[test]
    fn a_batch_is_answered_in_order_with_its_ids() {
        let calls = Calls::parse(br#" [{"id":2,"method":"a"},{"method":"b"}]"#).unwrap();
        let body = calls.answer(|call| Reply::text(format!("{:?}", call.method)));
        let want = r#"[{"jsonrpc":"2.0","id":2,"result":"a"},{"jsonrpc":"2.0","id":null,"result":"b"}]"#;
        assert_eq!(&body[..], want.as_bytes());
    }

    #[test]
    fn bodies_without_valid_calls_are_errors() {
        for body in ["", "{", "[]", "{\"id\":1}", "[1]"] {
            assert!(matches!(Calls::parse(body.as_bytes()), Err(Reply::Error(_))), "{body}");
        }
        let many = format!("[{}]", vec![r#"{"id":1,"method":"m"}"#; MAX_BATCH + 1].join(","));
        let Err(Reply::Error(error)) = Calls::parse(many.as_bytes()) else { panic!("taken") };
        assert!(error.starts_with(br#"{"code":-32600"#));
    }
}
