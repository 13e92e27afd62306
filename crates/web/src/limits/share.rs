//! A client's share of a server: turns of its handlers, places in the pools of expensive work, bytes of bodies.
//!
//! | Lane | Threads | Places | Places of one client |
//! |---|---|---|---|
//! | light | of the connections | [`Limits::light`] | half of them |
//! | heavy | of the pool | [`Limits::heavy`] | half of them |
//! | giant, serial | of the pool | one each | one, of heavy too |
//!
//! # Invariants
//! * Who waits for a turn holds no thread, and waits at most [`Limits::answer`].
//! * Places go to those that wait for them in order, and each client waits for few at once: a client with many requests
//!   does not delay another one with few.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::bodies::{Bodies, Held};
use crate::http_error::HttpError;
use crate::limits::Limits;
use crate::limits::concurrency_limit::RequestPermit;
use crate::limits::lane::{self, Lane};
use crate::limits::priority;
use crate::limits::rate_limit::{Client, Clients};
use crate::limits::turns::Turns;

/// Time that a body waits for its compression, before it is sent without.
const COMPRESSION_WAIT: Duration = Duration::from_millis(100);

/// What the clients of a server share.
#[derive(Debug)]
pub(crate) struct Pools {
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    giant: Arc<Semaphore>,
    serial: Arc<Semaphore>,
    pub(crate) bodies: Arc<Bodies>,
    clients: Arc<Clients>,
    wait: Duration,
}

impl Pools {
    pub(crate) fn new(limits: &Limits, clients: &Arc<Clients>) -> Arc<Self> {
        let places = |n| Arc::new(Semaphore::new(n));
        let (light, heavy) = (places(limits.light.max(1)), places(limits.heavy.max(1)));
        let (giant, serial) = (places(1), places(1));
        let bodies = Bodies::new(limits.response_bytes);
        let clients = Arc::clone(clients);
        Arc::new(Self { light, heavy, giant, serial, bodies, clients, wait: limits.answer })
    }

    fn places(&self, lane: Lane) -> &Arc<Semaphore> {
        match lane {
            Lane::Light => &self.light,
            Lane::Heavy => &self.heavy,
            Lane::Giant => &self.giant,
            Lane::Serial => &self.serial,
        }
    }
}

/// The share of a request's client. It lasts as long as the request's permit.
#[derive(Clone, Debug)]
pub struct Share {
    client: Client,
    turns: Arc<Turns>,
    pools: Arc<Pools>,
}

