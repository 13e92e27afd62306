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
    /// Whether the tip is that of its own endpoints.
    leads: bool,
    hedge_bucket: TokenBucket,
    heads: watch::Sender<Arc<[EndpointState]>>,
}

impl Pool {
    /// `service` names it in messages.
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

    /// The same, with the head of another service's chain, which that other service alone moves.
    pub(crate) fn at_the_tip_of(self, tip: Tip) -> Self {
        Self { tip, leads: false, ..self }
    }

    /// Shows all answers to an observer, the first that is given.
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

    /// The one that gave an answer. None for an origin of another service.
    pub(crate) fn member(&self, origin: &Origin) -> Option<&PooledEndpoint> {
        self.members.get(origin.place()).filter(|member| member.origin == *origin)
    }

    /// From now on the log has a line when an endpoint stops answering and one when it answers again.
    pub(crate) fn log_outages(&self) {
        for member in &self.members {
            member.stats().logs_outages = true;
        }
    }

    /// Where the state of the endpoints is told.
    pub(crate) fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.heads.subscribe()
    }

    /// The state of the endpoints at this moment.
    pub(crate) fn states(&self) -> Arc<[EndpointState]> {
        let now = Instant::now();
        self.members.iter().map(|member| member.state(now)).collect()
    }

    /// Tells the state of the endpoints.
    pub(crate) fn publish(&self) {
        // Made while the channel is locked, so that an older state never comes after a newer one.
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

    /// Puts one question to one URL after the other until one answers. `attempt` asks one URL. `call` is the
    /// question as messages name it if no URL may be asked at all.
    pub(crate) async fn ask<T, F, Fut>(&self, call: &Call, attempt: F) -> Result<T, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.ask_whom(call, attempt).await.map(|(answer, _)| answer)
    }

    /// The same, with who answered.
    pub(crate) async fn ask_whom<T, F, Fut>(&self, call: &Call, attempt: F) -> Result<(T, Origin), Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.ask_candidates(call, self.candidates(call, None), attempt).await
    }

    /// Puts a question to one URL before the others, if it may be asked. It takes nobody's availability.
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

    /// Puts a question to all but one URL. None if there is no other that could be believed more.
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

    /// Puts a question to one URL, whatever its standing, unless its server has ordered a pause.
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
        // Looked at again for every single question: the pause may have been ordered since the candidates was made.
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

    /// Who is to be asked, in which order, starting one further each time.
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
            // Who has one endpoint that may be asked now may have two later.
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
        // Who has failed lately knows no better than those who are well and wait for the block.
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
            // A pool has at least one member, and every member is in one of the lists.
            (None, None) => Error::InvalidRequest { at: Site::default(), reason: "no address".to_owned() },
        })
    }

    /// Whether a question is worth asking twice at the same time.
    fn is_pressing(&self, call: &Call) -> bool {
        call.urgent && call.height.is_some_and(|height| self.tip.is_near(height))
    }

    /// Asks the first, and the second too if the first takes long and there is hedge_bucket for that. The first answer
    /// wins; the other request is dropped. Also says how many were asked.
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

/// The one of two failures that says more about whether an answer can come.
pub(crate) fn better(best: Option<Error>, new: Error) -> Error {
    // A question sleeps as long as its failure says: one server's long pause is no reason where another may be asked.
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
