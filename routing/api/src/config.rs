//! Operator settings.

use std::time::Duration;

/// Settings of a routing service.
#[derive(Debug, Clone)]
pub struct Config {
    /// How often the chains are asked what holds at the moment.
    pub refresh: Duration,
    /// How long a quote of a contract is good.
    pub quote_age: Duration,
    /// How long one question to a node may take while a client waits, and all questions to a chain about balances.
    pub ask: Duration,
    /// How registered transfers are followed, how many, and how long they are kept.
    pub tracker: tracker::Options,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Channels and bridges are stopped by people.
            refresh: Duration::from_mins(10),
            // Clients ask for a new quote every 10 s; one that jumps makes the user confirm again.
            quote_age: Duration::from_secs(10),
            // `ky` gives up after 10 s.
            ask: Duration::from_secs(3),
            tracker: tracker::Options::default(),
        }
    }
}
