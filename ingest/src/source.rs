//! Sources of heights: requests, retries, checks, and the fallback to the node's rendering of transactions.

mod answers;
mod blocks;
mod calls;
mod mismatch;
mod proposers;
mod receipt_fallback;
mod registry;
mod room;

use std::fmt::Display;
use std::sync::Arc;

use chain::{comet, comet::proof};
use node::{Node, Reply};
use tokio::sync::Semaphore;

pub(crate) use self::blocks::BlockSource;
pub(crate) use self::calls::{CALL_TRACES, CallSource, Pace};
pub(crate) use self::proposers::Proposers;
pub(crate) use self::receipt_fallback::ReceiptFallback;
pub(crate) use self::registry::{Bootstrap, Refresher};
pub(crate) use self::room::Room;

use crate::Error;
use crate::derive::{Rules, WorkerPool, WorkerState};
use crate::retry::{RetryBackoff, retry_until};

/// Shared by all sources.
pub(crate) struct Tools {
    pub(crate) node: Arc<Node>,
    pub(crate) workers: Arc<WorkerPool>,
    /// One permit per core: deriving is CPU work.
    pub(crate) cores: Arc<Semaphore>,
    pub(crate) room: Room,
}

impl Tools {
    /// Runs `work` on the blocking pool, when a core is free.
    pub(crate) async fn derive<R: Send + 'static>(
        &self,
        height: u64,
        work: impl FnOnce(&mut WorkerState, &Rules) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let crashed = |reason: &dyn Display| Error::crashed(format_args!("deriving height {height}"), reason);
        let permit = Arc::clone(&self.cores).acquire_owned().await.map_err(|error| crashed(&error))?;
        let workers = Arc::clone(&self.workers);
        let task = tokio::task::spawn_blocking(move || {
            let rules = workers.rules();
            let result = workers.with(|worker| work(worker, &rules));
            drop(permit);
            result
        });
        Ok(task.await.map_err(|error| crashed(&error))??)
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

/// Attempts to fetch an indexed block if every endpoint has another one: about half a minute.
const INDEXED_BLOCK_ATTEMPTS: u32 = 12;

/// The `/block` answer for the indexed block with `hash`, whose header is checked if `verified`. An endpoint with
/// another block at `height` is queried again, because it may return to the indexed history; after
/// [`INDEXED_BLOCK_ATTEMPTS`] the result is [`Error::ConflictingBlock`].
pub(crate) async fn fetch_indexed_block(
    node: &Node,
    height: u64,
    hash: [u8; 32],
    verified: bool,
) -> Result<Reply, Error> {
    fetch_indexed_block_with(RetryBackoff::new(height), node, hash, verified).await
}

async fn fetch_indexed_block_with(
    mut retry: RetryBackoff,
    node: &Node,
    hash: [u8; 32],
    verified: bool,
) -> Result<Reply, Error> {
    let height = retry.height();
    let is_indexed = |answer: &Reply| {
        let block = comet::parse_block(&answer.bytes);
        block.is_ok_and(|block| block.hash == hash && (!verified || proof::check_header(&block).is_ok()))
    };
    loop {
        let answer = retry_until(height, "block", || node.comet.block(height)).await?;
        if is_indexed(&answer) {
            return Ok(answer);
        }
        if let Ok(Some(other)) = node.comet.block_from_other(height, &answer.origin).await
            && is_indexed(&other)
        {
            return Ok(other);
        }
        if retry.attempts() >= INDEXED_BLOCK_ATTEMPTS {
            return Err(Error::ConflictingBlock { height, origin: answer.origin });
        }
        retry.wait(&"the indexed block has another hash").await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use node::retry::Backoff;
    use replay::Recording;
    use testkit::overridden_node::OverriddenNode;

    use super::*;

    /// Fetches the indexed block 5 from an endpoint whose first `others` answers are another block. Returns the reply
    /// and the number of requests.
    async fn fetch(others: u32) -> (Result<Reply, Error>, u32) {
        let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
        let requests = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&requests);
        let played = OverriddenNode::start(recording, move |exchange| {
            // The first request is for the hash.
            if exchange.is_comet("block", 5)
                && (1..=others).contains(&counter.fetch_add(1, Ordering::Relaxed))
            {
                return exchange.with_change(|block| block["block_id"]["hash"] = "AB".repeat(32).into());
            }
            exchange.answer
        });
        let played = played.await.unwrap();
        let node = played.clients().unwrap();
        let hash = comet::parse_block(&node.comet.block(5).await.unwrap().bytes).unwrap().hash;
        let pause = Duration::from_micros(1);
        let backoff = Backoff { initial: pause, max: pause, jitter: false };
        let answer = fetch_indexed_block_with(RetryBackoff::with(backoff, 5), &node, hash, false);
        let answer = tokio::time::timeout(Duration::from_secs(20), answer).await.unwrap();
        (answer, requests.load(Ordering::Relaxed) - 1)
    }

    #[tokio::test]
    async fn an_indexed_block_that_no_endpoint_has_is_an_error_unless_it_reappears() {
        let (never, requests) = fetch(u32::MAX - 1).await;
        assert!(matches!(never, Err(Error::ConflictingBlock { height: 5, .. })), "{never:?}");
        assert_eq!(requests, INDEXED_BLOCK_ATTEMPTS + 1);
        let (back, requests) = fetch(3).await;
        assert_eq!(comet::parse_block(&back.unwrap().bytes).unwrap().header.height, 5);
        assert_eq!(requests, 4);
    }
}
