//! A lane: one ordered stream of heights with one watermark, committed by one writer thread.
//!
//! Heights are fetched and derived ahead, several at once and in any order, and forwarded in order as soon as they are
//! confirmed ([`Confirmation`]). One commit takes all heights that arrived during the previous commit. A lane that is
//! catching up therefore commits many blocks together, and a lane near the head commits each block by itself, with an
//! undo record ([`schema::undo`]); the code is the same.
//!
//! Bounds: at most `look_ahead` heights are between the node and the commit; a commit ends at [`MAX_BATCH_BYTES`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};
use schema::undo;
use store::{Counts, Durability, Store, Txn};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::confirmation::Confirmation;
use crate::{Error, Mark};

/// Bytes of one commit: about what RocksDB writes to its WAL in 20 ms.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// fsync interval while catching up. A power failure loses at most this much work, which is fetched again.
const SYNC_EVERY: Duration = Duration::from_millis(200);

/// A height that waits for its successor is committed after this long: a node that announces blocks and does not serve
/// them must not hold back the block before.
const MAX_HOLD: Duration = Duration::from_secs(2);

/// List lengths in the lane's cache: some 100 bytes each.
const REMEMBERED_LISTS: usize = 1 << 18;

/// The source of a lane's heights.
pub(crate) trait Source: Send + Sync + 'static {
    /// One height, derived.
    type Item: Send + 'static;

    /// Fetches and derives `height`, with retries without a limit. An error ends the lane.
    fn fetch(self: Arc<Self>, height: u64) -> impl Future<Output = Result<Self::Item, Error>> + Send;
}