/// A turn of a client with a place in a pool.
type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Share {
    /// The share of the client of `permit`; `None` if the permit has no client.
    pub(crate) fn from_permit(permit: &RequestPermit, pools: &Arc<Pools>) -> Option<Self> {
        let (client, turns) = permit.client()?;
        Some(Self { client, turns: Arc::clone(turns), pools: Arc::clone(pools) })
    }

    /// Runs `job`, which may block on the disk and counts its work ([`lane::spend`]), once or twice: on this thread if
    /// it costs little, else in a pool.
    ///
    /// # Errors
    /// 503 if it waits for too long.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<T, HttpError> {
        match self.try_light(&job) {
            Ok(done) => Ok(done),
            Err(lane) => self.run_in(lane, job).await,
        }
    }

    /// Runs `job` now; the lane to wait for, if there is no place or the work is too much.
    pub(crate) fn try_light<T>(&self, job: impl FnOnce() -> T) -> Result<T, Lane> {
        let _turn = self.turns.light.try_acquire().map_err(|_| Lane::Light)?;
        let _place = self.pools.light.try_acquire().map_err(|_| Lane::Light)?;
        lane::run(Lane::Light, job)
    }

    /// Runs `job` in `lane`, or in the lane that it proves to need.
    pub(crate) async fn run_in<T: Send + 'static>(
        &self,
        mut lane: Lane,
        job: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<T, HttpError> {
        let job = Arc::new(job);
        loop {
            let place = timeout(self.pools.wait, self.place(lane)).await.map_err(|_| busy())?;
            let place = place.map_err(HttpError::internal)?;
            let done = if lane == Lane::Light {
                let _place = place;
                lane::run(lane, &*job)
            } else {
                let job = Arc::clone(&job);
                in_pool(place, move || lane::run(lane, &*job)).await.map_err(HttpError::internal)?
            };
            match done {
                Ok(done) => return Ok(done),
                Err(needed) => lane = needed,
            }
        }
    }

    /// Runs `job` in the pool of expensive work, if there is a place for it soon.
    pub(crate) async fn compress<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = timeout(COMPRESSION_WAIT, self.place(Lane::Heavy)).await.ok()?.ok()?;
        in_pool(place, job).await.ok()
    }

    async fn place(&self, lane: Lane) -> Result<Place, AcquireError> {
        let turns = if lane == Lane::Light { &self.turns.light } else { &self.turns.heavy };
        let turn = Arc::clone(turns).acquire_owned().await?;
        Ok((turn, Arc::clone(self.pools.places(lane)).acquire_owned().await?))
    }

    /// Counts a request as `n` more: a batch has the rate of its calls. It is not refused; the client's next ones wait.
    pub fn charge(&self, n: u32) {
        self.pools.clients.charge(self.client, n);
    }

    /// Counts `bytes` of a response; `None` if they are few.
    ///
    /// # Errors
    /// 503 or 429 if there is no room for them.
    pub fn hold(&self, bytes: usize) -> Result<Option<Held>, HttpError> {
        self.pools.bodies.hold(self.client, bytes)
    }

    /// See [`Bodies::count`].
    pub(crate) fn count(&self, body: bytes::Bytes) -> Result<bytes::Bytes, HttpError> {
        self.pools.bodies.count(self.client, body)
    }
}

/// Runs `job` on a thread of the pool, also if its request ends before.
fn in_pool<T: Send + 'static>(place: Place, job: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    spawn_blocking(move || {
        let _place = place;
        priority::lower(priority::EXPENSIVE);
        job()
    })
}

fn busy() -> HttpError {
    HttpError::unavailable("other expensive requests are being answered; try again, or ask for fewer rows")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Mutex;

    use super::*;
    use crate::limits::concurrency_limit::ConcurrencyLimit;

    #[tokio::test]
    async fn a_cheap_request_waits_for_few_of_each_greedy_client() {
        let limits = Limits { light: 2, ..Limits::default() };
        let (requests, pools) =
            (ConcurrencyLimit::of_requests(&limits), Pools::new(&limits, &Arc::new(Clients::new(&limits))));
        let share = |n| {
            let permit = requests.acquire(Some(Client::V4(Ipv4Addr::new(192, 0, 2, n)))).unwrap();
            (Share::from_permit(&permit, &pools).unwrap(), permit)
        };
        let others = [share(101), share(102)];
        let all_places = [others[0].0.place(Lane::Light).await, others[1].0.place(Lane::Light).await];
        let done = Arc::new(Mutex::new(Vec::new()));
        let clients = (0..40).map(|n| n % 4).chain([4]);
        let requests: Vec<_> = clients
            .map(|n| {
                let ((share, permit), done) = (share(n), Arc::clone(&done));
                tokio::spawn(async move {
                    share.run(move || done.lock().unwrap().push(n)).await.unwrap();
                    drop(permit);
                })
            })
            .collect();
        // The tasks of this thread run in order: each has asked for its place.
        tokio::task::yield_now().await;
        assert!(done.lock().unwrap().is_empty(), "there is no place");
        drop(all_places);
        for request in requests {
            request.await.unwrap();
        }
        let place = done.lock().unwrap().iter().position(|n| *n == 4);
        assert!(place.is_some_and(|place| place <= 8), "{done:?}");
    }
}
