//! Runs the lanes, watches over them, and decides what to do when they cannot go on.
//!
//! ```text
//! lanes run ──▶ a lane ends ──▶ why? ──▶ told to stop            the ingest ends
//!    ▲                              ├──▶ another history          go back, or distrust who showed it
//!    │                              ├──▶ no room on the disk      wait for room
//!    └──────────────────────────────┴──▶ the node cannot          wait, if it is to keep trying; else end with the reason
//! ```
//!
//! What must hold: rows are taken back only while no lane runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use chain::Vm;
use node::{EndpointState, Node, Standing};
use schema::block::hash_at;
use schema::meta::Identity;
use schema::rewind::{self, By};
use schema::rollback;
use store::Store;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Error;
use crate::advice;
use crate::config::{Config, Verify};
use crate::derive::Workshops;
use crate::endorse::Endorsements;
use crate::fork::{Damping, Forks, Verdict};
use crate::lanes::Cores;
use crate::marks::{Marks, Published};
use crate::meter::{self, Event};
use crate::rich::handover::Handover;

/// How often a full disk is looked at.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(500);

/// An ingest that is ready to run.
pub struct Ingest {
    pub(crate) config: Config,
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workshops: Arc<Workshops>,
    pub(crate) cores: Cores,
    pub(crate) identity: Identity,
    pub(crate) published: Published,
    pub(crate) handover: Arc<Handover>,
    pub(crate) damping: Mutex<Damping>,
}

impl Ingest {
    /// Where to see how far it has come.
    pub fn marks(&self) -> Marks {
        Marks {
            chain: self.published.chain.subscribe(),
            blocks: self.published.blocks.subscribe(),
            calls: self.published.calls.subscribe(),
            rich: self.published.rich.subscribe(),
            has_calls: self.has_calls(),
            has_rich_list: self.has_rich_list(),
        }
    }

    /// Whether there is a rich list: it begins with what REST tells of all accounts.
    pub fn has_rich_list(&self) -> bool {
        self.config.vm == Vm::Evm && advice::no_rich_list(&self.config, &self.node).is_none()
    }

    /// Whether there is a lane of internal transactions.
    pub fn has_calls(&self) -> bool {
        self.config.vm == Vm::Evm && self.config.internal_txs && self.node.evm.is_some()
    }

