//! Errors of the node's services, classified by whether a retry can help.
//!
//! # Invariants
//!
//! * An error names the service, the host (never credentials), the call, the height if there is one, the finding and
//!   the remedy.
//! * [`Kind`] alone decides about retries.
//! * Text from outside is cut and escaped before it is in a message.

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

/// Endpoint, call and height of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    /// `comet`, `rest`, `json-rpc`, `grpc` or `executor`.
    pub service: &'static str,
    /// Host and port of the address.
    pub host: Arc<str>,
    /// Method or path of the call.
    pub call: Box<str>,
    /// The height that was asked for, if the call has one.
    pub height: Option<u64>,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}", self.service, self.host, self.call)?;
        self.height.map_or(Ok(()), |height| write!(f, " at height {height}"))
    }
}

/// A failed call. The texts of nodes are those of `CometBFT`'s store and RPC, the SDK's query router and
/// minievm's JSON-RPC backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The height lies above what the endpoint has.
    #[error("{at}: the node has not got that far{}: {said}", Tip(*tip))]
    NotYet {
        /// Where the call failed.
        at: Site,
        /// The endpoint's own tip, if it named one.
        tip: Option<u64>,
        /// Its text.
        said: String,
    },
    /// No connection.
    #[error("{at}: cannot connect ({reason}); is the node running and the address right{}?", Enabled(at.service))]
    Unreachable {
        /// Where the call failed.
        at: Site,
        /// Error text of the system.
        reason: String,
    },
    /// No whole answer in time.
    #[error("{at}: no answer within {after:?}; the node hangs or is overloaded")]
    TimedOut {
        /// Where the call failed.
        at: Site,
        /// The limit that ran out.
        after: Duration,
    },
    /// The connection broke before the answer was whole.
    #[error("{at}: the answer broke off after {got} bytes ({reason})")]
    Cut {
        /// Where the call failed.
        at: Site,
        /// Bytes of the body that had come.
        got: usize,
        /// Error text of the client library.
        reason: String,
    },
    /// Rate limit (429) or unavailability (503) of the server.
    #[error("{at}: HTTP {status}, {}{}", Busyness(*status), Pause(*retry_after))]
    Busy {
        /// Where the call failed.
        at: Site,
        /// 429 or 503.
        status: u16,
        /// Pause that the server ordered, capped.
        retry_after: Option<Duration>,
    },
    /// Every endpoint is under a pause that its server ordered.
    #[error("{at}: not asked, the server ordered a pause that lasts {left:?} more")]
    RateLimited {
        /// The call that was not sent.
        at: Site,
        /// Time until the first of them may be asked again.
        left: Duration,
    },
    /// A page instead of an answer.
    #[error("{at}: HTTP {status} and no JSON ({reason}); {}. The body begins: {said}", Cause(*status, said))]
    Unreadable {
        /// Where the call failed.
        at: Site,
        /// HTTP status.
        status: u16,
        /// What is wrong with it.
        reason: String,
        /// Its beginning.
        said: String,
    },
    /// JSON of another shape than this call has.
    #[error("{at}: the answer has not the shape of this call ({reason}); is this the right service?")]
    Malformed {
        /// Where the call failed.
        at: Site,
        /// What is missing or wrong.
        reason: String,
    },
    /// The websocket delivers no new blocks although the status shows them.
    #[error(
        "{at}: no event for {after:?} although the status shows new blocks; the node is slow, or its websocket hangs"
    )]
    Stalled {
        /// The websocket.
        at: Site,
        /// How long a block was waited for.
        after: Duration,
    },
    /// A redirect, which is not followed.
    #[error("{at}: HTTP {status}, redirected to {to}; write the final address into the configuration")]
    Redirected {
        /// Where the call failed.
        at: Site,
        /// HTTP status.
        status: u16,
        /// Scheme and host of the new address.
        to: String,
    },
    /// The node reports a failure of its own that may pass.
    #[error("{at}: the node failed with code {code}: {said}")]
    Faulty {
        /// Where the call failed.
        at: Site,
        /// JSON-RPC or gRPC code.
        code: i64,
        /// Error text of the node.
        said: String,
    },
    /// The node no longer (or never) has that height.
    #[error(
        "{at}: pruned{}; set pruning = \"nothing\" and min-retain-blocks = 0 in its app.toml and sync it anew, use an \
         archive node or start at a height that the node has: {said}",
        Lowest(*lowest))]
    Pruned {
        /// Where the call failed.
        at: Site,
        /// The lowest height that it has, if it named one.
        lowest: Option<u64>,
        /// Error text of the node.
        said: String,
    },
    /// The block is there and executed, its results are not.
    #[error(
        "{at}: the results are gone although the tip is {tip}; discard_abci_responses in [storage] of its config.toml \
         must have been true when it executed the block: set it to false and sync the node anew, or use another node"
    )]
    ResultsMissing {
        /// Where the call failed.
        at: Site,
        /// The endpoint's tip.
        tip: u64,
    },
    /// The node stores no block results at all.
    #[error(
        "{at}: the node keeps no block results; set discard_abci_responses = false in [storage] of its \
         config.toml (results of older blocks stay lost) or use another node"
    )]
    ResultsDiscarded {
        /// Where the call failed.
        at: Site,
    },
    /// The node keeps no index of transactions: they can be found neither by hash nor by events.
    #[error(
        "{at}: the node keeps no index of transactions; set indexer = \"kv\" under [tx_index] in its config.toml \
         (blocks from before stay unindexed) or use another node"
    )]
    NotIndexed {
        /// Where the call failed.
        at: Site,
    },
    /// The node cannot read its own store.
    #[error("{at}: the node's store is damaged, restore it or use another node: {said}")]
    Corrupt {
        /// Where the call failed.
        at: Site,
        /// Error text of the node.
        said: String,
    },
    /// The endpoint does not serve this call.
    #[error("{at}: not served here: {said}; {advice}")]
    MethodMissing {
        /// Where the call failed.
        at: Site,
        /// Error text of the node.
        said: String,
        /// What to change.
        advice: &'static str,
    },
    /// Traces begin at height 2.
    #[error("{at}: the first block cannot be traced; begin at height 2")]
    Untraceable {
        /// Where the call failed.
        at: Site,
    },
    /// The endpoint belongs to another chain.
    #[error("{at}: this is chain `{got}`, not `{want}`; correct the address or the chain id")]
    WrongChain {
        /// Where the call failed.
        at: Site,
        /// The configured chain.
        want: String,
        /// The endpoint's chain.
        got: String,
    },
    /// Permanent rejection of this request: a revert, an unknown key, an invalid argument.
    #[error("{at}: refused with code {code}: {said}")]
    Refused {
        /// Where the call failed.
        at: Site,
        /// JSON-RPC, gRPC or ABCI code.
        code: i64,
        /// Error text of the node.
        said: String,
    },
    /// The answer is larger than this client takes.
    #[error("{at}: the answer is larger than {limit} bytes, the most that is read")]
    TooLarge {
        /// Where the call failed.
        at: Site,
        /// The limit in bytes.
        limit: usize,
    },
    /// The call cannot be encoded as a request.
    #[error("{at}: cannot be asked: {reason}")]
    InvalidRequest {
        /// The call that was not sent.
        at: Site,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether a retry can help.
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
            | Self::Corrupt { .. }
            | Self::MethodMissing { .. }
            | Self::Untraceable { .. }
            | Self::WrongChain { .. }
            | Self::Refused { .. }
            | Self::TooLarge { .. }
            | Self::InvalidRequest { .. } => Kind::Permanent,
        }
    }

    /// The endpoint's tip, where a [`Kind::NotYet`] answer named one.
    pub fn tip(&self) -> Option<u64> {
        if let Self::NotYet { tip, .. } = self { *tip } else { None }
    }

    /// Whether the node no longer has the state or block of that height: it may still have the latest.
    pub fn is_pruned(&self) -> bool {
        matches!(self, Self::Pruned { .. })
    }

    /// Time until a retry can help, where every server that might answer has ordered a pause. None if one may be
    /// asked at once.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            Self::RateLimited { left, .. } => Some(*left),
            _ => None,
        }
    }
}

