//! Endpoint pool: several URLs of one service behind one client, with failover.
//!
//! # Invariants
//!
//! * A request is sent to each URL at most once, and again after a rate limit of all of them ([`Limits`]): URLs that have the height first, failing ones last.
//! * The best outcome is returned: a reply, else "not yet" with the highest tip, else a transient error. A
//!   permanent error is returned only if every URL gave one.
//! * A URL is not queried during a pause that its server ordered, nor while it serves another chain. A distrusted URL
//!   is not queried while there is another.
//! * Every request updates the state of its endpoint and the metrics. A request whose future was dropped is counted.

mod best_error;
pub(crate) mod endpoint;
pub(crate) mod endpoint_state;
mod in_flight;
mod large_replies;
pub(crate) mod member;
pub(crate) mod origin;
pub(crate) mod outage;
pub(crate) mod transport;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chain::excerpt;
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::field::Empty;
use tracing::{Instrument as _, error, info, trace_span, warn};

pub(crate) use self::best_error::{better, no_address};
pub(crate) use self::member::PooledEndpoint;
use crate::error::{Error, Kind, RequestContext};
use crate::limits::Limits;
use crate::meter::{Meter, outcome_label};
use crate::observer::Observer;
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::endpoint_state::{
    Availability, ChainMismatch, EndpointState, EndpointStats, EndpointStatus, OutageEvent,
};
use crate::pool::in_flight::InFlightLimiter;
use crate::pool::large_replies::LargeReplies;
use crate::pool::member::Timer;
use crate::pool::origin::Origin;
use crate::pool::transport::Transport;
use crate::setup_error::SetupError;
use crate::url::Url;

/// Pause after a 429 that names none.
const RATE_LIMIT_PAUSE: Duration = Duration::from_millis(200);

/// The URLs of one service.
pub(crate) struct Pool {
    service: &'static str,
    members: Vec<PooledEndpoint>,
    next: AtomicUsize,
    tip: AtomicU64,
    /// True if outages are logged. Operators need those of the indexed node; those of all the chains of tracked
    /// transfers would flood the log.
    logs_outages: bool,
    /// See [`Limits`].
    rate_limit_wait: Duration,
    heads: watch::Sender<Arc<[EndpointState]>>,
}

/// Queries one URL.
// Not an `AsyncFn`: the compiler cannot prove that futures over one are `Send`.
pub(crate) trait Attempt<T>: Fn(Arc<Endpoint>) -> Self::Attempted {
    type Attempted: Future<Output = Result<T, Error>>;
}

impl<T, F: Fn(Arc<Endpoint>) -> A, A: Future<Output = Result<T, Error>>> Attempt<T> for F {
    type Attempted = A;
}

