//! Errors of the node's services, classified by whether a retry can help.
//!
//! # Invariants
//!
//! * An error contains the service, the host (never credentials), the call, the height if there is one, the finding and
//!   the remedy.
//! * [`Kind`] alone decides about retries.
//! * External text is truncated and escaped before it is put in a message.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Whether and when a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The node has not reached the height: retry soon.
    NotYet,
    /// Transient failure: retry with growing pauses.
    Transient,
    /// Permanent: a retry cannot help, an operator must act.
    Permanent,
}

/// Endpoint, method and height of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// `comet`, `rest`, `json-rpc`, `grpc` or `executor`.
    pub service: &'static str,
    /// Host and port of the address.
    pub host: Arc<str>,
    /// Method or path.
    pub method: Box<str>,
    /// The requested height, if there is one.
    pub height: Option<u64>,
}

impl fmt::Display for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}", self.service, self.host, self.method)?;
        self.height.map_or(Ok(()), |height| write!(f, " at height {height}"))
    }
}

/// A failed call. The texts of nodes are those of `CometBFT`'s store and RPC, the SDK's query router and
/// minievm's JSON-RPC backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The height is above the endpoint's tip.
    #[error("{at}: the node has not got that far{}: {message}", suffix(", its tip is ", *tip))]
    NotYet {
        /// The failed request.
        at: RequestContext,
        /// The endpoint's own tip, if its text contains one.
        tip: Option<u64>,
        /// Its text.
        message: String,
    },
    /// No connection.
    #[error("{at}: cannot connect ({reason}); is the node running and the address right{}?", enable_hint(at.service))]
    Unreachable {
        /// The failed request.
        at: RequestContext,
        /// Error text of the system.
        reason: String,
    },
    /// No complete reply in time.
    #[error("{at}: no answer within {after:?}; the node hangs or is overloaded")]
    TimedOut {
        /// The failed request.
        at: RequestContext,
        /// The time limit that expired.
        after: Duration,
    },
    /// The connection broke before the reply was complete.
    #[error("{at}: the answer broke off ({reason})")]
    Cut {
        /// The failed request.
        at: RequestContext,
        /// Error text of the client library.
        reason: String,
    },
    /// Rate limit (429) or unavailability (503) of the server.
    #[error("{at}: HTTP {status}, {}{}", unavailable(*status), pause_suffix(*retry_after))]
    Busy {
        /// The failed request.
        at: RequestContext,
        /// 429 or 503.
        status: u16,
        /// Pause that the server ordered, capped.
        retry_after: Option<Duration>,
    },
    /// Every endpoint is under a pause that its server ordered.
    #[error("{at}: not sent, the server ordered a pause that lasts {left:?} more")]
    RateLimited {
        /// The request that was not sent.
        at: RequestContext,
        /// Time until the first of them may be queried again.
        left: Duration,
    },
    /// A web page instead of a reply.
    #[error(
        "{at}: HTTP {status} and no JSON ({reason}); {}",
        cause_and_body(*status, message)
    )]
    Unreadable {
        /// The failed request.
        at: RequestContext,
        /// HTTP status.
        status: u16,
        /// The reason.
        reason: String,
        /// The beginning of the body.
        message: String,
    },
    /// JSON of another shape than the call's reply.
    #[error("{at}: the answer has not the shape of this call ({reason}); is this the right service?")]
    Malformed {
        /// The failed request.
        at: RequestContext,
        /// The missing or invalid part.
        reason: String,
    },
    /// The websocket delivers no new blocks although the status shows them.
    #[error(
        "{at}: no event for {after:?} although the status shows new blocks; the node is slow, or its websocket hangs"
    )]
    Stalled {
        /// The websocket.
        at: RequestContext,
        /// Time for which a block was missing.
        after: Duration,
    },
    /// A redirect, which is not followed.
    #[error("{at}: HTTP {status}, redirected to {to}; write the final address into the configuration")]
    Redirected {
        /// The failed request.
        at: RequestContext,
        /// HTTP status.
        status: u16,
        /// Scheme and host of the new address.
        to: String,
    },
    /// The node reports an internal failure that may be transient.
    #[error("{at}: the node failed with code {code}: {message}")]
    Faulty {
        /// The failed request.
        at: RequestContext,
        /// JSON-RPC or gRPC code.
        code: i64,
        /// Error text of the node.
        message: String,
    },
    /// The node no longer (or never) has that height.
    #[error(
        "{at}: pruned{}; set pruning = \"nothing\" and min-retain-blocks = 0 in its app.toml and sync it anew, use an \
         archive node or start at a height that the node has: {message}",
        suffix(", the lowest height there is ", *lowest))]
    Pruned {
        /// The failed request.
        at: RequestContext,
        /// The lowest height that it has, if its text contains one.
        lowest: Option<u64>,
        /// Error text of the node.
        message: String,
    },
    /// The block exists and was executed, but its results are missing.
    #[error(
        "{at}: the results are gone although the tip is {tip}; discard_abci_responses in [storage] of its config.toml \
         must have been true when it executed the block: set it to false and sync the node anew, or use another node"
    )]
    ResultsMissing {
        /// The failed request.
        at: RequestContext,
        /// The endpoint's tip.
        tip: u64,
    },
    /// The node stores no block results at all.
    #[error(
        "{at}: the node keeps no block results; set discard_abci_responses = false in [storage] of its \
         config.toml (results of older blocks stay lost) or use another node"
    )]
    ResultsDiscarded {
        /// The failed request.
        at: RequestContext,
    },
    /// The node keeps no index of transactions: they can be found neither by hash nor by events.
    #[error(
        "{at}: the node keeps no index of transactions; set indexer = \"kv\" under [tx_index] in its config.toml \
         (blocks from before stay unindexed) or use another node"
    )]
    NotIndexed {
        /// The failed request.
        at: RequestContext,
    },
    /// The node answers searches for transactions only within a range of blocks.
    #[error(
        "{at}: the node answers a search only within {most} blocks, so old transactions are found late; use a node \
         without this limit, or lift it in the proxy in front of the node: {message}"
    )]
    RangeRequired {
        /// The failed request.
        at: RequestContext,
        /// The most blocks of one search.
        most: u64,
        /// Error text of the node.
        message: String,
    },
    /// The node cannot read its own store.
    #[error("{at}: the node's store is damaged, restore it or use another node: {message}")]
    Corrupt {
        /// The failed request.
        at: RequestContext,
        /// Error text of the node.
        message: String,
    },
    /// The endpoint does not serve this call.
    #[error("{at}: not served here: {message}; {advice}")]
    MethodMissing {
        /// The failed request.
        at: RequestContext,
        /// Error text of the node.
        message: String,
        /// The remedy.
        advice: &'static str,
    },
    /// Traces begin at height 2.
    #[error("{at}: the first block cannot be traced; begin at height 2")]
    Untraceable {
        /// The failed request.
        at: RequestContext,
    },
    /// The endpoint belongs to another chain.
    #[error("{at}: this is chain `{got}`, not `{want}`; correct the address or `chain_id`")]
    WrongChain {
        /// The failed request.
        at: RequestContext,
        /// The configured chain.
        want: String,
        /// The endpoint's chain.
        got: String,
    },
    /// Permanent rejection of this request: a revert, an unknown key, an invalid argument.
    #[error("{at}: refused with code {code}: {message}")]
    Refused {
        /// The failed request.
        at: RequestContext,
        /// JSON-RPC, gRPC or ABCI code.
        code: i64,
        /// Error text of the node.
        message: String,
    },
    /// The reply exceeds this client's size limit.
    #[error(
        "{at}: the reply is larger than {limit} bytes, the most that is read; an index that stops here needs a version \
         of this program that reads more: report the request, or begin a new index above with `start_height`"
    )]
    TooLarge {
        /// The failed request.
        at: RequestContext,
        /// The limit in bytes.
        limit: usize,
    },
    /// The call cannot be encoded as a request.
    #[error("{at}: the request is invalid: {reason}")]
    InvalidRequest {
        /// The request that was not sent.
        at: RequestContext,
        /// The reason.
        reason: String,
    },
}

