//! Endpoint of a pool with its statistics: availability, trust, head, latency and last error.
//!
//! # Invariants
//!
//! Every request updates the statistics in one place, also a request whose future was dropped before the answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::availability::{Availability, Health};
use crate::endpoint::{Call, Endpoint};
use crate::endpoint_head::{EndpointHead, EndpointState, EndpointStatus};
use crate::error::{Error, Kind};
use crate::hedge::Latency;
use crate::meter::{Meter, Outcome};
use crate::origin::Origin;
use crate::outage::Outage;
use crate::status::is_status;
use crate::trust::Trust;

/// A shorter failure is not an outage: a server answers 503 for a moment while it starts.
const MIN_OUTAGE: Duration = Duration::from_secs(1);

/// One URL and its statistics.
pub(crate) struct PooledEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) origin: Origin,
    pub(crate) meter: Meter,
    stats: Mutex<EndpointStats>,
}

/// Statistics of one URL.
#[derive(Debug, Default)]
pub(crate) struct EndpointStats {
    pub(crate) health: Health,
    pub(crate) trust: Trust,
    pub(crate) head: EndpointHead,
    pub(crate) latency: Latency,
    /// Set while it serves another chain.
    pub(crate) chain_mismatch: Option<ChainMismatch>,
    failures: u64,
    last_error: Option<String>,
    answered: bool,
    outage: Outage,
    /// Whether its outages are logged: operators need those of the indexed node, while those of all the chains that
    /// transfers pass through would flood the log.
    pub(crate) logs_outages: bool,
}

/// Expected and reported chain id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainMismatch {
    pub(crate) want: String,
    pub(crate) got: String,
}

impl PooledEndpoint {
    /// `alone` if no other address of the service is on the same host.
    pub(crate) fn new(origin: Origin, endpoint: Endpoint, alone: bool) -> Self {
        let meter = Meter::new(&origin, alone);
        Self { endpoint: Arc::new(endpoint), origin, meter, stats: Mutex::default() }
    }

    pub(crate) fn stats(&self) -> MutexGuard<'_, EndpointStats> {
        // The statistics are consistent after every single assignment, so a poisoned lock is harmless.
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one call. The second value is whether the published state of the endpoint has changed.
    pub(crate) async fn send<T, F, Fut>(&self, call: &Call, attempt: &F) -> (Result<T, Error>, bool)
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let waiting = InFlightRequest { member: self, call, began: Instant::now(), over: false };
        let mut outcome = attempt(Arc::clone(&self.endpoint)).await;
        let changed = waiting.end(&mut outcome);
        (outcome, changed)
    }

    /// Whether no outage is known.
    pub(crate) fn is_up(&self) -> bool {
        self.stats().outage.since().is_none()
    }

    /// Waits until its server's rate limit is over.
    pub(crate) async fn wait_until_allowed(&self) {
        loop {
            let availability = self.stats().health.availability(Instant::now());
            let Availability::RateLimited(left) = availability else { return };
            // The server may order a longer pause meanwhile.
            sleep(left).await;
        }
    }

    pub(crate) fn state(&self, now: Instant) -> EndpointState {
        let stats = self.stats();
        let EndpointHead { height, hash, parent, earliest, catching_up, seen, by_websocket } =
            stats.head.clone();
        EndpointState {
            origin: self.origin.clone(),
            height,
            hash,
            parent,
            earliest,
            catching_up,
            seen,
            status: stats.status(now),
            failures: stats.failures,
            false_answers: stats.trust.false_answers(),
            last_error: stats.last_error.clone(),
            by_websocket,
            down_since: stats.outage.since(),
        }
    }

    /// Updates the outage from the outcome of a request that began at `began`, and logs its beginning and its end.
    /// Returns whether an outage has begun or ended.
    fn update_outage<T>(
        &self,
        call: &Call,
        outcome: &Result<T, Error>,
        began: Instant,
        now: Instant,
    ) -> bool {
        let mut stats = self.stats();
        let before = stats.outage.since();
        let EndpointStats { outage, health, logs_outages, .. } = &mut *stats;
        match outcome {
            // A single failure may be due to the request; only `/status` can always be answered.
            Err(error) if error.kind() == Kind::Transient => {
                let down = is_status(call) || health.is_failing();
                if down && outage.failed(began, now, MIN_OUTAGE) && *logs_outages {
                    warn!(endpoint = %self.origin, %error, "the endpoint does not answer");
                }
            }
            Ok(_) | Err(_) => {
                if let Some(lasted) = outage.recovered(now).filter(|_| *logs_outages) {
                    info!(endpoint = %self.origin, outage_s = lasted.as_secs(), "the endpoint answers again");
                }
            }
        }
        before != stats.outage.since()
    }
}

