//! Metrics of the tracker: open transfers by state, polls by chain and result, chains that reply.
//!
//! # Invariants
//!
//! * Labels are ids of chains in the registry and words of this file.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use crate::evidence::hop::{Obstacle, Unfollowed};
use crate::evidence::transfer::State;
use crate::record::Record;

const OPEN: &str = "cairn_route_open_transfers";
const ENDED: &str = "cairn_route_ended_transfers_total";
const POLLS: &str = "cairn_route_polls_total";
const CHAIN_UP: &str = "cairn_route_chain_up";
const SEARCH_UP: &str = "cairn_route_search_up";
const UNFOLLOWED: &str = "cairn_route_unfollowed_total";

/// Registers the descriptions of the metrics.
pub fn describe() {
    describe_gauge!(
        OPEN,
        "tracked transactions that are still polled, by state: submitted, pending, pending_error, completed_success, \
         completed_error or abandoned"
    );
    describe_counter!(ENDED, "tracked transactions whose polling ended, by their last state");
    describe_counter!(
        POLLS,
        "polls of tracked transactions by chain and result: changed, unchanged, unanswered or unreadable"
    );
    describe_gauge!(
        CHAIN_UP,
        "1 while the nodes of a chain answer the tracker, 0 while its circuit breaker is open"
    );
    describe_gauge!(
        SEARCH_UP,
        "1 while the nodes of a chain answer searches for transactions, 0 while they refuse them, limit them to a range \
         of blocks, have no index or do not answer"
    );
    describe_counter!(
        UNFOLLOWED,
        "steps of tracked transactions that cannot be followed, by reason: ibc_v2, port, malformed, bridge, not_forwarded or no_logs"
    );
}

/// Result of a poll, as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollLabel {
    /// All queries were answered, and the response is another one.
    Changed,
    /// All queries were answered, and the response is the same.
    Unchanged,
    /// A query was not answered.
    Unanswered,
    /// The stored row cannot be read.
    Unreadable,
}

impl PollLabel {
    /// Counts a poll of a transaction of `chain`.
    pub(crate) fn count(self, chain: &str) {
        let result = match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Unanswered => "unanswered",
            Self::Unreadable => "unreadable",
        };
        counter!(POLLS, "chain" => chain.to_owned(), "result" => result).increment(1);
    }
}

/// Every state and its label.
const STATES: [(State, &str); 6] = [
    (State::Submitted, "submitted"),
    (State::Pending, "pending"),
    (State::PendingError, "pending_error"),
    (State::CompletedSuccess, "completed_success"),
    (State::CompletedError, "completed_error"),
    (State::Abandoned, "abandoned"),
];

fn label(state: State) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("", |(_, label)| label)
}

/// The reasons why a step is not followed, as labels.
const OBSTACLES: [(Obstacle, &str); 6] = [
    (Obstacle::IbcV2, "ibc_v2"),
    (Obstacle::Port, "port"),
    (Obstacle::Malformed, "malformed"),
    (Obstacle::Bridge, "bridge"),
    (Obstacle::NotForwarded, "not_forwarded"),
    (Obstacle::NoLogs, "no_logs"),
];

/// Sets all counts of transfers to 0, for a database that is opened.
pub(crate) fn no_transfers() {
    for (_, label) in STATES {
        gauge!(OPEN, "state" => label).set(0.0);
        counter!(ENDED, "state" => label).increment(0);
    }
    for (_, label) in OBSTACLES {
        counter!(UNFOLLOWED, "reason" => label).increment(0);
    }
}

/// Updates the counts of transfers after a record was replaced by another one.
pub(crate) fn transfer_changed(before: Option<&Record>, after: Option<&Record>) {
    let is_open = |record: &&Record| record.due.is_some();
    let (opened, still) = (before.filter(is_open), after.filter(is_open));
    if let Some(record) = opened {
        gauge!(OPEN, "state" => label(record.state())).decrement(1.0);
    }
    if let Some(record) = still {
        gauge!(OPEN, "state" => label(record.state())).increment(1.0);
    }
    if let (Some(before), None) = (opened, still) {
        counter!(ENDED, "state" => label(after.unwrap_or(before).state())).increment(1);
    }
}

/// Counts a step that cannot be followed.
pub(crate) fn unfollowed(hop: &Unfollowed) {
    let reason = OBSTACLES.iter().find(|(known, _)| *known == hop.obstacle).map_or("", |(_, label)| label);
    counter!(UNFOLLOWED, "reason" => reason).increment(1);
}

/// Sets whether the nodes of a chain answer.
pub(crate) fn chain_up(chain: &str, is_up: bool) {
    gauge!(CHAIN_UP, "chain" => chain.to_owned()).set(f64::from(u8::from(is_up)));
}

/// Sets whether the nodes of a chain answer searches.
pub(crate) fn search_up(chain: &str, is_up: bool) {
    gauge!(SEARCH_UP, "chain" => chain.to_owned()).set(f64::from(u8::from(is_up)));
}