impl Error {
    /// Classifies the error for retries.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotYet { .. } => Kind::NotYet,
            Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Cut { .. }
            | Self::Busy { .. }
            | Self::RateLimited { .. }
            | Self::Unreadable { .. }
            | Self::Malformed { .. }
            | Self::Stalled { .. }
            | Self::Redirected { .. }
            | Self::Faulty { .. } => Kind::Transient,
            Self::Pruned { .. }
            | Self::ResultsMissing { .. }
            | Self::ResultsDiscarded { .. }
            | Self::NotIndexed { .. }
            | Self::RangeRequired { .. }
            | Self::Corrupt { .. }
            | Self::MethodMissing { .. }
            | Self::Untraceable { .. }
            | Self::WrongChain { .. }
            | Self::Refused { .. }
            | Self::TooLarge { .. }
            | Self::InvalidRequest { .. } => Kind::Permanent,
        }
    }

    /// The endpoint's tip, if a [`Kind::NotYet`] answer contained it.
    pub fn tip(&self) -> Option<u64> {
        if let Self::NotYet { tip, .. } = self { *tip } else { None }
    }

    /// True if the node answered, and could not give what was asked about: others of its replies may be had.
    pub fn is_of_the_answer(&self) -> bool {
        matches!(
            self,
            Self::NotYet { .. }
                | Self::TimedOut { .. }
                | Self::Cut { .. }
                | Self::Unreadable { .. }
                | Self::Malformed { .. }
                | Self::Faulty { .. }
                | Self::Corrupt { .. }
                | Self::Refused { .. }
                | Self::TooLarge { .. }
        )
    }

    /// True if the node no longer has the state or block of that height; it may still have the latest.
    pub fn is_pruned(&self) -> bool {
        matches!(self, Self::Pruned { .. })
    }

    /// Time until a retry can help, if every server that might answer has ordered a pause. `None` if one may be queried
    /// at once.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            Self::RateLimited { left, .. } => Some(*left),
            _ => None,
        }
    }
}

