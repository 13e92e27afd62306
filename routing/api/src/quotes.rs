//! LayerZero quotes: fetched on demand and cached.
//!
//! A quote does not depend on the sender, so all requests share it; concurrent equal queries are sent once. If a
//! contract does not answer, the registry's `messaging_fee` applies, or the hop is left out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chain::U256;
use futures_util::future::{join, join_all};
use messages::quote;
use planner::Quotes;
use registry::facts::Quote;
use registry::{Leg, LegKind, Oft, OftRef, Registry};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tracker::ChainClients;

/// Maximum number of cached quotes; the oldest is evicted.
const MAX_CACHED: usize = 4096;

/// Cache key: chain id, contract, destination, amount.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct QuoteKey {
    chain: String,
    contract: String,
    eid: u32,
    amount: U256,
}

type Answer = Arc<OnceCell<Option<Quote>>>;

/// Queries contracts and caches their quotes.
pub(crate) struct Quoter {
    age: Duration,
    /// Timeout of one query.
    timeout: Duration,
    cache: Mutex<HashMap<QuoteKey, (Instant, Answer)>>,
}

/// Quotes of one planning request: the planner records missing ones, which are fetched before the next run.
pub(crate) struct QuoteSet<'a> {
    registry: &'a Registry,
    answers: HashMap<(OftRef, usize, usize, U256), Option<Quote>>,
    missing: Mutex<Vec<(OftRef, usize, usize, U256)>>,
}

impl<'a> QuoteSet<'a> {
    /// A set without quotes.
    pub(crate) fn empty(registry: &'a Registry) -> Self {
        Self { registry, answers: HashMap::new(), missing: Mutex::default() }
    }

    /// Fetches the quotes that the last run lacked; false if none were missing.
    pub(crate) async fn complete(&mut self, quoter: &Quoter, clients: &ChainClients) -> bool {
        let missing = std::mem::take(self.missing.get_mut().unwrap_or_else(PoisonError::into_inner));
        let registry = self.registry;
        let queries = missing.iter().map(async |&(oft, from, to, amount)| {
            let legs = &registry[oft];
            ((oft, from, to, amount), quoter.quote(registry, clients, legs, from, to, amount).await)
        });
        self.answers.extend(join_all(queries).await);
        !missing.is_empty()
    }
}

impl Quotes for QuoteSet<'_> {
    fn quote(&self, oft: OftRef, from: usize, to: usize, amount: U256) -> Option<Quote> {
        let key = (oft, from, to, amount);
        if let Some(answer) = self.answers.get(&key) {
            return *answer;
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.contains(&key) {
            missing.push(key);
        }
        // A provisional quote lets the search continue and find the other quotes that it needs.
        let leg = self.registry[oft].legs.get(from)?;
        Some(registry_default(self.registry, leg, amount, U256::ZERO))
    }
}

impl Quoter {
    pub(crate) fn new(age: Duration, timeout: Duration) -> Self {
        Self { age, timeout, cache: Mutex::default() }
    }

    async fn quote(
        &self,
        registry: &Registry,
        clients: &ChainClients,
        oft: &Oft,
        from: usize,
        to: usize,
        amount: U256,
    ) -> Option<Quote> {
        let (leg, far) = (oft.legs.get(from)?, oft.legs.get(to)?);
        let chain = registry[leg.asset].chain;
        let key = QuoteKey {
            chain: registry[chain].id.clone(),
            contract: leg.contract.clone(),
            eid: far.eid,
            amount,
        };
        let answer = self.slot(key);
        let quote = answer.get_or_init(async || {
            // A module of a Move chain is not queried: its quote comes from the registry.
            if leg.kind == LegKind::Move {
                return None;
            }
            let clients = clients.of(&registry[chain]);
            let evm = clients.evm().inspect_err(|error| tracing::warn!(%error, "no quote")).ok()?;
            timeout(self.timeout, query_contract(evm, leg, far.eid, amount)).await.ok()?
        });
        let default = leg.messaging_fee.map(|fee| registry_default(registry, leg, amount, fee));
        (*quote.await).or(default)
    }

    /// Cache slot, filled by the first request.
    fn slot(&self, key: QuoteKey) -> Answer {
        let now = Instant::now();
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.retain(|_, (at, _)| now.duration_since(*at) < self.age);
        if cache.len() >= MAX_CACHED
            && let Some(oldest) = cache.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone())
        {
            cache.remove(&oldest);
        }
        Arc::clone(&cache.entry(key).or_insert_with(|| (now, Answer::default())).1)
    }
}

/// Quote from the contract.
async fn query_contract(evm: &node::Evm, leg: &Leg, eid: u32, amount: U256) -> Option<Quote> {
    let contract: [u8; 20] = chain::Account::from_hex_literal(&leg.contract)?.as_bytes().try_into().ok()?;
    let (limits, fee) = quote::calls(leg, eid, amount)
        .inspect_err(|error| tracing::warn!(%error, contract = leg.contract, "no quote"))
        .ok()?;
    let (limits, fee) = join(evm.call(contract, &limits, None), evm.call(contract, &fee, None)).await;
    let warn = |error: &node::Error| tracing::warn!(%error, contract = leg.contract, "no quote");
    let (limits, fee) = (limits.inspect_err(warn).ok()?, fee.inspect_err(warn).ok()?);
    Some(Quote { received: quote::received(&limits)?, native_fee: with_margin(quote::native_fee(&fee)?) })
}

/// Adds a margin, because fees change between quote and signature; the excess is refunded.
fn with_margin(fee: U256) -> U256 {
    fee.saturating_add(fee / U256::from(10))
}

/// One to one, minus the remainder that does not fit the shared decimals.
fn registry_default(registry: &Registry, leg: &Leg, amount: U256, fee: U256) -> Quote {
    let decimals = registry[leg.asset].decimals.saturating_sub(leg.shared_decimals);
    let unit = U256::from(10).pow(U256::from(decimals));
    Quote { received: amount / unit * unit, native_fee: fee }
}
