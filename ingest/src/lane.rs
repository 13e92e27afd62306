//! A lane: one ordered stream of heights with one watermark, committed by one writer thread.
//!
//! Heights are fetched and derived ahead, several at once and in any order, and forwarded in order as soon as they are
//! confirmed ([`Confirmation`]). One commit takes all heights that arrived during the previous commit. A lane that is
//! catching up therefore commits many blocks together, and a lane near the head commits each block by itself; the code is
//! the same. Commits inside the horizon of the undo log have an undo record ([`schema::undo`]).
//!
//! Bounds: at most `look_ahead` heights are between the node and the commit; a commit ends at [`MAX_BATCH_BYTES`].

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::{Stream, StreamExt as _};
use schema::index::PackedBlock;
use schema::undo::{self, Horizon, UndoLog};
use store::{Counts, Durability, Store, Txn};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tracing::field::Empty;

use crate::confirmation::Confirmation;
use crate::nft::LateReply;
use crate::optional::{self, Fetched, OptionalIndexes};
use crate::{Error, Progress};

/// Bytes of one commit: RocksDB writes about this much to its WAL in 20 ms.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// fsync interval while catching up. A power failure loses at most this much work, which is fetched again.
const SYNC_EVERY: Duration = Duration::from_millis(200);

/// Time after which a height that waits for its successor is committed: a node that announces blocks and does not serve
/// them must not delay the previous block.
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

    /// Writes the rows of the next height, and the lane's own row.
    fn apply(&mut self, item: &I, txn: &mut Txn<'_>) -> Result<(), Error>;
    /// The next height with its records, if optional indexes follow from them.
    fn packed<'a>(&self, _: &'a I) -> Option<PackedBlock<'a>> {
        None
    }
    /// Writes the changes from a reply that arrived after its height was committed.
    fn late(&mut self, _: &LateReply, _: &mut Txn<'_>) -> Result<(), Error> {
        Ok(())
    }
    /// Its progress.
    fn progress(&self) -> Progress;
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
    pub(crate) target: watch::Receiver<Progress>,
    /// Publishes the lane's progress after each commit, also of its optional indexes alone.
    pub(crate) progress: watch::Sender<Progress>,
    /// What the lane's undo log keeps.
    pub(crate) undo: Horizon,
    /// The optional indexes that it writes.
    pub(crate) indexes: OptionalIndexes,
    pub(crate) look_ahead: usize,
    /// Answers about heights that are committed already.
    pub(crate) late: mpsc::Receiver<LateReply>,
    /// What a node has said about blocks that are committed already, for the optional indexes.
    pub(crate) fetched: mpsc::Receiver<Fetched>,
    /// Becomes true when the lane is to stop.
    pub(crate) stop: watch::Receiver<bool>,
}

impl<S: Source, R: Confirmation<S::Item>, K: Sink<S::Item>> Lane<S, R, K> {
    /// Runs until `stop` (`Ok`) or an error. All of its tasks and threads have ended when this returns, so the store
    /// may be closed.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let (fetched, ready) = mpsc::channel(self.look_ahead.max(1));
        let (alive, mut all_ended) = mpsc::channel(1);
        let (name, at_head) = (self.name, self.target.clone());
        let writer = tokio::task::spawn_blocking(move || {
            let undo = UndoLog::new(K::LANE, self.undo);
            let writer = (self.sink, undo, self.indexes);
            write(name, writer, &*self.store, ready, &self.progress, &at_head)
        });
        let writer_ended = fetched.clone();
        let late = forward(self.late, fetched.clone(), |late| Work::Late(Box::new(late)));
        let replies = forward(self.fetched, fetched.clone(), Work::Fetched);
        let heights = fetch_in_order(self.source, self.next, self.target.clone(), self.look_ahead, alive);
        let outcome = tokio::select! {
            outcome = forward_confirmed(heights, self.next, self.target, self.confirmation, fetched) => outcome,
            never = late => match never {},
            never = replies => match never {},
            _ = self.stop.wait_for(|stop| *stop) => Ok(()),
            () = writer_ended.closed() => Ok(()),
        };
        // Without senders the writer commits the rest and ends.
        drop(writer_ended);
        let written = writer.await.map_err(|error| Error::crashed(format_args!("lane {name}"), error))?;
        // No message is sent: the channel closes when the last task, aborted or not, has ended.
        all_ended.recv().await;
        written.and(outcome)
    }
}

/// Work for the writer.
enum Work<I> {
    Height(I),
    Late(Box<LateReply>),
    Fetched(Fetched),
}

/// Forwards what arrives after its height to the writer.
async fn forward<T, I>(
    mut late: mpsc::Receiver<T>,
    to: mpsc::Sender<Work<I>>,
    work: impl Fn(T) -> Work<I>,
) -> Infallible {
    while let Some(late) = late.recv().await {
        if to.send(work(late)).await.is_err() {
            break;
        }
    }
    // The end of late replies must not end the lane.
    std::future::pending().await
}

