//! Several URLs of one service asked as if they were one.
//!
//! Holds: one [`Pool::ask`] tries each URL at most once, in turn, those that failed lately last, and gives the
//! best that came: an answer, else "not yet" with the highest tip, else a failure; a fixed no only if every
//! URL gave one. A URL whose server ordered a pause is left alone until the pause is over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::SetupError;
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Kind, Site};
use crate::gate::Gate;
use crate::health::{Health, Standing};
use crate::limits::Limits;
use crate::transport::Transport;
use crate::url::Url;

/// The URLs of one service.
pub(crate) struct Pool {
    members: Vec<Member>,
    next: AtomicUsize,
}

struct Member {
    endpoint: Arc<Endpoint>,
    health: Mutex<Health>,
}

impl Pool {
    /// `service` names it in messages.
    pub(crate) fn new(service: &'static str, urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        if urls.is_empty() {
            return Err(SetupError::NoUrls { service });
        }
        let tls = urls.iter().any(Url::is_https);
        let transport = Arc::new(Transport::new(tls, limits.connect, limits.in_flight)?);
        let gate = Arc::new(Gate::new(&limits));
        let member = |url| {
            let endpoint = Endpoint::new(service, url, limits, Arc::clone(&transport), Arc::clone(&gate));
            Member { endpoint: Arc::new(endpoint), health: Mutex::default() }
        };
        Ok(Self { members: urls.into_iter().map(member).collect(), next: AtomicUsize::new(0) })
    }

    /// Every URL, in configured order.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = Arc<Endpoint>> {
        self.members.iter().map(|member| Arc::clone(&member.endpoint))
    }

    /// Puts one question to one URL after the other until one answers. `attempt` asks one URL. `call` is the
    /// question as messages name it if no URL may be asked at all.
    pub(crate) async fn ask<T, F, Fut>(&self, call: &Call, attempt: F) -> Result<T, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let round = self.round(call);
        let mut best = None;
        for member in round.ready {
            match member.put(&attempt).await {
                Ok(answer) => return Ok(answer),
                Err(error) => best = Some(better(best, error)),
            }
        }
        // Who has failed lately knows no better than those who are well and wait for the block.
        if let Some(error) = best.take_if(|error| error.kind() == Kind::NotYet) {
            return Err(error);
        }
        for member in round.cooling {
            match member.put(&attempt).await {
                Ok(answer) => return Ok(answer),
                Err(error) => best = Some(better(best, error)),
            }
        }
        Err(match (best, round.barred) {
            (Some(error), Some(resting)) => better(Some(error), resting),
            (Some(error), None) | (None, Some(error)) => error,
            // A pool has at least one member, and every member is in one of the three lists.
            (None, None) => Error::Unaskable { at: Site::default(), reason: "no address".to_owned() },
        })
    }

    /// Who is to be asked, in which order, starting one further each time.
    fn round(&self, call: &Call) -> Round<'_> {
        let now = Instant::now();
        let first = self.next.fetch_add(1, Ordering::Relaxed) % self.members.len();
        let (tail, head) = self.members.split_at(first);
        let mut round = Round { ready: Vec::new(), cooling: Vec::new(), barred: None };
        let mut shortest = None;
        for member in head.iter().chain(tail) {
            match member.health().standing(now) {
                Standing::Ready => round.ready.push(member),
                Standing::Cooling => round.cooling.push(member),
                Standing::Barred(left) if shortest.is_none_or(|shortest| left < shortest) => {
                    shortest = Some(left);
                    round.barred = Some(Error::Resting { at: member.endpoint.site(call), left });
                }
                Standing::Barred(_) => {}
            }
        }
        round
    }
}

struct Round<'a> {
    ready: Vec<&'a Member>,
    cooling: Vec<&'a Member>,
    /// The one whose pause ends first.
    barred: Option<Error>,
}

impl Member {
    async fn put<T, F, Fut>(&self, attempt: &F) -> Result<T, Error>
    where
        F: Fn(Arc<Endpoint>) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let mut outcome = attempt(Arc::clone(&self.endpoint)).await;
        let now = Instant::now();
        match &mut outcome {
            Err(Error::Busy { retry_after: Some(pause), .. }) => *pause = self.health().barred(now, *pause),
            Err(error) if error.kind() == Kind::Transient => self.health().failed(now),
            Ok(_) | Err(_) => self.health().answered(),
        }
        outcome
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        // A record of failures is whole after every single step, so a panic elsewhere cannot have spoilt it.
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one of two failures that says more about whether an answer can come.
pub(crate) fn better(best: Option<Error>, new: Error) -> Error {
    let rank = |error: &Error| match error.kind() {
        Kind::NotYet => (2, error.tip()),
        Kind::Transient => (1, None),
        Kind::Permanent => (0, None),
    };
    match best {
        Some(best) if rank(&best) >= rank(&new) => best,
        _ => new,
    }
}
