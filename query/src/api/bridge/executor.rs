//! The two paths of a bridge executor (opinit-bots), so that its address in a registry can be ours.
//!
//! Parameters, errors and their texts are those of the bots (`executor/querier.go`): a text that is no number counts as absent, a negative
//! one is an error, and an unknown withdrawal is a 500. Paths are not decoded.

use http::StatusCode;
use schema::bridge::BRIDGE;
use schema::opchild::ReceiverWithdrawals;
use serde::Serialize;
use store::key::Text;
use web::call::Call;
use web::http_error::HttpError;
use web::reply::Reply;

use crate::array::{Array, Stored};
use crate::bridge_record::Records;
use crate::indexer::Indexer;
use crate::v1::BridgeWithdrawal;

/// `google.rpc.Code` of the errors.
const INVALID_ARGUMENT: u8 = 3;
const NOT_FOUND: u8 = 5;

/// Withdrawals of a page without a limit, and at most.
const LIMITS: (u64, u64) = (10, 100);

/// A page of withdrawals.
#[derive(Serialize)]
struct Page {
    withdrawals: Vec<BridgeWithdrawal>,
    /// The offset of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub(super) fn list(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let (limit, offset) = match (number(call, "limit"), number(call, "offset")) {
        (Err(error), _) | (_, Err(error)) => return Err(invalid(error)),
        (Ok(limit), Ok(offset)) => (limit.unwrap_or(LIMITS.0).min(LIMITS.1), offset.unwrap_or(0)),
    };
    let view = indexer.view()?;
    view.require(&BRIDGE)?;
    let receiver = Text::from(call.raw_text("address"));
    let list = Stored::<ReceiverWithdrawals>::all(view.snapshot(), receiver).map_err(HttpError::internal)?;
    // The offset is the first withdrawal of the page, and not a count.
    let sequences = if call.first("order") == Some("asc") {
        let start = list.position(&offset).map_err(HttpError::internal)?;
        list.slice(start..start.saturating_add(limit + 1).min(list.len()))
    } else {
        let end = if offset == 0 { Ok(list.len()) } else { list.upper_bound(&offset) };
        let end = end.map_err(HttpError::internal)?;
        list.slice(end.saturating_sub(limit + 1)..end).map(|mut sequences| {
            sequences.reverse();
            sequences
        })
    };
    let mut sequences = sequences.map_err(HttpError::internal)?;
    let next = sequences.get(usize::try_from(limit).unwrap_or(usize::MAX)).copied();
    sequences.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let records = Records::new(view.snapshot())?;
    let of_executor = |sequence| records.of_executor(sequence).transpose();
    let withdrawals = sequences.into_iter().filter_map(of_executor).collect::<Result<_, _>>()?;
    let page = serde_json::to_vec(&Page { withdrawals, next }).map_err(HttpError::internal)?;
    Ok(Reply::json(page))
}

pub(super) fn one(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let text = call.raw_text("sequence");
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(sequence) = text.parse::<u64>().ok().filter(|_| is_number) else {
        let reason = if is_number { "value out of range" } else { "invalid syntax" };
        return Err(invalid(format!(
            "failed to parse sequence: strconv.ParseUint: parsing {text:?}: {reason}"
        )));
    };
    let view = indexer.view()?;
    view.require(&BRIDGE)?;
    match Records::new(view.snapshot())?.of_executor(sequence)? {
        Some(record) => Ok(Reply::json(serde_json::to_vec(&record).map_err(HttpError::internal)?)),
        None => Err(failure("failed to query withdrawal").with_code(NOT_FOUND)),
    }
}

/// A query parameter; `None` if it is absent or no number.
fn number(call: &Call<'_>, name: &str) -> Result<Option<u64>, String> {
    let Some(number) = call.first(name).and_then(|text| text.parse::<i64>().ok()) else { return Ok(None) };
    u64::try_from(number)
        .map(Some)
        .map_err(|_| format!("failed to convert {name}: integer overflow conversion"))
}

fn invalid(text: String) -> HttpError {
    failure(text).with_code(INVALID_ARGUMENT)
}

/// An error as the executor gives it; the code, which it has not, is that of the RPC.
fn failure(text: impl Into<String>) -> HttpError {
    HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, text).as_text()
}
