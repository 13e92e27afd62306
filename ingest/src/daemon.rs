//! Supervisor of the lanes: runs them, and recovers from the errors that end them.
//!
//! ```text
//! lanes run ──▶ a lane ends ──▶ why? ──▶ stop requested          the ingest ends
//!    ▲                              ├──▶ another history          rewind, or distrust the endpoint that showed it
//!    │                              ├──▶ no room on the disk      wait for room
//!    └──────────────────────────────┴──▶ the node cannot answer   wait if `keep_trying` is set; else end with the error
//! ```
//!
//! # Invariants
//! * Rows are rewound only while no lane runs.

use std::sync::{Arc, PoisonError};

use node::{EndpointState, EndpointStatus};
use schema::block::hash_at;
use schema::rewind::{self, By};
use schema::rollback;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Error;
use crate::config::Verify;
use crate::fork::{ForkResolver, Verdict};
use crate::ingest::{Ingest, causes, change, wait_for_room};
use crate::meter::{self, Event};

impl Ingest {
    /// Indexes until `stop` becomes true, or an error that needs an operator. All commits up to then are complete.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        // Boxed, to keep the caller's future small.
        let work = async {
            while !*stop.borrow() {
                meter::lane_stopped("blocks", false);
                if let Err(error) = Box::pin(self.run_lanes(stop.clone())).await {
                    tokio::select! {
                        recovered = Box::pin(self.recover_or_give_up(error)) => recovered?,
                        // The sender of `stop` is gone: treated as a stop.
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

    /// Runs every lane until `stop` becomes true (`Ok`) or the block lane fails. No lane runs afterwards.
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
            // Boxed, to keep 16 KiB out of the joined future.
            let (blocks, heads, (), ()) = tokio::join!(
                blocks,
                Box::pin(heads),
                Box::pin(self.run_calls(halt.subscribe())),
                Box::pin(self.run_rich_list(halt.subscribe())),
            );
            heads.and(blocks)
        };
        let stopping = async {
            // The sender of `stop` is gone: treated as a stop.
            drop(stop.wait_for(|stop| *stop).await);
            halt.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = all => outcome,
            () = stopping => Ok(()),
        }
    }

    /// Publishes the chain's height to the lanes. An error if an endpoint's chain is not the indexed one.
    async fn follow_heads(&self, mut halt: watch::Receiver<bool>) -> Result<(), Error> {
        let mut heads = self.node.comet.heads();
        loop {
            let endpoints = Arc::clone(&heads.borrow_and_update());
            let trusted = || endpoints.iter().filter(|endpoint| is_trusted(endpoint));
            let tip = trusted().filter_map(|endpoint| endpoint.height).max();
            // As for requests, a distrusted endpoint counts if there is no other.
            let any = || endpoints.iter().filter(|endpoint| endpoint.status != EndpointStatus::WrongChain);
            if let Some(height) = tip.or_else(|| any().filter_map(|endpoint| endpoint.height).max()) {
                self.progress.chain.send_if_modified(|mark| {
                    let moved = mark.height != height;
                    mark.height = height;
                    moved
                });
            }
            for endpoint in trusted() {
                self.check_history(endpoint)?;
            }
            tokio::select! {
                // The clients live as long as this.
                changed = heads.changed() => if changed.is_err() { return Ok(()) },
                _ = halt.wait_for(|halt| *halt) => return Ok(()),
            }
        }
    }

    /// An endpoint whose tip is indexed must have the indexed block: it may be behind, but not on another history.
    fn check_history(&self, endpoint: &EndpointState) -> Result<(), Error> {
        let Some(tip) = endpoint.height else { return Ok(()) };
        let known = match (endpoint.hash, endpoint.parent) {
            (Some(hash), _) => Some((tip, hash)),
            (None, parent) => tip.checked_sub(1).zip(parent),
        };
        let Some((height, hash)) = known else { return Ok(()) };
        if height > self.progress.blocks.borrow().height {
            return Ok(());
        }
        match hash_at(&*self.store.snapshot()?, height)? {
            Some(ours) if ours != hash => {
                Err(Error::ConflictingBlock { height, origin: endpoint.origin.clone() })
            }
            _ => Ok(()),
        }
    }

    async fn recover_or_give_up(&self, error: Error) -> Result<(), Error> {
        match self.recover(error).await {
            Err(error) => self.give_up(error).await,
            recovered => recovered,
        }
    }

    /// Recovers from `error`, so that the lanes can be restarted; returns the error if that is impossible.
    async fn recover(&self, error: Error) -> Result<(), Error> {
        match error {
            Error::Fork { height, origin: Some(ref origin), .. } => {
                tracing::warn!(%error, "another history");
                if !self.follow_fork(height.saturating_sub(1), origin).await? {
                    if self.node.comet.endpoints().len() <= 1 {
                        return Err(error);
                    }
                    self.node.distrust(origin, "its block names a parent that it does not serve");
                }
                Ok(())
            }
            Error::ConflictingBlock { height, ref origin } => {
                tracing::warn!(%error, "another history");
                if !self.follow_fork(height, origin).await? {
                    self.node.distrust(
                        origin,
                        "the hash of its tip differs from that of its block at the same height",
                    );
                }
                Ok(())
            }
            Error::InvalidBlock { height, .. } => {
                self.rewind_to(height.saturating_sub(1), &error.to_string()).await
            }
            error if error.is_full() => {
                wait_for_room(&*self.store, &error).await;
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Waits before a restart if the error is the node's and `keep_trying` is set; else returns the error.
    async fn give_up(&self, error: Error) -> Result<(), Error> {
        let Some(pause) = self.config.keep_trying.filter(|_| error.is_the_nodes()) else { return Err(error) };
        tracing::error!(error = %causes(&error), retry_in = ?pause, "the index cannot go on");
        meter::lane_stopped("blocks", true);
        tokio::time::sleep(pause).await;
        Ok(())
    }

    /// Resolves which block `height` has on the chain, and follows; false if there is no history to follow.
    async fn follow_fork(&self, height: u64, origin: &node::Origin) -> Result<bool, Error> {
        let last = self.progress.blocks.borrow().height;
        let forks = ForkResolver {
            node: Arc::clone(&self.node),
            store: Arc::clone(&self.store),
            start_height: self.identity.start_height,
            max_rewind: self.config.max_rewind,
            verified: self.config.verify != Verify::Off,
            commit_verifier: self.commit_verifier(),
        };
        match forks.resolve(height, last, origin).await? {
            Verdict::Continue => Ok(true),
            Verdict::Contradiction => Ok(false),
            Verdict::RewindTo(to) => {
                self.damp(height).await;
                self.rewind_to(to, "the chain has another history above it").await.map(|()| true)
            }
        }
    }

    /// Pauses if a single endpoint alternates between histories.
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

    /// Rewinds to `to`.
    async fn rewind_to(&self, to: u64, reason: &str) -> Result<(), Error> {
        let from = self.progress.blocks.borrow().height;
        tracing::warn!(from, to, reason, "rewinding");
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
        self.transfer_cache.clear();
        self.progress.read(&*self.store.snapshot()?)?;
        tracing::warn!(from, to, ?by, "went back");
        Ok(())
    }
}

/// Whether the endpoint's view of the chain is trusted.
fn is_trusted(endpoint: &EndpointState) -> bool {
    !matches!(endpoint.status, EndpointStatus::Distrusted | EndpointStatus::WrongChain)
}
