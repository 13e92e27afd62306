//! Error objects of JSON-RPC, with the codes and texts of go-ethereum: clients match them.

use bytes::Bytes;

/// A text is not JSON (JSON-RPC 2.0 §5.1, as the codes to -32600).
pub(crate) const PARSE: i64 = -32700;
/// JSON that is not a request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub(crate) const METHOD_MISSING: i64 = -32601;
/// Parameters that the method does not take.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// A fault of this server or of the node behind it. Clients send the call again.
pub(crate) const INTERNAL: i64 = -32603;
/// Any other error (go-ethereum `rpc/errors.go`, as those that follow).
pub(crate) const DEFAULT: i64 = -32000;
/// This server has too much to do. Clients send the call again later.
pub(crate) const BUSY: i64 = -32005;
/// The reply to a call took too long.
pub(crate) const TIMED_OUT: i64 = -32002;
/// The replies of a batch are too large together.
pub(crate) const TOO_LARGE: i64 = -32003;
/// The blocks are older than the index (go-ethereum `core/history`).
pub(crate) const PRUNED: i64 = 4444;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RpcError {
    /// An error of this server.
    Own {
        /// One of the codes here.
        code: i64,
        /// The text that clients match.
        message: String,
        /// Advice to the client, for example the range to ask again.
        data: Option<String>,
    },
    /// The error object of a node, as it sent it.
    Forwarded(Bytes),
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self::Own { code, message: message.into(), data: None }
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn with_data(self, data: String) -> Self {
        match self {
            Self::Own { code, message, .. } => Self::Own { code, message, data: Some(data) },
            forwarded @ Self::Forwarded(_) => forwarded,
        }
    }

    pub(crate) fn method_missing(name: &str) -> Self {
        Self::new(METHOD_MISSING, format!("the method {name} does not exist/is not available"))
    }

    pub(crate) fn too_large() -> Self {
        Self::new(TOO_LARGE, "response too large")
    }

    pub(crate) fn timed_out() -> Self {
        Self::new(TIMED_OUT, "request timed out")
    }

    /// Appends the error object.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Forwarded(object) => out.extend_from_slice(object),
            Self::Own { code, message, data } => {
                out.extend_from_slice(format!(r#"{{"code":{code},"message":"#).as_bytes());
                write_text(out, message);
                if let Some(data) = data {
                    out.extend_from_slice(br#","data":"#);
                    write_text(out, data);
                }
                out.push(b'}');
            }
        }
    }
}

/// Appends a JSON text as Go's encoder writes it: what could end a script in a page is escaped too.
fn write_text(out: &mut Vec<u8>, text: &str) {
    let json = serde_json::Value::from(text).to_string();
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_written_as_go_writes_it() {
        let mut out = Vec::new();
        RpcError::method_missing("a<b>&\u{2028}\"").write(&mut out);
        let text = r#"{"code":-32601,"message":"the method a\u003cb\u003e\u0026\u2028\" does not exist/is not available"}"#;
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
