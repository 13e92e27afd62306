//! REST's transactions by hash and by events, derived from the blocks, their results and the node's own JSON of each
//! transaction.
//!
//! Behaviour of `x/auth/tx` of SDK 0.50 (`service.go`, `query.go`): `query`, `page`, `limit` and `order_by` have an
//! effect; `events` and `pagination.*` of older SDKs are ignored. The reply for bytes that are not a transaction (vote
//! data) is not derived: it must be recorded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::rest_reply::{at, error, invalid, missing, ok, unknown, unreadable};
use super::search::{Page, SearchError, Wanted, hex_as_go, search};
use super::{Deviation, HttpReply, View};
use crate::recording::{Height, items, query_pairs};

/// The placeholder of the gateway for a transaction that does not decode.
const UNDECODED: &str = "decode failed tx";
/// `codes.Internal` of gRPC.
const INTERNAL: u8 = 13;
/// `codes.NotFound` of gRPC.
const NOT_FOUND: u8 = 5;
/// Page size of a request without a limit (`query.DefaultLimit`).
const DEFAULT_LIMIT: i64 = 100;

/// Both forms in which a node returns a transaction.
struct Found {
    tx: String,
    response: String,
}

/// Reason why a transaction is not returned.
enum NotGiven {
    /// It is in the block, but the gateway could not decode it, or its decoded form is unknown.
    Undecoded,
    Failed(HttpReply),
}

