//! The REST of a bridge's executor (opinit-bots), from recorded replies about the rollup.
//!
//! The reply about a withdrawal depends on the shown height of the rollup. Below its block (`tx_height`) the executor
//! does not have it. From there on it has it without proofs: its tree is open. From the last block of the output on,
//! the block with the hash `last_block_hash`, it is the recorded reply with the proofs. Like an executor, no reply
//! states whether the output is on the L1 already, or the withdrawal claimed.
//!
//! `/withdrawals/{address}` is composed of these, as in `executor/child`. Errors are plain text with HTTP status 500,
//! as from the executor's HTTP library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value};

use bytes::Bytes;

use super::{Deviation, HttpReply, View};
use crate::counters::Call;
use crate::recording::{BotReply, query_pairs};

const WITHDRAWAL: &str = "/withdrawal/";
const WITHDRAWALS: &str = "/withdrawals/";
/// The default and the maximum page size.
const LIMITS: (usize, usize) = (10, 100);
/// The members that only a closed tree has.
const OF_CLOSED: [&str; 3] = ["withdrawal_proofs", "storage_root", "last_block_hash"];

pub(super) fn answer(view: View<'_>, request: &Request<Bytes>) -> HttpReply {
    view.counters.count(Call::Executor);
    if request.method() != Method::GET {
        return HttpReply::new(StatusCode::METHOD_NOT_ALLOWED, Bytes::new());
    }
    let path = request.uri().path();
    let answer = if let Some(sequence) = path.strip_prefix(WITHDRAWAL) {
        withdrawal(view, sequence)
    } else if let Some(address) = path.strip_prefix(WITHDRAWALS) {
        withdrawals(view, address, request.uri().query().unwrap_or_default())
    } else if path == "/status" {
        status(view)
    } else {
        recorded(view, path)
    };
    answer.unwrap_or_else(|error| error)
}

/// A withdrawal that the executor has seen.
struct Seen<'a> {
    sequence: u64,
    to: String,
    height: u64,
    /// The last block of its output; none if the tree was still open.
    closed: Option<String>,
    answer: &'a BotReply,
}

#[derive(Deserialize)]
struct Withdrawal {
    sequence: u64,
    to: String,
    tx_height: u64,
    last_block_hash: Option<String>,
}

impl<'a> Seen<'a> {
    fn read(answer: &'a BotReply) -> Option<Result<Self, String>> {
        let of_one = answer.path.starts_with(WITHDRAWAL) && answer.status == 200;
        of_one.then(|| {
            let read: Withdrawal = serde_json::from_slice(&answer.body).map_err(|e| e.to_string())?;
            let hash = read.last_block_hash.map(|hash| STANDARD.decode(hash)).transpose();
            let closed = hash.map_err(|e| format!("last_block_hash: {e}"))?.map(hex::encode_upper);
            Ok(Self { sequence: read.sequence, to: read.to, height: read.tx_height, closed, answer })
        })
    }

    /// The reply of the executor at the shown height.
    fn answer_at(&self, view: View<'_>) -> Result<String, HttpReply> {
        let text = String::from_utf8_lossy(&self.answer.body);
        let Some(hash) = &self.closed else { return Ok(text.into_owned()) };
        let Some(closed) = view.recording.height_of_block(hash) else {
            return Err(missing(view, &format!("the block {hash} that ends the output of {text}")));
        };
        if closed <= view.executed() {
            return Ok(text.into_owned());
        }
        let mut members: Map<String, Value> =
            serde_json::from_str(&text).map_err(|e| missing(view, &format!("a withdrawal: {e}")))?;
        members.insert("output_index".to_owned(), 0.into());
        members.extend(OF_CLOSED.map(|name| (name.to_owned(), Value::Null)));
        Ok(Value::Object(members).to_string())
    }
}

