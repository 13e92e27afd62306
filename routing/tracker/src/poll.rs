//! Scheduler: polls due transactions chain by chain and deletes expired ones.
//!
//! # Invariants
//!
//! * Polls of one chain's queue never wait for those of another chain.
//! * Within a queue, new transactions are polled first.
//! * A transaction has at most one poll in progress.
//! * While a chain does not answer, transactions that need it first keep their position and cost nothing.
//! * An unreadable row is postponed by [`PUT_OFF`]; a full disk pauses polling.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chain::Timestamp;
use chain::hash::Hash;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use store::key::Text;

use crate::breaker::State;
use crate::chain_queries::{ChainQueries, HomeSlot};
use crate::error::Error;
use crate::limiter::PollPermit;
use crate::queue::{Class, Place};
use crate::record::moment;
use crate::tables::TxKey;
use crate::tracker::Tracker;

/// Result of polling everything that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    /// Transactions that were polled.
    pub polled: usize,
    /// Those whose answer is another one now.
    pub changed: usize,
    /// When the next one is due.
    pub next_due: Option<Timestamp>,
}

/// The longest sleep with nothing due, and how often what is over is deleted.
const IDLE: Duration = Duration::from_mins(1);
/// How often commits are brought to the device while there is always something to do.
const SYNC: Duration = Duration::from_secs(5);
/// Nanoseconds; a clock that is set back by less delays a poll by no more than that.
const SET_BACK: i64 = 1_000_000_000;
/// Interval of free-space checks while the disk is full.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(500);
/// How long a row that cannot be read is left alone.
const PUT_OFF: Duration = Duration::from_hours(24);
/// Rows of a chain deleted per batch, between polls.
const DELETED: usize = 256;

/// Polls in flight.
struct Looks<'a> {
    tracker: &'a Tracker,
    clock: &'a dyn Fn() -> i64,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + 'a>>>,
    /// By chain.
    in_flight: HashMap<String, HashSet<Hash>>,
}

/// A finished poll.
struct Done {
    key: TxKey,
    place: Place,
    outcome: Result<bool, Error>,
}

impl Tracker {
    /// Polls once every transaction that is due at `now`, and stores what is new. Nodes that do not answer are no
    /// error: what depends on them stays as it is and is polled again.
    pub async fn poll_due(&self, now: Timestamp) -> Result<Polled, Error> {
        let _alone = self.polling.lock().await;
        let clock = || now.unix_nanos();
        let (mut looks, mut polled, mut changed) = (Looks::new(self, &clock), 0, 0);
        loop {
            looks.begin(now.unix_nanos())?;
            let Some(done) = looks.running.next().await else { break };
            let ended = looks.end_with_others(done)?;
            polled += ended.0;
            changed += ended.1;
        }
        while self.delete_old(now.unix_nanos())? {}
        self.store.sync()?;
        Ok(Polled { polled, changed, next_due: self.next_due(now.unix_nanos())? })
    }

