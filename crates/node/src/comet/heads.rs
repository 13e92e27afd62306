//! Subscriptions to the heads of all CometBFT endpoints: websocket events, with `/status` polling as the fallback.
//!
//! # Invariants
//!
//! * An endpoint has at most one websocket. Its status is polled at least every 5 s (or every `poll`, if that is
//!   longer), and every `poll` while no websocket delivers its blocks.
//! * Every failure is retried, after any pause that the server ordered. A broken websocket is logged once.
//! * No task is spawned: dropping the future ends everything.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::{join, join_all};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::comet::Comet;
use crate::comet::subscription::{CHECK, Subscription};
use crate::comet::websocket::{Socket, websocket_request};
use crate::error::Error;
use crate::pool::PooledEndpoint;
use crate::pool::outage::Outage;

impl Comet {
    /// Follows the head of every endpoint, by websocket or else by polling `/status` every `poll`; the results are in
    /// [`Comet::heads`]. An endpoint of another chain than `chain_id` is logged and not queried until it reports the
    /// right one.
    pub async fn watch(&self, chain_id: &str, poll: Duration) -> Infallible {
        self.expect_chain(chain_id);
        join_all(self.pool.members().iter().map(|member| async move {
            let watcher = Watcher { comet: self, member, subscription: watch::Sender::default() };
            join(watcher.poll_status(poll), watcher.run_websocket()).await
        }))
        .await;
        // Unreachable: a pool has at least one member, and no watcher ends.
        std::future::pending().await
    }
}

/// Follows one endpoint.
struct Watcher<'a> {
    comet: &'a Comet,
    member: &'a PooledEndpoint,
    subscription: watch::Sender<Subscription>,
}

impl Watcher<'_> {
    /// Polls the status, rarely while a websocket is live.
    async fn poll_status(&self, poll: Duration) -> Infallible {
        let mut changes = self.subscription.subscribe();
        loop {
            let socket = changes.borrow_and_update().open_socket();
            self.member.wait_until_allowed().await;
            // The failure is in the endpoint's state.
            if let Ok(status) = self.comet.fetch_status(self.member).await {
                let now = Instant::now();
                self.subscription.send_if_modified(|subscription| {
                    subscription.on_status(socket, status.latest_height, now);
                    subscription.is_stalled()
                });
            }
            let pause = self.subscription.borrow().poll_interval(poll);
            tokio::select! {
                () = sleep(pause) => {}
                // The sender outlives this loop, so this is always a change.
                _changed = changes.changed() => {}
            }
        }
    }

    /// Keeps a websocket open.
    async fn run_websocket(&self) -> Infallible {
        let (endpoint, mut outage) = (&self.member.origin, Outage::default());
        loop {
            self.member.wait_until_allowed().await;
            let Err(mut error) = self.read_events(&mut outage).await;
            self.member.endpoint.redact(&mut error);
            if let Error::Busy { retry_after: Some(pause), .. } = error {
                self.member.stats().on_rate_limit(pause, Instant::now());
            }
            let mut pause = Duration::ZERO;
            self.update(|subscription| pause = subscription.on_closed());
            let now = Instant::now();
            // An outage of the endpoint itself is logged elsewhere.
            if self.member.stats().is_up() && outage.failed(now, now, Duration::ZERO) {
                warn!(%endpoint, %error, "no websocket: the status is polled meanwhile");
            }
            sleep(pause).await;
        }
    }

    /// Opens one websocket and reads it until it fails.
    async fn read_events(&self, outage: &mut Outage) -> Result<Infallible, Error> {
        let endpoint = &self.member.endpoint;
        let mut socket = Socket::open(endpoint).await?;
        self.update(Subscription::on_opened);
        let mut changes = self.subscription.subscribe();
        loop {
            let block = tokio::select! {
                block = socket.next() => block?,
                // The sender outlives this loop.
                _stalled = changes.wait_for(Subscription::is_stalled) => {
                    return Err(Error::Stalled { at: endpoint.context(&websocket_request()), after: CHECK });
                }
            };
            if self.comet.chain.get().is_some_and(|chain| *chain != block.chain_id) {
                // The next status also reports the other chain and excludes the endpoint.
                continue;
            }
            let now = Instant::now();
            self.member.stats().on_event(&block, now);
            if let Some(lasted) = outage.recovered(now) {
                let (endpoint, outage_s) = (&self.member.origin, lasted.as_secs());
                info!(%endpoint, outage_s, "the websocket delivers new blocks again");
            }
            self.update(|subscription| subscription.on_event(block.height));
        }
    }

    /// Applies a transition, publishes the endpoint's state, and wakes the poll if the websocket was replaced or has
    /// become live.
    fn update(&self, transition: impl FnOnce(&mut Subscription)) {
        self.subscription.send_if_modified(|subscription| {
            let before = (subscription.open_socket(), subscription.is_live());
            transition(subscription);
            before != (subscription.open_socket(), subscription.is_live())
        });
        self.member.stats().on_websocket(self.subscription.borrow().is_live());
        self.comet.pool.publish();
    }
}
