//! Heights after the recorded ones, and the state at them, computed on demand.

use std::fmt::Debug;

use super::{Height, Outcome, RestReply};

/// A chain that continues a recording.
///
/// Its replies are functions of their arguments: a height may be requested any number of times and in any order. State
/// that an extension has no reply about is that of the last recorded reply.
pub trait Extension: Debug + Send + Sync {
    /// The replies about a height; `None` above the last.
    fn height(&self, height: u64) -> Option<Height>;

    /// Number of raw transactions of a height.
    fn txs_at(&self, height: u64) -> u64;

    /// The answer to a `GET` of the REST gateway in the state after a height; `path` with its query string, as sent.
    fn rest(&self, path: &str, height: u64) -> Option<RestReply>;

    /// The answer to `eth_call` in the state after a height.
    fn eth_call(&self, to: &str, data: &str, height: u64) -> Option<Outcome>;
}
