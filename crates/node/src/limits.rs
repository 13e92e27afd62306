//! Resource limits of one service's client.
//!
//! # Invariants
//!
//! Every wait, body and number of calls in this crate is bounded by a field here or by a constant next to its use. No
//! value means "unlimited".

use std::time::Duration;

/// Limits of one service (CometBFT RPC, REST or JSON-RPC). Each service has its own set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for a TCP and TLS connection.
    pub connect: Duration,
    /// Longest wait for one whole reply of one URL, connection included.
    pub timeout: Duration,
    /// The same for traces, for which a node executes a block again.
    pub trace_timeout: Duration,
    /// Longest wait of a request while every URL limits the rate of requests (429); it is then sent again. Zero for
    /// callers that retry themselves.
    pub rate_limit_wait: Duration,
    /// Largest body in bytes, counted after decompression and checked while reading.
    pub body: usize,
    /// Calls in flight over all URLs of the service. Further calls wait for their turn.
    pub in_flight: usize,
    /// Bytes of bodies being read at once over all URLs, estimated from the size of recent answers: a soft bound (a
    /// body may be larger than expected), the hard one is `body` × `in_flight`.
    pub bytes_in_flight: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            trace_timeout: Duration::from_mins(1),
            rate_limit_wait: Duration::ZERO,
            body: 256 << 20,
            in_flight: 64,
            bytes_in_flight: 512 << 20,
        }
    }
}
