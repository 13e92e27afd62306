//! JSON-RPC 2.0 envelope, as CometBFT and the EVM server use it.
//!
//! # Invariants
//!
//! * `result` is a slice of the body: checked to be whole JSON, not copied.
//! * A response has exactly one of `result` and `error`; `null` is a result, not a missing one.

use bytes::Bytes;
use chain::excerpt;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::pool::endpoint::{Endpoint, Request};

/// JSON-RPC 2.0 §5.1.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0 §5.1.
pub(crate) const METHOD_MISSING: i64 = -32601;
/// JSON-RPC 2.0 §5.1.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// A JSON-RPC error object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    /// The message, followed by the data if there is any.
    pub(crate) message: String,
}

/// Content of a response envelope.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RpcResponse {
    /// The text of `result`.
    Result(Bytes),
    Error(RpcError),
}

/// Failure to decode an envelope.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// Not a complete JSON text.
    NotJson(String),
    /// JSON, but not an envelope, or that of another request.
    NotAnEnvelope(String),
}

impl DecodeError {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::NotJson(reason) | Self::NotAnEnvelope(reason) => reason,
        }
    }
}

/// Sends a call and decodes the response. Servers send errors with HTTP 200 or 500, so the envelope decides.
pub(crate) async fn exchange(
    endpoint: &Endpoint,
    request: &Request,
    id: Option<u64>,
) -> Result<RpcResponse, Error> {
    let response = endpoint.send(request).await?;
    decode(response.body(), id).map_err(|error| match error {
        DecodeError::NotJson(reason) => endpoint.unreadable(request, &response, reason),
        DecodeError::NotAnEnvelope(reason) => endpoint.malformed(request, reason),
    })
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<ErrorObject<'a>>,
}

#[derive(Deserialize)]
struct ErrorObject<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// `Option` alone would read `null` as a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Decodes an envelope. `id` is the request's id where it must be echoed (CometBFT answers GET with −1).
pub(crate) fn decode(body: &Bytes, id: Option<u64>) -> Result<RpcResponse, DecodeError> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|e| {
        let not = if e.is_data() { DecodeError::NotAnEnvelope } else { DecodeError::NotJson };
        not(e.to_string())
    })?;
    let echoed = envelope.id.map_or("nothing", RawValue::get);
    let response = envelope.response(body);
    let response =
        response.ok_or_else(|| DecodeError::NotAnEnvelope("neither `result` nor `error`".to_owned()))?;
    if let (RpcResponse::Result(_), Some(id)) = (&response, id.filter(|id| id.to_string() != echoed)) {
        return Err(DecodeError::NotAnEnvelope(format!("id {}, not {id}", excerpt(echoed))));
    }
    Ok(response)
}

/// Decodes the response to a batch: for each of `ids` its response, or `None` if the server omitted it. Returns `None`
/// if the body is not a batch response: a server without batches answers with one envelope, a gateway with a web page.
pub(crate) fn decode_batch(body: &Bytes, ids: &[u64]) -> Option<Vec<Option<RpcResponse>>> {
    let envelopes: Vec<Envelope<'_>> = serde_json::from_slice(body).ok()?;
    let mut all: Vec<Option<RpcResponse>> = ids.iter().map(|_| None).collect();
    for envelope in envelopes {
        // In any order (JSON-RPC 2.0 §6).
        let id = envelope.id.and_then(|id| id.get().parse().ok());
        if let Some(place) = ids.iter().position(|known| Some(*known) == id) {
            all[place] = envelope.response(body);
        }
    }
    Some(all)
}

impl Envelope<'_> {
    fn response(self, body: &Bytes) -> Option<RpcResponse> {
        match (self.error, self.result) {
            (Some(error), _) => Some(RpcResponse::Error(error.into())),
            (None, Some(result)) => Some(RpcResponse::Result(body.slice_ref(result.get().as_bytes()))),
            (None, None) => None,
        }
    }
}

impl From<ErrorObject<'_>> for RpcError {
    fn from(error: ErrorObject<'_>) -> Self {
        let data = error.data.map(|data| match serde_json::from_str::<String>(data.get()) {
            Ok(text) => text,
            Err(_) => data.get().to_owned(),
        });
        let message = match data.filter(|data| !data.is_empty()) {
            Some(data) => format!("{}: {data}", error.message),
            None => error.message,
        };
        Self { code: error.code, message }
    }
}