impl Pool {
    /// `service` is its name in messages.
    pub(crate) fn new(service: &'static str, urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        if urls.is_empty() {
            return Err(SetupError::NoUrls { service });
        }
        let tls = urls.iter().any(Url::is_https);
        let transport = Arc::new(Transport::new(tls, limits.connect, limits.in_flight)?);
        let limiter = Arc::new(InFlightLimiter::new(&limits));
        let large_replies = Arc::new(LargeReplies::default());
        let hosts: Vec<_> = urls.iter().map(|url| Arc::clone(url.host())).collect();
        let member = |(place, url): (usize, Url)| {
            let is_only = hosts.iter().filter(|host| *host == url.host()).count() == 1;
            let origin = Origin::new(service, Arc::clone(url.host()), place);
            let (transport, limiter) = (Arc::clone(&transport), Arc::clone(&limiter));
            let large_replies = Arc::clone(&large_replies);
            PooledEndpoint {
                endpoint: Arc::new(Endpoint::new(service, url, limits, transport, limiter, large_replies)),
                meter: Meter::new(&origin, is_only),
                stats: Mutex::new(EndpointStats::new(origin.clone())),
                origin,
            }
        };
        let pool = Self {
            service,
            members: urls.into_iter().enumerate().map(member).collect(),
            next: AtomicUsize::new(0),
            tip: AtomicU64::new(0),
            logs_outages: false,
            rate_limit_wait: limits.rate_limit_wait,
            heads: watch::Sender::new(Arc::default()),
        };
        pool.publish();
        Ok(pool)
    }

    /// Enables log lines for the begin and the end of outages.
    pub(crate) fn log_outages(&mut self) {
        self.logs_outages = true;
    }

    /// Its name in messages.
    pub(crate) fn service(&self) -> &'static str {
        self.service
    }

    /// Passes all replies to an observer; only the first observer counts.
    pub(crate) fn observe(&self, observer: &Observer) {
        self.members.iter().for_each(|member| member.endpoint.observe(Arc::clone(observer)));
    }

    /// Highest height of any trusted endpoint; 0 before one is known.
    pub(crate) fn tip(&self) -> u64 {
        self.tip.load(Ordering::Relaxed)
    }

    /// Every URL, in configured order.
    pub(crate) fn members(&self) -> &[PooledEndpoint] {
        &self.members
    }

    /// The URL that a reply came from. None for an origin of another service.
    pub(crate) fn member(&self, origin: &Origin) -> Option<&PooledEndpoint> {
        self.members.get(origin.place()).filter(|member| member.origin == *origin)
    }

    /// Receiver of the endpoints' states.
    pub(crate) fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.heads.subscribe()
    }

    /// Current states of the endpoints.
    pub(crate) fn states(&self) -> Arc<[EndpointState]> {
        let now = Instant::now();
        self.members.iter().map(|member| member.stats().snapshot(now)).collect()
    }

    /// Publishes the current states of the endpoints.
    pub(crate) fn publish(&self) {
        // Computed under the channel's lock, so that an older state never follows a newer one.
        self.heads.send_modify(|heads| {
            *heads = self.states();
            for (member, state) in self.members.iter().zip(heads.iter()) {
                if let Some(height) = state.height {
                    member.meter.height(height);
                }
                if state.status != EndpointStatus::NeverSeen || state.down_since.is_some() {
                    member.meter.up(state.down_since.is_none());
                }
                if self.service == "comet" && state.seen.is_some() {
                    member.meter.websocket(state.by_websocket);
                }
            }
            let trusted = heads.iter().filter(|state| state.is_trusted());
            if let Some(tip) = trusted.filter_map(|state| state.height).max() {
                self.tip.store(tip, Ordering::Relaxed);
            }
        });
    }

    /// Sends a request to one URL after the other until one answers.
    pub(crate) async fn query<T>(&self, request: &Request, attempt: impl Attempt<T>) -> Result<T, Error> {
        self.query_with_origin(request, attempt).await.map(|(answer, _)| answer)
    }

    /// As [`Pool::query`], with the origin of the reply.
    pub(crate) async fn query_with_origin<T>(
        &self,
        request: &Request,
        attempt: impl Attempt<T>,
    ) -> Result<(T, Origin), Error> {
        let began = Instant::now();
        loop {
            let outcome = self.query_candidates(request, &self.candidates(request), &attempt).await;
            let pause = match &outcome {
                Err(Error::Busy { status: 429, retry_after, .. }) => retry_after.unwrap_or(RATE_LIMIT_PAUSE),
                Err(Error::RateLimited { left, .. }) => *left,
                _ => return outcome,
            };
            if began.elapsed() + pause > self.rate_limit_wait {
                return outcome;
            }
            sleep(pause).await;
        }
    }

    /// Queries one URL before the others, if it may be queried.
    pub(crate) async fn query_first<T>(
        &self,
        request: &Request,
        first: &Origin,
        attempt: impl Attempt<T>,
    ) -> Result<(T, Origin), Error> {
        let mut candidates = Self::select(self.members.iter(), request);
        candidates.sort_by_key(|(member, availability)| (*availability, member.origin != *first));
        self.query_candidates(request, &candidates, attempt).await
    }

    /// Queries all URLs but one. `None` if no other URL is more trustworthy.
    pub(crate) async fn query_others<T>(
        &self,
        request: &Request,
        not: &Origin,
        attempt: impl Attempt<T>,
    ) -> Result<Option<(T, Origin)>, Error> {
        let mut candidates = self.candidates(request);
        candidates.retain(|(member, _)| member.origin != *not);
        if candidates.is_empty() {
            return Ok(None);
        }
        self.query_candidates(request, &candidates, attempt).await.map(Some)
    }

    /// Queries all URLs that may be queried, concurrently.
    pub(crate) async fn query_all<T>(
        &self,
        request: &Request,
        attempt: impl Attempt<T>,
    ) -> Vec<(Origin, Result<T, Error>)> {
        let mut candidates = Self::select(self.members.iter(), request);
        candidates.retain(|(_, availability)| !matches!(availability, Availability::RateLimited(_)));
        let attempt = &attempt;
        let queries = candidates.into_iter().map(|(member, _)| async move {
            (member.origin.clone(), self.send(member, request, attempt).await)
        });
        join_all(queries).await
    }

    /// Queries one URL, even if it is failing or distrusted, unless its server ordered a pause.
    pub(crate) async fn send<T>(
        &self,
        member: &PooledEndpoint,
        request: &Request,
        attempt: &impl Attempt<T>,
    ) -> Result<T, Error> {
        // Checked again before every request: the pause may have been ordered since the candidates were selected.
        let availability = member.stats().availability(Instant::now());
        if let Availability::RateLimited(left) = availability {
            return Err(Error::RateLimited { at: member.endpoint.context(request), left });
        }
        let mut timer = Timer::start(&member.meter, &request.name);
        let span = trace_span!(
            target: "otlp",
            "node request",
            otel.kind = "client",
            endpoint = %member.origin,
            method = request.name,
            height = request.height,
            outcome = Empty,
        );
        let mut outcome = attempt(Arc::clone(&member.endpoint)).instrument(span.clone()).await;
        if let Err(error) = &mut outcome {
            member.endpoint.redact(error);
        }
        timer.outcome = outcome_label(&outcome);
        span.record("outcome", timer.outcome);
        let unit = outcome.as_mut().map(|_| ());
        let (changed, outage) = member.stats().on_outcome(request, unit, timer.began, Instant::now());
        if self.logs_outages {
            let endpoint = &member.origin;
            match (outage, &outcome) {
                (Some(OutageEvent::Began), Err(error)) => {
                    warn!(%endpoint, %error, "the endpoint does not answer");
                }
                (Some(OutageEvent::Ended(lasted)), _) => {
                    info!(%endpoint, outage_s = lasted.as_secs(), "the endpoint answers again");
                }
                _ => {}
            }
        }
        if changed {
            self.publish();
        }
        outcome
    }

    /// Candidates in order, rotated by one with each request.
    fn candidates(&self, request: &Request) -> Vec<(&PooledEndpoint, Availability)> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len();
        let (tail, head) = self.members.split_at(first);
        Self::select(head.iter().chain(tail), request)
    }

    /// The endpoints that may be queried in order of preference, rate-limited ones last; `members` breaks ties.
    fn select<'a>(
        members: impl Iterator<Item = &'a PooledEndpoint>,
        request: &Request,
    ) -> Vec<(&'a PooledEndpoint, Availability)> {
        let now = Instant::now();
        let candidate = |member: &'a PooledEndpoint| {
            let stats = member.stats();
            let preference = (stats.availability(now), stats.preference(request.height, now));
            stats.chain_mismatch().is_none().then(|| (member, stats.is_distrusted(now), preference))
        };
        let mut candidates: Vec<_> = members.filter_map(candidate).collect();
        if candidates.iter().any(|(_, is_distrusted, _)| !is_distrusted) {
            candidates.retain(|(_, is_distrusted, _)| !is_distrusted);
        }
        candidates.sort_by_key(|(.., preference)| *preference);
        candidates.into_iter().map(|(member, _, (availability, _))| (member, availability)).collect()
    }

    async fn query_candidates<T>(
        &self,
        request: &Request,
        candidates: &[(&PooledEndpoint, Availability)],
        attempt: impl Attempt<T>,
    ) -> Result<(T, Origin), Error> {
        let mut best: Option<Error> = None;
        for (member, availability) in candidates {
            // A failing endpoint is no more up to date than healthy ones that wait for the block.
            if *availability != Availability::Ready
                && let Some(error) = best.take_if(|error| error.kind() == Kind::NotYet)
            {
                return Err(error);
            }
            match self.send(member, request, &attempt).await {
                Ok(answer) => return Ok((answer, member.origin.clone())),
                Err(error) => best = Some(better(best, error)),
            }
        }
        let wrong_chain = || self.members.iter().find_map(|member| member.wrong_chain(request));
        // A pool has at least one member, so there is an error.
        Err(best.or_else(wrong_chain).unwrap_or_else(|| no_address(RequestContext::default())))
    }

    /// Records a provably false reply of an endpoint; `reason` is the proof, for the log. An origin of another
    /// service is ignored.
    pub(crate) fn distrust(&self, origin: &Origin, reason: &str) {
        let Some(member) = self.member(origin) else { return };
        member.meter.false_reply();
        let penalty = member.stats().on_false_answer(format!("{origin}: {reason}"), Instant::now());
        if penalty.log {
            error!(
                endpoint = %origin,
                reason,
                penalty_s = penalty.left.as_secs(),
                false_answers = penalty.false_answers,
                "the endpoint gave a false answer and is avoided: repair or replace this node"
            );
        }
        self.publish();
    }

    /// Checks that an endpoint that reports the chain `got` is of the chain `want`; otherwise it is no longer queried.
    pub(crate) fn check_chain_id(
        &self,
        member: &PooledEndpoint,
        request: &Request,
        want: &str,
        got: &str,
    ) -> Result<(), Error> {
        let mismatch = (want != got).then(|| ChainMismatch { want: want.to_owned(), got: excerpt(got) });
        let changed = member.stats().on_chain_id(mismatch.clone());
        if changed {
            let endpoint = &member.origin;
            match mismatch {
                None => info!(%endpoint, chain_id = want, "the endpoint serves the right chain again"),
                Some(ChainMismatch { want, got }) => error!(
                    %endpoint,
                    chain_id = got,
                    expected = want,
                    "the endpoint serves another chain and is excluded: correct its address"
                ),
            }
            self.publish();
        }
        member.wrong_chain(request).map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
