//! Error responses: text and code of each.
//!
//! The code is a gRPC status, which clients check before the HTTP status: 3 for a bad request, 5 for not found.

use http::StatusCode;
use planner::NoRoute;
use serde_json::json;
use tracker::{Limit, Refused};
use web::http_error::HttpError;

/// `NOT_FOUND` of gRPC.
const NOT_FOUND: u8 = 5;
/// `UNKNOWN` of gRPC: Skip's code for its own faults.
const UNKNOWN: u8 = 2;

/// A member with an invalid value.
pub(crate) fn invalid(name: &str, why: &str) -> HttpError {
    HttpError::bad_request(format!("invalid {name}: {why}"))
}

/// A missing member or parameter.
pub(crate) fn missing(name: &str) -> HttpError {
    invalid(name, "it is missing")
}

/// No route. 400, because the wallet widget chooses its message by the HTTP status, and code 5.
pub(crate) fn no_route(reason: &NoRoute) -> HttpError {
    let refusal = HttpError::bad_request(reason.to_string());
    match reason {
        NoRoute::Dust { multiple, usable } => refusal.with_info(match usable {
            Some(usable) => format!("Send {usable} base units."),
            None => format!("Send at least {multiple} base units."),
        }),
        NoRoute::Paused(_) => refusal.with_code(NOT_FOUND).with_info("Try again later."),
        NoRoute::TooSmall { .. } => refusal.with_code(NOT_FOUND).with_info("Send a larger amount."),
        _ => refusal.with_code(NOT_FOUND),
    }
}

/// A route that loses too much of the value, in US dollars, for a client that accepts no such route.
pub(crate) fn unsafe_price(value_in: &str, value_out: &str) -> HttpError {
    let entry = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "BAD_PRICE_ERROR",
        "domain": "cairn",
        "metadata": {},
    });
    let message = format!(
        "difference in usd value of route input and output is too large. input usd value: {value_in} output usd value: \
         {value_out}; allow_unsafe is false"
    );
    HttpError::bad_request(message).with_details(entry)
}

/// A swap whose price cannot be judged or is bad, for a client that accepts no such route.
pub(crate) fn unsafe_swap(warning: &str, message: &str) -> HttpError {
    let entry = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": warning.replace("WARNING", "ERROR"),
        "domain": "cairn",
        "metadata": {},
    });
    HttpError::bad_request(format!("{message} allow_unsafe is false")).with_details(entry)
}

/// The registry has no such chain or asset.
pub(crate) fn unknown_asset(which: &str, denom: &str, chain: &str) -> HttpError {
    let message = format!("no routes found: {which} `{denom}` of chain `{chain}` is not in the registry");
    HttpError::bad_request(message).with_code(NOT_FOUND)
}

/// A chain on which transactions cannot be tracked.
pub(crate) fn unknown_chain() -> HttpError {
    HttpError::not_found("chain ID not supported")
}

/// The limit of registered transactions that no node has seen yet is reached.
pub(crate) fn too_many_unseen(limit: Limit) -> HttpError {
    /// Seconds. By then a transaction that was sent is seen and no longer counts.
    const RETRY_AFTER: u64 = 30;
    let (most, setting, reason) = match limit {
        Limit::Client(most) => (most, "route.unseen_per_client", "UNSEEN_PER_CLIENT"),
        Limit::Chain(most) => (most, "route.unseen_per_chain", "UNSEEN_PER_CHAIN"),
    };
    let entry = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "cairn",
        "metadata": { "limit": most.to_string(), "setting": setting },
    });
    let message = format!("{}; try again in {RETRY_AFTER} s", Refused::TooMany(limit));
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).with_details(entry).with_retry_after(RETRY_AFTER)
}

/// The disk is full; the log has the details.
pub(crate) fn disk_full(error: impl std::fmt::Display) -> HttpError {
    tracing::debug!(%error, "a transaction was not registered");
    HttpError::unavailable("nothing can be registered at the moment; try again").with_retry_after(10)
}

/// A request that needs more than is free at the moment.
pub(crate) fn busy(why: &str) -> HttpError {
    /// Seconds.
    const RETRY_AFTER: u64 = 2;
    HttpError::unavailable(format!("{why}; try again in {RETRY_AFTER} s")).with_retry_after(RETRY_AFTER)
}

/// The hash is not registered.
pub(crate) fn untracked() -> HttpError {
    HttpError::not_found("tx not found")
}

/// A known endpoint that is not implemented.
pub(crate) fn unsupported() -> HttpError {
    HttpError::not_implemented("not implemented")
}

/// Internal error, which is logged.
pub(crate) fn internal(fault: impl std::fmt::Display) -> HttpError {
    HttpError::internal(fault).with_code(UNKNOWN)
}

/// A body that is too large or not declared as JSON.
pub(crate) fn not_json(why: &str) -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, format!("invalid request body: {why}"))
}