/// The decimal number right after `marker` in a node's error text.
pub(crate) fn number_after(text: &str, marker: &str) -> Option<u64> {
    let (_, rest) = text.split_once(marker)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(text: &'static str, id: Option<u64>) -> Result<RpcResponse, DecodeError> {
        decode(&Bytes::from_static(text.as_bytes()), id)
    }

    #[test]
    fn the_result_is_a_slice_of_the_body() {
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":-1,"result":{"a": [1,"}"]} }"#);
        let Ok(RpcResponse::Result(result)) = decode(&body, None) else { panic!() };
        assert_eq!(&result[..], br#"{"a": [1,"}"]}"#);
        assert_eq!(result.as_ptr(), body[33 + 1..].as_ptr());
    }

    #[test]
    fn null_is_a_result_and_an_absence_is_not() {
        let null = response(r#"{"id":3,"result":null}"#, Some(3));
        assert_eq!(null, Ok(RpcResponse::Result(Bytes::from_static(b"null"))));
        assert!(matches!(response(r#"{"id":3}"#, Some(3)), Err(DecodeError::NotAnEnvelope(_))));
        let both = response(r#"{"id":3,"result":null,"error":{"code":5,"message":"x"}}"#, Some(3));
        assert_eq!(both, Ok(RpcResponse::Error(RpcError { code: 5, message: "x".into() })));
        assert!(matches!(
            response(r#"{"id":3,"result":1,"error":null}"#, Some(3)),
            Ok(RpcResponse::Result(_))
        ));
    }

    #[test]
    fn the_answer_to_another_request_is_refused() {
        for text in [r#"{"id":4,"result":1}"#, r#"{"id":"3","result":1}"#, r#"{"result":1}"#] {
            assert!(matches!(response(text, Some(3)), Err(DecodeError::NotAnEnvelope(_))), "{text}");
        }
        assert!(response(r#"{"id":3,"result":1}"#, Some(3)).is_ok());
    }

    #[test]
    fn the_answers_of_a_batch_are_matched_by_their_ids() {
        let body = Bytes::from_static(
            br#"[{"id":9,"result":"c"},{"id":7,"result":"a"},{"id":8,"error":{"code":3,"message":"b"}},{"id":5,"result":1}]"#,
        );
        let result = |text: &'static str| Some(RpcResponse::Result(Bytes::from_static(text.as_bytes())));
        let error = Some(RpcResponse::Error(RpcError { code: 3, message: "b".to_owned() }));
        assert_eq!(
            decode_batch(&body, &[7, 8, 9, 10]),
            Some(vec![result("\"a\""), error, result("\"c\""), None])
        );
        for none in ["", "<html>", "[3]", r#"{"id":null,"error":{"code":-32600,"message":"no batches"}}"#] {
            assert_eq!(decode_batch(&Bytes::from_static(none.as_bytes()), &[7]), None, "{none}");
        }
    }

    #[test]
    fn a_truncated_envelope_and_a_web_page_are_not_json() {
        for text in ["", r#"{"id":1,"result":{"a":"#, "<html></html>", r#"{"id":1,"result":1}{"#] {
            assert!(matches!(response(text, None), Err(DecodeError::NotJson(_))), "{text}");
        }
        for text in ["[]", "3", r#"{"error":"x"}"#, r#"{"result":1,"result":2}"#] {
            assert!(matches!(response(text, None), Err(DecodeError::NotAnEnvelope(_))), "{text}");
        }
    }

    #[test]
    fn a_fault_keeps_message_and_data() {
        let error =
            response(r#"{"error":{"code":-32603,"message":"Internal error","data":"gone \"5\""}}"#, None);
        assert_eq!(
            error,
            Ok(RpcResponse::Error(RpcError { code: -32603, message: "Internal error: gone \"5\"".into() }))
        );
        let error = response(r#"{"error":{"code":3,"message":"reverted","data":{"a":1}}}"#, None);
        assert_eq!(
            error,
            Ok(RpcResponse::Error(RpcError { code: 3, message: "reverted: {\"a\":1}".into() }))
        );
    }

    #[test]
    fn a_number_after_the_marker_is_read() {
        assert_eq!(number_after("lowest height is 90", "lowest height is "), Some(90));
        assert_eq!(number_after("tip 12, more", "tip "), Some(12));
        assert_eq!(number_after("tip x", "tip "), None);
        assert_eq!(number_after("tip 99999999999999999999999", "tip "), None);
        assert_eq!(number_after("", "tip "), None);
    }
}
