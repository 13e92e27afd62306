//! Metrics of the streams.
//!
//! # Invariants
//! * No label holds data from a client.

use metrics::{Counter, Gauge, counter, describe_counter, describe_gauge, gauge};

use super::rows::Kind;

/// Open streams by `stream`.
const CLIENTS: &str = "cairn_stream_clients";

/// Events that were handed to the connections, by `stream`.
const EVENTS: &str = "cairn_stream_events_total";

/// Streams that were ended because their client read too slowly, by `stream`.
const DROPPED: &str = "cairn_stream_dropped_total";

/// Registers the descriptions of the metrics, with values of zero: the increase of a counter counts from its first value.
pub(crate) fn describe() {
    describe_gauge!(CLIENTS, "open event streams, by stream");
    describe_counter!(EVENTS, "events that streams sent, by stream");
    describe_counter!(
        DROPPED,
        "event streams that were ended because their client read too slowly, by stream"
    );
    for kind in [Kind::Blocks, Kind::Txs, Kind::EvmTxs, Kind::Transfers] {
        let (clients, events, dropped) = metrics(kind);
        clients.set(0.0);
        events.increment(0);
        dropped.increment(0);
    }
}

/// Open streams, events and dropped streams of a kind.
fn metrics(kind: Kind) -> (Gauge, Counter, Counter) {
    let stream = match kind {
        Kind::Blocks => "blocks",
        Kind::Txs => "txs",
        Kind::EvmTxs => "evm-txs",
        Kind::Transfers => "transfers",
    };
    (
        gauge!(CLIENTS, "stream" => stream),
        counter!(EVENTS, "stream" => stream),
        counter!(DROPPED, "stream" => stream),
    )
}

/// Counts one stream while it is open.
pub(crate) struct Meter {
    clients: Gauge,
    events: Counter,
    dropped: Counter,
}

impl Meter {
    pub(crate) fn open(kind: Kind) -> Self {
        let (clients, events, dropped) = metrics(kind);
        clients.increment(1.0);
        Self { clients, events, dropped }
    }

    pub(crate) fn event(&self) {
        self.events.increment(1);
    }

    pub(crate) fn dropped(&self) {
        self.dropped.increment(1);
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.clients.decrement(1.0);
    }
}
