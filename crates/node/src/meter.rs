//! Metrics of the endpoints: requests by outcome, latency, height and availability.
//!
//! # Invariants
//!
//! * A metric appears with its first value, the counter of false replies with its endpoint.
//! * The only label value from outside is the endpoint's host and port as configured. Addresses that share a host are
//!   distinguished by their position.
//! * A method is a name in our code: that of a path ends after the name that follows its version, so that no account,
//!   hash or height is in a label.

use std::time::Duration;

use metrics::{
    SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::error::{Error, Kind};
use crate::pool::origin::Origin;

const REQUESTS: &str = "cairn_node_requests_total";
const SECONDS: &str = "cairn_node_request_seconds";
/// Seconds of a request by service, method and outcome.
pub const SECONDS_BY_METHOD: &str = "cairn_node_method_seconds";

const HEIGHT: &str = "cairn_node_endpoint_height";
const UP: &str = "cairn_node_endpoint_up";
const WEBSOCKET: &str = "cairn_node_endpoint_websocket";
const FALSE_REPLIES: &str = "cairn_node_false_replies_total";

/// Registers the descriptions of the metrics.
pub fn describe_metrics() {
    describe_counter!(REQUESTS, "requests to the node's services by service, endpoint and outcome");
    describe_histogram!(
        SECONDS,
        Unit::Seconds,
        "seconds from a request to a node's service to its whole reply, by service and endpoint"
    );
    describe_histogram!(
        SECONDS_BY_METHOD,
        Unit::Seconds,
        "seconds from a request to a node's service to its whole reply, by service, method and outcome"
    );
    describe_gauge!(HEIGHT, "height of the last block that an endpoint is known to have");
    describe_gauge!(UP, "1 while an endpoint answers, 0 while it does not");
    describe_gauge!(
        WEBSOCKET,
        "1 while a websocket delivers the new blocks of an endpoint, 0 while it is polled"
    );
    describe_counter!(FALSE_REPLIES, "replies of an endpoint that were proved false");
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

/// The method of a request by its name: `abci_query` of `abci_query /a.Query/B`, and
/// `/cosmos/bank/v1beta1/balances` of `/cosmos/bank/v1beta1/balances/init1…?pagination.limit=9`.
fn method_label(name: &str) -> String {
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let end = |c: char| c == '?' || c.is_whitespace();
    let name = name.split(end).next().unwrap_or_default();
    let Some(path) = name.strip_prefix('/') else { return name.to_owned() };
    let parts: Vec<_> = path.split('/').collect();
    let known = parts.iter().position(|part| is_version(part)).map_or(1, |version| version + 2);
    format!("/{}", parts[..known.min(parts.len())].join("/"))
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
        let meter = Self { service: origin.service(), endpoint: SharedString::from_shared(endpoint.into()) };
        // At zero from the start on: the increase of a counter counts from its first value.
        meter.false_replies(0);
        meter
    }

    /// Counts a request by its name with its outcome and duration.
    pub(crate) fn request(&self, name: &str, outcome: &'static str, took: Duration) {
        let (service, endpoint, method) = (self.service, || self.endpoint.clone(), method_label(name));
        counter!(REQUESTS, "service" => service, "endpoint" => endpoint(), "outcome" => outcome).increment(1);
        histogram!(SECONDS, "service" => service, "endpoint" => endpoint()).record(took.as_secs_f64());
        histogram!(SECONDS_BY_METHOD, "service" => service, "method" => method, "outcome" => outcome)
            .record(took.as_secs_f64());
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

    /// Counts a false reply.
    pub(crate) fn false_reply(&self) {
        self.false_replies(1);
    }

    fn false_replies(&self, count: u64) {
        counter!(FALSE_REPLIES, "service" => self.service, "endpoint" => self.endpoint.clone())
            .increment(count);
    }
}

#[cfg(test)]
mod tests {
    use super::method_label;

    #[test]
    fn a_method_has_no_account_hash_or_height() {
        for (name, method) in [
            ("eth_getBlockReceipts", "eth_getBlockReceipts"),
            ("abci_query /cosmos.bank.v1beta1.Query/Balance", "abci_query"),
            ("/cosmos/tx/v1beta1/txs/AB12", "/cosmos/tx/v1beta1/txs"),
            ("/cosmos/bank/v1beta1/balances/init1x?pagination.limit=9", "/cosmos/bank/v1beta1/balances"),
            ("/opinit/ophost/v1/bridges/7/outputs/12", "/opinit/ophost/v1/bridges"),
            ("/withdrawals/init1x", "/withdrawals"),
            ("/status?height=7", "/status"),
        ] {
            assert_eq!(method_label(name), method);
        }
    }
}
