//! Endpoint pool: several URLs of one service behind one client, with failover.
//!
//! # Invariants
//!
//! * A call tries each URL at most once: URLs that have the height first, failing ones last.
//! * The best outcome is returned: an answer, else "not yet" with the highest tip, else a transient error. A
//!   permanent error is returned only if every URL gave one.
//! * A URL is not asked during a pause that its server ordered, nor while it serves another chain. A distrusted URL
//!   is not asked while there is another.

use std::cmp::Reverse;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::availability::Availability;
use crate::candidates::Candidates;
use crate::endpoint::{Call, Endpoint};
use crate::endpoint_head::{EndpointState, EndpointStatus, Tip};
use crate::error::{Error, Kind, Site};
use crate::hedge::TokenBucket;
use crate::in_flight::InFlightLimiter;
use crate::limits::Limits;
use crate::meter;
use crate::observer::Observer;
use crate::origin::{Answer, Origin};
use crate::pooled_endpoint::PooledEndpoint;
use crate::setup_error::SetupError;
use crate::transport::Transport;
use crate::url::Url;

/// The URLs of one service.
pub(crate) struct Pool {
    service: &'static str,
    members: Vec<PooledEndpoint>,
    next: AtomicUsize,
    tip: Tip,
    /// Whether the tip is derived from these endpoints.
    leads: bool,
    hedge_bucket: TokenBucket,
    heads: watch::Sender<Arc<[EndpointState]>>,
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
        let hosts: Vec<_> = urls.iter().map(|url| Arc::clone(url.host())).collect();
        let member = |(place, url): (usize, Url)| {
            let alone = hosts.iter().filter(|host| *host == url.host()).count() == 1;
            let origin = Origin::new(service, Arc::clone(url.host()), place);
            PooledEndpoint::new(
                origin,
                Endpoint::new(service, url, limits, Arc::clone(&transport), Arc::clone(&limiter)),
                alone,
            )
        };
        let pool = Self {
            service,
            members: urls.into_iter().enumerate().map(member).collect(),
            next: AtomicUsize::new(0),
            tip: Tip::default(),
            leads: true,
            hedge_bucket: TokenBucket::default(),
            heads: watch::Sender::new(Arc::default()),
        };
        pool.publish();
        Ok(pool)
    }

    /// With the tip of another service, which alone updates it.
    pub(crate) fn at_the_tip_of(self, tip: Tip) -> Self {
        Self { tip, leads: false, ..self }
    }

    /// Passes all answers to an observer; only the first observer counts.
    pub(crate) fn observe(&self, observer: &Observer) {
        for member in &self.members {
            member.endpoint.observe(Arc::clone(observer));
        }
    }

    pub(crate) fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Every URL, in configured order.
    pub(crate) fn members(&self) -> &[PooledEndpoint] {
        &self.members
    }

    /// The URL that an answer came from. None for an origin of another service.
    pub(crate) fn member(&self, origin: &Origin) -> Option<&PooledEndpoint> {
        self.members.get(origin.place()).filter(|member| member.origin == *origin)
    }

    /// Enables log lines for the begin and the end of outages.
    pub(crate) fn log_outages(&self) {
        for member in &self.members {
            member.stats().logs_outages = true;
        }
    }

    /// Receiver of the endpoints' states.
    pub(crate) fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.heads.subscribe()
    }

    /// Current states of the endpoints.
    pub(crate) fn states(&self) -> Arc<[EndpointState]> {
        let now = Instant::now();
        self.members.iter().map(|member| member.state(now)).collect()
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
                if self.leads && state.seen.is_some() {
                    member.meter.websocket(state.by_websocket);
                }
            }
            if self.leads
                && let Some(tip) = heads.iter().filter_map(EndpointState::trusted_height).max()
            {
                self.tip.set(tip);
            }
        });
    }

    /// Sends one call to one URL after the other until one answers. `attempt` asks one URL; `call` names the call in
    /// the error if no URL may be asked.
    pub(crate) async fn ask<T, F, Fut>(&self, call: &Call, attempt: F) -> Result<T, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.ask_whom(call, attempt).await.map(|(answer, _)| answer)
    }

    /// As [`Pool::ask`], with the origin of the answer.
    pub(crate) async fn ask_whom<T, F, Fut>(&self, call: &Call, attempt: F) -> Result<(T, Origin), Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.ask_candidates(call, self.candidates(call, None), attempt).await
    }

    /// Asks one URL before the others, if it may be asked. The rotation of URLs does not advance.
    pub(crate) async fn ask_first<T, F, Fut>(
        &self,
        call: &Call,
        first: &Origin,
        attempt: F,
    ) -> Result<(T, Origin), Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let mut candidates = Candidates::new(self.members.iter(), call, None);
        candidates.ready.sort_by_key(|member| member.origin != *first);
        self.ask_candidates(call, candidates, attempt).await
    }

    /// Asks all URLs but one. None if there is no other that is more trustworthy.
    pub(crate) async fn ask_others<T, F, Fut>(
        &self,
        call: &Call,
        not: &Origin,
        attempt: F,
    ) -> Result<Option<(T, Origin)>, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let candidates = self.candidates(call, Some(not));
        if candidates.is_empty() {
            return Ok(None);
        }
        self.ask_candidates(call, candidates, attempt).await.map(Some)
    }

    /// Asks one URL, also a failing or distrusted one, unless its server ordered a pause.
    pub(crate) async fn send<T, F, Fut>(
        &self,
        member: &PooledEndpoint,
        call: &Call,
        attempt: &F,
    ) -> Result<T, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        // Checked again before every request: the pause may have been ordered since the candidates were selected.
        let availability = member.stats().health.availability(Instant::now());
        if let Availability::RateLimited(left) = availability {
            return Err(Error::RateLimited { at: member.endpoint.site(call), left });
        }
        let (outcome, changed) = member.send(call, attempt).await;
        if changed {
            self.publish();
        }
        outcome
    }

    /// Candidates in order, rotated by one with each call.
    fn candidates(&self, call: &Call, not: Option<&Origin>) -> Candidates<'_> {
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len();
        let (tail, head) = self.members.split_at(first);
        Candidates::new(head.iter().chain(tail), call, not)
    }

    async fn ask_candidates<T, F, Fut>(
        &self,
        call: &Call,
        candidates: Candidates<'_>,
        attempt: F,
    ) -> Result<(T, Origin), Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let (mut best, mut ready) = (None, candidates.ready.as_slice());
        let pressing = self.is_pressing(call);
        if pressing {
            // Also with one ready endpoint: there may be two later.
            self.hedge_bucket.deposit();
        }
        if let [first, second, ..] = ready
            && pressing
        {
            let (outcome, asked) = self.race(call, [first, second], &attempt).await;
            match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) => best = Some(error),
            }
            ready = &ready[asked..];
        }
        for member in ready {
            match self.send(member, call, &attempt).await {
                Ok(answer) => return Ok((answer, member.origin.clone())),
                Err(error) => best = Some(better(best, error)),
            }
        }
        // A failing endpoint is no more up to date than healthy ones that wait for the block.
        if let Some(error) = best.take_if(|error| error.kind() == Kind::NotYet) {
            return Err(error);
        }
        for member in &candidates.backing_off {
            match self.send(member, call, &attempt).await {
                Ok(answer) => return Ok((answer, member.origin.clone())),
                Err(error) => best = Some(better(best, error)),
            }
        }
        Err(match (best, candidates.rejection) {
            (Some(error), Some(rejection)) => better(Some(error), rejection),
            (Some(error), None) | (None, Some(error)) => error,
            // Unreachable: a pool has at least one member, and every member is in one of the lists.
            (None, None) => Error::InvalidRequest { at: Site::default(), reason: "no address".to_owned() },
        })
    }

    /// Whether the call may be hedged: urgent and near the tip.
    fn is_pressing(&self, call: &Call) -> bool {
        call.urgent && call.height.is_some_and(|height| self.tip.is_near(height))
    }

    /// Asks the first endpoint, and also the second if the first is slow and the token bucket allows a hedge. The
    /// first answer wins and the other request is dropped. Also returns how many endpoints were asked.
    async fn race<T, F, Fut>(
        &self,
        call: &Call,
        [first, second]: [&PooledEndpoint; 2],
        attempt: &F,
    ) -> (Result<(T, Origin), Error>, usize)
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let delay = first.stats().latency.hedge_delay();
        let send = async |member: &PooledEndpoint| {
            self.send(member, call, attempt).await.map(|answer| (answer, member.origin.clone()))
        };
        let mut one = pin!(send(first));
        tokio::select! {
            biased;
            outcome = &mut one => return (outcome, 1),
            () = sleep(delay) => {}
        }
        if !self.hedge_bucket.try_take() {
            return (one.await, 1);
        }
        meter::hedge(self.service);
        let mut two = pin!(send(second));
        let outcome = tokio::select! {
            outcome = &mut one => match outcome {
                Err(error) => two.await.map_err(|other| better(Some(error), other)),
                won => won,
            },
            outcome = &mut two => match outcome {
                Err(error) => one.await.map_err(|other| better(Some(error), other)),
                won => won,
            },
        };
        (outcome, 2)
    }
}

