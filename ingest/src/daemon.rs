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

mod decision;

use std::sync::{Arc, PoisonError};

use node::{EndpointState, Origin};
use schema::block::hash_at;
use schema::rewind::{self, Rewound};
use tokio::sync::watch;
use tokio::time::Instant;

use self::decision::{Recovery, after_failed_recovery, announced_block, chain_height, recovery};
use crate::error::causes;
use crate::fork::Verdict;
use crate::ingest::{Ingest, change, wait_for_room};
use crate::meter::{self, Event, LaneState};
use crate::{Error, Progress};

impl Ingest {
    /// Indexes until `stop` becomes true, or an error that needs an operator. All commits up to then are complete.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        // Boxed, to keep the caller's future small.
        let work = async {
            loop {
                meter::lane_stopped("blocks", false);
                LaneState::Running.set("blocks");
                let Err(error) = Box::pin(self.run_lanes(stop.clone())).await else { return Ok(()) };
                tokio::select! {
                    recovered = Box::pin(self.recover(error)) => recovered?,
                    // The sender of `stop` was dropped: treated as a stop.
                    _ = stop.wait_for(|stop| *stop) => return Ok(()),
                }
            }
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
            // The sender of `stop` was dropped: treated as a stop.
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
            if let Some(height) = chain_height(&endpoints) {
                let publish =
                    |progress: &mut Progress| std::mem::replace(&mut progress.height, height) != height;
                self.progress.chain.send_if_modified(publish);
            }
            for endpoint in endpoints.iter().filter(|endpoint| endpoint.is_trusted()) {
                self.check_history(endpoint)?;
            }
            tokio::select! {
                // The clients outlive this loop.
                changed = heads.changed() => if changed.is_err() { return Ok(()) },
                _ = halt.wait_for(|halt| *halt) => return Ok(()),
            }
        }
    }

    /// An endpoint whose tip is indexed must have the indexed block: it may be behind, but not on another history.
    fn check_history(&self, endpoint: &EndpointState) -> Result<(), Error> {
        let Some((height, hash)) = announced_block(endpoint) else { return Ok(()) };
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

    /// Recovers from `error`, so that the lanes can be restarted; returns the error if that is impossible.
    async fn recover(&self, error: Error) -> Result<(), Error> {
        let keep_trying = self.config.keep_trying;
        LaneState::Waiting.set("blocks");
        let first = recovery(&error, keep_trying);
        match self.perform(first, error).await {
            Err(error) => self.perform(after_failed_recovery(&error, keep_trying), error).await,
            Ok(()) => Ok(()),
        }
    }

    /// Performs the recovery from `error`.
    async fn perform(&self, recovery: Recovery, error: Error) -> Result<(), Error> {
        match recovery {
            Recovery::ChooseFork { height, origin, reason, needs_another } => {
                tracing::warn!(%error, "an endpoint has another history");
                if self.follow_fork(height, &origin).await? {
                    return Ok(());
                }
                if needs_another && self.node.comet.endpoints().len() <= 1 {
                    return Err(error);
                }
                self.node.distrust(&origin, reason);
                Ok(())
            }
            Recovery::Rewind { to } => self.rewind_to(to, &error.to_string()).await,
            Recovery::WaitForRoom => {
                wait_for_room(&*self.store, &error).await;
                Ok(())
            }
            Recovery::Restart { after } => {
                let height = self.progress.blocks.borrow().height;
                if self.progress.stop("blocks", height, &error) {
                    tracing::error!(height, error = %causes(&error), retry_in = ?after, "index stopped by the node, retrying");
                }
                meter::lane_stopped("blocks", true);
                LaneState::Stopped.set("blocks");
                tokio::time::sleep(after).await;
                Ok(())
            }
            Recovery::GiveUp => Err(error),
        }
    }

    /// Resolves which block `height` has on the chain, and follows; false if there is no history to follow.
    async fn follow_fork(&self, height: u64, origin: &Origin) -> Result<bool, Error> {
        match self.resolve_fork(height, origin).await? {
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
                "the only endpoint alternates between histories: it may be a load balancer over different nodes"
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
        let Rewound { from, to } = change(&self.store, "rewind", move |store| {
            if to < first {
                // There is no block below the first one, so none could be the last.
                rewind::clear(store, None)?;
                return Ok(Rewound { from, to: 0 });
            }
            Ok(rewind::rewind(store, to)?)
        })
        .await?;
        self.transfer_cache.clear();
        self.progress.read(&*self.store.snapshot()?)?;
        tracing::warn!(from, to, "rewound");
        Ok(())
    }
}
