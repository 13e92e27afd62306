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
use tokio::sync::OwnedSemaphorePermit;

use crate::chains::breaker::State;
use crate::chains::known_chain::KnownChains;
use crate::chains::queries::{ChainQueries, HomeSlot};
use crate::error::Error;
use crate::meter::PollLabel;
use crate::queue::position::{Class, QueuePosition};
use crate::record::{moment, nanos};
use crate::tables::TxKey;
use crate::tracker::Tracker;

/// Result of polling all due transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polled {
    /// Transactions that were polled.
    pub polled: usize,
    /// Transactions whose response changed.
    pub changed: usize,
    /// When the next one is due.
    pub next_due: Option<Timestamp>,
}

/// Maximum sleep, and the interval of deletions of ended transactions.
const IDLE: Duration = Duration::from_mins(1);
/// Interval of syncs to the device while polls are always due.
const SYNC: Duration = Duration::from_secs(5);
/// Nanoseconds. A clock set back by less delays polls by at most that.
const SET_BACK: i64 = 1_000_000_000;
/// Interval of free-space checks while the disk is full.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(500);
/// Delay of a row that cannot be read.
const PUT_OFF: Duration = Duration::from_hours(24);
/// Rows of a chain deleted per batch, between polls.
const DELETED: usize = 256;

/// Polls in flight.
struct RunningPolls<'a> {
    tracker: &'a Tracker,
    clock: &'a dyn Fn() -> i64,
    futures: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + 'a>>>,
    /// By chain.
    in_flight: HashMap<String, HashSet<Hash>>,
}

/// A finished poll: whether the response changed.
type Done = (TxKey, Result<bool, Error>);

impl Tracker {
    /// Polls each transaction that is due at `now` once, and stores the results. A node that does not answer is no
    /// error: dependent transactions stay unchanged and are polled again.
    pub async fn poll_due(&self, now: Timestamp) -> Result<Polled, Error> {
        let _alone = self.polling.lock().await;
        let clock = || now.unix_nanos();
        let (mut polls, mut polled, mut changed) = (RunningPolls::new(self, &clock), 0, 0);
        loop {
            polls.begin(now.unix_nanos())?;
            let Some(done) = polls.futures.next().await else { break };
            let ended = polls.end_with_others(done)?;
            polled += ended.0;
            changed += ended.1;
        }
        while self.delete_old(now.unix_nanos())? {}
        self.store.sync()?;
        Ok(Polled { polled, changed, next_due: self.next_due(now.unix_nanos())? })
    }

    /// Polls transactions as they become due, until `stop` resolves. Ends early only if the database fails.
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
            tracing::error!(%error, "disk full, polling paused");
            tokio::select! {
                () = self.room() => tracing::info!("disk has room, polling resumed"),
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
        let mut polls = RunningPolls::new(self, &clock);
        let (mut deleted, mut synced) = (None, Instant::now());
        loop {
            let now = clock();
            polls.begin(now)?;
            if polls.futures.is_empty() || synced.elapsed() >= SYNC {
                self.store.sync()?;
                synced = Instant::now();
            }
            if deleted.is_none_or(|at: Instant| at.elapsed() >= IDLE) && !self.delete_old(clock())? {
                deleted = Some(Instant::now());
            }
            tokio::select! {
                Some(done) = polls.futures.next() => drop(polls.end_with_others(done)?),
                () = self.wake.notified() => {}
                () = tokio::time::sleep(self.wait(now)) => {}
            }
        }
    }

