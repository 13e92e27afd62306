//! Metrics of the planner's requests, by outcome.

use metrics::{counter, describe_counter};
use planner::NoRoute;

const PLANS: &str = "cairn_route_plans_total";
const SUBMISSIONS: &str = "cairn_route_submissions_total";

/// Registers the descriptions of the metrics of the routing service.
pub fn describe() {
    describe_counter!(
        PLANS,
        "searches for a route by outcome: planned, or the reason why there is none; requests for messages search again"
    );
    describe_counter!(SUBMISSIONS, "transactions of /v2/tx/submit by outcome: accepted by a node, or not");
    tracker::describe_metrics();
}

/// The values of the label.
const OUTCOMES: [&str; 10] = [
    "planned",
    "no_path",
    "paused",
    "doubt",
    "too_small",
    "dust",
    "too_large",
    "several_txs",
    "needs_hook",
    "no_quote",
];

/// Shows every outcome with a count of 0: the increase of a counter counts from its first value.
pub(crate) fn no_plans() {
    for outcome in OUTCOMES {
        counter!(PLANS, "outcome" => outcome).increment(0);
    }
}

/// Counts a transaction that a client wanted to be relayed.
pub(crate) fn count_submission(is_accepted: bool) {
    counter!(SUBMISSIONS, "outcome" => if is_accepted { "accepted" } else { "refused" }).increment(1);
}

/// Counts a search for a route.
pub(crate) fn count<T>(outcome: &Result<T, NoRoute>) {
    let outcome = match outcome {
        Ok(_) => "planned",
        Err(NoRoute::NoPath { .. }) => "no_path",
        Err(NoRoute::Paused(_)) => "paused",
        Err(NoRoute::Doubt(_)) => "doubt",
        Err(NoRoute::TooSmall { .. }) => "too_small",
        Err(NoRoute::Dust { .. }) => "dust",
        Err(NoRoute::TooLarge { .. }) => "too_large",
        Err(NoRoute::SeveralTxs { .. }) => "several_txs",
        Err(NoRoute::NeedsHook) => "needs_hook",
        Err(NoRoute::NoQuote(_)) => "no_quote",
    };
    counter!(PLANS, "outcome" => outcome).increment(1);
}
