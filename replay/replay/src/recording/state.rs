//! The recorded state requests, and their lookup by normal form.
//!
//! A request matches if method, path, every parameter, body and height are equal. The order of parameters and of
//! members of a body, percent-encoding, the quotes of `CometBFT`'s string parameters and the case of JSON-RPC's
//! parameters (hex and tags) are ignored. No request gets the reply of a similar one.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A recorded REST reply: the status and the raw JSON body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestReply {
    /// The HTTP status.
    pub status: u16,
    /// The body, JSON.
    pub body: Bytes,
}

/// A recorded JSON-RPC outcome, raw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The `result`.
    Result(Bytes),
    /// The `error` object.
    Error(Bytes),
}

/// A recorded REST reply of the bridge's executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BotReply {
    /// Path and query string, as sent.
    pub path: String,
    /// The HTTP status.
    pub status: u16,
    /// The reply: JSON, or a JSON string in place of a plain text.
    pub body: Bytes,
}

/// The replies to a request by the height of the state; `None` is the latest state while recording.
type ByHeight<T> = BTreeMap<Option<u64>, T>;

/// Every recorded state request, by its normal form.
#[derive(Debug, Default)]
pub struct StateReplies {
    rest: HashMap<String, ByHeight<RestReply>>,
    cometbft: HashMap<String, Outcome>,
    eth: HashMap<String, Outcome>,
    eth_call: HashMap<String, ByHeight<Outcome>>,
    /// The lowest height at which each contract was called.
    called_from: HashMap<String, u64>,
    receipts: Vec<Bytes>,
    bots: Vec<BotReply>,
}

#[derive(Deserialize)]
struct Line<'a> {
    kind: &'a str,
    #[serde(default)]
    method: Option<&'a str>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    height: Option<u64>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(borrow, default, deserialize_with = "present")]
    answer: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    to: Option<&'a str>,
    #[serde(default)]
    data: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl StateReplies {
    /// The answer to a REST request; `path` with its query string, as sent.
    pub fn rest(
        &self,
        method: &str,
        path: &str,
        height: Option<u64>,
        body: Option<&[u8]>,
    ) -> Option<&RestReply> {
        self.rest.get(&rest_key(method, path, body)?)?.get(&height)
    }

    /// The last answer to a REST request at or below a height.
    pub(crate) fn rest_up_to(
        &self,
        method: &str,
        path: &str,
        height: u64,
        body: &[u8],
    ) -> Option<&RestReply> {
        last_up_to(self.rest.get(&rest_key(method, path, Some(body))?)?, height)
    }

    /// The recorded replies to `GET`s of a path with any query string, in ascending order of height.
    pub(crate) fn pages(&self, path: &str) -> Vec<&RestReply> {
        let first_line = format!("GET {path}");
        let of_path = self.rest.iter().filter(|(key, _)| key.lines().next() == Some(&first_line));
        let mut pages: Vec<_> = of_path.flat_map(|(_, answers)| answers).collect();
        pages.sort_by_key(|(height, _)| **height);
        pages.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The answer to a `CometBFT` request whose parameters are already plain text.
    pub fn cometbft(&self, method: &str, params: &BTreeMap<String, String>) -> Option<&Outcome> {
        self.cometbft.get(&cometbft_key(method, params))
    }

    /// The answer to a JSON-RPC request other than `eth_call`; `params` is raw JSON, `[]` if there are none.
    pub fn eth(&self, method: &str, params: &[u8]) -> Option<&Outcome> {
        self.eth.get(&eth_key(method, params)?)
    }

    /// The answer to `eth_call` at a height.
    pub fn eth_call(&self, to: &str, data: &str, height: u64) -> Option<&Outcome> {
        self.eth_call.get(&eth_call_key(to, data))?.get(&Some(height))
    }

    /// The last answer to `eth_call` at or below a height.
    pub(crate) fn eth_call_up_to(&self, to: &str, data: &str, height: u64) -> Option<&Outcome> {
        last_up_to(self.eth_call.get(&eth_call_key(to, data))?, height)
    }

    /// Whether a contract was called at a height or below, and so exists there.
    pub(crate) fn is_called_up_to(&self, to: &str, height: u64) -> bool {
        self.called_from.get(&to.to_ascii_lowercase()).is_some_and(|first| *first <= height)
    }

    /// The recorded replies to `eth_getTransactionReceipt` that are receipts, in the order of the recording.
    pub fn receipts(&self) -> &[Bytes] {
        &self.receipts
    }

    /// The replies of the bridge's executor, in the order of the recording; a request may occur more than once.
    pub fn bots(&self) -> &[BotReply] {
        &self.bots
    }

    /// Number of requests to a node.
    pub fn len(&self) -> usize {
        let rest: usize = self.rest.values().map(BTreeMap::len).sum();
        let eth_call: usize = self.eth_call.values().map(BTreeMap::len).sum();
        rest + self.cometbft.len() + self.eth.len() + eth_call
    }

    /// Whether the recording has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a line of a test.
    #[cfg(test)]
    pub(crate) fn add_line(&mut self, line: &str) {
        self.add(line.as_bytes()).unwrap();
    }

    /// Adds a line of `state.ndjson`; of two replies to the same request the first is kept.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<(), String> {
        let line: Line<'_> = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        match line.kind {
            "rest" => {
                let (method, path) = (want(line.method, "method")?, want(line.path.as_deref(), "path")?);
                let body = line.body.map(|b| b.get().as_bytes());
                let key = rest_key(method, path, body).ok_or("`path` or `body` is malformed")?;
                let answer = RestReply {
                    status: want(line.status, "status")?,
                    body: copy(want(line.answer, "answer")?),
                };
                self.rest.entry(key).or_default().entry(line.height).or_insert(answer);
            }
            "cometbft" => {
                let path = want(line.path.as_deref(), "path")?;
                let (method, params) = cometbft_path(path).ok_or("`path` is malformed")?;
                let outcome = outcome(line.answer, line.error, "answer")?;
                self.cometbft.entry(cometbft_key(method, &params)).or_insert(outcome);
            }
            "eth" => {
                let params = line.params.map_or(&b"[]"[..], |p| p.get().as_bytes());
                let method = want(line.method, "method")?;
                let key = eth_key(method, params).ok_or("`params` is malformed")?;
                let outcome = outcome(line.result, line.error, "result")?;
                if let (RECEIPT, Outcome::Result(raw)) = (method, &outcome)
                    && raw[..] != *b"null"
                {
                    self.receipts.push(raw.clone());
                }
                self.eth.entry(key).or_insert(outcome);
            }
            "eth_call" => {
                let (to, data) = (want(line.to, "to")?, want(line.data, "data")?);
                let height = want(line.height, "height")?;
                let outcome = outcome(line.result, line.error, "result")?;
                let first = self.called_from.entry(to.to_ascii_lowercase()).or_insert(height);
                *first = height.min(*first);
                self.eth_call
                    .entry(eth_call_key(to, data))
                    .or_default()
                    .entry(Some(height))
                    .or_insert(outcome);
            }
            "bot" => self.bots.push(BotReply {
                path: want(line.path, "path")?,
                status: want(line.status, "status")?,
                body: copy(want(line.answer, "answer")?),
            }),
            other => {
                return Err(format!("kind {other:?}; allowed are rest, cometbft, eth, eth_call, bot"));
            }
        }
        Ok(())
    }
}

