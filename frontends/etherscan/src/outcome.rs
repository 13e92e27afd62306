//! What a request comes to, and its envelope: `{"status":"1","message":"OK","result":…}`.
//!
//! The texts are Etherscan's. Clients compare them: wagmi the message, foundry and rotki the texts of errors and of empty lists.

use http::StatusCode;
use query::evm::Error;
use serde_json::Value;
use web::http_error::HttpError;
use web::reply::Reply;

/// A success, or what stands in its place.
#[derive(Debug)]
pub(crate) enum Success {
    /// A result in JSON.
    Result(Vec<u8>),
    /// The same, with another message than `OK`, and a status.
    Marked(&'static str, &'static str, Vec<u8>),
    /// The reply of JSON-RPC without an envelope.
    Bare(Value),
}

/// An error.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With this text as its result.
    Text(String),
    /// With this message, and no result.
    Message(&'static str),
    /// Of the index.
    Index(Error),
    /// Of the server.
    Http(HttpError),
}

pub(crate) type Outcome = Result<Success, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

/// The message of a list without entries of which clients know the text.
pub(crate) const NO_TRANSACTIONS: &str = "No transactions found";
pub(crate) const NO_RECORDS: &str = "No records found";

/// What a request gets that costs too much. The spelling is Etherscan's, and rotki compares it.
const TOO_MUCH: &str = "Query Timeout occured. Please select a smaller result dataset";

impl Success {
    /// A JSON text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Result(Value::from(text).to_string().into_bytes())
    }

    /// The rows of a list: a JSON array, whose elements `rows` has with commas between them.
    pub(crate) fn list(rows: Vec<u8>, none: &'static str) -> Self {
        if rows.is_empty() {
            return Self::Marked("0", none, b"[]".to_vec());
        }
        Self::Result([b"[", &rows[..], b"]"].concat())
    }
}

/// The response.
///
/// # Errors
/// A fault of this server that is no reply to the request: its cause goes to the log.
pub(crate) fn into_reply(outcome: Outcome) -> Result<Reply, HttpError> {
    let failed = |text: String| envelope("0", "NOTOK", Value::from(text).to_string().as_bytes());
    let body = match outcome {
        Ok(Success::Result(result)) => envelope("1", "OK", &result),
        Ok(Success::Marked(status, message, result)) => envelope(status, message, &result),
        Ok(Success::Bare(reply)) => reply.to_string().into_bytes(),
        Err(Failure::Text(text)) => failed(text),
        Err(Failure::Message(message)) => envelope("0", message, b"null"),
        Err(Failure::Index(Error::TooMany { .. } | Error::TooLarge)) => envelope("0", TOO_MUCH, b"null"),
        Err(Failure::Index(Error::Off(index))) => failed(off(index)),
        Err(Failure::Index(Error::Behind { index, from, height, .. })) => {
            failed(format!("the index `{index}` has only blocks {from} to {height} now"))
        }
        Err(Failure::Index(Error::NoCalls { height, is_late })) => {
            let when = if is_late { " yet; try again later" } else { ": the node could not trace it" };
            failed(format!("the calls of block {height} are not indexed{when}"))
        }
        Err(Failure::Index(Error::Pruned { first })) => {
            failed(format!("the first indexed block is {first}, and the request begins before it"))
        }
        Err(Failure::Index(Error::Failed(error)) | Failure::Http(error)) => {
            if error.status() == StatusCode::BAD_REQUEST {
                failed(error.message().to_owned())
            } else {
                return Err(error);
            }
        }
    };
    Ok(Reply::json(body))
}

/// What to do about an index that is off: two have a setting of their own.
fn off(index: &str) -> String {
    match index {
        "internal_txs" | "rich_list" => format!("it needs `{index}`, which is off: set `{index}`"),
        _ => format!("it needs the index `{index}`, which is off: name it in the setting `index`"),
    }
}

fn envelope(status: &str, message: &str, result: &[u8]) -> Vec<u8> {
    let lead = format!(r#"{{"status":"{status}","message":"{message}","result":"#);
    [lead.as_bytes(), result, b"}"].concat()
}
