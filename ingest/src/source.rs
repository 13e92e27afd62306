//! Sources of heights: requests, retries, checks, and the fallback to the node's rendering of transactions.

mod answers;
mod blocks;
mod calls;
mod mismatch;
mod proposers;
mod receipt_fallback;
mod registry;

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use chain::comet::{self, BlockAnswer};
use node::retry::{self, Backoff};
use node::{Answer, Node};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub(crate) use self::blocks::BlockSource;
pub(crate) use self::calls::{CALL_TRACES, CallSource, Pace};
pub(crate) use self::proposers::Proposers;
pub(crate) use self::receipt_fallback::ReceiptFallback;
pub(crate) use self::registry::{Refresher, bootstrap};

use crate::Error;
use crate::derive::{Rules, WorkerPool, WorkerState};

/// Shared by all sources.
pub(crate) struct Tools {
    pub(crate) node: Arc<Node>,
    pub(crate) workers: Arc<WorkerPool>,
    /// One permit per core: deriving is CPU work.
    pub(crate) cores: Arc<Semaphore>,
}

impl Tools {
    /// Runs `work` on the blocking pool, when a core is free.
    pub(crate) async fn derive<R: Send + 'static>(
        &self,
        height: u64,
        work: impl FnOnce(&mut WorkerState, &Rules) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let crashed = |reason: String| Error::FetchCrashed { height, reason };
        let permit = Arc::clone(&self.cores).acquire_owned().await.map_err(|e| crashed(e.to_string()))?;
        let workers = Arc::clone(&self.workers);
        let task = tokio::task::spawn_blocking(move || {
            let rules = workers.rules();
            let result = workers.with(|worker| work(worker, &rules));
            drop(permit);
            result
        });
        Ok(task.await.map_err(|e| crashed(e.to_string()))??)
    }
}

/// Limits of concurrent derivations. Traces have permits of their own, and fewer: queued traces never delay a block.
#[derive(Clone, Debug)]
pub(crate) struct Cores {
    pub(crate) blocks: Arc<Semaphore>,
    pub(crate) calls: Arc<Semaphore>,
}

impl Cores {
    pub(crate) fn of_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { blocks: Arc::new(Semaphore::new(cores)), calls: Arc::new(Semaphore::new(cores.div_ceil(2))) }
    }
}

/// Retries until there is an answer, with backoff and without a limit; failures are logged. A permanent failure is an
/// error.
pub(crate) async fn retry_until<T, F: Future<Output = Result<T, node::Error>>>(
    height: u64,
    what: &'static str,
    ask: impl FnMut() -> F,
) -> Result<T, Error> {
    retry_with(Backoff::default(), height, what, ask).await
}

/// The same with another backoff.
pub(crate) async fn retry_with<T, F: Future<Output = Result<T, node::Error>>>(
    backoff: Backoff,
    height: u64,
    what: &'static str,
    ask: impl FnMut() -> F,
) -> Result<T, Error> {
    retry::until(backoff, what, ask).await.map_err(|source| Error::node(height, what, source))
}

/// Attempts to fetch an indexed block if every endpoint has another one: about half a minute.
const INDEXED_BLOCK_ATTEMPTS: u32 = 12;

/// The `/block` answer for an indexed block. An endpoint with another block at `height` is asked again, because it may
/// return to the indexed history; after [`INDEXED_BLOCK_ATTEMPTS`] the history is in doubt
/// ([`Error::ConflictingBlock`]).
pub(crate) async fn fetch_indexed_block(
    node: &Node,
    height: u64,
    is_it: impl Fn(&BlockAnswer<'_>) -> bool,
) -> Result<Answer, Error> {
    fetch_indexed_block_within(RetryBackoff::new(height), node, is_it).await
}

async fn fetch_indexed_block_within(
    mut retry: RetryBackoff,
    node: &Node,
    is_it: impl Fn(&BlockAnswer<'_>) -> bool,
) -> Result<Answer, Error> {
    let height = retry.height;
    let is_it = |answer: &Answer| comet::parse_block(&answer.bytes).is_ok_and(|block| is_it(&block));
    loop {
        let answer = retry_until(height, "block", || node.comet.block(height)).await?;
        if is_it(&answer) {
            return Ok(answer);
        }
        if let Ok(Some(other)) = node.comet.block_from_other(height, &answer.origin).await
            && is_it(&other)
        {
            return Ok(other);
        }
        if retry.steps >= INDEXED_BLOCK_ATTEMPTS {
            return Err(Error::ConflictingBlock { height, origin: answer.origin });
        }
        retry.wait(&"it is not the block that is indexed").await;
    }
}

/// Backoff between attempts to get a usable answer, with throttled logging.
pub(crate) struct RetryBackoff {
    height: u64,
    backoff: Backoff,
    steps: u32,
    said: Option<Instant>,
}

/// Minimum time between two log lines of one backoff.
const REMINDER: Duration = Duration::from_secs(30);

impl RetryBackoff {
    pub(crate) fn new(height: u64) -> Self {
        Self { height, backoff: Backoff::default(), steps: 0, said: None }
    }

    /// Waits, with growing pauses up to some seconds; logs the reason at most once per [`REMINDER`].
    pub(crate) async fn wait(&mut self, reason: &impl Display) {
        if self.said.is_none_or(|said| said.elapsed() >= REMINDER) {
            tracing::warn!(height = self.height, attempts = self.steps + 1, %reason, "the answer cannot be used, asking again");
            self.said = Some(Instant::now());
        }
        tokio::time::sleep(self.backoff.delay(self.steps)).await;
        self.steps = self.steps.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use replay::Recording;
    use testkit::altered::AlteredNode;

    use super::*;

    #[tokio::test]
    async fn an_indexed_block_that_nobody_has_any_more_is_given_up_and_one_that_comes_back_is_not() {
        let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
        let played = AlteredNode::start(recording, |exchange| exchange.answer).await.unwrap();
        let node = played.clients().unwrap();
        let ask = async |back_at: u32| {
            let backoff = Backoff {
                initial: Duration::from_micros(1),
                max: Duration::from_micros(1),
                jitter_percent: 0,
            };
            let retry = RetryBackoff { backoff, ..RetryBackoff::new(5) };
            let asked = Cell::new(0);
            let is_it = |_: &BlockAnswer<'_>| asked.replace(asked.get() + 1) == back_at;
            let answer = fetch_indexed_block_within(retry, &node, is_it);
            let answer = tokio::time::timeout(Duration::from_secs(20), answer).await.unwrap();
            (answer.map(|answer| answer.bytes), asked.get())
        };
        let (never, asked) = ask(u32::MAX).await;
        assert!(matches!(never, Err(Error::ConflictingBlock { height: 5, .. })), "{never:?}");
        assert_eq!(asked, INDEXED_BLOCK_ATTEMPTS + 1);
        let (back, asked) = ask(3).await;
        assert_eq!(comet::parse_block(&back.unwrap()).unwrap().header.height, 5);
        assert_eq!(asked, 4);
    }
}
