//! The calls of a request: what is done for each, those that are read, and the response.

use std::time::Instant;

use query::Indexer;
use web::app::App;
use web::http_error::HttpError;
use web::json_rpc::{self, Message, NO_ID, Refusal};
use web::reply::{JSON, Reply};

use crate::meter;
use crate::methods::{Method, Read};
use crate::params::Value;
use crate::reads::{Chain, Reads};
use crate::rpc_error::{INVALID_REQUEST, PARSE, RpcError};

/// Bytes of results after which the rest of a batch is refused, as go-ethereum's server has.
pub const MAX_RESPONSE: usize = 25_000_000;

/// Requests that a call counts as for which a node executes transactions.
const EXECUTION: u32 = 5;

/// What is done for a call.
pub(crate) enum Step {
    Read(&'static Method, Read, Vec<Value>),
    Forward(&'static Method, Option<String>),
    Subscription(&'static Method, Option<String>),
    Filter(&'static Method, Vec<Value>),
    Refused(RpcError),
}

impl Step {
    /// The requests that the call counts as in the rate of its client.
    pub(crate) fn weight(&self) -> u32 {
        match self {
            Self::Forward(method, _) if method.executes() => EXECUTION,
            Self::Forward(..)
            | Self::Subscription(..)
            | Self::Filter(..)
            | Self::Read(..)
            | Self::Refused(_) => 1,
        }
    }
}

/// The result of a call as JSON, or its error.
pub(crate) type Outcome = Result<Vec<u8>, RpcError>;

/// The outcomes of the calls that are read, until they are too large.
pub(crate) fn read(
    index: &App<Indexer>,
    chain: &Chain,
    steps: &[Step],
) -> Result<Vec<Option<Outcome>>, HttpError> {
    let reads = Reads::new(index.state(), chain)?;
    let (mut outcomes, mut bytes) = (Vec::with_capacity(steps.len()), 0);
    for step in steps {
        if bytes > MAX_RESPONSE {
            break;
        }
        let Step::Read(method, read, values) = step else {
            outcomes.push(None);
            continue;
        };
        let begun = Instant::now();
        let outcome = read(&reads, values).map_err(|failure| failure.into_reply(method.name));
        if web::limits::lane::is_over() {
            // Dropped: the request runs again in another lane.
            return Ok(Vec::new());
        }
        meter::observe(method.name, if outcome.is_ok() { "ok" } else { "error" }, begun.elapsed());
        bytes += outcome.as_ref().map_or(0, Vec::len);
        outcomes.push(Some(outcome));
    }
    Ok(outcomes)
}

/// The response with the outcome of each message that is no notification.
pub(crate) fn response(messages: &[Message], outcomes: Vec<Outcome>, is_batch: bool) -> Reply {
    let (mut out, mut bytes, mut is_first) = (Vec::new(), 0, true);
    for (message, outcome) in messages.iter().zip(outcomes) {
        let Some(id) = &message.id else { continue };
        if is_batch {
            out.push(if is_first { b'[' } else { b',' });
        }
        is_first = false;
        if bytes > MAX_RESPONSE {
            write_error(&mut out, id, &RpcError::too_large());
            continue;
        }
        bytes += outcome.as_ref().map_or(0, Vec::len);
        match outcome {
            Ok(result) => json_rpc::write_result(&mut out, id, &result),
            Err(error) => write_error(&mut out, id, &error),
        }
    }
    if is_batch && !is_first {
        out.push(b']');
    }
    // go-ethereum's encoder ends a response with a new line, and not one that it has cut.
    if !is_first && (!is_batch || bytes <= MAX_RESPONSE) {
        out.push(b'\n');
    }
    Reply { content_type: JSON, ..Reply::json(out) }
}

/// Appends an error response.
pub(crate) fn write_error(out: &mut Vec<u8>, id: &str, error: &RpcError) {
    let mut object = Vec::new();
    error.write(&mut object);
    json_rpc::write_error(out, id, &object);
}

/// The response to a body that is not read, with the texts of go-ethereum.
pub(crate) fn refuse(refusal: &Refusal) -> Vec<u8> {
    let (id, code, message) = match refusal {
        Refusal::NoJson => (NO_ID, PARSE, "parse error"),
        Refusal::EmptyBatch => (NO_ID, INVALID_REQUEST, "empty batch"),
        Refusal::LargeBatch { id } => (id.as_str(), INVALID_REQUEST, "batch too large"),
    };
    let mut out = Vec::new();
    write_error(&mut out, id, &RpcError::new(code, message));
    if matches!(refusal, Refusal::LargeBatch { .. }) { [b"[", &out[..], b"]"].concat() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_is_too_large_has_one_error() {
        let error = r#"[{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"batch too large"}}]"#;
        assert_eq!(refuse(&Refusal::LargeBatch { id: "1".to_owned() }), error.as_bytes());
    }
}