    /// What is known of the node's endpoints.
    pub fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.node.comet.heads()
    }

    /// Indexes until `stop` becomes true, or until it cannot go on. What is committed then is whole.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        // Boxed, or whoever awaits this has all of it in its own layout.
        let work = async {
            while !*stop.borrow() {
                meter::lane_stopped("blocks", false);
                if let Err(error) = Box::pin(self.run_lanes(stop.clone())).await {
                    tokio::select! {
                        recovered = Box::pin(self.recover_or_give_up(error)) => recovered?,
                        // Whoever could stop us is gone: that is a stop too.
                        _ = stop.wait_for(|stop| *stop) => return Ok(()),
                    }
                } else {
                    return Ok(());
                }
            }
            Ok(())
        };
        tokio::select! {
            outcome = work => outcome,
            never = Box::pin(self.node.watch(&self.config.chain_id, self.config.poll)) => match never {},
        }
    }

    /// Runs every lane until `stop` becomes true (`Ok`) or the block lane cannot go on. None runs afterwards.
    async fn run_lanes(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let halt = watch::Sender::new(false);
        let blocks = async {
            let outcome = Box::pin(self.run_blocks(&halt)).await;
            halt.send_replace(true);
            outcome
        };
        let heads = async {
            let outcome = self.follow_heads(halt.subscribe()).await;
            halt.send_replace(true);
            outcome
        };
        let all = async {
            // Boxed, or whoever polls this moves 16 KiB about.
            let (blocks, heads, (), ()) = tokio::join!(
                blocks,
                Box::pin(heads),
                Box::pin(self.run_calls(halt.subscribe())),
                Box::pin(self.run_rich_list(halt.subscribe())),
            );
            heads.and(blocks)
        };
        let stopping = async {
            // Whoever could stop us is gone: that is a stop too.
            drop(stop.wait_for(|stop| *stop).await);
            halt.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = all => outcome,
            () = stopping => Ok(()),
        }
    }

    /// Tells the lanes how far the chain is. An error if an endpoint's chain is not the one that is indexed.
    async fn follow_heads(&self, mut halt: watch::Receiver<bool>) -> Result<(), Error> {
        let mut heads = self.node.comet.heads();
        loop {
            let endpoints = Arc::clone(&heads.borrow_and_update());
            let trusted = || endpoints.iter().filter(|endpoint| is_trusted(endpoint));
            let tip = trusted().filter_map(|endpoint| endpoint.height).max();
            // As with questions, one that is not trusted counts where there is no other.
            let any = || endpoints.iter().filter(|endpoint| endpoint.standing != Standing::WrongChain);
            if let Some(height) = tip.or_else(|| any().filter_map(|endpoint| endpoint.height).max()) {
                self.published.chain.send_if_modified(|mark| {
                    let moved = mark.height != height;
                    mark.height = height;
                    moved
                });
            }
            for endpoint in trusted() {
                self.refuse_other_history(endpoint)?;
            }
            tokio::select! {
                // The clients live as long as we do.
                changed = heads.changed() => if changed.is_err() { return Ok(()) },
                _ = halt.wait_for(|halt| *halt) => return Ok(()),
            }
        }
    }

    /// An endpoint whose tip is indexed must have the block that is indexed: it may be behind, not elsewhere.
    fn refuse_other_history(&self, endpoint: &EndpointState) -> Result<(), Error> {
        let Some(tip) = endpoint.height else { return Ok(()) };
        let known = match (endpoint.hash, endpoint.parent) {
            (Some(hash), _) => Some((tip, hash)),
            (None, parent) => tip.checked_sub(1).zip(parent),
        };
        let Some((height, hash)) = known else { return Ok(()) };
        if height > self.published.blocks.borrow().height {
            return Ok(());
        }
        match hash_at(&*self.store.snapshot()?, height)? {
            Some(ours) if ours != hash => Err(Error::Elsewhere { height, origin: endpoint.origin.clone() }),
            _ => Ok(()),
        }
    }

    async fn recover_or_give_up(&self, error: Error) -> Result<(), Error> {
        match self.recover(error).await {
            Err(error) => self.give_up(error).await,
            recovered => recovered,
        }
    }

    /// Does what it takes for the lanes to go on after `error`; the error itself if nothing helps.
    async fn recover(&self, error: Error) -> Result<(), Error> {
        match error {
            Error::Fork { height, told_by: Some(ref origin), .. } => {
                tracing::warn!(%error, "another history");
                if !self.go_along(height.saturating_sub(1), origin).await? {
                    if self.node.comet.endpoints().len() <= 1 {
                        return Err(error);
                    }
                    self.node.distrust(origin, "its block names a parent that it does not have");
                }
                Ok(())
            }
            Error::Elsewhere { height, ref origin } => {
                tracing::warn!(%error, "another history");
                if !self.go_along(height, origin).await? {
                    self.node.distrust(origin, "it names another hash of its tip than its block has");
                }
                Ok(())
            }
            Error::Untrue { height, .. } => {
                self.go_back_to(height.saturating_sub(1), &error.to_string()).await
            }
            error if error.is_full() => {
                wait_for_room(&*self.store, &error).await;
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Waits, if it is a node that cannot go on and that may be mended while we run; else it is over.
    async fn give_up(&self, error: Error) -> Result<(), Error> {
        let Some(pause) = self.config.keep_trying.filter(|_| error.is_the_nodes()) else { return Err(error) };
        tracing::error!(error = %causes(&error), retry_in = ?pause, "the index cannot go on");
        meter::lane_stopped("blocks", true);
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// What verifies signatures, where they are to be.
    pub(crate) fn endorsements(&self) -> Option<Endorsements> {
        match &self.config.verify {
            Verify::Signatures { trusted } => {
                Some(Endorsements::new(Arc::clone(&self.node), self.config.chain_id.clone(), *trusted))
            }
            Verify::Off | Verify::Hashes => None,
        }
    }

    /// Finds out whose block `height` is the chain's, and follows; false if nobody can be followed.
    async fn go_along(&self, height: u64, origin: &node::Origin) -> Result<bool, Error> {
        let last = self.published.blocks.borrow().height;
        let forks = Forks {
            node: Arc::clone(&self.node),
            store: Arc::clone(&self.store),
            start_height: self.identity.start_height,
            max_rewind: self.config.max_rewind,
            verified: self.config.verify != Verify::Off,
            endorsements: self.endorsements(),
        };
        match forks.judge(height, last, origin).await? {
            Verdict::GoOn => Ok(true),
            Verdict::Contradiction => Ok(false),
            Verdict::GoBackTo(to) => {
                self.damp(height).await;
                self.go_back_to(to, "the chain has another history above it").await.map(|()| true)
            }
        }
    }

    /// Waits, where a single endpoint shows one history after the other.
    async fn damp(&self, height: u64) {
        if self.node.comet.endpoints().len() > 1 {
            return;
        }
        let pause = self.damping.lock().unwrap_or_else(PoisonError::into_inner).pause(Instant::now());
        if let Some(pause) = pause {
            tracing::error!(
                height,
                pause_s = pause.as_secs(),
                "the endpoint shows different histories again and again: is it a load balancer over nodes that differ?"
            );
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes back every block above `to`.
    async fn go_back_to(&self, to: u64, reason: &str) -> Result<(), Error> {
        let from = self.published.blocks.borrow().height;
        tracing::warn!(from, to, reason, "going back");
        Event::Rewind.count();
        let first = self.identity.start_height;
        let by = change(&self.store, "rewind", move |store| {
            if to < first {
                // No block is before the first one, to be the last one then.
                rollback::force_rollback(store, first)?;
                return Ok(By::FullRollback);
            }
            Ok(rewind::rewind(store, to)?.by)
        })
        .await?;
        self.handover.clear();
        self.published.read(&*self.store.snapshot()?)?;
        tracing::warn!(from, to, ?by, "went back");
        Ok(())
    }
}

/// Makes a change that can be begun again wherever it was interrupted; on a full disk, as soon as there is room.
pub(crate) async fn change<T: Send + 'static>(
    store: &Arc<dyn Store>,
    name: &'static str,
    make: impl Fn(&dyn Store) -> Result<T, Error> + Clone + Send + 'static,
) -> Result<T, Error> {
    loop {
        let (shared, make) = (Arc::clone(store), make.clone());
        let (running, ended) = mpsc::channel();
        let _waiting = Ended(ended);
        let made = tokio::task::spawn_blocking(move || {
            let made = make(&*shared);
            drop((shared, running));
            made
        });
        match made.await.map_err(|error| Error::Crashed { lane: name, reason: error.to_string() })? {
            Err(error) if error.is_full() => wait_for_room(&**store, &error).await,
            made => return made,
        }
    }
}

/// Waits, when it is dropped, for the thread that has the sender: a shutdown that drops a change must not close the store
/// while it is written.
struct Ended(mpsc::Receiver<Infallible>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Nothing is sent: this is an error as soon as the sender is gone.
        let _ended = self.0.recv();
    }
}

/// Waits until there is room on the disk that `error` says is full.
pub(crate) async fn wait_for_room(store: &dyn Store, error: &Error) {
    tracing::error!(%error, "nothing is written until there is room");
    while let Err(store::Error::NoSpace { .. }) = store.room() {
        tokio::time::sleep(LOOK_FOR_ROOM).await;
    }
    tracing::info!("there is room again");
}

/// Whether what it shows of the chain is to be believed.
fn is_trusted(endpoint: &EndpointState) -> bool {
    !matches!(endpoint.standing, Standing::Distrusted | Standing::WrongChain)
}

/// The error with everything that caused it, in one line.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::FutureExt as _;
    use store::MemStore;

    use super::*;

    #[tokio::test]
    async fn a_change_that_is_dropped_has_ended_when_that_returns() {
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let [dropping, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
        let flags = (Arc::clone(&dropping), Arc::clone(&ended));
        let mut changing = Box::pin(change(&store, "test", move |_| {
            let _begun = begun.try_send(());
            while !flags.0.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // Long enough for a drop that does not wait to be over.
            (0..10_000).for_each(|_| std::thread::yield_now());
            flags.1.store(true, Ordering::SeqCst);
            Ok(())
        }));
        assert!((&mut changing).now_or_never().is_none());
        assert_eq!(has_begun.recv().await, Some(()));
        dropping.store(true, Ordering::SeqCst);
        drop(changing);
        assert!(ended.load(Ordering::SeqCst));
        assert_eq!(Arc::strong_count(&store), 1);
    }
}
