//! The JSON-RPC envelope, as CometBFT and the EVM server use it.
//!
//! Holds: the `result` is a slice of the body, checked to be whole JSON and not copied; an answer has exactly
//! one of `result` and `error`; `null` is a result, not an absence.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, excerpt};

/// JSON-RPC 2.0 §5.1.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0 §5.1.
pub(crate) const METHOD_MISSING: i64 = -32601;
/// JSON-RPC 2.0 §5.1.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// A JSON-RPC error object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    /// The message, with the data behind it if there is any.
    pub(crate) said: String,
}

/// What a whole envelope holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The text of `result`.
    Result(Bytes),
    Fault(Fault),
}

/// Why an envelope cannot be opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// It is no whole JSON text.
    NotJson(String),
    /// It is JSON and no envelope, or the one of another question.
    NotThis(String),
}

impl Unopened {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::NotJson(reason) | Self::NotThis(reason) => reason,
        }
    }
}

/// Sends a call and opens what comes. Servers answer errors with HTTP 200 or 500: the envelope decides.
pub(crate) async fn exchange(endpoint: &Endpoint, call: &Call, id: Option<u64>) -> Result<Opened, Error> {
    let reply = endpoint.send(call).await?;
    open(&reply.body, id).map_err(|unopened| match unopened {
        Unopened::NotJson(reason) => reply.unreadable(endpoint.site(call), &reason),
        Unopened::NotThis(reason) => Error::Malformed { at: endpoint.site(call), reason },
    })
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<FaultText<'a>>,
}

#[derive(Deserialize)]
struct FaultText<'a> {
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// `Option` alone would make an absence out of `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Opens an envelope; `id` is the question's number where it must be echoed (CometBFT answers GET with −1).
pub(crate) fn open(body: &Bytes, id: Option<u64>) -> Result<Opened, Unopened> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|e| {
        let not = if e.is_data() { Unopened::NotThis } else { Unopened::NotJson };
        not(e.to_string())
    })?;
    let echoed = envelope.id.map_or("nothing", RawValue::get);
    let opened = envelope.opened(body);
    let opened = opened.ok_or_else(|| Unopened::NotThis("neither `result` nor `error`".to_owned()))?;
    if let (Opened::Result(_), Some(id)) = (&opened, id.filter(|id| id.to_string() != echoed)) {
        return Err(Unopened::NotThis(format!("id {}, not {id}", excerpt(echoed.as_bytes()))));
    }
    Ok(opened)
}

/// Opens the answer to a batch: of each of `ids` its outcome, nothing where the server left it out. None if it is no
/// answer to a batch: a server that takes none answers with one envelope, a gateway with a page.
pub(crate) fn open_all(body: &Bytes, ids: &[u64]) -> Option<Vec<Option<Opened>>> {
    let envelopes: Vec<Envelope<'_>> = serde_json::from_slice(body).ok()?;
    let mut all: Vec<Option<Opened>> = ids.iter().map(|_| None).collect();
    for envelope in envelopes {
        // In any order (JSON-RPC 2.0 §6).
        let id = envelope.id.and_then(|id| id.get().parse().ok());
        if let Some(place) = ids.iter().position(|known| Some(*known) == id) {
            all[place] = envelope.opened(body);
        }
    }
    Some(all)
}

impl Envelope<'_> {
    fn opened(self, body: &Bytes) -> Option<Opened> {
        match (self.error, self.result) {
            (Some(fault), _) => Some(Opened::Fault(fault.into())),
            (None, Some(result)) => Some(Opened::Result(body.slice_ref(result.get().as_bytes()))),
            (None, None) => None,
        }
    }
}

