//! Answers common to all paths of the REST gateway: a height, success, and the gateway's errors.

use http::StatusCode;

use super::{HttpReply, View};
use crate::recording::Height;

pub(super) fn at(view: View<'_>, height: u64) -> Result<Height, HttpReply> {
    let first = view.base();
    view.recording
        .height(height)
        .filter(|_| height >= first)
        .ok_or_else(|| unknown(&format!("height {height} is not available, lowest height is {first}")))
}

pub(super) fn ok(parts: &[&str]) -> HttpReply {
    HttpReply::new(StatusCode::OK, parts.concat())
}

pub(super) fn unknown(message: &str) -> HttpReply {
    error(StatusCode::INTERNAL_SERVER_ERROR, 2, message)
}

pub(super) fn invalid(message: &str) -> HttpReply {
    error(StatusCode::BAD_REQUEST, 3, message)
}

/// The error for a request without a recorded reply; it is counted.
pub(super) fn missing(view: View<'_>, question: &str) -> HttpReply {
    error(StatusCode::NOT_IMPLEMENTED, 12, &view.counters.miss(question))
}

pub(super) fn unreadable(view: View<'_>, height: u64, message: &str) -> HttpReply {
    missing(view, &format!("a well-formed height {height}: {message}"))
}

pub(super) fn error(status: StatusCode, code: u8, message: &str) -> HttpReply {
    let body = serde_json::json!({ "code": code, "message": message, "details": [] });
    HttpReply::new(status, body.to_string())
}
