//! `CometBFT` RPC: `GET /method?param=…` and JSON-RPC `POST`, single and batch.
//!
//! Behaviour of `CometBFT` 0.38: a `GET` has id -1 and its errors have HTTP status 500; errors of a `POST` have HTTP
//! status 200. The texts of height errors are the node's (`rpc/core/env.go`, `state/store.go`), because clients match
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::comet_reply::{Params, internal, invalid_params, malformed, missing, recorded, unreadable};
use super::envelope::{self, Calls, Reply};
use super::{Deviation, HttpReply, View, byzantine, comet_txs};
use crate::counters::Call;
use crate::recording::{Height, Outcome, cometbft_path};

pub(super) fn answer(view: View<'_>, request: &Request<Bytes>) -> HttpReply {
    match *request.method() {
        Method::GET => {
            let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            let reply = match cometbft_path(path) {
                Some((method, params)) => reply(view, method, &params),
                None => invalid_params(&format!("{path} is not UTF-8")),
            };
            let failed = matches!(reply, Reply::Error(_));
            HttpReply::new(
                if failed { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK },
                reply.body(b"-1"),
            )
        }
        Method::POST => match Calls::parse(request.body()) {
            Ok(calls) => {
                let body = calls.answer(|call| match posted_params(call) {
                    Ok(params) => reply(view, &call.method, &params),
                    Err(message) => invalid_params(&message),
                });
                HttpReply::new(StatusCode::OK, body)
            }
            Err(error) => HttpReply::new(StatusCode::INTERNAL_SERVER_ERROR, error.body(b"-1")),
        },
        _ => HttpReply::new(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
    }
}

pub(super) fn reply(view: View<'_>, method: &str, params: &Params) -> Reply {
    let (call, outcome) = match method {
        "status" => (Call::Status, status(view)),
        "block" => (Call::Block, block(view, params)),
        "block_results" => (Call::BlockResults, block_results(view, params)),
        "abci_query" => {
            (Call::AbciQuery, prefix(view, params).unwrap_or_else(|| recorded(view, method, params)))
        }
        "abci_info" => (Call::CometOther, abci_info(view)),
        "validators" => (Call::CometOther, validators(view, params)),
        "health" => (Call::CometOther, Ok(Reply::text("{}"))),
        "header" => (Call::CometOther, header(view, params)),
        "tx" => (Call::CometTx, comet_txs::tx(view, params)),
        "broadcast_tx_sync" => (Call::BroadcastTx, comet_txs::broadcast(view, params)),
        "tx_search" => (Call::TxSearch, comet_txs::tx_search(view, params)),
        _ => (Call::CometOther, recorded(view, method, params)),
    };
    view.counters.count(call);
    outcome.unwrap_or_else(|error| error)
}

/// The query for the prefix of addresses, from the reply of REST: the message has the prefix as field 1.
fn prefix(view: View<'_>, params: &Params) -> Option<Result<Reply, Reply>> {
    #[derive(Deserialize)]
    struct Recorded {
        bech32_prefix: String,
    }
    if params.get("path")?.as_str() != "/cosmos.auth.v1beta1.Query/Bech32Prefix" {
        return None;
    }
    let recorded = view.recording.state().rest("GET", "/cosmos/auth/v1beta1/bech32", None, None)?;
    let Recorded { bech32_prefix } = serde_json::from_slice(&recorded.body).ok()?;
    let mut message = vec![0x0a, u8::try_from(bech32_prefix.len()).ok().filter(|length| *length < 0x80)?];
    message.extend_from_slice(bech32_prefix.as_bytes());
    let response = serde_json::json!({ "code": 0, "log": "", "value": STANDARD.encode(message) });
    Some(Ok(Reply::Result(serde_json::json!({ "response": response }).to_string().into())))
}

/// The requested height, or the node's error for a height that it does not have.
fn height(view: View<'_>, params: &Params) -> Result<Height, Reply> {
    let (first, shown) = (view.base(), view.shown);
    let wanted = match params.get("height").map(String::as_str) {
        None | Some("") => i128::from(shown),
        Some(text) => text.parse::<i64>().map(i128::from).map_err(|e| {
            invalid_params(&format!("error converting http params to arguments: height {text:?}: {e}"))
        })?,
    };
    let text = if wanted <= 0 {
        format!("height must be greater than 0, but got {wanted}")
    } else if wanted > i128::from(shown) {
        format!("height {wanted} must be less than or equal to the current blockchain height {shown}")
    } else if wanted < i128::from(first) {
        format!("height {wanted} is not available, lowest height is {first}")
    } else {
        let height = u64::try_from(wanted).ok().and_then(|h| view.recording.height(view.answered(h)));
        return height.ok_or_else(|| missing(view, &format!("height {wanted}")));
    };
    Err(internal(&text))
}

fn block(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    let raw = &height(view, params)?.block;
    byzantine::block(raw, &view.deviations).map(Reply::Result).map_err(|e| malformed(view, "/block", &e))
}

fn block_results(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    let height = height(view, params)?;
    if view.deviations.has(Deviation::DiscardAbciResponses) {
        return Err(internal("node is not persisting finalize block responses"));
    }
    if view.deviations.has(Deviation::NoResults) && height.height == view.shown {
        return Err(internal(&format!("could not find results for height #{}", height.height)));
    }
    let results = byzantine::results(&height.block_results, &view.deviations);
    results.map(Reply::Result).map_err(|e| malformed(view, "/block_results", &e))
}

/// The header of the block.
fn header(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        header: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Outer<'a> {
        #[serde(borrow)]
        block: Inner<'a>,
    }
    let height = height(view, params)?;
    let outer: Outer<'_> =
        serde_json::from_slice(&height.block).map_err(|e| unreadable(view, "/block", &e))?;
    let header = byzantine::header(outer.block.header.get(), &view.deviations)
        .map_err(|e| malformed(view, "/block", &e))?;
    let late = view.deviations.get(Deviation::LateTip).filter(|_| height.height == view.shown);
    let header = byzantine::later(header, late).map_err(|e| malformed(view, "/block", &e))?;
    Ok(Reply::text(format!(r#"{{"header":{header}}}"#)))
}

/// The recorded status with heights, hashes and times of the shown blocks.
fn status(view: View<'_>) -> Result<Reply, Reply> {
    #[derive(Deserialize)]
    struct Status<'a> {
        #[serde(borrow)]
        node_info: &'a RawValue,
        validator_info: &'a RawValue,
    }
    let raw = recorded_result(view, "status", &Params::new())?;
    let status: Status<'_> = serde_json::from_slice(raw).map_err(|e| unreadable(view, "/status", &e))?;
    let latest = sync_info(view, "latest", view.shown)?;
    let earliest = sync_info(view, "earliest", view.base())?;
    let node = byzantine::network(status.node_info.get(), "/network", &view.deviations)
        .map_err(|e| malformed(view, "/status", &e))?;
    let validator = status.validator_info;
    Ok(Reply::text(format!(
        r#"{{"node_info":{node},"sync_info":{{{latest},{earliest},"catching_up":false}},"validator_info":{validator}}}"#
    )))
}

/// The members of `/status` for its latest or earliest block.
fn sync_info(view: View<'_>, name: &str, height: u64) -> Result<String, Reply> {
    let block = view.recording.height(height).ok_or_else(|| missing(view, &format!("height {height}")))?;
    let head = block.head().map_err(|e| unreadable(view, "/block", &e))?;
    let (hash, app_hash, time) = (head.hash, head.app_hash, head.time);
    Ok(format!(
        r#""{name}_block_hash":"{hash}","{name}_app_hash":"{app_hash}","{name}_block_height":"{height}","{name}_block_time":"{time}""#
    ))
}

/// The recorded application with the height and hash of the tip.
fn abci_info(view: View<'_>) -> Result<Reply, Reply> {
    #[derive(Deserialize, Serialize)]
    struct Info {
        data: String,
        version: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        app_version: Option<String>,
        last_block_height: String,
        last_block_app_hash: String,
    }
    #[derive(Deserialize, Serialize)]
    struct Response {
        response: Info,
    }
    #[derive(Deserialize)]
    struct Results {
        app_hash: String,
    }
    let raw = recorded_result(view, "abci_info", &Params::new())?;
    let mut info: Response = serde_json::from_slice(raw).map_err(|e| unreadable(view, "/abci_info", &e))?;
    let tip = height(view, &Params::new())?;
    let results: Results =
        serde_json::from_slice(&tip.block_results).map_err(|e| unreadable(view, "/block_results", &e))?;
    info.response.last_block_height = tip.height.to_string();
    info.response.last_block_app_hash = results.app_hash;
    serde_json::to_string(&info).map(Reply::text).map_err(|e| unreadable(view, "/abci_info", &e))
}

/// The validators, recorded at the last height: they apply to every height whose header has the same validator hash.
/// Only their priorities belong to the recorded height; no header covers them.
fn validators(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    let mut params = params.clone();
    let requested = height(view, &params)?;
    params.insert("height".to_owned(), requested.height.to_string());
    params.entry("page".to_owned()).or_insert_with(|| "1".to_owned());
    params.entry("per_page".to_owned()).or_insert_with(|| "30".to_owned());
    let last = view.recording.last();
    let set = |height: &Height| {
        chain::comet::parse_block(&height.block).ok().map(|b| b.full_header.validators_hash)
    };
    let same_set =
        || set(&requested).is_some() && set(&requested) == view.recording.height(last).as_ref().and_then(set);
    if view.recording.state().cometbft("validators", &params).is_some() || !same_set() {
        return recorded(view, "validators", &params);
    }
    params.insert("height".to_owned(), last.to_string());
    let raw = recorded_result(view, "validators", &params)?;
    let mut answer: Value = serde_json::from_slice(raw).map_err(|e| unreadable(view, "/validators", &e))?;
    answer["block_height"] = requested.height.to_string().into();
    Ok(Reply::text(answer.to_string()))
}

fn recorded_result<'a>(view: View<'a>, method: &str, params: &Params) -> Result<&'a Bytes, Reply> {
    match view.recording.state().cometbft(method, params) {
        Some(Outcome::Result(raw)) => Ok(raw),
        _ => Err(missing(view, &format!("comet {method}"))),
    }
}