impl From<FaultText<'_>> for Fault {
    fn from(fault: FaultText<'_>) -> Self {
        let data = fault.data.map(|data| match serde_json::from_str::<String>(data.get()) {
            Ok(text) => text,
            Err(_) => data.get().to_owned(),
        });
        let said = match data.filter(|data| !data.is_empty()) {
            Some(data) => format!("{}: {data}", fault.message),
            None => fault.message,
        };
        Self { code: fault.code, said }
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

    fn opened(text: &'static str, id: Option<u64>) -> Result<Opened, Unopened> {
        open(&Bytes::from_static(text.as_bytes()), id)
    }

    #[test]
    fn the_result_is_a_slice_of_the_body() {
        let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":-1,"result":{"a": [1,"}"]} }"#);
        let Ok(Opened::Result(result)) = open(&body, None) else { panic!() };
        assert_eq!(&result[..], br#"{"a": [1,"}"]}"#);
        assert_eq!(result.as_ptr(), body[33 + 1..].as_ptr());
    }

    #[test]
    fn null_is_a_result_and_an_absence_is_not() {
        let null = opened(r#"{"id":3,"result":null}"#, Some(3));
        assert_eq!(null, Ok(Opened::Result(Bytes::from_static(b"null"))));
        assert!(matches!(opened(r#"{"id":3}"#, Some(3)), Err(Unopened::NotThis(_))));
        let both = opened(r#"{"id":3,"result":null,"error":{"code":5,"message":"x"}}"#, Some(3));
        assert_eq!(both, Ok(Opened::Fault(Fault { code: 5, said: "x".into() })));
        assert!(matches!(opened(r#"{"id":3,"result":1,"error":null}"#, Some(3)), Ok(Opened::Result(_))));
    }

    #[test]
    fn the_answer_to_another_question_is_refused() {
        for text in [r#"{"id":4,"result":1}"#, r#"{"id":"3","result":1}"#, r#"{"result":1}"#] {
            assert!(matches!(opened(text, Some(3)), Err(Unopened::NotThis(_))), "{text}");
        }
        assert!(opened(r#"{"id":3,"result":1}"#, Some(3)).is_ok());
    }

    #[test]
    fn the_answers_of_a_batch_are_told_apart_by_their_ids() {
        let body = Bytes::from_static(
            br#"[{"id":9,"result":"c"},{"id":7,"result":"a"},{"id":8,"error":{"code":3,"message":"b"}},{"id":5,"result":1}]"#,
        );
        let result = |text: &'static str| Some(Opened::Result(Bytes::from_static(text.as_bytes())));
        let fault = Some(Opened::Fault(Fault { code: 3, said: "b".to_owned() }));
        assert_eq!(
            open_all(&body, &[7, 8, 9, 10]),
            Some(vec![result("\"a\""), fault, result("\"c\""), None])
        );
        for none in ["", "<html>", "[3]", r#"{"id":null,"error":{"code":-32600,"message":"no batches"}}"#] {
            assert_eq!(open_all(&Bytes::from_static(none.as_bytes()), &[7]), None, "{none}");
        }
    }

    #[test]
    fn a_cut_envelope_and_a_page_are_no_json() {
        for text in ["", r#"{"id":1,"result":{"a":"#, "<html></html>", r#"{"id":1,"result":1}{"#] {
            assert!(matches!(opened(text, None), Err(Unopened::NotJson(_))), "{text}");
        }
        for text in ["[]", "3", r#"{"error":"x"}"#, r#"{"result":1,"result":2}"#] {
            assert!(matches!(opened(text, None), Err(Unopened::NotThis(_))), "{text}");
        }
    }

    #[test]
    fn a_fault_keeps_message_and_data() {
        let fault =
            opened(r#"{"error":{"code":-32603,"message":"Internal error","data":"gone \"5\""}}"#, None);
        assert_eq!(
            fault,
            Ok(Opened::Fault(Fault { code: -32603, said: "Internal error: gone \"5\"".into() }))
        );
        let fault = opened(r#"{"error":{"code":3,"message":"reverted","data":{"a":1}}}"#, None);
        assert_eq!(fault, Ok(Opened::Fault(Fault { code: 3, said: "reverted: {\"a\":1}".into() })));
    }

    #[test]
    fn a_number_is_read_where_the_text_has_it() {
        assert_eq!(number_after("lowest height is 90", "lowest height is "), Some(90));
        assert_eq!(number_after("tip 12, more", "tip "), Some(12));
        assert_eq!(number_after("tip x", "tip "), None);
        assert_eq!(number_after("tip 99999999999999999999999", "tip "), None);
        assert_eq!(number_after("", "tip "), None);
    }
}