/// The setting of the node that enables a service.
fn enable_hint(service: &str) -> &'static str {
    match service {
        "rest" => ", and api.enable = true in its app.toml",
        "json-rpc" => ", and json-rpc.enable = true in its app.toml",
        "grpc" => ", and grpc.enable = true in its app.toml",
        _ => "",
    }
}

/// The likely cause of a reply that is not the service's JSON, from its status and the beginning of its body.
fn likely_cause(status: u16, body: &str) -> &'static str {
    match status {
        // Another service's error, in its own JSON.
        _ if body.starts_with('{') => "is this the right service?",
        401 | 403 => "the server refuses access: are the credentials in the address right?",
        500 | 502..=599 => "the server, or a proxy in front of it, fails",
        _ => "is this the right service?",
    }
}

fn unavailable(status: u16) -> &'static str {
    if status == 429 { "the server limits requests" } else { "the server is unavailable" }
}

fn pause_suffix(pause: Option<Duration>) -> String {
    pause.map_or_else(String::new, |pause| format!(" and asks for a pause of {pause:?}"))
}

/// Two sentences: the likely cause, and the beginning of the body.
fn cause_and_body(status: u16, body: &str) -> String {
    let cause = likely_cause(status, body);
    let end = if cause.ends_with('?') { "" } else { "." };
    match body {
        "" => format!("{cause}{end} The body is empty"),
        body => format!("{cause}{end} The body begins: {body}"),
    }
}

fn suffix(text: &str, height: Option<u64>) -> String {
    height.map_or_else(String::new, |height| format!("{text}{height}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_contains_place_height_finding_and_remedy() {
        let at = RequestContext {
            service: "comet",
            host: "n:26657".into(),
            method: "block".into(),
            height: Some(5),
        };
        let error = Error::Pruned { at, lowest: Some(90), message: "gone".into() };
        assert_eq!(
            error.to_string(),
            "comet n:26657, block at height 5: pruned, the lowest height there is 90; set pruning = \"nothing\" \
             and min-retain-blocks = 0 in its app.toml and sync it anew, use an archive node or start at a height that \
             the node has: gone"
        );
        assert_eq!((error.kind(), error.tip(), error.pause()), (Kind::Permanent, None, None));
    }

    #[test]
    fn the_status_of_an_answer_without_json_determines_its_likely_cause() {
        let shown = |status, body: &str| {
            let (reason, message) = ("expected value".to_owned(), body.to_owned());
            Error::Unreadable { at: RequestContext::default(), status, reason, message }.to_string()
        };
        for (status, body, cause) in [
            (200, "<html>", "is this the right service?"),
            (404, "<html>", "is this the right service?"),
            (403, "<html>", "are the credentials in the address right?"),
            (502, "<html>", "the server, or a proxy in front of it, fails"),
            (500, r#"{"jsonrpc":"2.0"}"#, "is this the right service?"),
        ] {
            assert!(shown(status, body).contains(cause), "{}", shown(status, body));
        }
        let busy = |status, retry_after| {
            Error::Busy { at: RequestContext::default(), status, retry_after }.to_string()
        };
        assert!(busy(503, None).ends_with("HTTP 503, the server is unavailable"));
        let limited = busy(429, Some(Duration::from_secs(3)));
        assert!(limited.ends_with("HTTP 429, the server limits requests and asks for a pause of 3s"));
    }
}
