//! An answer that is not a success, and its one JSON shape: `{"code":3,"message":"…","details":[]}`.
//!
//! A client never learns why a 500 happened: that goes to the log.

use std::fmt::Display;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::reply::JSON;

/// Why a request is not answered: an HTTP status and a message for the client.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{status}: {}", detail.as_deref().unwrap_or(message))]
pub struct Refusal {
    status: StatusCode,
    message: String,
    /// The gRPC code, where it is not the status's own.
    code: Option<u8>,
    /// Further members of the body.
    details: Vec<Value>,
    hint: Option<String>,
    /// Whole seconds.
    retry_after: Option<u64>,
    /// For the log only.
    detail: Option<String>,
}

impl Refusal {
    /// Any status that is not a success.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            code: None,
            details: Vec::new(),
            hint: None,
            retry_after: None,
            detail: None,
        }
    }

    /// The same with another gRPC code than the status's own.
    #[must_use]
    pub fn with_code(self, code: u8) -> Self {
        Self { code: Some(code), ..self }
    }

    /// The same with one more entry of `details`, an object with an `@type` (`google.rpc`).
    #[must_use]
    pub fn with_details(mut self, entry: Value) -> Self {
        self.details.push(entry);
        self
    }

    /// The same with `info`: what the user can do, in a sentence.
    #[must_use]
    pub fn with_info(self, info: impl Into<String>) -> Self {
        Self { hint: Some(info.into()), ..self }
    }

    /// The same with `Retry-After`, in whole seconds. Without it, a 429 or 503 says one.
    #[must_use]
    pub fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
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

    /// The gRPC status code: the one that stands for the HTTP status, if no other was named.
    pub fn code(&self) -> u8 {
        self.code.unwrap_or_else(|| grpc_code(self.status))
    }

    /// After how many seconds the client should ask again, if that may help.
    pub fn retry_after(&self) -> Option<u64> {
        let for_now = matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        self.retry_after.or(for_now.then_some(1))
    }

    /// The JSON body.
    pub fn body(&self) -> Bytes {
        let (code, message) = (self.code(), Value::from(self.message.as_str()));
        let details = Value::from(self.details.as_slice());
        let info =
            self.hint.as_deref().map(|hint| format!(r#","info":{}"#, Value::from(hint))).unwrap_or_default();
        format!(r#"{{"code":{code},"message":{message},"details":{details}{info}}}"#).into()
    }

    /// The error as a response, before CORS headers are added.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        // Without `no-store`, caches may keep a 404 for as long as they like, but a missing height may exist a second later.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    /// 400 for a parameter whose escapes are broken or that is not UTF-8.
    pub(crate) fn not_percent_encoded(name: &str, raw: &str) -> Self {
        Self::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {raw} (must be percent-encoded UTF-8)"
        ))
    }
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
    fn a_refusal_can_say_more_than_its_status() {
        let refusal = Refusal::bad_request("no routes found").with_code(5).with_info("Send more.");
        assert_eq!(
            refusal.body(),
            r#"{"code":5,"message":"no routes found","details":[],"info":"Send more."}"#
        );
        let refusal = Refusal::bad_request("x").with_details(serde_json::json!({ "reason": "LOW" }));
        assert_eq!(refusal.body(), r#"{"code":3,"message":"x","details":[{"reason":"LOW"}]}"#);
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