/// The writer of a lane's rows. Lives on the lane's own thread.
pub(crate) trait Sink<I>: Send + 'static {
    /// The lane.
    const LANE: undo::Lane;

    /// Data that arrives after its height was committed.
    type Late: Send + 'static;

    /// Writes the rows of the next height, and the lane's own row.
    fn apply(&mut self, item: &I, txn: &mut Txn<'_>) -> Result<(), Error>;
    /// Writes the changes from `late`.
    fn late(&mut self, late: &Self::Late, txn: &mut Txn<'_>) -> Result<(), Error>;
    /// Its progress.
    fn mark(&self) -> Mark;
}

/// One lane, to be run.
pub(crate) struct Lane<S: Source, R: Confirmation<S::Item>, K: Sink<S::Item>> {
    pub(crate) name: &'static str,
    pub(crate) source: Arc<S>,
    pub(crate) confirmation: R,
    pub(crate) sink: K,
    pub(crate) store: Arc<dyn Store>,
    /// The first height that is not indexed yet.
    pub(crate) next: u64,
    /// The last height that can be fetched; grows.
    pub(crate) target: watch::Receiver<Mark>,
    /// Publishes the lane's progress after each commit.
    pub(crate) mark: watch::Sender<Mark>,
    pub(crate) look_ahead: usize,
    /// Data for heights that are committed already.
    pub(crate) late: mpsc::Receiver<K::Late>,
    /// Becomes true when the lane is to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

impl<S: Source, R: Confirmation<S::Item>, K: Sink<S::Item>> Lane<S, R, K> {
    /// Runs until `stop` (`Ok`) or an error. All of its tasks and threads have ended when this returns: the store may
    /// be closed.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let Self { name, source, confirmation, sink, store, next, target, mark, look_ahead, late, mut stop } =
            self;
        let (fetched, ready) = mpsc::channel(look_ahead.max(1));
        let (alive, mut all_ended) = mpsc::channel(1);
        let at_head = target.clone();
        let writer = tokio::task::spawn_blocking(move || write(name, sink, &*store, ready, &mark, &at_head));
        let writer_ended = fetched.clone();
        let late = forward_late(late, fetched.clone());
        let outcome = tokio::select! {
            outcome = async {
                let heights = fetch_in_order(source, next, target.clone(), look_ahead, alive);
                forward_confirmed(heights, next, target, confirmation, fetched).await
            } => outcome,
            never = late => match never {},
            _ = stop.wait_for(|stop| *stop) => Ok(()),
            () = writer_ended.closed() => Ok(()),
        };
        // Without senders the writer commits the rest and ends.
        drop(writer_ended);
        let written =
            writer.await.map_err(|error| Error::Crashed { lane: name, reason: error.to_string() })?;
        // Nothing is ever sent: the channel closes when the last task, aborted or not, has ended.
        all_ended.recv().await;
        written.and(outcome)
    }
}

/// Work for the writer.
enum Work<I, L> {
    Height(I),
    Late(L),
}

/// Forwards late data to the writer.
async fn forward_late<I, L>(mut late: mpsc::Receiver<L>, to: mpsc::Sender<Work<I, L>>) -> Infallible {
    while let Some(late) = late.recv().await {
        if to.send(Work::Late(late)).await.is_err() {
            break;
        }
    }
    // Late data must not end the lane.
    std::future::pending().await
}

/// The heights from `next` on, in order; `look_ahead` are fetched at once. Every task holds `alive` until it has ended.
fn fetch_in_order<S: Source>(
    source: Arc<S>,
    next: u64,
    target: watch::Receiver<Mark>,
    look_ahead: usize,
    alive: mpsc::Sender<Infallible>,
) -> impl Stream<Item = Result<S::Item, Error>> {
    let heights = futures_util::stream::unfold((next, target), |(height, mut target)| async move {
        // The sender lives as long as the chain is watched; without it no height follows.
        target.wait_for(|target| target.height >= height).await.ok()?;
        Some((height, (height + 1, target)))
    });
    let tasks = heights.map(move |height| {
        let (source, alive) = (Arc::clone(&source), alive.clone());
        // A task of its own, so that it makes progress while this stream waits for room.
        let task = AbortOnDrop(tokio::spawn(async move {
            let (source, _alive) = (source, alive);
            source.fetch(height).await
        }));
        async move { task.join(height).await }
    });
    tasks.buffered(look_ahead.max(1))
}

/// Forwards the heights from `next` on to the writer as they are confirmed.
async fn forward_confirmed<I, L, R: Confirmation<I>>(
    heights: impl Stream<Item = Result<I, Error>>,
    next: u64,
    target: watch::Receiver<Mark>,
    mut confirmation: R,
    to: mpsc::Sender<Work<I, L>>,
) -> Result<(), Error> {
    let mut heights = std::pin::pin!(heights);
    let mut height = next;
    loop {
        let arrived = if confirmation.has_pending() {
            timeout(MAX_HOLD, heights.next()).await
        } else {
            Ok(heights.next().await)
        };
        let confirmed = match arrived {
            Ok(None) => return Ok(()),
            Ok(Some(item)) => {
                let is_last = target.borrow().height <= height;
                height += 1;
                confirmation.push(item?, is_last).await?
            }
            Err(_late) => confirmation.flush().into_iter().collect(),
        };
        for item in confirmed {
            if to.send(Work::Height(item)).await.is_err() {
                // The writer has ended, and returns the reason.
                return Ok(());
            }
        }
    }
}

/// A task that is aborted when its handle is dropped.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<Result<T, Error>> {
    async fn join(mut self, height: u64) -> Result<T, Error> {
        match (&mut self.0).await {
            Ok(result) => result,
            Err(error) => Err(Error::FetchCrashed { height, reason: error.to_string() }),
        }
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Commits what arrives, until the channel closes.
fn write<I, K: Sink<I>>(
    name: &'static str,
    mut sink: K,
    store: &dyn Store,
    mut ready: mpsc::Receiver<Work<I, K::Late>>,
    mark: &watch::Sender<Mark>,
    target: &watch::Receiver<Mark>,
) -> Result<(), Error> {
    let mut counts = Counts::new(REMEMBERED_LISTS);
    let mut synced = Instant::now();
    while let Some(first) = ready.blocking_recv() {
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut heights = 0;
        let mut apply = |work: &Work<I, K::Late>, sink: &mut K, txn: &mut Txn<'_>| match work {
            Work::Height(item) => {
                heights += 1;
                sink.apply(item, txn)
            }
            Work::Late(late) => sink.late(late, txn),
        };
        apply(&first, &mut sink, &mut txn)?;
        // Near the head each height is a commit of its own, with an undo record.
        let reversible = sink.mark().height.saturating_add(undo::HEIGHTS) > target.borrow().height;
        while !reversible
            && txn.bytes() < MAX_BATCH_BYTES
            && let Ok(next) = ready.try_recv()
        {
            apply(&next, &mut sink, &mut txn)?;
        }
        let (batch, pending) =
            if reversible { undo::finish_with_undo_record(txn, K::LANE)? } else { txn.finish() };
        drop(snapshot);
        let done = sink.mark();
        let at_head = done.height >= target.borrow().height;
        let due = at_head || synced.elapsed() >= SYNC_EVERY;
        let bytes = batch.bytes();
        store.commit(batch, if due { Durability::Synced } else { Durability::Buffered })?;
        if due {
            synced = Instant::now();
        }
        counts.absorb(pending);
        mark.send_replace(done);
        tracing::debug!(lane = name, height = done.height, heights, bytes, "committed");
    }
    store.sync()?;
    Ok(())
}
