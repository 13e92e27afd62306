//! Shared state of a replay node's servers: recording, tip, faults and counters.
//!
//! # Invariants
//!
//! A request uses one consistent snapshot: recording, tip and faults change together, between requests.
//! - The tip is always a recorded height.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::Error;
use crate::answers::{Service, View, Work};
use crate::counters::Counters;
use crate::fault::{Effects, Fault, Kind, effects, lag};
use crate::pace::{Clock, Pace};
use crate::recording::Recording;

/// Number of tip changes kept for `state-lag`: enough for the longest lag with blocks every 150 ms.
const TIP_CHANGES: usize = 400;

/// Depth below the tip from which no state lags: of many heights shown at once, only the last ones lag.
const LAG_DEPTH: u64 = 8;

/// The recording, tip and faults at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) recording: Arc<Recording>,
    pub(crate) shown: u64,
    pub(crate) faults: Arc<[Fault]>,
    /// Whether every connection is closed without a reply.
    pub(crate) down: bool,
    /// Number of [switches](crate::ReplayNode::switch) to another recording.
    pub(crate) history: u64,
}

/// The shared state.
#[derive(Debug)]
pub(crate) struct NodeState {
    snapshot: watch::Sender<Snapshot>,
    shown: watch::Sender<u64>,
    /// Heights that were shown together, and the time.
    shown_at: Mutex<VecDeque<(RangeInclusive<u64>, Instant)>>,
    seed: u64,
    pace: Pace,
    clock: Mutex<Clock>,
    requests: [AtomicU64; Service::ALL.len()],
    faulted: AtomicU64,
    pub(crate) counters: Counters,
}

impl NodeState {
    /// Fails if `shown` is not a recorded height.
    pub(crate) fn new(
        recording: Arc<Recording>,
        shown: u64,
        faults: Vec<Fault>,
        seed: u64,
        pace: Pace,
    ) -> Result<Self, Error> {
        recorded(&recording, shown)?;
        let snapshot = Snapshot { recording, shown, faults: faults.into(), down: false, history: 0 };
        Ok(Self {
            snapshot: watch::Sender::new(snapshot),
            shown: watch::Sender::new(shown),
            shown_at: Mutex::default(),
            seed,
            pace,
            clock: Mutex::default(),
            requests: Default::default(),
            faulted: AtomicU64::default(),
            counters: Counters::default(),
        })
    }

    /// The current snapshot.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    /// A receiver of every new snapshot.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// A receiver of every new tip.
    pub(crate) fn heights(&self) -> watch::Receiver<u64> {
        self.shown.subscribe()
    }

    /// Number of requests that a fault hit.
    pub(crate) fn faulted(&self) -> u64 {
        self.faulted.load(Relaxed)
    }

    /// Applies `change` to the snapshot; an error leaves it unchanged.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut Snapshot) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        self.snapshot.send_if_modified(|snapshot| {
            let mut next = snapshot.clone();
            outcome = change(&mut next).and_then(|()| recorded(&next.recording, next.shown));
            if outcome.is_err() {
                return false;
            }
            if next.history != snapshot.history {
                // A node that was restored has the state of all but its last block.
                self.shown_at.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.record_shown(next.shown..=next.shown);
            } else if next.shown > snapshot.shown {
                self.record_shown(snapshot.shown + 1..=next.shown);
            }
            // Sent under the lock of the snapshot, so that receivers get changes in order.
            self.shown.send_if_modified(|shown| std::mem::replace(shown, next.shown) != next.shown);
            *snapshot = next;
            true
        });
        outcome
    }

    /// Records the time at which heights were shown.
    fn record_shown(&self, heights: RangeInclusive<u64>) {
        let mut shown_at = self.shown_at.lock().unwrap_or_else(PoisonError::into_inner);
        if shown_at.len() == TIP_CHANGES {
            shown_at.pop_front();
        }
        shown_at.push_back((heights, Instant::now()));
    }

    /// The shown heights whose state lags on a service.
    fn lagging(&self, service: Service, snapshot: &Snapshot) -> Vec<u64> {
        let lags = |height| lag(&snapshot.faults, self.seed, service, snapshot.history, height);
        let shown_at = self.shown_at.lock().unwrap_or_else(PoisonError::into_inner);
        let heights =
            shown_at.iter().flat_map(|(heights, at)| heights.clone().map(move |h| (h, at.elapsed())));
        let near = heights.filter(|(height, _)| height.saturating_add(LAG_DEPTH) > snapshot.shown);
        near.filter(|(height, since)| *since < lags(*height)).map(|(height, _)| height).collect()
    }

    /// Shows one more height at each interval, if there is one; never ends.
    pub(crate) async fn grow(&self, every: Duration) {
        let mut ticks = interval_at(Instant::now() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let grown = self.change(|snapshot| {
                snapshot.shown = (snapshot.shown + 1).min(snapshot.recording.last());
                Ok(())
            });
            if let Err(e) = grown {
                tracing::error!(error = %e, "showing the next height failed");
            }
        }
    }

    /// The effects of the faults on the next request of a service.
    pub(crate) fn next_effects(&self, service: Service, snapshot: &Snapshot) -> Effects {
        let ordinal = self.requests[service as usize].fetch_add(1, Relaxed);
        let effects = effects(&snapshot.faults, self.seed, service, ordinal);
        if effects != Effects::default() {
            self.faulted.fetch_add(1, Relaxed);
        }
        effects
    }

    /// Waits for the simulated service time of a reply; false if it is zero.
    pub(crate) async fn take_time(&self, work: impl FnOnce() -> Work) -> bool {
        let is_paced = self.pace != Pace::default();
        if is_paced {
            let time = self.pace.time(work());
            let done = self.clock.lock().unwrap_or_else(PoisonError::into_inner).book(Instant::now(), time);
            sleep_until(done).await;
        }
        is_paced
    }

    /// Calls `look` with the view of a snapshot under the effects of the faults.
    pub(crate) fn view<T>(
        &self,
        service: Service,
        snapshot: &Snapshot,
        effects: &Effects,
        look: impl FnOnce(View<'_>) -> T,
    ) -> T {
        let shown = snapshot.shown.saturating_sub(effects.stale_by).max(snapshot.recording.first());
        let lags = snapshot.faults.iter().any(|fault| matches!(fault.kind, Kind::StateLag(_)));
        let lagging = if lags { self.lagging(service, snapshot) } else { Vec::new() };
        let (deviations, counters) = (effects.deviations, &self.counters);
        look(View { recording: &snapshot.recording, shown, deviations, lagging: &lagging, counters })
    }
}

fn recorded(recording: &Recording, height: u64) -> Result<(), Error> {
    let (first, last) = (recording.first(), recording.last());
    if (first..=last).contains(&height) { Ok(()) } else { Err(Error::NoSuchHeight { height, first, last }) }
}

/// Resolves when the node is stopped or dropped.
pub(crate) async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    if let Err(error) = stopped.wait_for(|stopped| *stopped).await {
        tracing::debug!(%error, "replay node dropped");
    }
}
