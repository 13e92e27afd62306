//! Observer of the replies of a node, for recorders.

use std::sync::Arc;

/// A request and its whole response, as they were sent. Rate limits and redirects are not observed.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// `comet`, `rest` or `json-rpc`.
    pub service: &'static str,
    /// Path and query string; empty for JSON-RPC.
    pub path: &'a str,
    /// The state height header.
    pub state_height: Option<u64>,
    /// The body of a `POST`.
    pub body: Option<&'a [u8]>,
    /// The HTTP status of the reply.
    pub status: u16,
    /// The body of the reply.
    pub answer: &'a [u8],
}

/// Called with every reply as it arrives, from many tasks at once.
pub type Observer = Arc<dyn Fn(Exchange<'_>) + Send + Sync>;
