//! Metrics of the planner's requests, by outcome.

use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use planner::NoRoute;
use registry::{Files, Registry};

const PLANS: &str = "cairn_route_plans_total";
const REGISTRY: &str = "cairn_route_registry";
const REGISTRY_READ: &str = "cairn_route_registry_read_timestamp_seconds";
const REGISTRY_STALE: &str = "cairn_route_registry_stale";
const BROKEN_FILES: &str = "cairn_route_registry_broken_files";
const OLDEST_FILE: &str = "cairn_route_registry_oldest_file_timestamp_seconds";
const PRICES: &str = "cairn_route_prices";
const SUBMISSIONS: &str = "cairn_route_submissions_total";
const BALANCES: &str = "cairn_route_balance_queries_total";

/// Registers the descriptions of the metrics of the routing service.
pub fn describe() {
    describe_counter!(
        PLANS,
        "searches for a route by outcome: planned, or the reason why there is none; requests for messages search again"
    );
    describe_counter!(SUBMISSIONS, "transactions of /v2/tx/submit by outcome: accepted by a node, or not");
    describe_counter!(
        BALANCES,
        "balances of an account on one chain for /v2/info/balances and portfolios, by outcome: answered, or failed within the time limit"
    );
    describe_gauge!(REGISTRY, "chains, assets, channels, bridges and ofts of the registry in use, by kind");
    describe_gauge!(REGISTRY_READ, Unit::Seconds, "Unix time at which the registry in use was read");
    describe_gauge!(
        REGISTRY_STALE,
        "1 while an older state than that on disk is in use: the registry could not be read again, or a public file is broken"
    );
    describe_gauge!(
        BROKEN_FILES,
        "files of public registries that were not taken as they are: broken or gone; `/health` names them"
    );
    describe_gauge!(
        OLDEST_FILE,
        Unit::Seconds,
        "Unix time at which the oldest file in use was read whose version on disk is broken or gone; 0 if there is none"
    );
    describe_gauge!(PRICES, "tokens with a price of the feed that is not too old");
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

/// Shows every outcome with a count of 0: the increase of a counter counts from its first value. There are no prices yet.
pub(crate) fn start() {
    set_prices(0);
    set_files(&Files::default());
    for outcome in ["accepted", "refused"] {
        counter!(SUBMISSIONS, "outcome" => outcome).increment(0);
    }
    for outcome in ["answered", "failed"] {
        counter!(BALANCES, "outcome" => outcome).increment(0);
    }
    for outcome in OUTCOMES {
        counter!(PLANS, "outcome" => outcome).increment(0);
    }
}

/// Sets the gauges of the registry in use.
#[expect(clippy::cast_precision_loss, reason = "counts of entries and realistic times are below 2^53")]
pub(crate) fn set_registry(registry: &Registry) {
    let counts = [
        ("chains", registry.chains().count()),
        ("assets", registry.assets().count()),
        ("channels", registry.channels().count()),
        ("bridges", registry.bridges().count()),
        ("ofts", registry.ofts().count()),
    ];
    for (kind, count) in counts {
        gauge!(REGISTRY, "kind" => kind).set(count as f64);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    gauge!(REGISTRY_READ).set(now.as_secs_f64());
    gauge!(REGISTRY_STALE).set(0.0);
}

/// Marks the registry in use as older than its files.
pub(crate) fn set_stale() {
    gauge!(REGISTRY_STALE).set(1.0);
}

/// Sets the gauges of the files of public registries.
#[expect(clippy::cast_precision_loss, reason = "a count of files")]
pub(crate) fn set_files(files: &Files) {
    gauge!(BROKEN_FILES).set(files.broken().len() as f64);
    let oldest = files.broken().iter().filter_map(|file| file.last_good).min();
    let seconds = oldest.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    gauge!(OLDEST_FILE).set(seconds.as_secs_f64());
    if oldest.is_some() {
        set_stale();
    }
}

/// Sets the number of prices of the feed.
#[expect(clippy::cast_precision_loss, reason = "a count of tokens")]
pub(crate) fn set_prices(count: usize) {
    gauge!(PRICES).set(count as f64);
}

/// Counts the balances of an account on one chain.
pub(crate) fn count_balances(is_answered: bool) {
    counter!(BALANCES, "outcome" => if is_answered { "answered" } else { "failed" }).increment(1);
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
        Err(NoRoute::NoPool { .. }) => "no_pool",
        Err(NoRoute::Swap { .. }) => "swap_refused",
        Err(NoRoute::NoPoolState(_)) => "no_pool_state",
    };
    counter!(PLANS, "outcome" => outcome).increment(1);
}
