//! All limits of a server.
//!
//! No timeout applies to a synchronous handler ([`crate::endpoint::Handler::Sync`]), because a thread cannot be
//! cancelled: the rows of its page bound its work. Slow requests are counted ([`crate::meter::SLOW`]).

pub(crate) mod concurrency_limit;
pub mod lane;
pub mod priority;
pub(crate) mod rate_limit;
pub mod share;
mod turns;

use std::num::{NonZeroU32, NonZeroUsize};
use std::thread::available_parallelism;
use std::time::Duration;

use ipnet::IpNet;

use crate::clock::Clock;

/// Maximum number of parameters of a path template.
pub const MAX_PATH_PARAMS: usize = 4;

/// Bytes a second of a body that a client reads at least.
pub const MIN_RATE: u32 = 32 << 10;

/// Limits of a server and of each of its clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum of open connections; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Maximum of connections per client; further ones are closed at once. Does not apply to `trusted_proxies` and
    /// [`crate::serve::serve_fn`].
    pub connections_per_client: usize,
    /// Maximum of concurrent requests, each counted from its head until nearly all of its response is sent; beyond it
    /// the response is 503, before the body is read. It bounds the unsent responses in memory: at most two per request,
    /// if the client pipelines.
    pub requests: usize,
    /// Maximum of concurrent requests per client, beyond which the response is 429: a client that reads no responses
    /// must not block others. Does not apply to [`crate::serve::serve_fn`].
    pub requests_per_client: usize,
    /// Maximum of cheap requests whose synchronous handlers run at once, half of them for one client; further ones wait in
    /// order, each client with few, so that many requests of some do not delay those of others. Does not apply to
    /// [`crate::serve::serve_fn`].
    pub light: usize,
    /// Maximum of expensive requests and compressions of large bodies that run at once, half of them for one client;
    /// further ones wait. See [`crate::limits::lane`].
    pub heavy: usize,
    /// Maximum bytes of response bodies that wait to be read. One client may have as many as are free: see
    /// [`crate::bodies`]. Beyond it the response is 503 or 429.
    pub response_bytes: usize,
    /// Maximum of open event streams, beyond which the response is 503. Each holds a connection.
    pub streams: usize,
    /// Maximum of open event streams per client, beyond which the response is 429.
    pub streams_per_client: usize,
    /// Interval of the comments that a stream without events sends.
    pub heartbeat: Duration,
    /// Request rate per client, beyond which the response is 429; `None` is unlimited. Does not apply to `OPTIONS`,
    /// `/healthz`, `/readyz` and [`crate::serve::serve_fn`].
    pub per_client: Option<Rate>,
    /// Request rates per client and path, in addition to `per_client`: the stricter one applies.
    pub per_client_of_path: Vec<PathRate>,
    /// Networks of trusted proxies: their requests count for the nearest address in `X-Forwarded-For` that is not in one
    /// of them. The header is ignored from other peers. A proxy that is not listed counts as one client.
    pub trusted_proxies: Vec<IpNet>,
    /// The clock of `per_client` and `per_client_of_path`.
    pub clock: Clock,
    /// Maximum bytes of a request target, beyond which the response is 414.
    pub target: usize,
    /// Maximum bytes of all header lines, beyond which the response is 431; also at most 100 lines.
    pub headers: usize,
    /// Maximum bytes of a request body, beyond which the response is 413.
    pub body: usize,
    /// Timeout of a request head from its first byte; of the first head, from the connection.
    pub head_read: Duration,
    /// Timeout of a request body.
    pub body_read: Duration,
    /// Timeout of an asynchronous handler, after which the response is 503.
    pub answer: Duration,
    /// Idle timeout between two requests.
    pub keep_alive: Duration,
    /// Timeout of a write while the client reads nothing, event streams included. A body that is not read within this
    /// time and what [`MIN_RATE`] allows ends its connection too.
    pub write_stall: Duration,
    /// Grace period for requests in flight when the server stops; event streams end at once.
    pub stop: Duration,
}

impl Limits {
    /// The time in which a client reads a body of `bytes`, beyond which its connection is closed.
    pub(crate) fn time_to_read(&self, bytes: u32) -> Duration {
        self.write_stall + Self::time_at_least_rate(bytes)
    }

    /// The time that `bytes` take at [`MIN_RATE`].
    pub(crate) fn time_at_least_rate(bytes: u32) -> Duration {
        Duration::from_secs(1) * bytes / MIN_RATE
    }
}

/// The limit per client for a total of `all`: an eighth, at least 16, because a browser opens six connections.
pub fn share(all: usize) -> usize {
    const MIN: usize = 16;
    MIN.max(all / 8)
}

/// A token-bucket rate per client. A client is an IPv4 address or an IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Sustained requests per second.
    pub per_second: NonZeroU32,
    /// Bucket size: requests at once after an idle time.
    pub burst: NonZeroU32,
}

/// A rate per client for one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRate {
    /// As in [`crate::endpoint::Endpoint::path`], without parameters.
    pub path: &'static str,
    /// The rate.
    pub rate: Rate,
    /// The setting that configures it; the 429 response contains its name.
    pub setting: &'static str,
}

impl Default for Limits {
    fn default() -> Self {
        let (connections, requests) = (4096, 1024);
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            connections,
            connections_per_client: share(connections),
            requests,
            requests_per_client: share(requests),
            // Half of the threads of a server (see `default_workers`).
            light: (2 * cores).max(4),
            heavy: cores.max(2),
            response_bytes: 256 << 20,
            // The other connections are left for requests.
            streams: connections / 2,
            streams_per_client: 64,
            heartbeat: Duration::from_secs(15),
            per_client: None,
            per_client_of_path: Vec::new(),
            trusted_proxies: Vec::new(),
            clock: Clock::default(),
            target: 8 << 10,
            headers: 16 << 10,
            body: 64 << 10,
            head_read: Duration::from_secs(10),
            body_read: Duration::from_secs(10),
            answer: Duration::from_secs(9),
            keep_alive: Duration::from_secs(75),
            write_stall: Duration::from_secs(30),
            stop: Duration::from_secs(2),
        }
    }
}
