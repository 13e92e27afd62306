//! Request metrics per endpoint: counts by status, durations and slow requests.
//!
//! # Invariants
//! * Recording allocates nothing: the first request creates the counters of an endpoint. A recorder must therefore be
//!   installed before the server starts.
//! * No label holds data from a client.

use std::array::from_fn;
use std::sync::OnceLock;
use std::time::Duration;

use http::StatusCode;
use metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};

/// Requests by `endpoint` (its template, or [`NO_ENDPOINT`]) and `status`, without `/healthz` and `/readyz`.
pub const REQUESTS: &str = "cairn_http_requests_total";

/// Seconds from the complete request to the complete response by `endpoint`. Sending is not included; requests that
/// were rejected before their handler ran or ended by [`crate::limits::Limits::answer`] are not counted.
pub const SECONDS: &str = "cairn_http_request_seconds";

/// The same requests and seconds by `endpoint` and class of `status`, such as `2xx`.
pub const SECONDS_BY_STATUS: &str = "cairn_http_response_seconds";

/// Requests that took over [`SLOW_AFTER`], by `endpoint`.
pub const SLOW: &str = "cairn_http_slow_requests_total";

/// The expected maximum for a handler that only reads the disk; its thread cannot be cancelled.
pub const SLOW_AFTER: Duration = Duration::from_secs(1);

/// The label of requests for an unknown path or method.
pub const NO_ENDPOINT: &str = "none";

/// Statuses with their own label; any other is `other`.
const STATUSES: [&str; 18] = [
    "200", "201", "202", "204", "304", "400", "404", "405", "408", "413", "414", "429", "431", "500", "501",
    "502", "503", "504",
];

/// Classes of statuses with their own histogram.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Registers the descriptions of the metrics.
pub fn describe() {
    describe_counter!(REQUESTS, "HTTP requests by endpoint and status of the response");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "seconds from a complete HTTP request to its complete response, by endpoint"
    );
    describe_histogram!(
        SECONDS_BY_STATUS,
        Unit::Seconds,
        "seconds from a complete HTTP request to its complete response, by endpoint and class of status"
    );
    describe_counter!(SLOW, "HTTP requests that took over a second, by endpoint");
}

/// Counts the requests of one endpoint.
pub(crate) struct Meter {
    endpoint: &'static str,
    by_status: [OnceLock<Counter>; STATUSES.len() + 1],
    seconds: OnceLock<Histogram>,
    seconds_by_status: [OnceLock<Histogram>; CLASSES.len()],
    slow: OnceLock<Counter>,
}

impl Meter {
    pub(crate) fn new(endpoint: &'static str) -> Self {
        let by_status = from_fn(|_| OnceLock::new());
        let seconds_by_status = from_fn(|_| OnceLock::new());
        Self { endpoint, by_status, seconds: OnceLock::new(), seconds_by_status, slow: OnceLock::new() }
    }

    /// Counts a response.
    pub(crate) fn count(&self, status: StatusCode) {
        let position = STATUSES.iter().position(|label| *label == status.as_str());
        let label = position.map_or("other", |at| STATUSES[at]);
        let counter = &self.by_status[position.unwrap_or(STATUSES.len())];
        counter
            .get_or_init(|| counter!(REQUESTS, "endpoint" => self.endpoint, "status" => label))
            .increment(1);
    }

    /// Counts and times a response.
    pub(crate) fn observe(&self, status: StatusCode, took: Duration) {
        self.count(status);
        let seconds = self.seconds.get_or_init(|| histogram!(SECONDS, "endpoint" => self.endpoint));
        seconds.record(took.as_secs_f64());
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        let seconds = self.seconds_by_status[class].get_or_init(
            || histogram!(SECONDS_BY_STATUS, "endpoint" => self.endpoint, "status" => CLASSES[class]),
        );
        seconds.record(took.as_secs_f64());
        // At zero from the first request on: the increase of a counter counts from its first value.
        let slow = self.slow.get_or_init(|| counter!(SLOW, "endpoint" => self.endpoint));
        if took > SLOW_AFTER {
            slow.increment(1);
            tracing::debug!(endpoint = self.endpoint, ?took, "slow request");
        }
    }
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    #[test]
    fn slow_requests_have_their_own_counter() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            let meter = Meter::new("/slow");
            meter.observe(StatusCode::OK, SLOW_AFTER);
            meter.observe(StatusCode::OK, SLOW_AFTER + Duration::from_nanos(1));
            meter.observe(StatusCode::IM_A_TEAPOT, Duration::ZERO);
        });
        let text = recorder.handle().render();
        for line in [
            r#"cairn_http_requests_total{endpoint="/slow",status="200"} 2"#,
            r#"cairn_http_requests_total{endpoint="/slow",status="other"} 1"#,
            r#"cairn_http_slow_requests_total{endpoint="/slow"} 1"#,
            r#"cairn_http_request_seconds_count{endpoint="/slow"} 3"#,
            r#"cairn_http_response_seconds_count{endpoint="/slow",status="2xx"} 2"#,
            r#"cairn_http_response_seconds_count{endpoint="/slow",status="4xx"} 1"#,
        ] {
            assert!(text.contains(line), "{line}:\n{text}");
        }
    }
}
