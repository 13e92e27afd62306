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

use crate::nodes::Nodes;

/// Quotes that are kept at most; past it the oldest go.
const MAX_KEPT: usize = 4096;

/// A question to a contract: chain id, contract, destination, amount.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    chain: String,
    contract: String,
    eid: u32,
    amount: U256,
}

type Answer = Arc<OnceCell<Option<Quote>>>;

/// Asks, and remembers.
pub(crate) struct Quoter {
    age: Duration,
    kept: Mutex<HashMap<Question, (Instant, Answer)>>,
}

/// Quotes of one planning request: the planner records missing ones, which are fetched before the next run.
pub(crate) struct QuoteSet<'a> {
    registry: &'a Registry,
    answers: HashMap<(OftRef, usize, usize, U256), Option<Quote>>,
    missing: Mutex<Vec<(OftRef, usize, usize, U256)>>,
}

impl<'a> QuoteSet<'a> {
    /// Nothing is known yet.
    pub(crate) fn nothing(registry: &'a Registry) -> Self {
        Self { registry, answers: HashMap::new(), missing: Mutex::default() }
    }

    /// Asks for what the last run missed; false if that was nothing.
    pub(crate) async fn complete(&mut self, quoter: &Quoter, nodes: &Nodes) -> bool {
        let missing = std::mem::take(self.missing.get_mut().unwrap_or_else(PoisonError::into_inner));
        let registry = self.registry;
        let asked = missing.iter().map(async |&(oft, from, to, amount)| {
            let legs = &registry[oft];
            ((oft, from, to, amount), quoter.quote(registry, nodes, legs, from, to, amount).await)
        });
        self.answers.extend(join_all(asked).await);
        !missing.is_empty()
    }
}

impl Quotes for QuoteSet<'_> {
    fn quote(&self, oft: OftRef, from: usize, to: usize, amount: U256) -> Option<Quote> {
        let question = (oft, from, to, amount);
        if let Some(answer) = self.answers.get(&question) {
            return *answer;
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if !missing.contains(&question) {
            missing.push(question);
        }
        // So that the search finds out what else it needs.
        let leg = self.registry[oft].legs.get(from)?;
        Some(registry_default(self.registry, leg, amount, U256::ZERO))
    }
}

impl Quoter {
    pub(crate) fn new(age: Duration) -> Self {
        Self { age, kept: Mutex::default() }
    }

    async fn quote(
        &self,
        registry: &Registry,
        nodes: &Nodes,
        oft: &Oft,
        from: usize,
        to: usize,
        amount: U256,
    ) -> Option<Quote> {
        let (leg, far) = (oft.legs.get(from)?, oft.legs.get(to)?);
        let chain = registry[leg.asset].chain;
        let question = Question {
            chain: registry[chain].id.clone(),
            contract: leg.contract.clone(),
            eid: far.eid,
            amount,
        };
        let answer = self.slot(question);
        let asked = answer.get_or_init(async || {
            // A module of a Move chain is not asked: its quote is the registry's.
            if leg.kind == LegKind::Move {
                return None;
            }
            let evm =
                nodes.evm(&registry[chain]).inspect_err(|error| tracing::warn!(%error, "no quote")).ok()?;
            ask(&evm, leg, far.eid, amount).await
        });
        let default = leg.messaging_fee.map(|fee| registry_default(registry, leg, amount, fee));
        (*asked.await).or(default)
    }

    /// Cache slot, filled by the first request.
    fn slot(&self, question: Question) -> Answer {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (at, _)| now.duration_since(*at) < self.age);
        if kept.len() >= MAX_KEPT
            && let Some(oldest) =
                kept.iter().min_by_key(|(_, (at, _))| *at).map(|(question, _)| question.clone())
        {
            kept.remove(&oldest);
        }
        Arc::clone(&kept.entry(question).or_insert_with(|| (now, Answer::default())).1)
    }
}

/// Quote from the contract.
async fn ask(evm: &node::Evm, leg: &Leg, eid: u32, amount: U256) -> Option<Quote> {
    let contract: [u8; 20] = chain::Account::from_hex_literal(&leg.contract)?.as_bytes().try_into().ok()?;
    let (limits, fee) = quote::calls(leg, eid, amount)
        .inspect_err(|error| tracing::warn!(%error, contract = leg.contract, "no quote"))
        .ok()?;
    let (limits, fee) = join(evm.call(contract, &limits, None), evm.call(contract, &fee, None)).await;
    let warn = |error: &node::Error| tracing::warn!(%error, contract = leg.contract, "no quote");
    let (limits, fee) = (limits.inspect_err(warn).ok()?, fee.inspect_err(warn).ok()?);
    Some(Quote { received: quote::received(&limits)?, native_fee: with_margin(quote::native_fee(&fee)?) })
}

/// Fees move between quote and signature; what is too much is refunded (`router-mechanics.md` §4.7).
fn with_margin(fee: U256) -> U256 {
    fee.saturating_add(fee / U256::from(10))
}

/// One for one, but for what does not fit into the shared decimals.
fn registry_default(registry: &Registry, leg: &Leg, amount: U256, fee: U256) -> Quote {
    let decimals = registry[leg.asset].decimals.saturating_sub(leg.shared_decimals);
    let unit = U256::from(10).pow(U256::from(decimals));
    Quote { received: amount / unit * unit, native_fee: fee }
}
