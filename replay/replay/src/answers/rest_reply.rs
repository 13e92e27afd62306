//! Answers common to all paths of the REST gateway: a height, success, and the gateway's errors.

use http::StatusCode;

use super::{Answer, View};
use crate::recording::Height;

pub(super) fn at(view: View<'_>, height: u64) -> Result<Height, Answer> {
    let first = view.base();
    view.recording
        .height(height)
        .filter(|_| height >= first)
        .ok_or_else(|| unknown(&format!("height {height} is not available, lowest height is {first}")))
}

pub(super) fn ok(parts: &[&str]) -> Answer {
    Answer::new(StatusCode::OK, parts.concat())
}

pub(super) fn unknown(message: &str) -> Answer {
    error(StatusCode::INTERNAL_SERVER_ERROR, 2, message)
}

pub(super) fn invalid(message: &str) -> Answer {
    error(StatusCode::BAD_REQUEST, 3, message)
}

/// The error for a request without a recorded answer; it is counted.
pub(super) fn missing(view: View<'_>, question: &str) -> Answer {
    error(StatusCode::NOT_IMPLEMENTED, 12, &view.counters.miss(question))
}

pub(super) fn unreadable(view: View<'_>, height: u64, message: &str) -> Answer {
    missing(view, &format!("a well-formed height {height}: {message}"))
}

pub(super) fn error(status: StatusCode, code: u8, message: &str) -> Answer {
    let body = serde_json::json!({ "code": code, "message": message, "details": [] });
    Answer::new(status, body.to_string())
}