impl From<(bytes::Bytes, Origin)> for Answer {
    fn from((bytes, origin): (bytes::Bytes, Origin)) -> Self {
        Self { bytes, origin }
    }
}

/// The failure that says more about when an answer can come.
pub(crate) fn better(best: Option<Error>, new: Error) -> Error {
    // The retry waits as long as the returned error says, so the shorter pause wins.
    let rank = |error: &Error| match error.kind() {
        Kind::NotYet => (2, error.tip(), Reverse(None)),
        Kind::Transient => (1, None, Reverse(error.pause())),
        Kind::Permanent => (0, None, Reverse(None)),
    };
    match best {
        Some(best) if rank(&best) >= rank(&new) => best,
        _ => new,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn of_two_failures_that_may_pass_the_one_that_may_pass_first_counts() {
        let busy = |seconds: Option<u64>| Error::Busy {
            at: Site::default(),
            status: 429,
            retry_after: seconds.map(Duration::from_secs),
        };
        let broken = || Error::Cut { at: Site::default(), got: 0, reason: String::new() };
        let resting = || Error::RateLimited { at: Site::default(), left: Duration::from_secs(5) };
        let table = [
            (busy(Some(60)), broken()),
            (busy(Some(60)), busy(None)),
            (busy(Some(60)), busy(Some(1))),
            (busy(Some(60)), resting()),
            (resting(), broken()),
        ];
        for (later, sooner) in table {
            assert_eq!(better(Some(later.clone()), sooner.clone()), sooner);
            assert_eq!(better(Some(sooner.clone()), later), sooner);
        }
    }
}