/// The first 240 characters of an outside text on one line, control characters escaped.
pub(crate) fn excerpt(text: &[u8]) -> String {
    // Four bytes are the longest character, so the head holds all that is shown.
    let head = &text[..text.len().min(4 * EXCERPT)];
    let shown: String = String::from_utf8_lossy(head).trim().chars().take(EXCERPT).collect();
    let ending = if shown.len() < text.trim_ascii().len() { "…" } else { "" };
    shown.chars().flat_map(char_on_a_line).chain(ending.chars()).collect()
}

const EXCERPT: usize = 240;

fn char_on_a_line(c: char) -> impl Iterator<Item = char> {
    let escaped = c.is_control().then(|| c.escape_default());
    let plain = (!c.is_control()).then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

/// The setting of the node without which nothing listens for a service.
struct Enabled(&'static str);

impl fmt::Display for Enabled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.0 {
            "rest" => "api",
            "json-rpc" => "json-rpc",
            "grpc" => "grpc",
            _ => return Ok(()),
        };
        write!(f, ", and {section}.enable = true in its app.toml")
    }
}

/// The likely cause of an answer that is not the service's JSON, by its status and the beginning of its body.
struct Cause<'a>(u16, &'a str);

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            // Another service's error, in its own JSON.
            _ if self.1.starts_with('{') => "is this the right service?",
            401 | 403 => "the server refuses access: are the credentials in the address right?",
            500 | 502..=599 => "the server, or a proxy in front of it, fails",
            _ => "is this the right service?",
        })
    }
}