    /// Polls what is due, as it becomes due, until `stop` resolves. Ends early only if the database fails.
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::pin!(stop);
        let _alone = self.polling.lock().await;
        loop {
            let error = tokio::select! {
                error = self.follow() => match error { Err(error) => error, Ok(never) => match never {} },
                () = &mut stop => return Ok(()),
            };
            if !error.is_full() {
                return Err(error);
            }
            tracing::error!(%error, "transfers are not followed until there is room");
            tokio::select! {
                () = self.room() => tracing::info!("there is room again, transfers are followed"),
                () = &mut stop => return Ok(()),
            }
        }
    }

    async fn room(&self) {
        while let Err(store::Error::NoSpace { .. }) = self.store.room() {
            tokio::time::sleep(LOOK_FOR_ROOM).await;
        }
    }

    async fn follow(&self) -> Result<Infallible, Error> {
        let mut looks = Looks::new(self, &clock);
        let (mut deleted, mut synced) = (None, Instant::now());
        loop {
            let now = clock();
            looks.begin(now)?;
            if looks.running.is_empty() || synced.elapsed() >= SYNC {
                self.store.sync()?;
                synced = Instant::now();
            }
            if deleted.is_none_or(|at: Instant| at.elapsed() >= IDLE) && !self.delete_old(clock())? {
                deleted = Some(Instant::now());
            }
            tokio::select! {
                Some(done) = looks.running.next() => drop(looks.end_with_others(done)?),
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.wait(now)) => {}
            }
        }
    }

    /// How long until something may be polled that was not due at `now`, when polls were last begun. Not at a later
    /// time: what became due in between would be waited for by nobody.
    fn wait(&self, now: i64) -> Duration {
        let mut soonest = u64::MAX;
        for (chain, first) in self.queues.chains() {
            let state = self.nodes.limiter(&chain).state(now);
            for class in Class::POLLED {
                let at = match (class, state) {
                    (Class::New | Class::Unseen | Class::Abandoned, State::Open(until)) => {
                        first.of(class).max(moment(until))
                    }
                    _ => first.of(class),
                };
                // What is due already waits for the end of a poll, and not for a time.
                if at > moment(now) {
                    soonest = soonest.min(at);
                }
            }
        }
        Duration::from_nanos(soonest.saturating_sub(moment(clock()))).min(IDLE)
    }

    fn next_due(&self, now: i64) -> Result<Option<Timestamp>, Error> {
        let mut soonest: Option<u64> = None;
        for (chain, _) in self.queues.chains() {
            let earliest = match self.nodes.limiter(&chain).state(now) {
                State::Open(until) => moment(until),
                _ => 0,
            };
            for class in Class::POLLED {
                let first = self.queues.due(&*self.store, &chain, class, u64::MAX, 1)?;
                let at = first.first().map(|(at, _)| (*at).max(earliest));
                soonest = soonest.into_iter().chain(at).min();
            }
        }
        Ok(soonest.map(|at| Timestamp::from_unix_nanos(i64::try_from(at).unwrap_or(i64::MAX))))
    }

    /// Moves the queues with a clock that was set back: nothing would be polled for as long as it was ahead.
    fn follow_clock(&self, now: i64) -> Result<(), Error> {
        let back = self.latest.swap(now, Ordering::Relaxed).saturating_sub(now);
        if back < SET_BACK {
            return Ok(());
        }
        tracing::warn!(seconds = back / SET_BACK, "the clock was set back, looks are due earlier by as much");
        for (chain, _) in self.queues.chains() {
            for class in Class::POLLED {
                let rows = self.queues.due(&*self.store, &chain, class, u64::MAX, usize::MAX)?;
                for (at, hash) in rows.into_iter().filter(|(at, _)| *at > moment(now)) {
                    let key = (Text::from(chain.as_str()), hash);
                    self.reschedule(&key, Place { class, at }, at.saturating_sub(moment(back)))?;
                }
            }
        }
        Ok(())
    }

    /// Deletes some of what was over for long enough, and of what no node has seen on chains that do not answer; says
    /// whether there may be more.
    fn delete_old(&self, now: i64) -> Result<bool, Error> {
        let before =
            |age: Duration| moment(now).saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        let mut is_more = false;
        for (chain, _) in self.queues.chains() {
            let is_silent = matches!(self.nodes.limiter(&chain).state(now), State::Open(_));
            let unseen = Class::UNSEEN.into_iter().filter(|_| is_silent);
            let unseen = unseen.map(|class| (class, before(self.options.outage_grace)));
            for (class, by) in unseen.chain([(Class::Ended, before(self.options.retention))]) {
                let rows = self.queues.due(&*self.store, &chain, class, by, DELETED)?;
                is_more |= rows.len() == DELETED;
                for (at, hash) in rows {
                    self.delete(&(Text::from(chain.as_str()), hash), Place { class, at })?;
                }
            }
        }
        Ok(is_more)
    }
}

impl<'a> Looks<'a> {
    fn new(tracker: &'a Tracker, clock: &'a dyn Fn() -> i64) -> Self {
        Self { tracker, clock, running: FuturesUnordered::new(), in_flight: HashMap::new() }
    }

