//! Following every endpoint's height and chain beside the work.
//!
//! Holds: each CometBFT endpoint has at most one websocket and is asked for its status at least every 5 s, or every
//! `poll` if that is longer, and every `poll` while no websocket tells its blocks; whatever fails is tried again, and
//! the log hears of a broken websocket once. Nothing here is spawned: dropping the future ends all of it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{join, join_all};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::Comet;
use crate::error::Error;
use crate::health::Turn;
use crate::member::Member;
use crate::retry::Backoff;
use crate::websocket::{Socket, websocket_call};

/// A websocket is not taken at its word for longer.
const CHECK: Duration = Duration::from_secs(5);

/// Pauses between attempts at a websocket.
const AGAIN: Backoff =
    Backoff { initial: Duration::from_secs(1), max: Duration::from_mins(1), jitter_percent: 20 };

/// What the websocket and the polling of one endpoint tell each other.
#[derive(Default)]
struct Feed {
    /// Whether events come.
    live: watch::Sender<bool>,
    /// The height of the last one.
    told: AtomicU64,
    /// Events do not come although the chain goes on.
    silent: Notify,
}

/// What the log has been told about the websocket of one endpoint.
#[derive(Default)]
struct Trouble {
    failures: u32,
    told: bool,
    when: Option<Instant>,
}

/// A websocket that works now and then is told of this often.
const REMINDER: Duration = Duration::from_mins(1);

impl Trouble {
    /// Whether a failure is told: the first, and one after a recovery.
    fn begins(&mut self) -> bool {
        let now = Instant::now();
        let due = !self.told && self.when.is_none_or(|when| now - when >= REMINDER);
        if due {
            (self.told, self.when) = (true, Some(now));
        }
        due
    }

    /// Whether a recovery is told: it is where the failure was.
    fn ends(&mut self) -> bool {
        self.failures = 0;
        std::mem::take(&mut self.told)
    }
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

    async fn follow(&self, member: &Member, poll: Duration) {
        let feed = Feed::default();
        join(self.ask_on(member, &feed, poll), self.listen(member, &feed)).await;
    }

    /// Polls the status, rarely while a websocket is live.
    async fn ask_on(&self, member: &Member, feed: &Feed, poll: Duration) -> Infallible {
        let mut live = feed.live.subscribe();
        let mut earlier = None;
        loop {
            let height = self.look_if_allowed(member).await;
            let is_live = *live.borrow_and_update();
            // Two looks far apart: one alone may have overtaken an event on its way.
            if is_live && earlier.is_some_and(|earlier| feed.told.load(Ordering::Relaxed) < earlier) {
                feed.silent.notify_one();
            }
            earlier = height.filter(|_| is_live);
            let pause = if is_live { poll.max(CHECK) } else { poll };
            tokio::select! {
                () = sleep(pause) => {}
                // The sender lives as long as this loop, so this ends only by a change.
                _changed = live.changed() => {}
            }
        }
    }

    /// The endpoint's height, if it says one. What it fails with is in its record.
    async fn look_if_allowed(&self, member: &Member) -> Option<u64> {
        let turn = member.record().health.turn(Instant::now());
        if let Turn::Barred(left) = turn {
            sleep(left).await;
        }
        self.look(member).await.map_or(None, |status| Some(status.latest_height))
    }

    /// Keeps a websocket open.
    async fn listen(&self, member: &Member, feed: &Feed) -> Infallible {
        let mut trouble = Trouble::default();
        loop {
            let failure = self.hear(member, feed, &mut trouble).await;
            self.go_live(member, feed, false);
            if trouble.begins() {
                warn!("{failure}; following this endpoint by polling, the websocket is tried again");
            }
            sleep(AGAIN.delay(trouble.failures)).await;
            trouble.failures = trouble.failures.saturating_add(1);
        }
    }

    /// One websocket, to its end.
    async fn hear(&self, member: &Member, feed: &Feed, trouble: &mut Trouble) -> Error {
        let mut socket = match Socket::open(&member.endpoint).await {
            Ok(socket) => socket,
            Err(failure) => return failure,
        };
        // A word about the websocket before this one, come too late, says nothing about this one.
        let _stale: Option<()> = feed.silent.notified().now_or_never();
        loop {
            let block = tokio::select! {
                block = socket.next() => block,
                () = feed.silent.notified() => {
                    let reason = "the websocket tells no blocks although there are new ones".to_owned();
                    return Error::Malformed { at: member.endpoint.site(&websocket_call()), reason };
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
            feed.told.store(block.height, Ordering::Relaxed);
            member.record().known.event(&block);
            if trouble.ends() {
                info!("{}: the websocket tells new blocks again", member.origin);
            }
            self.go_live(member, feed, true);
        }
    }

    fn go_live(&self, member: &Member, feed: &Feed, live: bool) {
        member.record().known.by_websocket = live;
        feed.live.send_if_modified(|was| std::mem::replace(was, live) != live);
        self.pool().publish();
    }
}