/// 429 or another status.
struct Busyness(u16);

impl fmt::Display for Busyness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == 429 { "the server limits requests" } else { "the server is unavailable" })
    }
}

struct Tip(Option<u64>);

impl fmt::Display for Tip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |tip| write!(f, ", its tip is {tip}"))
    }
}

struct Lowest(Option<u64>);

impl fmt::Display for Lowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |lowest| write!(f, ", the lowest height there is {lowest}"))
    }
}

struct Pause(Option<Duration>);

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |pause| write!(f, " and asks for a pause of {pause:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_place_height_finding_and_remedy() {
        let at = Site { service: "comet", host: "n:26657".into(), call: "block".into(), height: Some(5) };
        let error = Error::Pruned { at, lowest: Some(90), said: "gone".into() };
        assert_eq!(
            error.to_string(),
            "comet n:26657, block at height 5: pruned, the lowest height there is 90; set pruning = \"nothing\" \
             and min-retain-blocks = 0 in its app.toml and sync it anew, use an archive node or start at a height that \
             the node has: gone"
        );
        assert_eq!((error.kind(), error.tip(), error.pause()), (Kind::Permanent, None, None));
    }

    #[test]
    fn the_status_of_an_answer_without_json_tells_its_likely_cause() {
        let shown = |status, body: &str| {
            let (reason, said) = ("expected value".to_owned(), body.to_owned());
            Error::Unreadable { at: Site::default(), status, reason, said }.to_string()
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
        let busy = |status, retry_after| Error::Busy { at: Site::default(), status, retry_after }.to_string();
        assert!(busy(503, None).ends_with("HTTP 503, the server is unavailable"));
        let limited = busy(429, Some(Duration::from_secs(3)));
        assert!(limited.ends_with("HTTP 429, the server limits requests and asks for a pause of 3s"));
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b" <html>\n\x1b[31m "), "<html>\\n\\u{1b}[31m");
        assert_eq!(excerpt(&[0xff, b'a']), "\u{fffd}a");
        let long = excerpt("é".repeat(10_000).as_bytes());
        assert_eq!(long.chars().count(), EXCERPT + 1);
    }
}