/// The method that returns a receipt.
const RECEIPT: &str = "eth_getTransactionReceipt";

/// Splits `/method?a=1&b="x"` into the method and its parameters, decoded and without quotes.
pub(crate) fn cometbft_path(path: &str) -> Option<(&str, BTreeMap<String, String>)> {
    let (method, query) = path.split_once('?').unwrap_or((path, ""));
    let mut params = BTreeMap::new();
    for (name, value) in query_pairs(query)? {
        let plain = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(&value);
        params.insert(name, plain.to_owned());
    }
    Some((method.trim_start_matches('/'), params))
}

/// The decoded parameters of a query string, in the order sent; `None` if one is not UTF-8.
pub(crate) fn query_pairs(query: &str) -> Option<Vec<(String, String)>> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        })
        .collect()
}

fn last_up_to<T>(answers: &ByHeight<T>, height: u64) -> Option<&T> {
    answers.range(Some(0)..=Some(height)).next_back().map(|(_, answer)| answer)
}

fn rest_key(method: &str, path: &str, body: Option<&[u8]>) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut pairs = query_pairs(query)?;
    pairs.sort();
    let mut key = vec![format!("{method} {}", percent_decode_str(path).decode_utf8().ok()?)];
    key.extend(pairs.into_iter().map(|(name, value)| format!("{name}={value}")));
    if let Some(body) = body.filter(|body| !body.is_empty()) {
        key.push(canonical(body)?);
    }
    Some(key.join("\n"))
}

/// Parameters with their default value are omitted (the recorder omits them); hashes have one case.
fn cometbft_key(method: &str, params: &BTreeMap<String, String>) -> String {
    let mut key = vec![method.to_owned()];
    for (name, value) in params {
        let default = match name.as_str() {
            "prove" => value == "false",
            "data" => value.is_empty() || value == "0x",
            "height" => value == "0",
            _ => false,
        };
        if name == "hash" {
            key.push(format!("{name}={}", value.trim_start_matches("0x").to_ascii_uppercase()));
        } else if !default {
            key.push(format!("{name}={value}"));
        }
    }
    key.join("\n")
}

