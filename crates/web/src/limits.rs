//! Every bound of a server, in one place.
//!
//! A handler that waits for a disk ([`crate::endpoint::Handler::Now`]) is bounded by the rows of its page and by nothing
//! here: a thread cannot be stopped from outside. Those that take long are counted ([`crate::meter::SLOW`]).

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use http::StatusCode;

use crate::clock::Clock;

/// The most parameters that a path template can have.
pub const MAX_PATH_PARAMS: usize = 4;

/// What a client may take of a server. The defaults are those of `indexer-api.md` §1.7.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections held at once; the next ones wait in the kernel's queue.
    pub connections: usize,
    /// How many of them one client may have; the next ones are closed at once. Not for `trusted_proxies`, and not for
    /// [`crate::raw`].
    pub connections_per_client: usize,
    /// Requests of all clients at once, each from its head until its answer has left; past it the answer is 503, given
    /// before the body is read and before any work. It bounds the answers in memory that nobody takes yet: two a request,
    /// where the next one was sent without waiting for the first.
    pub requests: usize,
    /// How many of them one client may have, past which its answer is 429: who reads nothing must not hold up others.
    /// Not for [`crate::raw`].
    pub requests_per_client: usize,
    /// How often one client may ask, past which the answer is 429; None for as often as it likes. Not for `OPTIONS`,
    /// `/healthz` and `/readyz`, and not for [`crate::raw`].
    pub per_client: Option<Rate>,
    /// The same for single paths, beside `per_client`: the tighter of both holds.
    pub per_client_of_path: Vec<PathRate>,
    /// Proxies that ask for others: a request of theirs counts for the nearest address in `X-Forwarded-For` that is
    /// none of them. Of anybody else that header is not read. A proxy that is not among them is one client.
    pub trusted_proxies: Vec<IpAddr>,
    /// What time it is for `per_client` and `per_client_of_path`.
    pub clock: Clock,
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

/// What one client may have of `all`: an eighth, but no less than 16, because a browser opens six connections.
pub fn share(all: usize) -> usize {
    const LEAST: usize = 16;
    LEAST.max(all / 8)
}

/// How often one client may ask. A client is an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Requests a second in the long run.
    pub per_second: NonZeroU32,
    /// Requests at once after a silence.
    pub burst: NonZeroU32,
}

/// How often one client may ask for one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRate {
    /// As in [`crate::endpoint::Endpoint::path`], without parameters.
    pub path: &'static str,
    /// How often.
    pub rate: Rate,
    /// The setting that the operator changes it by; a refusal names it.
    pub setting: &'static str,
}

impl Default for Limits {
    fn default() -> Self {
        let (connections, requests) = (4096, 1024);
        Self {
            connections,
            connections_per_client: share(connections),
            requests,
            requests_per_client: share(requests),
            per_client: None,
            per_client_of_path: Vec::new(),
            trusted_proxies: Vec::new(),
            clock: Clock::default(),
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
