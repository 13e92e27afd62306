//! Node clients by chain: created on first use and again when the addresses change.
//!
//! # Invariants
//!
//! * There is at most one set of clients per queried chain.
//! * An invalid address is logged once and skipped.
//! * The limiter of a chain survives a change of its addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use node::{Comet, Evm, Limits, Rest, SetupError, Url};
use registry::{Endpoints, Registry};

use crate::limiter::Limiter;

/// The clients of one chain.
#[derive(Default)]
pub(crate) struct Clients {
    pub(crate) comet: Option<Comet>,
    pub(crate) rest: Option<Rest>,
    pub(crate) evm: Option<Evm>,
}

/// The clients of all chains that were queried so far.
pub(crate) struct Nodes {
    limits: Limits,
    concurrency: usize,
    limiters: Mutex<HashMap<String, Arc<Limiter>>>,
    known: Mutex<HashMap<String, (Endpoints, Arc<Clients>)>>,
}

impl Nodes {
    pub(crate) fn new(timeout: Duration, concurrency: usize) -> Self {
        const MIB: usize = 1 << 20;
        // A page of transactions with all their events is a few MiB; whole blocks are never fetched.
        let limits = Limits {
            connect: timeout,
            timeout,
            trace_timeout: timeout,
            body: 32 * MIB,
            in_flight: 32,
            bytes_in_flight: 64 * MIB,
        };
        Self { limits, concurrency, limiters: Mutex::default(), known: Mutex::default() }
    }

    /// The limits of a chain.
    pub(crate) fn limiter(&self, chain: &str) -> Arc<Limiter> {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(chain) {
            return Arc::clone(limiter);
        }
        let limiter = Arc::new(Limiter::new(chain, self.concurrency));
        limiters.insert(chain.to_owned(), Arc::clone(&limiter));
        limiter
    }

    /// The clients of a chain; none for a chain that the registry does not have.
    pub(crate) fn of(&self, registry: &Registry, chain: &str) -> Option<Arc<Clients>> {
        let endpoints = &registry[registry.chain(chain)?].endpoints;
        // The map is whole after every single step.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, clients)) = known.get(chain)
            && of == endpoints
        {
            return Some(Arc::clone(clients));
        }
        let clients = Arc::new(self.connect(chain, endpoints));
        known.insert(chain.to_owned(), (endpoints.clone(), Arc::clone(&clients)));
        Some(clients)
    }

    fn connect(&self, chain: &str, endpoints: &Endpoints) -> Clients {
        Clients {
            comet: self.client(chain, &endpoints.rpc, Comet::new),
            rest: self.client(chain, &endpoints.rest, Rest::new),
            evm: self.client(chain, &endpoints.json_rpc, Evm::new),
        }
    }

    fn client<T>(
        &self,
        chain: &str,
        addresses: &[String],
        new: impl FnOnce(Vec<Url>, Limits) -> Result<T, SetupError>,
    ) -> Option<T> {
        let read = |text: &String| {
            text.parse::<Url>().inspect_err(|e| tracing::warn!("chain {chain}: {e}; it is not used")).ok()
        };
        let urls: Vec<Url> = addresses.iter().filter_map(read).collect();
        if urls.is_empty() {
            return None;
        }
        new(urls, self.limits).inspect_err(|e| tracing::warn!("chain {chain}: {e}; it is not asked")).ok()
    }
}
