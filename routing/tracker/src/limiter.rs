//! Concurrency limit and circuit breaker of one chain.
//!
//! # Invariants
//!
//! * Requests to one chain never wait for requests to another chain.
//! * The number of polls that wait for a chain is bounded.
//! * A chain whose nodes do not answer receives one request at a time ([`crate::breaker`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use node::Kind;
use tokio::sync::Semaphore;

use crate::breaker::{Breaker, State};
use crate::search::QueryError;

/// Polls of other chains' queues that may wait for this chain; the next ones try again later. Each is a few KiB.
const WAITING: usize = 256;

/// The limits of one chain.
pub(crate) struct Limiter {
    chain: String,
    /// Queries in flight.
    slots: Semaphore,
    /// Polls of this chain's queue that have queried no other chain yet.
    polls: Arc<Semaphore>,
    /// How many those are at most.
    pub(crate) max_polls: usize,
    waiting: AtomicUsize,
    breaker: Mutex<Breaker>,
}

/// One of [`WAITING`].
pub(crate) struct Waiting(Arc<Limiter>);

/// One of [`Limiter::max_polls`].
pub(crate) type PollPermit = tokio::sync::OwnedSemaphorePermit;

impl Limiter {
    /// Allows `concurrency` queries at once.
    pub(crate) fn new(chain: &str, concurrency: usize) -> Self {
        let concurrency = concurrency.max(1);
        // Enough to keep all slots busy while polls are read and written.
        let max_polls = 2 * concurrency;
        Self {
            chain: chain.to_owned(),
            slots: Semaphore::new(concurrency),
            polls: Arc::new(Semaphore::new(max_polls)),
            max_polls,
            waiting: AtomicUsize::new(0),
            breaker: Mutex::default(),
        }
    }

    pub(crate) fn free_polls(&self) -> usize {
        self.polls.available_permits()
    }

    pub(crate) fn begin_poll(&self) -> Option<PollPermit> {
        Arc::clone(&self.polls).try_acquire_owned().ok()
    }

    /// A place among those that wait for this chain.
    pub(crate) fn wait(self: &Arc<Self>) -> Result<Waiting, QueryError> {
        let one_more = |waiting: usize| (waiting < WAITING).then_some(waiting + 1);
        match self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Waiting(Arc::clone(self))),
            Err(_) => Err(QueryError::Busy { chain: self.chain.clone() }),
        }
    }

    pub(crate) fn state(&self, now: i64) -> State {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner).state(now)
    }

    /// Asks once a slot is free, unless the circuit is open.
    pub(crate) async fn call<T>(
        &self,
        clock: &dyn Fn() -> i64,
        ask: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let silent = || QueryError::Silent { chain: self.chain.clone() };
        let _slot = self.slots.acquire().await.map_err(|_| silent())?;
        if !self.breaker.lock().unwrap_or_else(PoisonError::into_inner).admit(clock()) {
            return Err(silent());
        }
        let outcome = ask.await;
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.as_ref().err().is_some_and(is_silence) {
            if breaker.failed(clock()) {
                tracing::warn!(
                    chain = self.chain,
                    "no node of the chain answers; one request at a time from now on"
                );
            }
        } else if breaker.succeeded() {
            tracing::info!(chain = self.chain, "nodes of the chain answer again");
        }
        outcome
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a chain did not answer at all. An answer that this one query failed is one: otherwise a hash that a node
/// cannot search for would stop the requests of everybody else.
fn is_silence(failure: &QueryError) -> bool {
    match failure {
        QueryError::Node(node::Error::Faulty { .. } | node::Error::Malformed { .. }) => false,
        QueryError::Node(error) => error.kind() == Kind::Transient,
        _ => false,
    }
}
