//! The log of requests that an indexer sent while recording, with their replies: the state part of a recording.
//!
//! # Invariants
//!
//! Blocks, results, receipts, traces and everything derived from them are omitted: a recording has them by height.
//! - Of several answers to a request, a result is kept rather than an error, and the last rather than an earlier one,
//!   because the indexer retries until a reply is final.
//! - All replies are in memory, as they are when the recording is replayed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use node::Exchange;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;
use crate::recording::{Line, RecordingWriter};

/// Prefixes of the paths that a replay node answers from the heights.
const OF_HEIGHTS: [&str; 10] = [
    "/status",
    "/block?",
    "/block_results?",
    "/header?",
    "/tx?",
    "/tx_search?",
    "/abci_info",
    "/websocket",
    "/cosmos/tx/",
    "/cosmos/base/tendermint/v1beta1/blocks/",
];
/// The same by method.
const METHODS_OF_HEIGHTS: [&str; 5] = [
    "eth_blockNumber",
    "eth_getBlockReceipts",
    "eth_getBlockByNumber",
    "debug_traceBlockByNumber",
    "debug_traceTransaction",
];
/// The error of a replay node without a reply, which is not the chain's.
const NOT_RECORDED: &str = "not recorded: ";

/// The replies so far.
#[derive(Debug, Default)]
pub(crate) struct ExchangeLog(Mutex<BTreeMap<Question, HttpReply>>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Rest { path: String, height: Option<u64>, body: Option<String> },
    Comet { path: String },
    Eth { method: String, params: String },
}

