//! Reindex: rolls heights back and indexes them again.

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use schema::meta::{self, BlockLane, CallLane, Identity, RichLane};
use schema::open;
use schema::rollback::{self, RollbackError};
use store::{Snapshot, Store};
use tokio::sync::watch;

use super::chain::status;
use crate::config::{self, Config, Verify};
use crate::{Error, Ingest};

/// Poll interval of the node's height while the last blocks are indexed.
const POLL: Duration = Duration::from_millis(200);

/// The reindexed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reindexed {
    /// Its first height.
    pub from: u64,
    /// The last height of every lane now.
    pub to: u64,
}

/// Rolls back `from` and everything above, whatever state it is in, and indexes it again up to the previous height, or
/// the node's if that is lower. Ends early on `stop`; the next ingest continues from there.
pub async fn reindex(
    store: &Arc<dyn Store>,
    node: &Arc<Node>,
    from: u64,
    stop: watch::Receiver<bool>,
) -> Result<Reindexed, Error> {
    let identity = open::existing(&**store)?;
    let (config, last) = {
        let snapshot = store.snapshot()?;
        let lane: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        (config(&*snapshot, &identity)?, lane.height)
    };
    let first = identity.start_height;
    if from < first || from > last + 1 {
        return Err(RollbackError::OutOfRange { to: from.saturating_sub(1), first, last }.into());
    }
    // Before the rollback: a node that is down or has pruned the heights cannot supply them again.
    let there = status(node, &identity.chain_id).await?;
    if there.earliest_height > from {
        let remedy = "what it has forgotten cannot be indexed again: add an endpoint with older blocks";
        let (earliest, latest) = (there.earliest_height, there.latest_height);
        return Err(Error::NothingToCompare { earliest, latest, last, remedy });
    }
    rollback::force_rollback(&**store, from)?;
    catch_up(store, node, config, last, stop).await.map(|to| Reindexed { from, to })
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
pub(super) fn config(snapshot: &dyn Snapshot, identity: &Identity) -> Result<Config, Error> {
    Ok(Config {
        chain_id: identity.chain_id.clone(),
        vm: identity.vm.parse().map_err(|_| Error::Setup("the database names no known vm"))?,
        prefix: Some(identity.prefix.clone()),
        start_height: Some(identity.start_height),
        internal_txs: meta::read::<CallLane>(snapshot)?.is_some(),
        rich_list: meta::read::<RichLane>(snapshot)?.is_some(),
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
    let mut marks = ingest.marks();
    let last = last.min(marks.chain.borrow().height);
    let watching = async {
        while marks.done() < last && !*stop.borrow() {
            let mut stop = stop.clone();
            tokio::select! {
                () = marks.moved() => {}
                stopped = stop.wait_for(|stop| *stop) => {
                    // The sender of `stop` is gone: no stop can come.
                    if stopped.is_err() {
                        marks.moved().await;
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
    Ok(ingest.marks().done())
}
