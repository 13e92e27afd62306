//! Fetches the headers of EVM blocks for the optional index of them, a little behind the block lane.
//!
//! A header follows from nothing that is stored, so it is requested after its block is committed, and checked against the stored
//! block and its own hash. The lane's writer writes it. A node that gives none stops nothing but this index.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chain::evm::header::{self, Header};
use futures_util::{StreamExt as _, TryStreamExt as _};
use node::retry::Backoff;
use node::{Evm, Node};
use schema::block::hash_at;
use schema::evm_block::{self, BLOCKS, EvmBlocks};
use schema::index_writer::Headers;
use schema::payload::Codec;
use store::{Message, Store};
use tokio::sync::{mpsc, watch};

use crate::error::causes;
use crate::meter::Event;
use crate::optional::Fetched;
use crate::retry::{RetryBackoff, retry_until};
use crate::{Error, Progress};

/// Headers of one commit.
const AT_ONCE: u64 = 100;

/// Requests at once.
const REQUESTS: usize = 16;

/// At the head the node's EVM index has a block some milliseconds after the block itself.
const SOON: Backoff =
    Backoff { initial: Duration::from_millis(10), max: Duration::from_secs(5), jitter: true };

/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// Fetches headers.
pub(crate) struct HeaderSource {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) codec: Arc<Codec>,
    /// True if the hashes of EVM headers are those of CometBFT's.
    pub(crate) of_comet: bool,
    /// The block lane.
    pub(crate) blocks: watch::Receiver<Progress>,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
}

impl HeaderSource {
    /// Runs for ever; pauses after errors.
    pub(crate) async fn run(self) -> Infallible {
        while let Some(evm) = &self.node.evm {
            match self.follow(evm).await {
                Ok(()) => break,
                Err(error) => tracing::error!(error = %causes(&error), "EVM headers not fetched, retrying"),
            }
            tokio::time::sleep(RETRY).await;
        }
        std::future::pending().await
    }

    /// Fetches the headers that the index lacks, until the lane ends.
    async fn follow(&self, evm: &Evm) -> Result<(), Error> {
        let mut blocks = self.blocks.clone();
        let Some(state) = BLOCKS.state(&*self.store.snapshot()?)? else { return Ok(()) };
        let (mut next, is_empty) = (state.height + 1, state.height < state.from);
        if blocks.wait_for(|blocks| blocks.height >= next).await.is_err() {
            return Ok(());
        }
        if is_empty {
            next = Self::first_available(evm, next).await?;
            // Until its block is indexed, that may take days: the index says so at once.
            let none = Headers { first: next, headers: Vec::new() };
            if self.found.send(Fetched::Headers(none)).await.is_err() {
                return Ok(());
            }
        }
        // Those that were sent may not be written yet.
        let before = store::table::read::<EvmBlocks>(&*self.store.snapshot()?, &(next - 1))?;
        let mut parent = before.and_then(|Message(row)| <[u8; 32]>::try_from(row.hash).ok());
        loop {
            let Ok(target) =
                blocks.wait_for(|blocks| blocks.height >= next).await.map(|blocks| blocks.height)
            else {
                return Ok(());
            };
            let to = target.min(next + AT_ONCE - 1);
            let requests = futures_util::stream::iter(next..=to).map(|height| self.header(evm, height));
            let headers: Vec<Header> = requests.buffered(REQUESTS).try_collect().await?;
            parent = check_parents(next, &headers, parent);
            let headers = Fetched::Headers(Headers { first: next, headers });
            if self.found.send(headers).await.is_err() {
                return Ok(());
            }
            next = to + 1;
        }
    }

    /// The first height from `from` on whose header the node has not pruned.
    async fn first_available(evm: &Evm, from: u64) -> Result<u64, Error> {
        let has = |height| retry_until(height, "EVM header", move || evm.block_exists(height));
        let tip = retry_until(from, "EVM height", || evm.block_number()).await?;
        let (mut low, mut high) = (from, tip);
        if low >= high || has(low).await? {
            return Ok(from);
        }
        while low < high {
            let middle = low.midpoint(high);
            if has(middle).await? { high = middle } else { low = middle + 1 }
        }
        tracing::warn!(from, first = low, "the node has pruned EVM headers: the index begins later");
        Ok(low)
    }

    async fn header(&self, evm: &Evm, height: u64) -> Result<Header, Error> {
        let mut retry = RetryBackoff::with(SOON, height);
        loop {
            let Some(reply) = retry_until(height, "EVM header", || evm.block(height)).await? else {
                retry.wait(&"the node has no EVM header of the block").await;
                continue;
            };
            match self.checked(height, &reply.bytes)? {
                Ok(header) => return Ok(header),
                Err(reason) => retry.wait(&reason).await,
            }
        }
    }

    /// The header in a reply, if it is that of the stored block.
    fn checked(&self, height: u64, reply: &[u8]) -> Result<Result<Header, header::HeaderError>, Error> {
        let snapshot = self.store.snapshot()?;
        let Some(block) = evm_block::summary(&*snapshot, &self.codec, height)? else {
            return Ok(Err(chain::evm::Error::NotReady.into()));
        };
        let of_comet = if self.of_comet { hash_at(&*snapshot, height)? } else { None };
        let parsed = header::parse_with(reply, &block.contents(), &block.hashes, of_comet.as_ref());
        if let Ok(header) = &parsed
            && block.block_hash.is_some_and(|hash| hash != header.hash)
        {
            let expected = block.block_hash.unwrap_or_default();
            report_break(height, "the receipts of the block name another EVM block", &header.hash, &expected);
        }
        Ok(parsed)
    }
}

/// Reports headers that do not name the one before: the node has computed its EVM index anew between them. Returns the hash of the last.
fn check_parents(first: u64, headers: &[Header], mut parent: Option<[u8; 32]>) -> Option<[u8; 32]> {
    for (height, header) in (first..).zip(headers) {
        if let Some(parent) = parent.filter(|parent| *parent != header.parent) {
            report_break(height, "the EVM header names another parent", &header.parent, &parent);
        }
        parent = Some(header.hash);
    }
    parent
}

fn report_break(height: u64, reason: &str, found: &[u8; 32], expected: &[u8; 32]) {
    Event::HeaderBreak.count();
    let [found, expected] = [found, expected].map(chain::hash::to_hex);
    tracing::warn!(
        height,
        reason,
        found,
        expected,
        "EVM headers do not follow from each other: the node has rebuilt its EVM index"
    );
}
