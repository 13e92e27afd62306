//! Every refusal's text and code (`router-api.md` §3.2).
//!
//! The code is a gRPC status, which clients look at before the HTTP status: 3 for a bad request, 5 for what is not there.

use http::StatusCode;
use planner::NoRoute;
use web::refusal::Refusal;

/// `NOT_FOUND` of gRPC.
const NOT_FOUND: u8 = 5;
/// `UNKNOWN` of gRPC: Skip's code for its own faults.
const UNKNOWN: u8 = 2;

/// A member that is not what it must be.
pub(crate) fn invalid(name: &str, why: &str) -> Refusal {
    Refusal::bad_request(format!("invalid {name}: {why}"))
}

/// There is no way, for a reason. 400, because the wallet widget words its message by the HTTP status, and code 5.
pub(crate) fn no_route(reason: &NoRoute) -> Refusal {
    let refusal = Refusal::bad_request(reason.to_string());
    match reason {
        NoRoute::Dust { .. } => refusal,
        NoRoute::Paused(_) => refusal.with_code(NOT_FOUND).with_info("Try again later."),
        NoRoute::TooSmall { .. } => refusal.with_code(NOT_FOUND).with_info("Send a larger amount."),
        _ => refusal.with_code(NOT_FOUND),
    }
}

/// The registry has no such chain or asset, so there is no way.
pub(crate) fn unknown_asset(which: &str, denom: &str, chain: &str) -> Refusal {
    let message = format!("no routes found: {which} `{denom}` of chain `{chain}` is not in the registry");
    Refusal::bad_request(message).with_code(NOT_FOUND)
}

/// A chain that transactions cannot be tracked on.
pub(crate) fn unknown_chain() -> Refusal {
    Refusal::not_found("chain ID not supported")
}

/// Nobody registered that hash.
pub(crate) fn untracked() -> Refusal {
    Refusal::not_found("tx not found")
}

/// Known, and not done here.
pub(crate) fn unserved() -> Refusal {
    Refusal::not_implemented("not implemented")
}

/// Our own fault: the log is told.
pub(crate) fn internal(fault: impl std::fmt::Display) -> Refusal {
    Refusal::internal(fault).with_code(UNKNOWN)
}

/// A body that is too large, or said to be something else than JSON.
pub(crate) fn not_json(why: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, format!("invalid request body: {why}"))
}
