//! An answer that is not a success, and its one JSON shape: `{"code":3,"message":"…","details":[]}`.
//!
//! A client never learns why a 500 happened: that goes to the log.

use std::fmt::Display;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

/// Why a request is not answered: an HTTP status and a message for the client.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status}: {}", detail.as_deref().unwrap_or(message))]
pub struct Refusal {
    status: StatusCode,
    message: String,
    /// For the log only.
    detail: Option<String>,
}

impl Refusal {
    /// Any status that is not a success.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), detail: None }
    }

    /// 400: a parameter is wrong; say which, its value, and what is allowed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404: the request is right, but there is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 500: our fault. `detail` is logged; the client reads `internal server error`.
    pub fn internal(detail: impl Display) -> Self {
        let mut refusal = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal server error");
        refusal.detail = Some(detail.to_string());
        refusal
    }

    /// 501: known, and not done here.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// 503: not now; the client may ask again after a second.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What the client reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What only the log may show.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The gRPC status code that stands for the HTTP status.
    pub fn code(&self) -> u8 {
        grpc_code(self.status)
    }

    /// The JSON body.
    pub fn body(&self) -> Bytes {
        body(self.status, &self.message)
    }

    /// 400 for a parameter whose escapes are broken or that is not UTF-8.
    pub(crate) fn not_percent_encoded(name: &str, raw: &str) -> Self {
        Self::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {raw} (must be percent-encoded UTF-8)"
        ))
    }
}

/// The JSON body of a refusal.
pub(crate) fn body(status: StatusCode, message: &str) -> Bytes {
    let (code, message) = (grpc_code(status), Value::from(message));
    format!(r#"{{"code":{code},"message":{message},"details":[]}}"#).into()
}

/// `google.rpc.Code` by HTTP status, as grpc-gateway pairs them; 2 (unknown) for what it has no pair for.
fn grpc_code(status: StatusCode) -> u8 {
    match status.as_u16() {
        400 | 413 | 414 | 431 => 3,
        404 => 5,
        405 | 501 => 12,
        408 | 504 => 4,
        429 => 8,
        500 => 13,
        503 => 14,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_one_shape() {
        assert_eq!(
            Refusal::not_found("no \"such\" block").body(),
            r#"{"code":5,"message":"no \"such\" block","details":[]}"#
        );
    }

    #[test]
    fn an_internal_error_tells_the_log_and_not_the_client() {
        let refusal = Refusal::internal("table `tx`, key 00ff: broken frame");
        assert_eq!(refusal.body(), r#"{"code":13,"message":"internal server error","details":[]}"#);
        assert!(refusal.to_string().contains("key 00ff"));
    }

    #[test]
    fn every_status_in_use_has_its_code() {
        let codes = [(400, 3), (404, 5), (405, 12), (408, 4), (413, 3), (414, 3), (429, 8), (431, 3)];
        for (status, code) in codes.into_iter().chain([(500, 13), (501, 12), (503, 14), (504, 4)]) {
            assert_eq!(Refusal::new(StatusCode::from_u16(status).unwrap(), "").code(), code, "{status}");
        }
    }
}
