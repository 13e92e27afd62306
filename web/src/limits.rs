//! Every bound of a server, in one place.

use std::time::Duration;

use http::StatusCode;

/// What a client may take of a server. The defaults are those of `indexer-api.md` §1.7.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections held at once; the next ones wait in the kernel's queue.
    pub connections: usize,
    /// Bytes of a request target, past which the answer is 414.
    pub target: usize,
    /// Bytes of all header lines, past which the answer is 431; also at most 100 lines.
    pub headers: usize,
    /// Bytes of a request body, past which the answer is [`Limits::oversize`].
    pub body: usize,
    /// The status for a body past the limit: 413, unless an API says otherwise.
    pub oversize: StatusCode,
    /// How long the head of a request may take from its first byte, and the first head from the connection.
    pub head_read: Duration,
    /// How long the body of a request may take.
    pub body_read: Duration,
    /// How long an endpoint that asks other machines may take, past which the answer is 503.
    pub answer: Duration,
    /// How long a connection may stay open between two requests.
    pub keep_alive: Duration,
    /// How long a client may take nothing of an answer that is ready.
    pub write_stall: Duration,
    /// How long requests in flight may take when the server stops.
    pub stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            target: 8 << 10,
            headers: 16 << 10,
            body: 64 << 10,
            oversize: StatusCode::PAYLOAD_TOO_LARGE,
            head_read: Duration::from_secs(10),
            body_read: Duration::from_secs(10),
            answer: Duration::from_secs(9),
            keep_alive: Duration::from_secs(75),
            write_stall: Duration::from_secs(30),
            stop: Duration::from_secs(2),
        }
    }
}