/// The recorded withdrawals by sequence, each with its last reply.
fn all(view: View<'_>) -> Result<Vec<Seen<'_>>, HttpReply> {
    let read: Result<Vec<_>, _> = view.recording.state().bots().iter().filter_map(Seen::read).collect();
    let mut seen = read.map_err(|e| missing(view, &format!("a well-formed withdrawal: {e}")))?;
    seen.reverse();
    seen.sort_by_key(|withdrawal| withdrawal.sequence);
    seen.dedup_by_key(|withdrawal| withdrawal.sequence);
    Ok(seen)
}

fn withdrawal(view: View<'_>, sequence: &str) -> Result<HttpReply, HttpReply> {
    let Ok(wanted) = sequence.parse::<u64>() else {
        let parsing = format!("strconv.ParseUint: parsing {sequence:?}: invalid syntax");
        return Err(failure(&format!("failed to parse sequence: {parsing}")));
    };
    let all = all(view)?;
    let Some(seen) = all.iter().find(|seen| seen.sequence == wanted) else {
        let path = format!("{WITHDRAWAL}{sequence}");
        let refused = view.recording.state().bots().iter().any(|bot| bot.path == path);
        let beyond = all.last().is_none_or(|last| last.sequence < wanted);
        return Err(if refused || beyond || wanted == 0 { unseen() } else { missing(view, &path) });
    };
    if seen.height > view.executed() || view.deviations.has(Deviation::UnseenWithdrawals) {
        return Err(unseen());
    }
    Ok(HttpReply::new(StatusCode::OK, seen.answer_at(view)?))
}

/// A page of the withdrawals to an address: from the newest on, or in order `asc` from the oldest; `offset` is the
/// first sequence.
fn withdrawals(view: View<'_>, address: &str, query: &str) -> Result<HttpReply, HttpReply> {
    let all = all(view)?;
    if all.iter().zip(1..).any(|(seen, sequence)| seen.sequence != sequence) {
        return Err(missing(view, &format!("every withdrawal, to tell those of {address}")));
    }
    let pairs = query_pairs(query).ok_or_else(|| missing(view, query))?;
    let value = |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let offset: u64 = value("offset").and_then(|text| text.parse().ok()).unwrap_or(0);
    let limit = value("limit").and_then(|text| text.parse().ok()).unwrap_or(LIMITS.0).min(LIMITS.1);
    let oldest_first = value("order") == Some("asc");
    let mut own: Vec<_> =
        all.iter().filter(|seen| seen.to == address && seen.height <= view.executed()).collect();
    if oldest_first {
        own.retain(|seen| seen.sequence >= offset);
    } else {
        own.retain(|seen| offset == 0 || seen.sequence <= offset);
        own.reverse();
    }
    let page: Vec<_> = own.iter().take(limit).map(|seen| seen.answer_at(view)).collect::<Result<_, _>>()?;
    let next = own.get(limit).map(|seen| format!(r#","next":{}"#, seen.sequence)).unwrap_or_default();
    Ok(HttpReply::new(StatusCode::OK, format!(r#"{{"withdrawals":[{}]{next}}}"#, page.join(","))))
}

/// The recorded status, as of the shown height.
fn status(view: View<'_>) -> Result<HttpReply, HttpReply> {
    let recorded = recorded(view, "/status")?;
    let malformed = |e: String| missing(view, &format!("a well-formed /status: {e}"));
    let mut status: Value = serde_json::from_slice(&recorded.body).map_err(|e| malformed(e.to_string()))?;
    let child = status.get_mut("child").ok_or_else(|| malformed("it has no child".to_owned()))?;
    let read = child["node"]["last_block_height"].as_u64().unwrap_or_default();
    let seen = all(view)?.into_iter().filter(|seen| seen.height <= view.executed());
    child["last_withdrawal_l2_sequence"] = seen.map(|seen| seen.sequence).max().unwrap_or_default().into();
    child["node"]["last_block_height"] = read.min(view.executed()).into();
    Ok(HttpReply::new(StatusCode::OK, status.to_string()))
}

fn recorded(view: View<'_>, path: &str) -> Result<HttpReply, HttpReply> {
    let found = view.recording.state().bots().iter().find(|bot| bot.path == path);
    let found = found.ok_or_else(|| missing(view, &format!("GET {path} of the executor")))?;
    let status = StatusCode::from_u16(found.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(HttpReply::new(status, found.body.clone()))
}

fn unseen() -> HttpReply {
    failure("failed to query withdrawal")
}

fn failure(text: &str) -> HttpReply {
    HttpReply::new(StatusCode::INTERNAL_SERVER_ERROR, text.to_owned())
}

fn missing(view: View<'_>, question: &str) -> HttpReply {
    HttpReply::new(StatusCode::NOT_IMPLEMENTED, view.counters.miss(question))
}
