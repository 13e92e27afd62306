//! Reindex: removes heights from the database and indexes them again.

use std::sync::Arc;
use std::time::Duration;

use node::retry::{self, Backoff};
use node::{Node, Status};
use schema::meta::{self, BlockLane, CallLane, RichLane};
use schema::open;
use schema::rollback::{self, RollbackError};
use store::Store;
use tokio::sync::watch;

use crate::config::{self, Config, Verify};
use crate::{Error, Ingest};

/// Poll interval of the node's height while the last blocks are indexed.
const POLL: Duration = Duration::from_millis(200);

/// Timeout of the first request; a node that exceeds it is down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The reindexed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reindexed {
    /// Its first height.
    pub from: u64,
    /// The current last height of every lane.
    pub to: u64,
}

/// A possible reindex: database and node have its heights.
pub struct Reindex {
    from: u64,
    /// The last height before the reindex.
    last: u64,
    config: Config,
    node: Arc<Node>,
}

impl Reindex {
    /// Checks that `from` and everything above, by default all heights, can be indexed again.
    pub async fn plan(store: &dyn Store, node: &Arc<Node>, from: Option<u64>) -> Result<Self, Error> {
        let (identity, config) = (open::existing(store)?, config(store)?);
        let last = meta::read::<BlockLane>(&*store.snapshot()?)?.unwrap_or_default().height;
        let first = identity.start_height;
        let from = from.unwrap_or(first);
        if from < first || (from > last + 1 && from > first) {
            return Err(RollbackError::OutOfRange { to: from.saturating_sub(1), first, last }.into());
        }
        // Before the removal: a node that is down or has pruned the heights cannot supply them again.
        let there = status(node, &identity.chain_id).await?;
        if there.earliest_height > from {
            let remedy = "what it has forgotten cannot be indexed again: add an endpoint with older blocks, or restore \
                          a backup";
            let (earliest, latest) = (there.earliest_height, there.latest_height);
            return Err(Error::NothingToCompare { earliest, latest, last, remedy });
        }
        Ok(Self { from, last, config, node: Arc::clone(node) })
    }

    /// Marks the heights as removed, in one commit. The next start removes them, if this process does not.
    pub fn begin(&self, store: &dyn Store) -> Result<(), Error> {
        Ok(rollback::begin_force_rollback(store, self.from)?)
    }

    /// Removes the heights, whatever state their rows are in, and indexes them again up to the previous height, or the
    /// node's if that is lower. Ends early on `stop`; the next ingest continues from there.
    pub async fn run(self, store: &Arc<dyn Store>, stop: watch::Receiver<bool>) -> Result<Reindexed, Error> {
        rollback::finish_pending(&**store)?;
        let to = catch_up(store, &self.node, self.config, self.last, stop).await?;
        Ok(Reindexed { from: self.from, to })
    }
}

/// The status of the node, after a check that it serves this chain; an error if it does not answer in time.
pub(super) async fn status(node: &Node, chain_id: &str) -> Result<Status, Error> {
    let asked = retry::until(Backoff::default(), "status", || node.comet.verify_chain(chain_id));
    if let Ok(status) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        return status.map_err(|source| Error::start("status", source));
    }
    // Repeated for the reason of the failure.
    let silent =
        |error: node::Error| Error::Silent { seconds: ANSWER_TIMEOUT.as_secs(), reason: error.to_string() };
    node.comet.verify_chain(chain_id).await.map_err(silent)
}

/// Indexes the missing heights up to `last`, in every lane; returns the lowest height of all lanes.
pub(super) async fn catch_up(
    store: &Arc<dyn Store>,
    node: &Arc<Node>,
    config: Config,
    last: u64,
    stop: watch::Receiver<bool>,
) -> Result<u64, Error> {
    let ingest = Ingest::prepare(config, Arc::clone(node), Arc::clone(store)).await?;
    run_to(&ingest, last, stop).await
}

/// The configuration that the database was made with: its lanes.
pub(super) fn config(store: &dyn Store) -> Result<Config, Error> {
    let (identity, snapshot) = (open::existing(store)?, store.snapshot()?);
    Ok(Config {
        chain_id: identity.chain_id,
        vm: identity.vm.parse().map_err(|_| Error::Setup("the database names no known vm"))?,
        prefix: Some(identity.prefix),
        start_height: Some(identity.start_height),
        internal_txs: meta::read::<CallLane>(&*snapshot)?.is_some(),
        rich_list: meta::read::<RichLane>(&*snapshot)?.is_some(),
        reconcile_every: None,
        believe_after: config::BELIEVE_AFTER,
        look_ahead: config::LOOK_AHEAD,
        poll: POLL,
        verify: Verify::Hashes,
        max_rewind: config::MAX_REWIND,
        keep_trying: None,
    })
}

/// Runs `ingest` until every lane has reached `last`, or the node's height at the start if that is lower.
pub(super) async fn run_to(ingest: &Ingest, last: u64, stop: watch::Receiver<bool>) -> Result<u64, Error> {
    let (end, ended) = watch::channel(false);
    let mut progress = ingest.progress();
    let last = last.min(progress.chain.borrow().height);
    let watching = async {
        while progress.done() < last && !*stop.borrow() {
            let mut stop = stop.clone();
            tokio::select! {
                () = progress.moved() => {}
                stopped = stop.wait_for(|stop| *stop) => {
                    // The sender of `stop` was dropped: no stop can come.
                    if stopped.is_err() {
                        progress.moved().await;
                    }
                }
            }
        }
        end.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(ended), async {
        watching.await;
    });
    outcome?;
    Ok(ingest.progress().done())
}
