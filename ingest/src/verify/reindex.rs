//! Reindex: removes heights from the database and indexes them again.

use std::sync::Arc;
use std::time::Duration;

use chain::Vm;
use node::retry::{self, Backoff};
use node::{Node, Status};
use schema::index::{self, Input};
use schema::meta::{self, BlockLane, CallLane, Meta, PendingReindex, RichLane, WrittenIndexes};
use schema::open;
use schema::rewind;
use schema::undo::Horizon;
use store::{Durability, Store};
use tokio::sync::watch;

use crate::config::{self, Config, Verify};
use crate::{Error, Ingest, evm_chain};

/// Poll interval of the node's height while the last blocks are indexed.
const POLL: Duration = Duration::from_millis(200);

/// Timeout of the first request; a node that exceeds it is down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// The outcome of a reindex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reindexed {
    /// Its first height.
    pub from: u64,
    /// The current last height of every lane.
    pub to: u64,
    /// The last height before the removal; above `to` if the reindex was stopped, or if the node has less.
    pub last: u64,
}

/// A possible reindex: database and node have its heights.
pub struct Reindex {
    pending: PendingReindex,
    /// The height after which an interrupted one continues.
    done: Option<u64>,
    config: Config,
    node: Arc<Node>,
}

impl Reindex {
    /// Checks that `from` and everything above, by default all heights, can be indexed again. An interrupted reindex of
    /// the same heights is continued.
    pub async fn plan(store: &dyn Store, node: &Arc<Node>, from: Option<u64>) -> Result<Self, Error> {
        let (identity, config) = (open::existing(store)?, config(store)?);
        let height = meta::read::<BlockLane>(&*store.snapshot()?)?.unwrap_or_default().height;
        let first = identity.start_height;
        let from = from.unwrap_or(first);
        let interrupted = interrupted(store)?;
        let same = interrupted.filter(|pending| pending.from == from);
        // Without the mark, it was interrupted right after the removal.
        let done = Some(height).filter(|_| same.is_some_and(|pending| pending.removed || height < from));
        let last = interrupted.map_or(height, |interrupted| interrupted.to.max(height));
        if same.is_none() && (from < first || from > height.max(first)) {
            return Err(Error::NothingToReindex { from, first, last: height });
        }
        if done.is_none() && from > first {
            rewind::landing(store, from - 1)?;
        }
        // Before the removal: a node that is down or has pruned the heights cannot supply them again.
        let there = status(node, &identity.chain_id).await?;
        let next = done.map_or(from, |done| (done + 1).max(from));
        if there.earliest_height > next && next <= last {
            let remedy = "what it has forgotten cannot be indexed again: add an endpoint with older blocks, or restore \
                          a backup";
            let (earliest, latest) = (there.earliest_height, there.latest_height);
            return Err(Error::NothingToCompare { earliest, latest, last, remedy });
        }
        let (internal_txs, rich_list) = (config.internal_txs, config.rich_list);
        let pending = PendingReindex { from, to: last, internal_txs, rich_list, removed: done.is_some() };
        Ok(Self { pending, done, config, node: Arc::clone(node) })
    }

    /// The heights of an interrupted reindex that this one continues, and the height that it had reached.
    pub fn continues(&self) -> Option<(u64, u64, u64)> {
        self.done.map(|done| (self.pending.from, self.pending.to, done))
    }

    /// Removes the heights: by the undo log, or all of them in one commit, whatever state their rows are in.
    pub fn begin(&mut self, store: &dyn Store) -> Result<(), Error> {
        let first = open::existing(store)?.start_height;
        let removed = PendingReindex { removed: true, ..self.pending };
        if self.pending.from <= first {
            rewind::clear(store, Some(&removed))?;
        } else {
            put(store, &self.pending)?;
            rewind::rewind(store, self.pending.from - 1)?;
            put(store, &removed)?;
        }
        self.pending = removed;
        Ok(())
    }

    /// Indexes the heights again up to the previous height, or the node's if that is lower. Ends early on `stop`; the next
    /// ingest, or the next reindex, continues from there.
    pub async fn run(self, store: &Arc<dyn Store>, stop: watch::Receiver<bool>) -> Result<Reindexed, Error> {
        let PendingReindex { from, to: last, .. } = self.pending;
        let to = catch_up(store, &self.node, self.config, last, stop).await?;
        if to >= last {
            end(&**store)?;
        }
        Ok(Reindexed { from, to, last })
    }
}

/// Records that a reindex is complete.
pub(super) fn end(store: &dyn Store) -> Result<(), Error> {
    Ok(store::commit_rows::<schema::Error>(store, Durability::Synced, |txn| {
        txn.delete::<Meta>(&meta::key::<PendingReindex>());
        Ok(())
    })?)
}

fn put(store: &dyn Store, pending: &PendingReindex) -> Result<(), Error> {
    Ok(store::commit_rows::<schema::Error>(store, Durability::Synced, |txn| {
        meta::put(txn, pending);
        Ok(())
    })?)
}

/// The reindex that was interrupted, unless an ingest has completed it since.
fn interrupted(store: &dyn Store) -> Result<Option<PendingReindex>, Error> {
    let snapshot = store.snapshot()?;
    let Some(pending) = meta::read::<PendingReindex>(&*snapshot)? else { return Ok(None) };
    let blocks = meta::read::<BlockLane>(&*snapshot)?.unwrap_or_default().height;
    let calls = meta::read::<CallLane>(&*snapshot)?.unwrap_or_default().height;
    let rich = meta::read::<RichLane>(&*snapshot)?.unwrap_or_default().height;
    let lanes = [(true, blocks), (pending.internal_txs, calls), (pending.rich_list, rich)];
    let is_complete = lanes.into_iter().all(|(exists, height)| !exists || height >= pending.to);
    Ok(Some(pending).filter(|_| !is_complete))
}

/// Records that the lanes of `config` must reach `last`, before the rich list is cleared, which deletes its lane: a
/// repeated repair would not know that there was one.
pub(super) fn mark_rich_list(store: &dyn Store, config: &Config, last: u64) -> Result<(), Error> {
    let (internal_txs, rich_list) = (config.internal_txs, config.rich_list);
    put(store, &PendingReindex { from: last + 1, to: last, internal_txs, rich_list, removed: true })
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
    let interrupted = meta::read::<PendingReindex>(&*snapshot)?.unwrap_or_default();
    let vm = identity.vm.parse().map_err(|_| Error::Setup("the database names no known vm"))?;
    // Off EVM the next start continues the balances.
    let has_rich_list = vm == Vm::Evm && meta::read::<RichLane>(&*snapshot)?.is_some();
    // Those with a lane of their own are continued by the next start.
    let written = meta::read::<WrittenIndexes>(&*snapshot)?.unwrap_or_default().names;
    let indexes = written.iter().filter_map(|name| index::named(name));
    let indexes = indexes.filter(|index| index.input != Input::Lane).collect();
    Ok(Config {
        chain_id: identity.chain_id,
        vm,
        evm: evm_chain::stored(&*snapshot)?,
        prefix: Some(identity.prefix),
        start_height: Some(identity.start_height),
        internal_txs: interrupted.internal_txs || meta::read::<CallLane>(&*snapshot)?.is_some(),
        rich_list: interrupted.rich_list || has_rich_list,
        indexes,
        bridge: None,
        reconcile_every: None,
        believe_after: config::BELIEVE_AFTER,
        look_ahead: config::LOOK_AHEAD,
        poll: POLL,
        verify: Verify::Hashes,
        max_rewind: config::MAX_REWIND,
        undo: Horizon::DEFAULT,
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