    /// Starts as many polls as the limits allow.
    fn begin(&mut self, now: i64) -> Result<(), Error> {
        self.tracker.follow_clock(now)?;
        for (chain, first) in self.tracker.queues.chains() {
            if Class::POLLED.iter().any(|class| first.of(*class) <= moment(now)) {
                self.begin_of(&chain, now)?;
            }
        }
        Ok(())
    }

    fn begin_of(&mut self, chain: &str, now: i64) -> Result<(), Error> {
        let limiter = self.tracker.nodes.limiter(chain);
        let most = limiter.max_polls;
        let state = limiter.state(now);
        let mut probes = 1;
        for class in Class::POLLED {
            let n_running = self.in_flight.get(chain).map_or(0, HashSet::len);
            // A part is left for what is seen already, which junk must not delay.
            let spared = if class == Class::Followed { 0 } else { most / 4 };
            let free = limiter.free_polls().saturating_sub(spared);
            // Re-reading the queue after every poll would cost more than the poll.
            let worth = if matches!(class, Class::New | Class::Followed) { most / 8 } else { most / 2 };
            let limit = match (class, state) {
                _ if free < worth && n_running > 0 => 0,
                (Class::Followed, _) | (_, State::Closed) => free,
                (_, State::HalfOpen) => probes.min(free),
                (_, State::Open(_)) => 0,
            };
            if limit == 0 {
                continue;
            }
            // Transactions in flight are first in the queue.
            let tracker = self.tracker;
            let rows = tracker.queues.due(&*tracker.store, chain, class, moment(now), limit + n_running)?;
            let mut begun = 0;
            for (at, hash) in rows {
                let is_running = self.in_flight.get(chain).is_some_and(|running| running.contains(&hash));
                if is_running || begun == limit {
                    continue;
                }
                let Some(permit) = limiter.begin_poll() else { break };
                self.add(chain, hash, Place { class, at }, permit);
                begun += 1;
            }
            if class != Class::Followed {
                probes -= begun.min(probes);
            }
        }
        Ok(())
    }

    fn add(&mut self, chain: &str, hash: Hash, place: Place, permit: PollPermit) {
        self.in_flight.entry(chain.to_owned()).or_default().insert(hash);
        let (tracker, clock, chain) = (self.tracker, self.clock, chain.to_owned());
        self.running.push(Box::pin(async move {
            let key = (Text(chain), hash);
            let registry = Arc::clone(&tracker.registry.borrow());
            let home = HomeSlot { chain: &key.0.0, permit: Mutex::new(Some(permit)), left: &tracker.wake };
            let (nodes, options) = (&tracker.nodes, &tracker.options);
            let queries = ChainQueries { registry: &registry, nodes, options, now: clock(), clock, home };
            let outcome = tracker.poll_one(&queries, &key, place).await;
            drop(queries);
            Done { key, place, outcome }
        }));
    }

    /// Takes note of the end of a poll, and of those that are over as well, so that the queues are read once for all of
    /// them. Says how many they are, and how many have another answer now.
    fn end_with_others(&mut self, done: Done) -> Result<(usize, usize), Error> {
        let (mut ended, mut changed) = (1, usize::from(self.end(done)?));
        while let Some(Some(done)) = self.running.next().now_or_never() {
            changed += usize::from(self.end(done)?);
            ended += 1;
        }
        Ok((ended, changed))
    }

    /// Handles the end of a poll; returns true if the response changed.
    fn end(&mut self, done: Done) -> Result<bool, Error> {
        let Done { key, place, outcome } = done;
        if let Some(running) = self.in_flight.get_mut(&key.0.0) {
            running.remove(&key.1);
        }
        match outcome {
            Err(error) if error.is_of_one_row() => {
                let (chain, hash) = (&key.0.0, hex::encode_upper(key.1));
                tracing::error!(%error, chain, hash, "a registered transaction cannot be read, it is tried again in a day");
                let later = moment((self.clock)())
                    .saturating_add(u64::try_from(PUT_OFF.as_nanos()).unwrap_or(u64::MAX));
                self.tracker.reschedule(&key, place, later)?;
                Ok(false)
            }
            outcome => outcome,
        }
    }
}

fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