/// Parameters of a `POST`: an object, or an array in the order of the method's signature.
pub(super) fn posted_params(call: &envelope::Call<'_>) -> Result<Params, String> {
    let Some(raw) = call.params else { return Ok(Params::new()) };
    let named: Vec<(String, Value)> = match serde_json::from_str(raw.get()).map_err(|e| e.to_string())? {
        Value::Null => Vec::new(),
        Value::Object(members) => members.into_iter().collect(),
        Value::Array(values) => {
            let names = signature(&call.method);
            if values.len() > names.len() {
                return Err(format!("{} takes {} positional params", call.method, names.len()));
            }
            names.iter().map(|name| (*name).to_owned()).zip(values).collect()
        }
        other => return Err(format!("params must be an object or an array, not {other}")),
    };
    let mut params = Params::new();
    for (name, value) in named {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text,
            plain @ (Value::Number(_) | Value::Bool(_)) => plain.to_string(),
            other => return Err(format!("param {name} must be a string, number or boolean, not {other}")),
        };
        let text = if name == "hash" { posted_hash(&text)? } else { text };
        params.insert(name, text);
    }
    Ok(params)
}

/// Bytes are base64 in a `POST` and hex in a `GET`.
fn posted_hash(text: &str) -> Result<String, String> {
    STANDARD.decode(text).map(hex::encode_upper).map_err(|e| format!("hash {text:?} is not base64: {e}"))
}

fn signature(method: &str) -> &'static [&'static str] {
    match method {
        "block" | "block_results" | "commit" | "header" => &["height"],
        "validators" => &["height", "page", "per_page"],
        "abci_query" => &["path", "data", "height", "prove"],
        "tx" => &["hash", "prove"],
        "subscribe" | "unsubscribe" => &["query"],
        "tx_search" => &["query", "prove", "page", "per_page", "order_by"],
        _ => &[],
    }
}