fn eth_key(method: &str, params: &[u8]) -> Option<String> {
    Some(format!("{method}\n{}", canonical(params)?.to_ascii_lowercase()))
}

fn eth_call_key(to: &str, data: &str) -> String {
    format!("{}\n{}", to.to_ascii_lowercase(), data.to_ascii_lowercase())
}

/// JSON with its members sorted and without white space: equal values have equal texts.
fn canonical(json: &[u8]) -> Option<String> {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(sorted).collect(),
            Value::Object(members) => {
                let members: BTreeMap<_, _> = members.into_iter().map(|(k, v)| (k, sorted(v))).collect();
                Value::Object(members.into_iter().collect())
            }
            plain => plain,
        }
    }
    serde_json::from_slice(json).map(|value| sorted(value).to_string()).ok()
}

/// Deserializes `null` as a reply; a plain `Option` would make it an absence.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn want<T>(member: Option<T>, name: &str) -> Result<T, String> {
    member.ok_or_else(|| format!("no `{name}`"))
}

fn outcome(result: Option<&RawValue>, error: Option<&RawValue>, name: &str) -> Result<Outcome, String> {
    match (result, error) {
        (Some(result), None) => Ok(Outcome::Result(copy(result))),
        (None, Some(error)) => Ok(Outcome::Error(copy(error))),
        _ => Err(format!("must have one of `{name}` and `error`")),
    }
}

fn copy(raw: &RawValue) -> Bytes {
    Bytes::copy_from_slice(raw.get().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &[&str]) -> StateReplies {
        let mut answers = StateReplies::default();
        for line in lines {
            answers.add(line.as_bytes()).unwrap();
        }
        answers
    }

    #[test]
    fn a_rest_request_is_found_by_parameters_in_any_order_and_encoding() {
        let line =
            r#"{"kind":"rest","method":"GET","path":"/a/b?k=x%3D&l=1","height":5,"status":200,"answer":{}}"#;
        let answers = with(&[line]);
        assert!(answers.rest("GET", "/a/b?l=1&k=x=", Some(5), None).is_some());
        for (path, height) in [("/a/b?l=1&k=x=", None), ("/a/b?l=1&k=x=", Some(6)), ("/a/b?l=1", Some(5))] {
            assert!(answers.rest("GET", path, height, None).is_none(), "{path} {height:?}");
        }
        assert!(answers.rest("POST", "/a/b?l=1&k=x=", Some(5), None).is_none());
    }

    #[test]
    fn a_body_is_compared_by_value() {
        let line = r#"{"kind":"rest","method":"POST","path":"/c","height":null,"body":{"b":1,"a":[{"y":1,"x":2}]},"status":404,"answer":{}}"#;
        let answers = with(&[line]);
        let found = answers.rest("POST", "/c", None, Some(br#"{"a": [{"x":2,"y":1}], "b":1}"#)).unwrap();
        assert_eq!(found.status, 404);
        assert!(answers.rest("POST", "/c", None, Some(br#"{"b":1}"#)).is_none());
        assert!(answers.rest("POST", "/c", None, Some(b"not json")).is_none());
    }

    #[test]
    fn a_recorded_null_is_an_answer() {
        let answers = with(&[r#"{"kind":"eth","method":"eth_x","params":["0x1"],"result":null}"#]);
        assert_eq!(answers.eth("eth_x", b"[ \"0x1\" ]"), Some(&Outcome::Result(Bytes::from_static(b"null"))));
        assert_eq!(answers.eth("eth_x", b"[]"), None);
    }

    #[test]
    fn cometbft_defaults_and_quotes_do_not_change_a_request() {
        let answers = with(&[r#"{"kind":"cometbft","path":"/abci_query?path=\"/x/Y\"","answer":{}}"#]);
        let (method, params) =
            cometbft_path("/abci_query?path=%22/x/Y%22&data=0x&height=0&prove=false").unwrap();
        assert!(answers.cometbft(method, &params).is_some());
        let (method, params) = cometbft_path("/abci_query?path=%22/x/Y%22&height=3").unwrap();
        assert!(answers.cometbft(method, &params).is_none());
    }

    #[test]
    fn lines_without_a_member_or_a_kind_are_errors_with_the_reason() {
        for (line, reason) in [
            (r#"{"kind":"rest","path":"/a","status":200,"answer":1}"#, "method"),
            (r#"{"kind":"eth_call","to":"0x","data":"0x","result":"0x"}"#, "height"),
            (r#"{"kind":"eth","method":"m"}"#, "result"),
            (r#"{"kind":"soap"}"#, "soap"),
        ] {
            let message = StateReplies::default().add(line.as_bytes()).unwrap_err();
            assert!(message.contains(reason), "{message}");
        }
    }
}