#[derive(Debug)]
struct HttpReply {
    status: u16,
    /// Whether it is a result and no error.
    good: bool,
    text: String,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl ExchangeLog {
    /// Adds the exchange if its reply is about state.
    pub(crate) fn record(&self, exchange: Exchange<'_>) {
        let Exchange { service, path, state_height: height, status, .. } = exchange;
        // Of CometBFT only headers are requested by POST.
        let is_posted = service == "comet" && exchange.body.is_some();
        if is_posted || OF_HEIGHTS.iter().any(|start| path.starts_with(start)) {
            return;
        }
        if service == "json-rpc" {
            self.record_calls(exchange);
            return;
        }
        let Ok(answer) = serde_json::from_slice::<&RawValue>(exchange.answer) else { return };
        if service == "rest" {
            let body = exchange.body.map(|body| String::from_utf8_lossy(body).into_owned());
            self.keep(Question::Rest { path: path.to_owned(), height, body }, status, status == 200, answer);
        } else if let Ok(Envelope { result: Some(result), error: None, .. }) =
            serde_json::from_str(answer.get())
        {
            self.keep(Question::Comet { path: path.to_owned() }, status, true, result);
        }
    }

    /// The calls of a request, single or a batch, each with its reply.
    fn record_calls(&self, exchange: Exchange<'_>) {
        let Ok(calls) = one_or_many::<Call<'_>>(exchange.body.unwrap_or_default()) else { return };
        let Ok(answers) = one_or_many::<Envelope<'_>>(exchange.answer) else { return };
        for Call { id, method, params } in calls {
            let of_call = |answer: &&Envelope<'_>| answer.id.is_some_and(|of| of.get() == id.get());
            let Some(answer) = answers.iter().find(of_call) else { continue };
            if METHODS_OF_HEIGHTS.contains(&method) {
                continue;
            }
            let question = Question::Eth { method: method.to_owned(), params: params.get().to_owned() };
            match (answer.result, answer.error) {
                (Some(result), None) => self.keep(question, exchange.status, true, result),
                (None, Some(error)) => self.keep(question, exchange.status, false, error),
                _ => {}
            }
        }
    }

    fn keep(&self, question: Question, status: u16, good: bool, answer: &RawValue) {
        let text = answer.get().to_owned();
        if !good && text.contains(NOT_RECORDED) {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if good || all.get(&question).is_none_or(|before| !before.good) {
            all.insert(question, HttpReply { status, good, text });
        }
    }

    /// Writes the replies about states up to `to`; the latest state counts as that of `to`.
    pub(crate) fn write(&self, writer: &mut RecordingWriter, to: u64) -> Result<(), Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (question, answer) in &*all {
            let text = raw(&answer.text)?;
            let (result, error) = if answer.good { (Some(text), None) } else { (None, Some(text)) };
            match question {
                Question::Rest { height: Some(height), .. } if *height > to => {}
                Question::Rest { path, height, body } => {
                    let (method, body) = match body {
                        Some(body) => ("POST", Some(raw(body)?)),
                        None => ("GET", None),
                    };
                    let (height, status) = (*height, answer.status);
                    writer.state(&Line::Rest { method, path, height, body, status, answer: text })?;
                }
                Question::Comet { path } => writer.state(&Line::Cometbft { path, answer: text })?,
                Question::Eth { method, params } if method == "eth_call" => {
                    let Some((message, height)) = call_of(params, to) else { continue };
                    let Message { to: contract, data } = message;
                    if height <= to {
                        writer.state(&Line::EthCall { to: contract, data, height, result, error })?;
                    }
                }
                Question::Eth { method, params } => {
                    writer.state(&Line::Eth { method, params: raw(params)?, result, error })?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    to: &'a str,
    data: &'a str,
}

/// Contract, calldata and height of an `eth_call`.
fn call_of(params: &str, latest: u64) -> Option<(Message<'_>, u64)> {
    let (message, tag): (Message<'_>, &str) = serde_json::from_str(params).ok()?;
    let height = match tag.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => latest,
    };
    Some((message, height))
}

fn one_or_many<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
    if text.trim_ascii_start().first() == Some(&b'[') {
        return serde_json::from_slice(text);
    }
    serde_json::from_slice(text).map(|one| vec![one])
}

fn raw(text: &str) -> Result<&RawValue, Error> {
    serde_json::from_str(text)
        .map_err(|e| Error::Response { call: "an answer to the index".to_owned(), message: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{Outcome, StateReplies};

    fn rest(path: &'static str, height: u64, status: u16, answer: &'static str) -> Exchange<'static> {
        let state_height = Some(height);
        Exchange { service: "rest", path, state_height, body: None, status, answer: answer.as_bytes() }
    }

    fn rpc(body: &'static str, answer: &'static str) -> Exchange<'static> {
        let (body, answer) = (Some(body.as_bytes()), answer.as_bytes());
        Exchange { service: "json-rpc", path: "", state_height: None, body, status: 200, answer }
    }

    fn kept(exchanges: &[Exchange<'_>]) -> Vec<(Question, String)> {
        let log = ExchangeLog::default();
        for exchange in exchanges {
            log.record(*exchange);
        }
        let all = log.0.into_inner().unwrap();
        all.into_iter().map(|(question, answer)| (question, answer.text)).collect()
    }

    #[test]
    fn the_last_result_is_kept_and_an_error_only_without_one() {
        let (no, first, last) = (r#"{"code":5}"#, r#"{"a":1}"#, r#"{"a":2}"#);
        let of = |path, exchanges: &[(u16, &'static str)]| {
            let exchanges: Vec<_> =
                exchanges.iter().map(|(status, answer)| rest(path, 3, *status, answer)).collect();
            kept(&exchanges).into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        assert_eq!(of("/a", &[(404, no), (200, first), (200, last), (500, no)]), [last]);
        assert_eq!(of("/a", &[(500, r#"{"code":2}"#), (404, no)]), [no]);
        assert_eq!(of("/a", &[(502, "<html>"), (501, r#"{"message":"not recorded: GET /a"}"#)]), [""; 0]);
        assert_eq!(of("/cosmos/tx/v1beta1/decode", &[(200, first)]), [""; 0]);
    }

    #[test]
    fn each_call_of_a_batch_has_its_own_answer() {
        let kept = kept(&[
            rpc(
                r#"[{"id":1,"method":"eth_getBalance","params":["0xa","0x5"]},{"id":2,"method":"eth_call","params":[{"to":"0xc","data":"0xd"},"0x5"]},{"id":3,"method":"eth_call","params":[{"to":"0xc","data":"0xe"},"0x5"]}]"#,
                r#"[{"id":3,"error":{"code":3}},{"id":2,"result":"0x01"},{"id":1,"result":"0x7"}]"#,
            ),
            rpc(r#"{"id":1,"method":"eth_getBlockReceipts","params":["0x5"]}"#, r#"{"id":1,"result":[]}"#),
            rpc(r#"{"id":1,"method":"eth_chainId","params":[]}"#, r#"{"id":1,"result":"0x1"}"#),
        ]);
        let texts: Vec<_> = kept.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, [r#""0x01""#, r#"{"code":3}"#, r#""0x1""#, r#""0x7""#]);
    }

    #[test]
    fn cometbft_results_are_kept_unless_blocks_imply_them() {
        let comet = |path, answer: &'static str| {
            let answer = answer.as_bytes();
            Exchange { service: "comet", path, state_height: None, body: None, status: 200, answer }
        };
        let kept = kept(&[
            comet("/validators?height=5", r#"{"id":1,"result":{"total":"1"}}"#),
            comet("/abci_query?height=5", r#"{"id":1,"error":{"code":-32603}}"#),
            comet("/block?height=5", r#"{"id":1,"result":{}}"#),
        ]);
        let question = Question::Comet { path: "/validators?height=5".to_owned() };
        assert_eq!(kept, [(question, r#"{"total":"1"}"#.to_owned())]);
    }

    #[test]
    fn written_answers_are_found_by_request_and_none_above_the_last_height() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RecordingWriter::open(dir.path(), true).unwrap();
        let log = ExchangeLog::default();
        log.record(rest("/a?k=x%3D", 5, 404, r#"{"code":5}"#));
        log.record(rest("/a?k=x%3D", 6, 200, "{}"));
        for (height, answer) in
            [("0x5", r#"{"id":1,"result":"0x01"}"#), ("0x6", r#"{"id":1,"result":"0x02"}"#)]
        {
            let body = format!(
                r#"{{"id":1,"method":"eth_call","params":[{{"to":"0xc","data":"0xd"}},"{height}"]}}"#
            );
            let (body, answer) = (Some(body.as_bytes()), answer.as_bytes());
            let (service, path, state_height) = ("json-rpc", "", None);
            log.record(Exchange { service, path, state_height, body, status: 200, answer });
        }
        log.write(&mut writer, 5).unwrap();
        drop(writer);
        let text = std::fs::read_to_string(dir.path().join("state.ndjson.partial")).unwrap();
        let mut state = StateReplies::default();
        text.lines().for_each(|line| state.add_line(line));
        assert_eq!(state.len(), 2, "{text}");
        assert_eq!(state.rest("GET", "/a?k=x=", Some(5), None).unwrap().status, 404);
        assert_eq!(state.eth_call("0xC", "0xD", 5), Some(&Outcome::Result(r#""0x01""#.into())));
    }
}
