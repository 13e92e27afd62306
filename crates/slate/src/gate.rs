//! The clock of a reader: its polls for new commits happen when we say so.
//!
//! SlateDB's reader has no snapshot: each of its reads takes the newest state, which a poll replaces (its issue 1383).
//! It waits for the next poll by its clock, so a clock that never ends this wait pins the state, and letting one wait
//! end makes exactly one poll. When the reader waits again, the poll is complete.
//!
//! # Invariants
//!
//! The state of a reader changes only during [`Gate::poll`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use tokio::sync::{Semaphore, watch};

/// The clock of one reader. Only its ticker, which the polls wait for, is not the real time.
#[derive(Debug)]
pub(crate) struct PollClock {
    time: DefaultSystemClock,
    ticks: Ticks,
}

/// The side of the clock that lets polls happen.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    permits: Arc<Semaphore>,
    waits: watch::Receiver<u64>,
}

/// A clock on which no time passes without a permit.
#[derive(Debug)]
struct Ticks {
    time: DefaultSystemClock,
    permits: Arc<Semaphore>,
    /// Number of waits that have begun.
    waits: watch::Sender<u64>,
}

type Sleep<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A clock and its gate.
pub(crate) fn gated() -> (Arc<PollClock>, Gate) {
    let (permits, waits) = (Arc::new(Semaphore::new(0)), watch::Sender::new(0));
    let gate = Gate { permits: Arc::clone(&permits), waits: waits.subscribe() };
    let ticks = Ticks { time: DefaultSystemClock::new(), permits, waits };
    (Arc::new(PollClock { time: DefaultSystemClock::new(), ticks }), gate)
}

impl Gate {
    /// Lets one poll happen and waits for its end. Calls must not overlap, and after a call that was cancelled the
    /// reader must not be used: its poll may still be under way.
    pub(crate) async fn poll(&mut self) {
        // The sender lives as long as the reader, which the caller holds.
        let Ok(before) = self.waits.wait_for(|waits| *waits > 0).await.map(|waits| *waits) else { return };
        self.permits.add_permits(1);
        drop(self.waits.wait_for(|waits| *waits > before).await);
    }
}

impl SystemClock for PollClock {
    fn now(&self) -> DateTime<Utc> {
        self.time.now()
    }

    fn sleep(&self, duration: Duration) -> Sleep<'_> {
        self.time.sleep(duration)
    }

    fn ticker(&self, duration: Duration) -> SystemClockTicker<'_> {
        SystemClockTicker::new(&self.ticks, duration)
    }
}

impl SystemClock for Ticks {
    fn now(&self) -> DateTime<Utc> {
        self.time.now()
    }

    fn sleep(&self, _: Duration) -> Sleep<'_> {
        Box::pin(async {
            self.waits.send_modify(|waits| *waits += 1);
            // The semaphore is never closed.
            if let Ok(permit) = self.permits.acquire().await {
                permit.forget();
            }
        })
    }

    fn ticker(&self, duration: Duration) -> SystemClockTicker<'_> {
        SystemClockTicker::new(self, duration)
    }
}
