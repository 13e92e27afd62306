//! Metrics of an ingest.

use metrics::{counter, describe_counter, describe_gauge, gauge};

/// A counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A rewind.
    Rewind,
    /// Receipts are accepted that do not follow from their transactions.
    UnprovenReceipts,
    /// A token's balances change without transfer events.
    Drift,
    /// A balance is compared with its contract.
    Sample,
    /// A balance is corrected.
    Repaired,
}

/// Each event, its metric, and its description.
const EVENTS: [(Event, &str, &str); 5] = [
    (
        Event::Rewind,
        "cairn_rewinds_total",
        "times that blocks were taken back, for a fork or an answer proved false",
    ),
    (
        Event::UnprovenReceipts,
        "cairn_unproven_receipts_total",
        "blocks whose receipts do not follow from their transactions, and were indexed for want of others",
    ),
    (
        Event::Drift,
        "cairn_rich_list_drifts_total",
        "tokens whose balances turned out to change without their events telling",
    ),
    (Event::Sample, "cairn_rich_list_samples_total", "balances that were compared with their contracts"),
    (Event::Repaired, "cairn_rich_list_healed_total", "balances that were corrected"),
];

impl Event {
    /// Increments the counter.
    pub(crate) fn count(self) {
        self.count_many(1);
    }

    /// Adds `many` to the counter.
    pub(crate) fn count_many(self, many: u64) {
        let metric = EVENTS.iter().find(|(event, ..)| *event == self).map_or("", |(_, metric, _)| metric);
        counter!(metric).increment(many);
    }
}

const LANE_STOPPED: &str = "cairn_lane_stopped";

/// Sets whether a lane has failed and waits for its restart.
pub(crate) fn lane_stopped(lane: &str, is_stopped: bool) {
    gauge!(LANE_STOPPED, "lane" => lane.to_owned()).set(f64::from(u8::from(is_stopped)));
}

/// Registers the descriptions of all metrics, with counters at zero.
pub fn describe() {
    describe_gauge!(LANE_STOPPED, "1 while a lane has failed and waits to be tried again");
    for (event, metric, description) in EVENTS {
        describe_counter!(metric, description);
        event.count_many(0);
    }
}
