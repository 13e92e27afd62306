//! HTTP errors and their JSON body: `{"code":3,"message":"…","details":[]}`.
//!
//! The cause of a 500 goes to the log and never to the client.

use std::fmt::Display;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::reply::JSON;

/// An HTTP error: a status and a message for the client.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{status}: {}", detail.as_deref().unwrap_or(message))]
pub struct HttpError {
    status: StatusCode,
    message: String,
    /// The gRPC code, if it differs from the default for the status.
    code: Option<u8>,
    /// Further members of the body.
    details: Vec<Value>,
    info: Option<String>,
    /// Whole seconds.
    retry_after: Option<u64>,
    /// For the log only.
    detail: Option<String>,
    /// The body is the message alone.
    is_text: bool,
}

impl HttpError {
    /// Any status that is not a success.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), ..Self::default() }
    }

    /// Sets a gRPC code other than the default for the status.
    #[must_use]
    pub fn with_code(self, code: u8) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Adds an entry of `details`, an object with an `@type` (`google.rpc`).
    #[must_use]
    pub fn with_details(mut self, entry: Value) -> Self {
        self.details.push(entry);
        self
    }

    /// Makes the message the whole body: `text/plain`, as a server gives it whose clients expect no JSON.
    #[must_use]
    pub fn as_text(self) -> Self {
        Self { is_text: true, ..self }
    }

    /// Sets `info`: one sentence of advice for the user.
    #[must_use]
    pub fn with_info(self, info: impl Into<String>) -> Self {
        Self { info: Some(info.into()), ..self }
    }

    /// Sets `Retry-After` in whole seconds. The default of 429 and 503 is 1.
    #[must_use]
    pub fn with_retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// 400: a parameter is invalid. The message contains the parameter, its value and the allowed values.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404: the request is valid, but the resource does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 500: `detail` is logged; the client gets `internal server error`.
    pub fn internal(detail: impl Display) -> Self {
        let detail = Some(detail.to_string());
        Self { detail, ..Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal server error") }
    }

    /// 501: a known operation that this server does not implement.
    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// 503: temporarily unavailable; the client may retry after a second.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The message for the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The internal detail, for the log only.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The gRPC status code: an explicit one, or the default for the HTTP status.
    pub fn code(&self) -> u8 {
        self.code.unwrap_or_else(|| grpc_code(self.status))
    }

    /// Seconds after which the client should retry, if a retry may help.
    pub fn retry_after(&self) -> Option<u64> {
        let is_temporary =
            matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        self.retry_after.or(is_temporary.then_some(1))
    }

    /// The body: JSON, unless it is a text.
    pub fn body(&self) -> Bytes {
        if self.is_text {
            return self.message.clone().into();
        }
        let (code, message) = (self.code(), Value::from(self.message.as_str()));
        let details = Value::from(self.details.as_slice());
        let info =
            self.info.as_deref().map(|info| format!(r#","info":{}"#, Value::from(info))).unwrap_or_default();
        format!(r#"{{"code":{code},"message":{message},"details":{details}{info}}}"#).into()
    }

    /// The error as a response, before CORS headers are added.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let media_type = if self.is_text { "text/plain; charset=utf-8" } else { JSON };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        // Without `no-store`, caches may keep a 404 for as long as they like, but a missing height may exist a second
        // later.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after() {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    /// 400 for a parameter with invalid percent-encoding or invalid UTF-8.
    pub(crate) fn not_percent_encoded(name: &str, raw: &str) -> Self {
        Self::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {raw} (must be percent-encoded UTF-8)"
        ))
    }
}

/// `google.rpc.Code` by HTTP status, as in grpc-gateway; 2 (`UNKNOWN`) for other statuses.
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
            HttpError::not_found("no \"such\" block").body(),
            r#"{"code":5,"message":"no \"such\" block","details":[]}"#
        );
    }

    #[test]
    fn an_error_can_have_more_members_than_its_status_gives() {
        let error = HttpError::bad_request("no routes found").with_code(5).with_info("Send more.");
        assert_eq!(
            error.body(),
            r#"{"code":5,"message":"no routes found","details":[],"info":"Send more."}"#
        );
        let error = HttpError::bad_request("x").with_details(serde_json::json!({ "reason": "LOW" }));
        assert_eq!(error.body(), r#"{"code":3,"message":"x","details":[{"reason":"LOW"}]}"#);
    }

    #[test]
    fn a_text_is_the_whole_body_and_has_a_code_of_its_own() {
        let error =
            HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "failed to query x").with_code(5).as_text();
        assert_eq!((error.body(), error.code()), ("failed to query x".into(), 5));
        assert_eq!(error.response().headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    }

    #[test]
    fn an_internal_error_goes_to_the_log_and_not_to_the_client() {
        let error = HttpError::internal("table `tx`, key 00ff: broken frame");
        assert_eq!(error.body(), r#"{"code":13,"message":"internal server error","details":[]}"#);
        assert!(error.to_string().contains("key 00ff"));
    }

    #[test]
    fn every_status_in_use_has_its_code() {
        let codes = [(400, 3), (404, 5), (405, 12), (408, 4), (413, 3), (414, 3), (429, 8), (431, 3)];
        for (status, code) in codes.into_iter().chain([(500, 13), (501, 12), (503, 14), (504, 4)]) {
            assert_eq!(HttpError::new(StatusCode::from_u16(status).unwrap(), "").code(), code, "{status}");
        }
    }
}