impl EndpointStats {
    pub(crate) fn status(&self, now: Instant) -> EndpointStatus {
        if self.chain_mismatch.is_some() {
            return EndpointStatus::WrongChain;
        }
        if self.trust.is_distrusted(now) {
            return EndpointStatus::Distrusted;
        }
        match self.health.availability(now) {
            Availability::RateLimited(_) => EndpointStatus::RateLimited,
            Availability::BackingOff => EndpointStatus::BackingOff,
            Availability::Ready if self.answered => EndpointStatus::Healthy,
            Availability::Ready => EndpointStatus::NeverSeen,
        }
    }

    /// Sets the text of the last failure where it does not come from a request.
    pub(crate) fn set_last_error(&mut self, why: String) {
        self.last_error = Some(why);
    }

    fn record_outcome<T>(&mut self, call: &Call, outcome: &mut Result<T, Error>, now: Instant) -> bool {
        let before = (self.status(now), self.failures);
        let mut news = false;
        let moved = match outcome {
            Ok(_) => call.urgent && call.height.is_some_and(|height| self.head.on_answer(height)),
            Err(error) => error.tip().is_some_and(|tip| self.head.on_not_yet(tip, now)),
        };
        match outcome {
            Err(Error::Busy { retry_after: Some(pause), .. }) => {
                *pause = self.health.rate_limited(now, *pause);
                self.failures = self.failures.saturating_add(1);
            }
            Err(error) if error.kind() == Kind::Transient => {
                self.health.failed(now);
                self.failures = self.failures.saturating_add(1);
            }
            Ok(_) | Err(_) => {
                self.health.answered();
                self.answered = true;
            }
        }
        if let Err(error) = outcome
            && is_endpoint_error(error)
        {
            let said = Some(error.to_string());
            news = std::mem::replace(&mut self.last_error, said.clone()) != said;
        }
        moved || news || before != (self.status(now), self.failures)
    }
}

/// Whether a failure is due to the endpoint and not to the request.
fn is_endpoint_error(error: &Error) -> bool {
    !matches!(
        error,
        Error::NotYet { .. }
            | Error::Refused { .. }
            | Error::Untraceable { .. }
            | Error::InvalidRequest { .. }
            | Error::TooLarge { .. }
    )
}

/// A request in flight; records the outcome also when it is dropped.
struct InFlightRequest<'a> {
    member: &'a PooledEndpoint,
    call: &'a Call,
    began: Instant,
    over: bool,
}

impl InFlightRequest<'_> {
    fn end<T>(mut self, outcome: &mut Result<T, Error>) -> bool {
        self.over = true;
        let now = Instant::now();
        let took = now - self.began;
        let label = outcome.as_ref().map_or_else(|error| error.kind().into(), |_| Outcome::Answered);
        self.member.meter.request(label, took);
        let changed = {
            let mut stats = self.member.stats();
            if self.call.urgent && outcome.is_ok() {
                stats.latency.observe(took);
            }
            stats.record_outcome(self.call, outcome, now)
        };
        self.member.update_outage(self.call, outcome, self.began, now) || changed
    }
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let waited = self.began.elapsed();
        self.member.meter.request(Outcome::Dropped, waited);
        if self.call.urgent {
            self.member.stats().latency.observe_at_least(waited);
        }
    }
}
