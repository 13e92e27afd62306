//! Request metrics by RPC: counts by status code, and durations.
//!
//! # Invariants
//! * No label holds data from a client: an RPC that no service has is [`OTHER`].

use std::sync::Arc;
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use tonic::{Code, Status};

/// Requests by `method` (`package.Service/Method`, or [`OTHER`]) and `code`, without health checks. The code of a stream
/// is that of its start.
pub const REQUESTS: &str = "cairn_grpc_requests_total";

/// Seconds from the head of a request to the response message, or to the start of a stream, by `method`. Sending is not
/// included.
pub const SECONDS: &str = "cairn_grpc_request_seconds";

/// The label of unknown RPCs.
pub const OTHER: &str = "other";

/// The names of the status codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Registers the descriptions of the metrics.
pub fn describe() {
    describe_counter!(REQUESTS, "gRPC requests by method and status code");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "seconds from a gRPC request to its response message, by method"
    );
}

/// Counts a response of the RPC `method`; no status is a success.
pub(crate) fn observe(method: Option<Arc<str>>, status: Option<&Status>, took: Duration) {
    let method = method.unwrap_or_else(|| OTHER.into());
    let code = status.map_or(Code::Ok, Status::code) as usize;
    // Every code is in the table.
    let code = CODES.get(code).copied().unwrap_or(OTHER);
    counter!(REQUESTS, "method" => Arc::clone(&method), "code" => code).increment(1);
    histogram!(SECONDS, "method" => method).record(took.as_secs_f64());
}
