//! grpc-gateway answers: one REST exchange, and the mapping of gRPC statuses to [`Error`].
//!
//! # Invariants
//!
//! A status is classified by its text if the SDK has a text for it, else by its gRPC code.

use bytes::Bytes;
use serde::Deserialize;

use crate::comet::reply::{is_bad_query, is_index_off, search_range};
use crate::error::{Error, RequestContext};
use crate::pool::endpoint::{Endpoint, Request};
use crate::rpc::number_after;

/// grpc-gateway's error body: a gRPC status.
#[derive(Deserialize)]
pub(crate) struct GrpcStatus {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Headers with the height of the state that a reply is of: the SDK's, and as a gateway passes it on.
const STATE_HEIGHT: [&str; 2] = ["x-cosmos-block-height", "grpc-metadata-x-cosmos-block-height"];

/// The reply, without a check of the state that it was read from.
pub(crate) async fn answer_of(endpoint: &Endpoint, request: &Request) -> Result<Bytes, Error> {
    answer_with_height(endpoint, request).await.map(|(answer, _)| answer)
}

/// The reply, and the height of the state that it is of, if the server says that.
pub(crate) async fn answer_with_height(
    endpoint: &Endpoint,
    request: &Request,
) -> Result<(Bytes, Option<u64>), Error> {
    let response = endpoint.send(request).await?;
    if response.status().is_success() {
        let height = STATE_HEIGHT.iter().find_map(|name| response.headers().get(*name));
        let height = height.and_then(|height| height.to_str().ok()?.parse().ok());
        return Ok((endpoint.json(request, response)?, height));
    }
    Err(match serde_json::from_slice(response.body()) {
        Ok(status) => classify(endpoint.context(request), status),
        Err(e) => endpoint.unreadable(request, &response, e),
    })
}

/// gRPC codes by their meaning for a retry.
mod code {
    pub(super) const UNKNOWN: i64 = 2;
    pub(super) const NOT_FOUND: i64 = 5;
    pub(super) const UNIMPLEMENTED: i64 = 12;
    pub(super) const INTERNAL: i64 = 13;
    /// Cancelled, deadline exceeded, resource exhausted, aborted, unavailable.
    pub(super) const TRANSIENT: [i64; 5] = [1, 4, 8, 10, 14];
}

/// Texts of Go and gRPC for transient failures of the node that have the same code as a contract's rejection.
const TRANSIENT_TEXTS: [&str; 7] = [
    "context deadline exceeded",
    "context canceled",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "transport is closing",
    "EOF",
];

/// True if a text is that of a transient failure.
pub(crate) fn is_transient_text(message: &str) -> bool {
    TRANSIENT_TEXTS.iter().any(|text| message.contains(text))
}

/// Suffix of a contract's rejection of a query (wasmd `x/wasm/types/errors.go`, `ErrQueryFailed`).
const CONTRACT_REJECTION: &str = "query wasm contract failed";

/// Classifies a gRPC status. Code 2 is used for everything without a code of its own, above all a contract's
/// rejection: it is permanent unless its text is that of a broken connection.
pub(crate) fn classify(at: RequestContext, status: GrpcStatus) -> Error {
    let GrpcStatus { code, message } = status;
    // First, because a contract's text is arbitrary: it may contain "invalid height" or "connection refused".
    if message.contains(CONTRACT_REJECTION) {
        return Error::Refused { at, code, message };
    }
    if is_index_off(&message) {
        return Error::NotIndexed { at };
    }
    if let Some(most) = search_range(&message) {
        return Error::RangeRequired { at, most, message };
    }
    if is_bad_search(&message) {
        return Error::Refused { at, code, message };
    }
    if message.contains("invalid height") {
        return Error::NotYet { at, tip: None, message };
    }
    if let Some(error) = state_is_missing(&at, &message) {
        return error;
    }
    // Older gateways return 12 for an unknown path, newer ones 5 with this text.
    if code == code::UNIMPLEMENTED || (code == code::NOT_FOUND && message == "Not Found") {
        return Error::MethodMissing { at, message, advice: "this chain has no such query" };
    }
    let vague = code == code::UNKNOWN || code == code::INTERNAL;
    if code::TRANSIENT.contains(&code) || (vague && is_transient_text(&message)) {
        Error::Faulty { at, code, message }
    } else {
        Error::Refused { at, code, message }
    }
}

/// The SDK's `failed to load state at height H; … (latest height: L)`: pruned, or not committed yet if the node is at
/// L. The EVM server passes the same text on.
pub(crate) fn state_is_missing(at: &RequestContext, message: &str) -> Option<Error> {
    const MARK: &str = "failed to load state at height ";
    let wanted = message.contains(MARK).then(|| number_after(message, MARK))?;
    let (at, latest) = (at.clone(), number_after(message, "latest height: "));
    Some(match (wanted, latest) {
        (Some(wanted), Some(tip)) if tip < wanted => {
            Error::NotYet { at, tip: Some(tip), message: message.to_owned() }
        }
        _ => Error::Pruned { at, lowest: None, message: message.to_owned() },
    })
}

/// True if REST passes on that a search is invalid (SDK `x/auth/tx/query.go`). The text for the end of a query, `EOF`,
/// is also that of a broken connection.
fn is_bad_search(message: &str) -> bool {
    message.contains("failed to search for txs") && is_bad_query(message)
}