/// `txs/{hash}`; `path` is the whole path.
pub(super) fn tx(view: View<'_>, path: &str, hash: &str) -> Result<HttpReply, HttpReply> {
    let bytes = hex_as_go(hash).map_err(|message| unknown(&message))?;
    if let Some(off) = view.no_index() {
        return Err(unknown(off));
    }
    let place = <[u8; 32]>::try_from(bytes).ok().and_then(|hash| view.recording.place_of_tx(&hash));
    let Some((height, index)) = place.filter(|(height, _)| view.is_indexed(*height)) else {
        return Err(error(StatusCode::NOT_FOUND, NOT_FOUND, &format!("tx not found: {hash}")));
    };
    match found(view, height, index) {
        Ok(Found { tx, response }) => Ok(ok(&[r#"{"tx":"#, &tx, r#","tx_response":"#, &response, "}"])),
        Err(NotGiven::Failed(answer)) => Err(answer),
        Err(NotGiven::Undecoded) => recorded(view, path),
    }
}

/// `txs?query=`; `path` is the whole path with its query string.
pub(super) fn txs(view: View<'_>, path: &str) -> Result<HttpReply, HttpReply> {
    if view.deviations.has(Deviation::NoSearch) {
        return Err(error(StatusCode::NOT_IMPLEMENTED, 12, "Not Implemented"));
    }
    let (_, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query_pairs(query).ok_or_else(|| invalid("the query is not UTF-8"))?;
    let value = |name: &str| pairs.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value.as_str());
    let wanted = Wanted {
        query: value("query"),
        page: whole("page", value("page"), 1)?,
        per_page: whole("limit", value("limit"), DEFAULT_LIMIT)?,
        order_by: order(value("order_by"))?,
    };
    let failed = |message: &str| error(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, message);
    if wanted.query.is_empty() {
        return Err(failed("query cannot be empty"));
    }
    let Page { txs, total } = search(view, wanted).map_err(|none| match none {
        SearchError::Message(message) => failed(&format!("failed to search for txs: {message}")),
        SearchError::Unsupported(what) => missing(view, &format!("{what}: {}", wanted.query)),
    })?;
    let (mut plain, mut responses) = (Vec::new(), Vec::new());
    for place in txs {
        match found(view, place.height, place.index) {
            Ok(Found { tx, response }) => {
                plain.push(tx);
                responses.push(response);
            }
            Err(NotGiven::Failed(answer)) => return Err(answer),
            // The recorded reply is that of the whole chain.
            Err(NotGiven::Undecoded) if view.executed() == view.recording.last() => {
                return recorded(view, path);
            }
            Err(NotGiven::Undecoded) => return Err(missing(view, &format!("GET {path}"))),
        }
    }
    let (plain, responses, total) = (plain.join(","), responses.join(","), total.to_string());
    Ok(ok(&[
        r#"{"txs":["#,
        &plain,
        r#"],"tx_responses":["#,
        &responses,
        r#"],"pagination":null,"total":""#,
        &total,
        r#""}"#,
    ]))
}

/// A number from 1; an invalid one is replaced by the default, as in `QueryTxsByEvents`.
fn whole(name: &str, text: &str, default: i64) -> Result<i64, HttpReply> {
    if text.is_empty() {
        return Ok(default);
    }
    let number: u64 = text.parse().map_err(|_| {
        invalid(&format!("type mismatch, parameter: {name}, error: {text:?} is not a number"))
    })?;
    let number = i64::try_from(number).map_err(|_| invalid(&format!("{name} {number} is too large")))?;
    Ok(if number == 0 { default } else { number })
}

/// The gateway accepts an enum by name and by number.
fn order(text: &str) -> Result<&'static str, HttpReply> {
    match text {
        "" | "0" | "ORDER_BY_UNSPECIFIED" => Ok(""),
        "1" | "ORDER_BY_ASC" => Ok("asc"),
        "2" | "ORDER_BY_DESC" => Ok("desc"),
        other => Err(invalid(&format!("parsing field \"order_by\": {other} is not a valid value"))),
    }
}

fn recorded(view: View<'_>, path: &str) -> Result<HttpReply, HttpReply> {
    let found = view.recording.state().rest("GET", path, None, None);
    let found = found.ok_or_else(|| missing(view, &format!("GET {path}")))?;
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(HttpReply::new(status, found.body.clone()))
}

fn found(view: View<'_>, height: u64, index: usize) -> Result<Found, NotGiven> {
    let block = at(view, height).map_err(NotGiven::Failed)?;
    let failure = |message: String| NotGiven::Failed(unreadable(view, height, &message));
    let tx = decoded(&block, index).map_err(failure)?.ok_or(NotGiven::Undecoded)?;
    let response = response(&block, index, tx).map_err(failure)?;
    Ok(Found { tx: tx.to_owned(), response })
}

/// The node's own JSON of a transaction, if it has one.
fn decoded(block: &Height, index: usize) -> Result<Option<&str>, String> {
    #[derive(Deserialize)]
    struct Body {
        memo: String,
    }
    #[derive(Deserialize)]
    struct Tx {
        body: Body,
    }
    let Some(raw) = &block.rest_txs else { return Ok(None) };
    let txs = items(raw).map_err(|e| e.to_string())?;
    let total = block.raw_txs().map_err(|e| e.to_string())?.len();
    // Some gateways omit transactions that do not decode; then positions are uncertain.
    let Some(tx) = txs.get(index).filter(|_| txs.len() == total) else { return Ok(None) };
    let read: Tx = serde_json::from_str(tx.get()).map_err(|e| e.to_string())?;
    Ok((read.body.memo != UNDECODED).then_some(tx.get()))
}

/// A result of `/block_results`; missing members have protobuf's default.
#[derive(Deserialize)]
struct TxResult<'a> {
    code: u32,
    data: Option<&'a str>,
    #[serde(borrow)]
    log: &'a RawValue,
    #[serde(borrow)]
    info: &'a RawValue,
    #[serde(borrow)]
    gas_wanted: &'a RawValue,
    #[serde(borrow)]
    gas_used: &'a RawValue,
    #[serde(borrow)]
    events: Option<&'a RawValue>,
    #[serde(borrow)]
    codespace: &'a RawValue,
}

/// `tx_response` (`NewResponseResultTx` of the SDK's `types/result.go`).
fn response(block: &Height, index: usize, tx: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Results<'a> {
        #[serde(borrow)]
        txs_results: Vec<TxResult<'a>>,
    }
    let results: Results<'_> = serde_json::from_slice(&block.block_results).map_err(|e| e.to_string())?;
    let result = results.txs_results.get(index).ok_or_else(|| format!("no result {index}"))?;
    let raw_txs = block.raw_txs().map_err(|e| e.to_string())?;
    let raw = raw_txs.get(index).ok_or_else(|| format!("no transaction {index}"))?;
    let hash = super::hash_of(raw).map_err(|e| e.to_string())?;
    let data = STANDARD.decode(result.data.unwrap_or_default()).map_err(|e| e.to_string())?;
    let data = hex::encode_upper(data);
    let time = block.head().map_err(|e| e.to_string())?.time;
    // `2026-11-21T08:04:30`, without the fraction of the second: block times are in UTC.
    let time = time.get(..19).ok_or_else(|| format!("time {time:?}"))?;
    let tx = tx.strip_prefix('{').ok_or("a transaction that is not an object")?;
    let events = result.events.map_or("[]", RawValue::get);
    let TxResult { code, log, info, gas_wanted, gas_used, codespace, .. } = result;
    let height = block.height;
    Ok(format!(
        r#"{{"height":"{height}","txhash":"{hash}","codespace":{codespace},"code":{code},"data":"{data}","raw_log":{log},"logs":[],"info":{info},"gas_wanted":{gas_wanted},"gas_used":{gas_used},"tx":{{"@type":"/cosmos.tx.v1beta1.Tx",{tx},"timestamp":"{time}Z","events":{events}}}"#
    ))
}
