//! Error objects of JSON-RPC, with the codes and texts of CometBFT (`rpc/jsonrpc/types`): clients match them.

use http::StatusCode;
use query::comet::Error;
use web::http_error::HttpError;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    code: i64,
    message: &'static str,
    /// What exactly is wrong.
    data: String,
}

impl RpcError {
    /// A body is not JSON.
    pub(crate) fn no_json() -> Self {
        Self { code: -32700, message: "Parse error. Invalid JSON", data: "the body is not JSON".to_owned() }
    }

    /// JSON that is not a request.
    pub(crate) fn invalid_request(data: &str) -> Self {
        Self { code: -32600, message: "Invalid Request", data: data.to_owned() }
    }

    /// There is no such method.
    pub(crate) fn method_missing(data: String) -> Self {
        Self { code: -32601, message: "Method not found", data }
    }

    pub(crate) fn invalid_params(data: String) -> Self {
        Self { code: -32602, message: "Invalid params", data }
    }

    pub(crate) fn internal(data: String) -> Self {
        Self { code: -32603, message: "Internal error", data }
    }

    /// Appends the error object.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let Self { code, message, data } = self;
        let data = serde_json::Value::from(data.as_str());
        out.extend_from_slice(format!(r#"{{"code":{code},"message":"{message}","data":{data}}}"#).as_bytes());
    }
}

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(text) => Self::internal(text),
            Error::Refused(text) => Self::invalid_params(text),
            Error::Failed(error) => Self::from(&error),
        }
    }
}

impl From<&HttpError> for RpcError {
    fn from(error: &HttpError) -> Self {
        let text = error.message().to_owned();
        match error.status() {
            StatusCode::BAD_REQUEST => Self::invalid_params(text),
            _ => Self::internal(text),
        }
    }
}
