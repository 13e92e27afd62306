//! Bulkhead and circuit breaker of each chain: concurrency limits by semaphores, so that a chain that does not answer
//! delays only transfers that need it.
//!
//! # Invariants
//!
//! * Requests to one chain never wait for requests to another chain.
//! * The number of polls that wait for a chain is bounded.
//! * Searches have a circuit of their own: a node that refuses them still answers about its state.
//! * A chain whose nodes do not answer receives one request at a time ([`crate::chains::breaker`]).
//! * The limits of a chain survive a change of its addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::chains::breaker::{Breaker, State};
use crate::chains::query_error::QueryError;
use crate::chains::recent_blocks::RecentBlocks;
use crate::meter;

/// Maximum polls of other chains' queues that wait for this chain; later ones retry later. Each takes a few KiB.
const WAITING: usize = 256;

/// The limits of all chains.
pub(crate) struct Limiters {
    concurrency: usize,
    chains: Mutex<HashMap<String, Arc<Limiter>>>,
}

/// The limits of one chain.
pub(crate) struct Limiter {
    chain: String,
    /// Queries in flight.
    queries: Semaphore,
    /// Polls of this chain's queue that have queried no other chain yet.
    polls: Arc<Semaphore>,
    /// Size of `polls`.
    pub(crate) max_polls: usize,
    /// Polls of other chains' queues.
    waiting: Arc<Semaphore>,
    breaker: Mutex<Breaker>,
    searches: Mutex<Searches>,
    /// In place of an index.
    pub(crate) recent_blocks: RecentBlocks,
}

/// Searches for transactions, which a node may refuse while it answers everything else.
#[derive(Default)]
struct Searches {
    breaker: Breaker,
    /// The most blocks of one search, if the chain's nodes limit them.
    range: Option<u64>,
    trouble: Option<Trouble>,
}

/// A state of searches that was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    NoIndex,
    Failing,
}

/// Whether the error of a search is a reply about this search only.
fn is_reply(error: &node::Error) -> bool {
    matches!(error, node::Error::RangeRequired { .. } | node::Error::TooLarge { .. })
}

impl Limiters {
    /// Allows `concurrency` queries per chain.
    pub(crate) fn new(concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), chains: Mutex::default() }
    }

    pub(crate) fn of(&self, chain: &str) -> Arc<Limiter> {
        let mut chains = self.chains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = chains.get(chain) {
            return Arc::clone(limiter);
        }
        // Enough to keep all queries busy while polls are read and written.
        let max_polls = 2 * self.concurrency;
        let limiter = Arc::new(Limiter {
            chain: chain.to_owned(),
            queries: Semaphore::new(self.concurrency),
            polls: Arc::new(Semaphore::new(max_polls)),
            max_polls,
            waiting: Arc::new(Semaphore::new(WAITING)),
            breaker: Mutex::default(),
            searches: Mutex::default(),
            recent_blocks: RecentBlocks::default(),
        });
        chains.insert(chain.to_owned(), Arc::clone(&limiter));
        meter::chain_up(chain, true);
        meter::search_up(chain, true);
        limiter
    }
}

impl Limiter {
    pub(crate) fn free_polls(&self) -> usize {
        self.polls.available_permits()
    }