    /// Time until the next poll that was not due at `now`, the time when polls were last started. With a later `now`,
    /// no wake-up would follow for a poll that became due in between.
    fn wait(&self, now: i64) -> Duration {
        let mut soonest = u64::MAX;
        for (chain, first) in self.queues.chains() {
            let state = self.limiters.of(&chain).state(now);
            for class in Class::POLLED {
                let at = match (class, state) {
                    (Class::New | Class::Unseen | Class::Abandoned, State::Open(until)) => {
                        first.of(class).max(moment(until))
                    }
                    _ => first.of(class),
                };
                // Polls that are already due start when another poll ends, not at a time.
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
            let earliest = match self.limiters.of(&chain).state(now) {
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

    /// Moves the queues back with a clock that was set back; otherwise polls would pause for the difference.
    fn follow_clock(&self, now: i64) -> Result<(), Error> {
        let back = self.latest.swap(now, Ordering::Relaxed).saturating_sub(now);
        if back < SET_BACK {
            return Ok(());
        }
        tracing::warn!(seconds = back / SET_BACK, "clock set back, polls moved earlier");
        for (chain, _) in self.queues.chains() {
            for class in Class::POLLED {
                let rows = self.queues.due(&*self.store, &chain, class, u64::MAX, usize::MAX)?;
                for (at, hash) in rows.into_iter().filter(|(at, _)| *at > moment(now)) {
                    let key = (Text::from(chain.as_str()), hash);
                    self.reschedule(&key, QueuePosition { class, at }, at.saturating_sub(moment(back)))?;
                }
            }
        }
        Ok(())
    }

    /// Deletes a batch of ended transactions, and of unseen ones of chains that do not answer. Returns whether there
    /// may be more.
    fn delete_old(&self, now: i64) -> Result<bool, Error> {
        let before = |age: Duration| moment(now).saturating_sub(nanos(age));
        let mut is_more = false;
        for (chain, _) in self.queues.chains() {
            let is_silent = matches!(self.limiters.of(&chain).state(now), State::Open(_));
            let unseen = Class::UNSEEN.into_iter().filter(|_| is_silent);
            let unseen = unseen.map(|class| (class, before(self.options.outage_grace)));
            for (class, by) in unseen.chain([(Class::Ended, before(self.options.retention))]) {
                let rows = self.queues.due(&*self.store, &chain, class, by, DELETED)?;
                is_more |= rows.len() == DELETED;
                for (at, hash) in rows {
                    self.delete(&(Text::from(chain.as_str()), hash), QueuePosition { class, at })?;
                }
            }
        }
        Ok(is_more)
    }
}

impl<'a> RunningPolls<'a> {
    fn new(tracker: &'a Tracker, clock: &'a dyn Fn() -> i64) -> Self {
        Self { tracker, clock, futures: FuturesUnordered::new(), in_flight: HashMap::new() }
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
        let limiter = self.tracker.limiters.of(chain);
        let most = limiter.max_polls;
        let state = limiter.state(now);
        let mut probes = 1;
        for class in Class::POLLED {
            let n_running = self.in_flight.get(chain).map_or(0, HashSet::len);
            // A quarter of the slots is reserved for transactions that a node has, so that made-up hashes do not delay
            // them.
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
                self.add(chain, hash, QueuePosition { class, at }, permit);
                begun += 1;
            }
            if class != Class::Followed {
                probes -= begun.min(probes);
            }
        }
        Ok(())
    }

    fn add(&mut self, chain: &str, hash: Hash, position: QueuePosition, permit: OwnedSemaphorePermit) {
        self.in_flight.entry(chain.to_owned()).or_default().insert(hash);
        let (tracker, clock, chain) = (self.tracker, self.clock, chain.to_owned());
        self.futures.push(Box::pin(async move {
            let key = (Text(chain), hash);
            let registry = Arc::clone(&tracker.registry.borrow());
            let home = HomeSlot { chain: &key.0.0, permit: Mutex::new(Some(permit)), left: &tracker.wake };
            let mut queries = ChainQueries {
                registry: &registry,
                kept: KnownChains::new(),
                clients: &tracker.clients,
                limiters: &tracker.limiters,
                local: tracker.local.get(),
                options: &tracker.options,
                now: clock(),
                clock,
                home,
            };
            let mut outcome = tracker.poll_one(&mut queries, &key, position).await;
            drop(queries);
            if let Err(error) = &outcome
                && error.is_of_one_row()
            {
                let (chain, hash) = (&key.0.0, hex::encode_upper(key.1));
                tracing::error!(%error, chain, hash, "unreadable transaction postponed by a day");
                PollLabel::Unreadable.count(chain);
                let later = moment(clock()).saturating_add(nanos(PUT_OFF));
                outcome = tracker.reschedule(&key, position, later).map(|()| false);
            }
            (key, outcome)
        }));
    }

    /// Records the end of a poll, and of those that ended meanwhile, so that the queues are read once for all of them.
    /// Returns their number, and the number of changed responses.
    fn end_with_others(&mut self, done: Done) -> Result<(usize, usize), Error> {
        let (mut ended, mut changed, mut next) = (0, 0, Some(done));
        while let Some(((chain, hash), outcome)) = next {
            if let Some(running) = self.in_flight.get_mut(&chain.0) {
                running.remove(&hash);
            }
            ended += 1;
            changed += usize::from(outcome?);
            next = self.futures.next().now_or_never().flatten();
        }
        Ok((ended, changed))
    }
}

fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