/// The heights from `next` on, in order; `look_ahead` are fetched at once. Every task holds `alive` until it has ended.
fn fetch_in_order<S: Source>(
    source: Arc<S>,
    next: u64,
    target: watch::Receiver<Progress>,
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
        // A separate task, so that it makes progress while this stream is blocked.
        let task = AbortOnDrop(tokio::spawn(async move {
            let (source, _alive) = (source, alive);
            source.fetch(height).await
        }));
        async move { task.join(height).await }
    });
    tasks.buffered(look_ahead.max(1))
}

/// Forwards the heights from `next` on to the writer as they are confirmed.
async fn forward_confirmed<I, R: Confirmation<I>>(
    heights: impl Stream<Item = Result<I, Error>>,
    next: u64,
    target: watch::Receiver<Progress>,
    mut confirmation: R,
    to: mpsc::Sender<Work<I>>,
) -> Result<(), Error> {
    let mut heights = std::pin::pin!(heights);
    let mut height = next;
    loop {
        let confirmed = match timeout(MAX_HOLD, heights.next()).await {
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
            Err(error) => Err(Error::crashed(format_args!("fetching height {height}"), error)),
        }
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Commits the work that arrives, until the channel closes.
fn write<I, K: Sink<I>>(
    name: &'static str,
    (mut sink, mut undo, mut indexes): (K, UndoLog, OptionalIndexes),
    store: &dyn Store,
    mut ready: mpsc::Receiver<Work<I>>,
    progress: &watch::Sender<Progress>,
    target: &watch::Receiver<Progress>,
) -> Result<(), Error> {
    let mut counts = Counts::new(REMEMBERED_LISTS);
    let mut synced = Instant::now();
    while let Some(first) = next_work(&mut ready, &mut indexes, store, progress)? {
        if let Work::Fetched(fetched) = first {
            indexes.write_fetched(store, &fetched, sink.progress().height)?;
            continue;
        }
        let span = tracing::trace_span!(target: "otlp", "commit", lane = name, height = Empty, bytes = Empty);
        let _entered = span.enter();
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut open = indexes.open(&*snapshot)?;
        let (mut heights, mut later) = (0, Vec::new());
        let mut apply = |work: &Work<I>, sink: &mut K, txn: &mut Txn<'_>| match work {
            Work::Height(item) => {
                heights += 1;
                optional::write(&mut open, sink.packed(item));
                sink.apply(item, txn)
            }
            Work::Late(late) => sink.late(late, txn),
            Work::Fetched(_) => Ok(()),
        };
        apply(&first, &mut sink, &mut txn)?;
        // The last heights are single commits with undo records, also where all of them wait here.
        let is_near =
            |sink: &K| sink.progress().height.saturating_add(undo::SINGLE_HEIGHTS) > target.borrow().height;
        let is_reversible = is_near(&sink) || undo.is_inside(&txn, now())?;
        while !is_near(&sink)
            && txn.bytes() < MAX_BATCH_BYTES
            && let Ok(next) = ready.try_recv()
        {
            apply(&next, &mut sink, &mut txn)?;
            if let Work::Fetched(fetched) = next {
                later.push(fetched);
            }
        }
        let (mut batch, pending) = if is_reversible { undo.finish(txn)? } else { txn.finish() };
        let finished = optional::finish(open, &mut batch, is_reversible)?;
        drop(snapshot);
        let done = sink.progress();
        let at_head = done.height >= target.borrow().height;
        let due = at_head || synced.elapsed() >= SYNC_EVERY;
        let bytes = batch.bytes();
        store.commit(batch, if due { Durability::Synced } else { Durability::Buffered })?;
        if due {
            synced = Instant::now();
        }
        counts.absorb(pending);
        indexes.absorb(finished);
        progress.send_replace(done);
        later.iter().try_for_each(|fetched| indexes.write_fetched(store, fetched, done.height))?;
        span.record("height", done.height).record("bytes", bytes);
        tracing::debug!(lane = name, height = done.height, heights, bytes, "committed");
    }
    store.sync()?;
    Ok(())
}

/// Waits for work; meanwhile builds the optional indexes that lack blocks of the lane, and announces each step of that as progress.
/// `None` when the channel closes.
fn next_work<I>(
    ready: &mut mpsc::Receiver<Work<I>>,
    indexes: &mut OptionalIndexes,
    store: &dyn Store,
    progress: &watch::Sender<Progress>,
) -> Result<Option<Work<I>>, Error> {
    let at = *progress.borrow();
    loop {
        match ready.try_recv() {
            Ok(work) => return Ok(Some(work)),
            Err(TryRecvError::Disconnected) => return Ok(None),
            Err(TryRecvError::Empty) if indexes.catch_up(store, at.height)? => {
                progress.send_replace(at);
            }
            Err(TryRecvError::Empty) => return Ok(ready.blocking_recv()),
        }
    }
}

/// Nanoseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
