//! Operator settings.

use std::time::Duration;

use crate::prices::PriceSource;

/// Settings of a routing service.
#[derive(Debug, Clone)]
pub struct Config {
    /// Interval between refreshes of the chain facts.
    pub refresh: Duration,
    /// Age up to which a contract's quote is reused.
    pub quote_age: Duration,
    /// Timeout of a node query while a client waits, and of all balance queries of a chain together.
    pub query_timeout: Duration,
    /// Polling, quotas and retention of registered transfers.
    pub tracker: tracker::Options,
    /// Whether `/v2/tx/submit` relays signed transactions.
    pub submit: bool,
    /// Feed of prices for tokens without one in the registry.
    pub prices: Option<PriceSource>,
    /// Rejects unknown members of request bodies, for tests.
    pub strict: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // Channels and bridges are closed by hand, and rarely.
            refresh: Duration::from_mins(10),
            // Clients fetch a new quote every 10 s; if it jumps, the user must confirm again.
            quote_age: Duration::from_secs(10),
            // The client library `ky` times out after 10 s.
            query_timeout: Duration::from_secs(3),
            tracker: tracker::Options::default(),
            submit: false,
            prices: None,
            strict: false,
        }
    }
}
