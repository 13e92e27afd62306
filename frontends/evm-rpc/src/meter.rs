//! Metrics of calls, by method.
//!
//! # Invariants
//! * No label holds data of a client: a method that is not in the table is [`OTHER`].

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

/// Calls by `method` and `outcome`: `ok`, `error`, `forwarded` (whatever the node's reply), or `refused` for methods that
/// are not available.
pub const CALLS: &str = "cairn_evm_rpc_calls_total";

/// Seconds of a call by `method`; those of a batch one by one. Waiting for a turn and sending are not included.
pub const SECONDS: &str = "cairn_evm_rpc_call_seconds";

/// The label of methods that are not in the table.
pub const OTHER: &str = "other";

/// Registers the descriptions of the metrics.
pub fn describe() {
    describe_counter!(CALLS, "calls of the EVM JSON-RPC by method and outcome");
    describe_histogram!(SECONDS, Unit::Seconds, "seconds of a call of the EVM JSON-RPC, by method");
}

/// Counts a call that took no time worth measuring.
pub(crate) fn count(method: &'static str, outcome: &'static str) {
    counter!(CALLS, "method" => method, "outcome" => outcome).increment(1);
}

/// Counts a call and its duration.
pub(crate) fn observe(method: &'static str, outcome: &'static str, took: Duration) {
    count(method, outcome);
    histogram!(SECONDS, "method" => method).record(took.as_secs_f64());
}
