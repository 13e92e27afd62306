//! The JSON-RPC 2.0 envelope, as `CometBFT` and the EVM's JSON-RPC speak it: single calls and batches.
//!
//! An answer is written once into a buffer of exactly its size, around the recorded text; nothing is parsed or
//! serialised again.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most calls of a batch; minievm's default `batch-request-limit`.
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

/// What a call is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// The raw `result`.
    Result(Bytes),
    /// The raw `error` object.
    Error(Bytes),
}

const NULL: &[u8] = b"null";
const HEAD: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

impl<'a> Calls<'a> {
    /// Reads a body; the reply is the error to answer it with.
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

    /// The body that answers every call.
    pub(super) fn answer(&self, mut reply: impl FnMut(&Call<'_>) -> Reply) -> Bytes {
        let calls = match self {
            Self::One(call) => return reply(call).body(call.id()),
            Self::Many(calls) => calls,
        };
        let replies: Vec<_> = calls.iter().map(|call| (call.id(), reply(call))).collect();
        let size = replies.iter().map(|(id, reply)| reply.size(id) + 1).sum::<usize>() + 1;
        let mut body = Vec::with_capacity(size);
        for (i, (id, reply)) in replies.iter().enumerate() {
            body.push(if i == 0 { b'[' } else { b',' });
            reply.write(id, &mut body);
        }
        body.push(b']');
        body.into()
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

    /// The whole body that answers one call.
    pub(super) fn body(&self, id: &[u8]) -> Bytes {
        let mut body = Vec::with_capacity(self.size(id));
        self.write(id, &mut body);
        body.into()
    }

    fn parts(&self) -> (&'static [u8], &[u8]) {
        match self {
            Self::Result(raw) => (br#","result":"#, raw),
            Self::Error(raw) => (br#","error":"#, raw),
        }
    }

    fn size(&self, id: &[u8]) -> usize {
        let (name, raw) = self.parts();
        HEAD.len() + id.len() + name.len() + raw.len() + 1
    }

    fn write(&self, id: &[u8], out: &mut Vec<u8>) {
        let (name, raw) = self.parts();
        for part in [HEAD, id, name, raw, b"}"] {
            out.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_exactly_the_size_that_was_reserved() {
        let one = Calls::parse(br#"{"id":"x","method":"m","params":[]}"#).unwrap();
        let body = one.answer(|_| Reply::text("5"));
        assert_eq!(&body[..], br#"{"jsonrpc":"2.0","id":"x","result":5}"#);
        let reply = Reply::error(-1, "no", Some("why"));
        assert_eq!(reply.body(b"12").len(), reply.size(b"12"));
    }

    #[test]
    fn a_batch_is_answered_in_order_with_its_ids() {
        let calls = Calls::parse(br#" [{"id":2,"method":"a"},{"method":"b"}]"#).unwrap();
        let body = calls.answer(|call| Reply::text(format!("{:?}", call.method)));
        let want = r#"[{"jsonrpc":"2.0","id":2,"result":"a"},{"jsonrpc":"2.0","id":null,"result":"b"}]"#;
        assert_eq!(&body[..], want.as_bytes());
    }

    #[test]
    fn bodies_that_are_no_calls_are_refused() {
        for body in ["", "{", "[]", "{\"id\":1}", "[1]"] {
            assert!(matches!(Calls::parse(body.as_bytes()), Err(Reply::Error(_))), "{body}");
        }
        let many = format!("[{}]", vec![r#"{"id":1,"method":"m"}"#; MAX_BATCH + 1].join(","));
        let Err(Reply::Error(error)) = Calls::parse(many.as_bytes()) else { panic!("taken") };
        assert!(error.starts_with(br#"{"code":-32600"#));
    }
}