    pub(crate) fn begin_poll(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.polls).try_acquire_owned().ok()
    }

    /// A slot among the polls of other chains' queues that wait for this chain.
    pub(crate) fn wait(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        let busy = |_| QueryError::Busy { chain: self.chain.clone() };
        Arc::clone(&self.waiting).try_acquire_owned().map_err(busy)
    }

    pub(crate) fn state(&self, now: i64) -> State {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner).state(now)
    }

    /// Runs a query as soon as a slot is free, unless the circuit is open.
    pub(crate) async fn call<T>(
        &self,
        clock: &dyn Fn() -> i64,
        query: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let open = || QueryError::CircuitOpen { chain: self.chain.clone() };
        let _permit = self.queries.acquire().await.map_err(|_| open())?;
        if !self.breaker.lock().unwrap_or_else(PoisonError::into_inner).admit(clock()) {
            return Err(open());
        }
        let outcome = query.await;
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.as_ref().err().is_some_and(QueryError::is_outage) {
            if breaker.failed(clock()) {
                meter::chain_up(&self.chain, false);
                tracing::warn!(chain = self.chain, "chain does not answer, circuit opened");
            }
        } else if breaker.succeeded() {
            meter::chain_up(&self.chain, true);
            tracing::info!(chain = self.chain, "chain answers, circuit closed");
        }
        outcome
    }

    /// Runs a search, unless their circuit is open. Its failures do not count for other queries.
    pub(crate) async fn search<T>(
        &self,
        clock: &dyn Fn() -> i64,
        query: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        if !self.searches().breaker.admit(clock()) {
            return Err(QueryError::SearchOpen { chain: self.chain.clone() });
        }
        let outcome = query.await;
        let mut searches = self.searches();
        match outcome.as_ref().err() {
            // Answers: of a proxy that limits requests, and of one that limits ranges.
            Some(QueryError::Search(
                node::Error::Busy { status: 429, .. } | node::Error::RateLimited { .. },
            )) => {}
            Some(QueryError::Search(error @ node::Error::NotIndexed { .. })) => {
                searches.breaker.failed(clock());
                self.warn(&mut searches, Trouble::NoIndex, error);
            }
            Some(QueryError::Search(error)) if !is_reply(error) => {
                if searches.breaker.failed(clock()) {
                    self.warn(&mut searches, Trouble::Failing, error);
                }
            }
            _ => {
                searches.breaker.succeeded();
                self.recovered(&mut searches);
            }
        }
        outcome
    }

    /// The most blocks of one search, if the chain's nodes limit them.
    pub(crate) fn search_range(&self) -> Option<u64> {
        self.searches().range
    }

    /// Records that the chain's nodes limit a search to so many blocks.
    pub(crate) fn limit_searches(&self, most: u64, error: &node::Error) {
        let mut searches = self.searches();
        if searches.range.replace(most).is_none() {
            meter::search_up(&self.chain, false);
            tracing::warn!(chain = self.chain, %error, "searches for transactions are limited to ranges of blocks");
        }
    }

    /// Records the outcome of a query for a transaction by its hash, which needs the same index.
    pub(crate) fn index_answered(&self, error: Option<&QueryError>) {
        let mut searches = self.searches();
        match error {
            Some(QueryError::Node(error @ node::Error::NotIndexed { .. })) => {
                self.warn(&mut searches, Trouble::NoIndex, error);
            }
            None if searches.trouble == Some(Trouble::NoIndex) => self.recovered(&mut searches),
            _ => {}
        }
    }

    fn warn(&self, searches: &mut Searches, trouble: Trouble, error: &node::Error) {
        if searches.trouble.replace(trouble).is_none() {
            meter::search_up(&self.chain, false);
            tracing::warn!(chain = self.chain, %error, "searches for transactions fail, states are queried instead");
        }
    }

    fn recovered(&self, searches: &mut Searches) {
        if searches.trouble.take().is_some() {
            meter::search_up(&self.chain, searches.range.is_none());
            tracing::info!(chain = self.chain, "searches for transactions succeed again");
        }
    }

    fn searches(&self) -> MutexGuard<'_, Searches> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<(), QueryError> {
        Err(QueryError::Search(node::Error::NotIndexed { at: node::RequestContext::default() }))
    }

    #[tokio::test]
    async fn refused_searches_open_a_circuit_of_their_own_and_are_reported_once() {
        let limiter = Limiters::new(4).of("a-1");
        let clock = || 0;
        for _ in 0..5 {
            let outcome = limiter.search(&clock, async { refused() }).await;
            assert!(matches!(outcome, Err(QueryError::Search(_))), "{outcome:?}");
        }
        // Not sent: the reported state stays one.
        let outcome = limiter.search(&clock, async { Ok(()) }).await;
        assert!(matches!(outcome, Err(QueryError::SearchOpen { .. })), "{outcome:?}");
        assert_eq!(limiter.searches().trouble, Some(Trouble::NoIndex));
        assert_eq!(limiter.state(0), State::Closed, "states are still queried");
        let later = || 60_000_000_000;
        limiter.search(&later, async { Ok(()) }).await.unwrap();
        assert_eq!(limiter.searches().trouble, None);
    }

    #[tokio::test]
    async fn a_limited_range_is_remembered_and_no_failure() {
        let limiter = Limiters::new(4).of("a-1");
        let at = node::RequestContext::default();
        let error = node::Error::RangeRequired { at, most: 50, message: String::new() };
        for _ in 0..9 {
            let outcome =
                limiter.search(&|| 0, async { Err::<(), _>(QueryError::Search(error.clone())) }).await;
            assert!(matches!(outcome, Err(QueryError::Search(_))), "{outcome:?}");
        }
        limiter.limit_searches(50, &error);
        assert_eq!(limiter.search_range(), Some(50));
    }
}
