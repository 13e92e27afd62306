//! grpc-gateway answers: one REST exchange, and the [`Error`] that a gRPC status stands for.
//!
//! # Invariants
//!
//! A status is classified by its text where the SDK has a text for it, else by its gRPC code (indexing.md §1.3).

use bytes::Bytes;
use serde::Deserialize;

use crate::comet_rpc::{is_bad_query, is_index_off};
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Site};
use crate::rpc::number_after;

/// grpc-gateway's error body: a gRPC status.
#[derive(Deserialize)]
pub(crate) struct GrpcStatus {
    pub(crate) code: i64,
    pub(crate) message: String,
}

pub(crate) fn malformed(endpoint: &Endpoint, call: &Call, e: &serde_json::Error) -> Error {
    Error::Malformed { at: endpoint.site(call), reason: e.to_string() }
}

/// The answer, without a check of the state that it was read from.
pub(crate) async fn answer_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    let reply = endpoint.send(call).await?;
    if reply.status.is_success() {
        return reply.json(|| endpoint.site(call));
    }
    match serde_json::from_slice::<GrpcStatus>(&reply.body) {
        Ok(status) => Err(classify(endpoint.site(call), status)),
        Err(e) => Err(reply.unreadable(endpoint.site(call), &e.to_string())),
    }
}

/// gRPC codes by their meaning for asking again.
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

/// Whether a text is that of a transient failure.
pub(crate) fn is_transient_text(said: &str) -> bool {
    TRANSIENT_TEXTS.iter().any(|text| said.contains(text))
}

/// Suffix of a contract's rejection of a query (wasmd `x/wasm/types/errors.go`, `ErrQueryFailed`).
const CONTRACT_REJECTION: &str = "query wasm contract failed";

/// Classifies a gRPC status. Code 2 is used for everything that has no code of its own, a contract's
/// fixed no before all (indexing.md §8.4): it is permanent unless its text is that of a broken connection.
pub(crate) fn classify(at: Site, status: GrpcStatus) -> Error {
    let GrpcStatus { code, message: said } = status;
    // First, because a contract's text is arbitrary: it may contain "invalid height" or "connection refused".
    if said.contains(CONTRACT_REJECTION) {
        return Error::Refused { at, code, said };
    }
    if is_index_off(&said) {
        return Error::NotIndexed { at };
    }
    if is_bad_search(&said) {
        return Error::Refused { at, code, said };
    }
    if said.contains("invalid height") {
        return Error::NotYet { at, tip: None, said };
    }
    if let Some(error) = state_is_missing(&at, &said) {
        return error;
    }
    // Older gateways return 12 for an unknown path, newer ones 5 with this text.
    if code == code::UNIMPLEMENTED || (code == code::NOT_FOUND && said == "Not Found") {
        return Error::MethodMissing { at, said, advice: "this chain has no such query" };
    }
    let vague = code == code::UNKNOWN || code == code::INTERNAL;
    if code::TRANSIENT.contains(&code) || (vague && is_transient_text(&said)) {
        Error::Faulty { at, code, said }
    } else {
        Error::Refused { at, code, said }
    }
}

/// The SDK's `failed to load state at height H; … (latest height: L)`: pruned, or not committed yet where the
/// node has got no further than L. The EVM server passes the same text on.
pub(crate) fn state_is_missing(at: &Site, said: &str) -> Option<Error> {
    const MARK: &str = "failed to load state at height ";
    let wanted = said.contains(MARK).then(|| number_after(said, MARK))?;
    let (at, latest) = (at.clone(), number_after(said, "latest height: "));
    Some(match (wanted, latest) {
        (Some(wanted), Some(tip)) if tip < wanted => {
            Error::NotYet { at, tip: Some(tip), said: said.to_owned() }
        }
        _ => Error::Pruned { at, lowest: None, said: said.to_owned() },
    })
}

/// Whether REST passes on that a search is wrong by itself (SDK `x/auth/tx/query.go`). The words for the end of a
/// query, `EOF`, are also those of a broken connection.
fn is_bad_search(said: &str) -> bool {
    said.contains("failed to search for txs") && is_bad_query(said)
}
