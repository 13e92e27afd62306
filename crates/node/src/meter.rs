//! Metrics of the endpoints: requests by outcome, latency, height and availability.
//!
//! # Invariants
//!
//! * A metric is registered on first use, so a recorder must be installed before the first request.
//! * The only label value from outside is the endpoint's host and port as configured. Addresses that share a host are
//!   distinguished by their position.

use std::array::from_fn;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};

use crate::error::Kind;
use crate::origin::Origin;

const REQUESTS: &str = "cairn_node_requests_total";
const SECONDS: &str = "cairn_node_request_seconds";
const HEIGHT: &str = "cairn_node_endpoint_height";
const UP: &str = "cairn_node_endpoint_up";
const WEBSOCKET: &str = "cairn_node_endpoint_websocket";
const LIES: &str = "cairn_node_lies_total";
const HEDGES: &str = "cairn_node_hedges_total";

/// Registers the descriptions of the metrics.
pub fn describe_metrics() {
    describe_counter!(REQUESTS, "requests to the node's services by service, endpoint and outcome");
    describe_histogram!(SECONDS, "seconds from a request to a node's service to its whole answer");
    describe_gauge!(HEIGHT, "height of the last block that an endpoint is known to have");
    describe_gauge!(UP, "1 while an endpoint answers, 0 while it does not");
    describe_gauge!(
        WEBSOCKET,
        "1 while a websocket tells the new blocks of an endpoint, 0 while it is polled"
    );
    describe_counter!(LIES, "answers of an endpoint that were proved false");
    describe_counter!(HEDGES, "requests sent to a second endpoint because the first took long");
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    NotYet,
    Failed,
    Refused,
    /// The caller dropped the request.
    Dropped,
}

const OUTCOMES: [&str; 5] = ["answered", "not_yet", "failed", "refused", "dropped"];

impl From<Kind> for Outcome {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NotYet => Self::NotYet,
            Kind::Transient => Self::Failed,
            Kind::Permanent => Self::Refused,
        }
    }
}

/// The numbers of one endpoint.
pub(crate) struct Meter {
    service: &'static str,
    endpoint: String,
    requests: [OnceLock<Counter>; OUTCOMES.len()],
    seconds: OnceLock<Histogram>,
    height: OnceLock<Gauge>,
    up: OnceLock<Gauge>,
    websocket: OnceLock<Gauge>,
    false_answers: OnceLock<Counter>,
}

impl Meter {
    /// `alone` if no other address of the service is on the same host.
    pub(crate) fn new(origin: &Origin, alone: bool) -> Self {
        let (host, place) = (origin.host(), origin.place() + 1);
        Self {
            service: origin.service(),
            endpoint: if alone { host.to_owned() } else { format!("{host} (address {place})") },
            requests: from_fn(|_| OnceLock::new()),
            seconds: OnceLock::new(),
            height: OnceLock::new(),
            up: OnceLock::new(),
            websocket: OnceLock::new(),
            false_answers: OnceLock::new(),
        }
    }

    /// A request ended so, after so long.
    pub(crate) fn request(&self, outcome: Outcome, took: Duration) {
        let (service, endpoint) = (self.service, || self.endpoint.clone());
        let label = OUTCOMES[outcome as usize];
        self.requests[outcome as usize]
            .get_or_init(
                || counter!(REQUESTS, "service" => service, "endpoint" => endpoint(), "outcome" => label),
            )
            .increment(1);
        self.seconds
            .get_or_init(|| histogram!(SECONDS, "service" => service, "endpoint" => endpoint()))
            .record(took.as_secs_f64());
    }

    /// The endpoint is this far.
    pub(crate) fn height(&self, height: u64) {
        let (service, endpoint) = (self.service, || self.endpoint.clone());
        let gauge =
            self.height.get_or_init(|| gauge!(HEIGHT, "service" => service, "endpoint" => endpoint()));
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53, which no chain reaches")]
        gauge.set(height as f64);
    }

    /// Whether the endpoint answers.
    pub(crate) fn up(&self, is_up: bool) {
        self.switch(&self.up, UP, is_up);
    }

    /// Whether a websocket delivers its new blocks.
    pub(crate) fn websocket(&self, is_open: bool) {
        self.switch(&self.websocket, WEBSOCKET, is_open);
    }

    fn switch(&self, gauge: &OnceLock<Gauge>, name: &'static str, is_on: bool) {
        let (service, endpoint) = (self.service, || self.endpoint.clone());
        let gauge = gauge.get_or_init(|| gauge!(name, "service" => service, "endpoint" => endpoint()));
        gauge.set(f64::from(u8::from(is_on)));
    }

    /// Counts a false answer.
    pub(crate) fn false_answer(&self) {
        let (service, endpoint) = (self.service, || self.endpoint.clone());
        self.false_answers
            .get_or_init(|| counter!(LIES, "service" => service, "endpoint" => endpoint()))
            .increment(1);
    }
}

/// Counts a hedged request.
pub(crate) fn hedge(service: &'static str) {
    counter!(HEDGES, "service" => service).increment(1);
}
