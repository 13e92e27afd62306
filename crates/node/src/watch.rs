//! Subscriptions to the heads of all CometBFT endpoints: websocket events, with `/status` polling as the fallback.
//!
//! # Invariants
//!
//! * An endpoint has at most one websocket. Its status is polled at least every 5 s (or every `poll`, if that is
//!   longer), and every `poll` while no websocket delivers its blocks.
//! * Every failure is retried, after any pause that the server ordered. A broken websocket is logged once.
//! * No task is spawned: dropping the future ends everything.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::comet::Comet;
use crate::error::Error;
use crate::outage::Outage;
use crate::pooled_endpoint::PooledEndpoint;
use crate::retry::Backoff;
use crate::stall_detector::{CHECK, StallDetector};
use crate::websocket::{Socket, websocket_call};

/// Pauses between attempts at a websocket.
const AGAIN: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter_percent: 20 };

/// What the websocket and the polling of one endpoint tell each other.
#[derive(Default)]
struct Shared {
    state: watch::Sender<SubscriptionState>,
    /// The height of the last event of the open websocket.
    last_event: AtomicU64,
    /// Events do not come although the chain goes on.
    stalled: Notify,
}

/// How it stands with the websocket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SubscriptionState {
    /// How many have been opened.
    opened: u64,
    /// Whether the last of them is still open.
    open: bool,
    /// Whether events have come on it.
    live: bool,
}

impl Comet {
    /// Follows every endpoint's height for as long as it is polled, by websocket where there is one and by
    /// `/status` every `poll` where not; what it finds is in [`Comet::heads`]. An endpoint of another chain than
    /// `chain_id` is named in the log and not asked until it says otherwise.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        self.expect_chain(chain_id);
        join_all(self.pool().members().iter().map(|member| self.follow(member, poll))).await;
        // Never reached: a pool has at least one member, and none is ever done.
        std::future::pending().await
    }

    async fn follow(&self, member: &PooledEndpoint, poll: Duration) {
        let shared = Shared::default();
        join(self.poll_status(member, &shared, poll), self.run_subscription(member, &shared)).await;
    }

    /// Polls the status, rarely while a websocket is live.
    async fn poll_status(&self, member: &PooledEndpoint, shared: &Shared, poll: Duration) -> Infallible {
        let (mut state, mut detector) = (shared.state.subscribe(), StallDetector::default());
        loop {
            let before = *state.borrow_and_update();
            member.wait_until_allowed().await;
            // What it fails with is in its record.
            let height = self.fetch_status(member).await.map_or(None, |status| Some(status.latest_height));
            let now = *shared.state.borrow();
            if let Some(height) = height
                && now.open
                && now.opened == before.opened
                && detector.check(
                    now.opened,
                    height,
                    shared.last_event.load(Ordering::Relaxed),
                    Instant::now(),
                )
            {
                shared.stalled.notify_one();
            }
            let pause = if now.live { poll.max(CHECK) } else { poll };
            tokio::select! {
                () = sleep(pause) => {}
                // The sender lives as long as this loop, so this ends only by a change.
                _changed = state.changed() => {}
            }
        }
    }

    /// Keeps a websocket open.
    async fn run_subscription(&self, member: &PooledEndpoint, shared: &Shared) -> Infallible {
        let (mut outage, mut failures) = (Outage::default(), 0u32);
        loop {
            member.wait_until_allowed().await;
            let error = self.read_events(member, shared, &mut outage, &mut failures).await;
            self.set_state(member, shared, |state| (state.open, state.live) = (false, false));
            let now = Instant::now();
            // Without the endpoint there is no websocket: the log has heard of that.
            if member.is_up() && outage.failed(now, now, Duration::ZERO) {
                warn!(endpoint = %member.origin, %error, "no websocket: the status is polled meanwhile");
            }
            sleep(AGAIN.delay(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// One websocket, to its end.
    async fn read_events(
        &self,
        member: &PooledEndpoint,
        shared: &Shared,
        outage: &mut Outage,
        failures: &mut u32,
    ) -> Error {
        let mut socket = match Socket::open(&member.endpoint).await {
            Ok(socket) => socket,
            Err(failure) => {
                if let Error::Busy { retry_after: Some(pause), .. } = failure {
                    member.stats().health.rate_limited(Instant::now(), pause);
                }
                return failure;
            }
        };
        shared.last_event.store(0, Ordering::Relaxed);
        self.set_state(member, shared, |state| (state.opened, state.open) = (state.opened + 1, true));
        // A word about the websocket before this one, come too late, says nothing about this one.
        let _stale: Option<()> = shared.stalled.notified().now_or_never();
        loop {
            let block = tokio::select! {
                block = socket.next() => block,
                () = shared.stalled.notified() => {
                    return Error::Stalled { at: member.endpoint.site(&websocket_call()), after: CHECK };
                }
            };
            let block = match block {
                Ok(block) => block,
                Err(failure) => return failure,
            };
            if self.chain().get().is_some_and(|chain| *chain != block.chain_id) {
                // The next status says so too, and settles it.
                continue;
            }
            shared.last_event.store(block.height, Ordering::Relaxed);
            member.stats().head.on_event(&block);
            *failures = 0;
            if let Some(lasted) = outage.recovered(Instant::now()) {
                info!(endpoint = %member.origin, outage_s = lasted.as_secs(), "the websocket tells new blocks again");
            }
            self.set_state(member, shared, |state| state.live = true);
        }
    }

    fn set_state(&self, member: &PooledEndpoint, shared: &Shared, set: impl FnOnce(&mut SubscriptionState)) {
        shared.state.send_if_modified(|state| {
            let before = *state;
            set(state);
            *state != before
        });
        member.stats().head.by_websocket = shared.state.borrow().live;
        self.pool().publish();
    }
}
