//! Prices from a feed: a cache that a task of its own fills, so that no request waits for the feed.
//!
//! # Invariants
//!
//! * A price is used up to its maximum age; when the feed fails, the prices expire one by one.
//! * A price in the registry's files comes before that of the feed, so only other tokens are asked for.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use node::{Limits, PriceFeed, SetupError, Url};
use registry::Registry;

/// Where prices come from.
#[derive(Debug, Clone)]
pub struct PriceSource {
    /// Base address of the feed.
    pub url: Url,
    /// Age up to which a price is used. The feed is asked at a sixth of it.
    pub max_age: Duration,
}

/// Names in one request: about 2 KiB of its address.
const BATCH: usize = 100;
/// Names of all requests: a registry has some hundreds.
const MAX_NAMES: usize = 5_000;

/// Prices by CoinGecko's name of the token.
pub(crate) struct PriceCache {
    feed: PriceFeed,
    max_age: Duration,
    prices: HashMap<String, (String, Instant)>,
}

impl PriceCache {
    pub(crate) fn new(source: &PriceSource, timeout: Duration) -> Result<Self, SetupError> {
        const BODY: usize = 1 << 20;
        let limits = Limits {
            connect: timeout,
            timeout,
            trace_timeout: timeout,
            body: BODY,
            in_flight: 1,
            bytes_in_flight: BODY,
            rate_limit_wait: Duration::ZERO,
        };
        let feed = PriceFeed::new(source.url.clone(), limits)?;
        Ok(Self { feed, max_age: source.max_age, prices: HashMap::new() })
    }

    /// Time between two rounds.
    pub(crate) fn pause(&self) -> Duration {
        self.max_age / 6
    }

    /// Asks the feed about every token without a price in the files; returns the prices that are not too old.
    pub(crate) async fn refresh(&mut self, registry: &Registry) -> HashMap<String, String> {
        let names = names(registry);
        for batch in names.chunks(BATCH) {
            match self.feed.usd(batch).await {
                Ok(prices) => {
                    let now = Instant::now();
                    let wanted = prices.into_iter().filter(|(name, _)| batch.contains(&name.as_str()));
                    self.prices.extend(wanted.map(|(name, price)| (name, (price, now))));
                }
                Err(error) => {
                    tracing::warn!(%error, max_age = ?self.max_age, "price feed failed, older prices stay until they expire");
                    break;
                }
            }
        }
        self.prices.retain(|name, (_, at)| at.elapsed() < self.max_age && names.contains(&name.as_str()));
        self.prices.iter().map(|(name, (price, _))| (name.clone(), price.clone())).collect()
    }
}

/// CoinGecko's names of the tokens without a price in the files.
fn names(registry: &Registry) -> Vec<&str> {
    let unpriced = registry.assets().filter(|(_, asset)| asset.price_usd.is_none());
    let names: BTreeSet<&str> = unpriced.filter_map(|(_, asset)| asset.coingecko_id.as_deref()).collect();
    names.into_iter().take(MAX_NAMES).collect()
}
