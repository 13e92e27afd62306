//! Metrics of the endpoints: requests by outcome, latency, height and availability.
//!
//! # Invariants
//!
//! * A metric appears with its first value.
//! * The only label value from outside is the endpoint's host and port as configured. Addresses that share a host are
//!   distinguished by their position.

use std::time::Duration;

use metrics::{
    SharedString, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::error::{Error, Kind};
use crate::origin::Origin;

const REQUESTS: &str = "cairn_node_requests_total";
const SECONDS: &str = "cairn_node_request_seconds";
const HEIGHT: &str = "cairn_node_endpoint_height";
const UP: &str = "cairn_node_endpoint_up";
const WEBSOCKET: &str = "cairn_node_endpoint_websocket";
const FALSE_ANSWERS: &str = "cairn_node_lies_total";

/// Registers the descriptions of the metrics.
pub fn describe_metrics() {
    describe_counter!(REQUESTS, "requests to the node's services by service, endpoint and outcome");
    describe_histogram!(SECONDS, "seconds from a request to a node's service to its whole answer");
    describe_gauge!(HEIGHT, "height of the last block that an endpoint is known to have");
    describe_gauge!(UP, "1 while an endpoint answers, 0 while it does not");
    describe_gauge!(
        WEBSOCKET,
        "1 while a websocket delivers the new blocks of an endpoint, 0 while it is polled"
    );
    describe_counter!(FALSE_ANSWERS, "answers of an endpoint that were proved false");
}

/// Outcome of a request whose future was dropped.
pub(crate) const DROPPED: &str = "dropped";

/// Outcome of a request as a label.
pub(crate) fn outcome_label<T>(outcome: &Result<T, Error>) -> &'static str {
    match outcome.as_ref().map_err(Error::kind) {
        Ok(_) => "answered",
        Err(Kind::NotYet) => "not_yet",
        Err(Kind::Transient) => "failed",
        Err(Kind::Permanent) => "refused",
    }
}

/// The metrics of one endpoint.
pub(crate) struct Meter {
    service: &'static str,
    endpoint: SharedString,
}

impl Meter {
    /// `is_only` if no other address of the service is on the same host.
    pub(crate) fn new(origin: &Origin, is_only: bool) -> Self {
        let (host, place) = (origin.host(), origin.place() + 1);
        let endpoint = if is_only { host.to_owned() } else { format!("{host} (address {place})") };
        Self { service: origin.service(), endpoint: SharedString::from_shared(endpoint.into()) }
    }

    /// Counts a request with its outcome and duration.
    pub(crate) fn request(&self, outcome: &'static str, took: Duration) {
        let (service, endpoint) = (self.service, || self.endpoint.clone());
        counter!(REQUESTS, "service" => service, "endpoint" => endpoint(), "outcome" => outcome).increment(1);
        histogram!(SECONDS, "service" => service, "endpoint" => endpoint()).record(took.as_secs_f64());
    }

    /// Sets the height of the endpoint.
    pub(crate) fn height(&self, height: u64) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, which no chain reaches")]
        self.set(HEIGHT, height as f64);
    }

    /// Sets whether the endpoint answers.
    pub(crate) fn up(&self, is_up: bool) {
        self.set(UP, f64::from(u8::from(is_up)));
    }

    /// Sets whether a websocket delivers its new blocks.
    pub(crate) fn websocket(&self, is_live: bool) {
        self.set(WEBSOCKET, f64::from(u8::from(is_live)));
    }

    fn set(&self, gauge: &'static str, value: f64) {
        gauge!(gauge, "service" => self.service, "endpoint" => self.endpoint.clone()).set(value);
    }

    /// Counts a false answer.
    pub(crate) fn false_answer(&self) {
        counter!(FALSE_ANSWERS, "service" => self.service, "endpoint" => self.endpoint.clone()).increment(1);
    }
}
