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

/// Pauses between attempts to open a websocket.
const AGAIN: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter_percent: 20 };

/// State shared by the websocket task and the polling task of one endpoint.
#[derive(Default)]
struct Shared {
    state: watch::Sender<SubscriptionState>,
    /// The height of the last event of the open websocket.
    last_event: AtomicU64,
    /// Wakes the websocket task when its subscription has stalled.
    stalled: Notify,
}

/// State of the websocket subscription.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SubscriptionState {
    /// Number of websockets opened so far.
    opened: u64,
    /// Whether the latest is still open.
    open: bool,
    /// Whether it has delivered events.
    live: bool,
}

impl Comet {
    /// Follows the head of every endpoint, by websocket or else by polling `/status` every `poll`; the results are in
    /// [`Comet::heads`]. An endpoint of another chain than `chain_id` is logged and not asked until it reports the
    /// right one.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        self.expect_chain(chain_id);
        join_all(self.pool().members().iter().map(|member| self.follow(member, poll))).await;
        // Unreachable: a pool has at least one member, and no task ends.
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
            // The failure is in the endpoint's statistics.
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
                // The sender outlives this loop, so this is always a change.
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
            // An outage of the endpoint itself is logged elsewhere.
            if member.is_up() && outage.failed(now, now, Duration::ZERO) {
                warn!(endpoint = %member.origin, %error, "no websocket: the status is polled meanwhile");
            }
            sleep(AGAIN.delay(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    /// Reads one websocket until it fails.
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
        // Discards a late stall notice about the previous websocket.
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
                // The next status reports the other chain too and excludes the endpoint.
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
