//! One URL of a pool with its state, and the timer of its requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::meter::{DROPPED, Meter};
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::endpoint_state::{Availability, ChainMismatch, EndpointStats};
use crate::pool::origin::Origin;

/// One URL and its state.
pub(crate) struct PooledEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) origin: Origin,
    pub(super) meter: Meter,
    pub(super) stats: Mutex<EndpointStats>,
}

impl PooledEndpoint {
    pub(crate) fn stats(&self) -> MutexGuard<'_, EndpointStats> {
        // The state is consistent after every single assignment, so a poisoned lock is harmless.
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until its server's rate limit is over.
    pub(crate) async fn wait_until_allowed(&self) {
        loop {
            let availability = self.stats().availability(Instant::now());
            let Availability::RateLimited(left) = availability else { return };
            // The server may order a longer pause meanwhile.
            sleep(left).await;
        }
    }

    /// The error for a request while the endpoint serves another chain.
    pub(super) fn wrong_chain(&self, request: &Request) -> Option<Error> {
        let ChainMismatch { want, got } = self.stats().chain_mismatch()?.clone();
        Some(Error::WrongChain { at: self.endpoint.context(request), want, got })
    }
}

/// Counts a request when it ends, also by being dropped.
pub(super) struct Timer<'a> {
    meter: &'a Meter,
    name: &'a str,
    pub(super) began: Instant,
    pub(super) outcome: &'static str,
}

impl<'a> Timer<'a> {
    pub(super) fn start(meter: &'a Meter, name: &'a str) -> Self {
        Self { meter, name, began: Instant::now(), outcome: DROPPED }
    }
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        self.meter.request(self.name, self.outcome, self.began.elapsed());
    }
}
