//! The internal-transaction lane's source: the call traces of a height, derived.
//!
//! It follows the block lane: the indexed block lists the transactions that a trace must contain.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use chain::evm::Receipt;
use chain::evm::flavour::Flavour;
use node::{Evm, Kind};
use schema::block::Blocks;
use schema::evm_tx::EvmTxs;
use schema::internal_tx;
use schema::payload::Codec;
use schema::records;
use store::{Message, Store};
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::Tools;
use crate::derive::{self, BlockFrames, Call, Failure, Retraced, Traced};
use crate::lane::Source;
use crate::meter::Event;
use crate::retry::{RetryBackoff, retry_until};
use crate::{Error, Progress};

/// Failures to trace a block before its transactions are traced one by one, and to trace a transaction before it is
/// indexed without frames.
const FAILURES: u32 = 3;

/// Unusable traces of a block, such as too few, before its transactions are traced one by one: half a minute, because an
/// index of the node that lags behind gives such ones for a moment.
const UNUSABLE: u32 = 12;

/// The same, before any transaction was traced; and times that the node does not know a transaction, or gives no JSON,
/// before it is indexed without frames: some minutes, for a fault or an index that lags behind.
const LONG: u32 = 100;

/// The first block of a chain.
const FIRST: u64 = 1;

/// The block lane is near the head if it is at most this many heights behind: twice its default look-ahead.
const NEAR: u64 = 64;

/// The name of the request for the traces of a block, in errors.
pub(crate) const CALL_TRACES: &str = "call traces";

/// Fetches call frames.
pub(crate) struct CallSource {
    pub(crate) tools: Tools,
    pub(crate) store: Arc<dyn Store>,
    /// Absent if no block lane runs.
    pub(crate) pace: Option<Pace>,
}

/// Limit of concurrent trace requests. A trace costs a node far more than a block, and both use its CPUs: while the
/// block lane is far behind the head there is one trace at a time, so that blocks are served early. It is never zero: a
/// block lane that stays far behind must not stop the traces.
pub(crate) struct Pace {
    chain: watch::Receiver<Progress>,
    blocks: watch::Receiver<Progress>,
    one: Semaphore,
}

impl Pace {
    pub(crate) fn new(chain: watch::Receiver<Progress>, blocks: watch::Receiver<Progress>) -> Self {
        Self { chain, blocks, one: Semaphore::new(1) }
    }

    /// Waits until a trace may be requested; hold the permit, if any, during the request.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let mut blocks = self.blocks.clone();
        let is_near = |blocks: &Progress| self.chain.borrow().height.saturating_sub(blocks.height) <= NEAR;
        tokio::select! {
            biased;
            // An error means that the block lane has ended.
            _ = blocks.wait_for(is_near) => None,
            permit = self.one.acquire() => permit.ok(),
        }
    }
}

impl Source for CallSource {
    type Item = BlockFrames;

    async fn fetch(self: Arc<Self>, height: u64) -> Result<BlockFrames, Error> {
        let (store, codec) = (Arc::clone(&self.store), self.tools.workers.codec());
        // Reading and parsing records is CPU work, not for an async thread.
        let work = move |_: &mut derive::WorkerState, rules: &derive::Rules| {
            expected(&*store, &codec, rules.flavour, height)
        };
        let expected = self.tools.derive(height, work).await??;
        self.frames(height, expected.into()).await
    }
}

impl CallSource {
    /// The call frames of `height`, whose EVM transactions are `expected`.
    pub(crate) async fn frames(&self, height: u64, expected: Arc<[Traced]>) -> Result<BlockFrames, Error> {
        let first = self.tools.workers.rules().flavour.first_traceable();
        let (Some(evm), true) = (&self.tools.node.evm, !expected.is_empty() && height >= first) else {
            return Ok(BlockFrames {
                height,
                txs: Vec::new(),
                records: Vec::new(),
                errors: Vec::new(),
                untraced: false,
            });
        };
        let (mut retry, mut retraced) = (RetryBackoff::new(height), Retraced::new());
        // Of the block as a whole. Whatever its reason, its transactions are traced one by one if they last.
        let (mut failures, mut unusable) = (0, 0);
        loop {
            let room = self.tools.room.for_traces(expected.len()).await;
            let trace = if failures < FAILURES && unusable < UNUSABLE {
                let permit = match &self.pace {
                    Some(pace) => pace.turn().await,
                    None => None,
                };
                let trace = trace_block(evm, height, room.bytes, &mut failures).await?;
                drop(permit);
                trace
            } else {
                None
            };
            let (retraced_before, expected) = (retraced.clone(), Arc::clone(&expected));
            let work = move |worker: &mut derive::WorkerState, _: &derive::Rules| {
                let frames = derive::frames(height, &expected, trace.as_deref(), &retraced_before, worker);
                drop(room);
                frames
            };
            match self.tools.derive(height, work).await? {
                Ok(frames) => return Ok(frames),
                Err(Failure::Untraced(hashes)) => {
                    let mut reasons = Vec::new();
                    for hash in hashes {
                        let tree = self.retrace(evm, height, hash).await?;
                        let tree = tree.map_err(|reason| reasons.push((hash, reason)));
                        retraced.insert(hash, tree.ok());
                    }
                    report_untraced(height, &reasons);
                }
                Err(reason) => {
                    unusable += 1;
                    retry.wait(&reason).await;
                }
            }
        }
    }

    /// The call tree of one transaction, or the reason why there is none if the node fails on it repeatedly although it traces
    /// others: a tracer that times out does so every time, and one transaction must not stop the lane. While the node traces
    /// nothing, its fault may pass, and the lane waits; but no node ever has the state before the first block.
    async fn retrace(&self, evm: &Evm, height: u64, hash: [u8; 32]) -> Result<Result<Bytes, String>, Error> {
        let (mut retry, mut failures, mut others) = (RetryBackoff::new(height), 0, 0);
        loop {
            let reason = match evm.trace_tx(hash).await {
                Ok(tree) => match derive::is_readable(&hash, &tree) {
                    // A copy: a large reply must not be held while others of the block are requested.
                    Ok(()) => return Ok(Ok(Bytes::copy_from_slice(&tree))),
                    Err(error) => {
                        failures += 1;
                        error.to_string()
                    }
                },
                Err(error) if error.kind() == Kind::Permanent && !error.is_of_the_answer() => {
                    return Err(Error::node(height, CALL_TRACES, error));
                }
                Err(error) => {
                    let counter = if is_of_the_tracer(&error) { &mut failures } else { &mut others };
                    *counter += u32::from(error.is_of_the_answer());
                    error.to_string()
                }
            };
            let total = failures + others;
            let is_due = failures >= FAILURES || total >= LONG;
            if is_due && (height == FIRST || self.traces_others(evm, height).await?.unwrap_or(total >= LONG))
            {
                Event::UntracedTx.count();
                return Ok(Err(reason));
            }
            retry.wait(&reason).await;
        }
    }

    /// Whether the node traces each transaction of an indexed block now.
    pub(crate) async fn can_trace(&self, height: u64) -> Result<bool, Error> {
        let Some(evm) = &self.tools.node.evm else { return Ok(false) };
        let flavour = self.tools.workers.rules().flavour;
        for Traced { hash, .. } in expected(&*self.store, &self.tools.workers.codec(), flavour, height)? {
            let tree = evm.trace_tx(hash).await;
            if !tree.is_ok_and(|tree| derive::is_readable(&hash, &tree).is_ok()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the node can trace the last block before `height` that has frames; `None` if there is none.
    async fn traces_others(&self, evm: &Evm, height: u64) -> Result<Option<bool>, Error> {
        let last = internal_tx::last_block_before(&*self.store.snapshot()?, height)?;
        let Some(other) = last else { return Ok(None) };
        // State that is pruned by now has been traced.
        Ok(Some(evm.trace_block(other).await.map_or_else(|error| error.is_pruned(), |_| true)))
    }
}

/// Reports transactions that are indexed without frames.
fn report_untraced(height: u64, reasons: &[([u8; 32], String)]) {
    if let (FIRST, [(_, reason), ..]) = (height, reasons) {
        let txs = reasons.len();
        tracing::warn!(
            height,
            txs,
            reason,
            "the first block is indexed without internal transactions: no node has the state before it"
        );
        return;
    }
    for (hash, reason) in reasons {
        let hash = chain::hash::to_hex(hash);
        tracing::error!(
            height,
            hash,
            reason,
            "transaction indexed without internal transactions: no call trace"
        );
    }
}

/// The traces of a block; `None` if the node answers but fails on this block, which is counted.
async fn trace_block(
    evm: &Evm,
    height: u64,
    expects: usize,
    failures: &mut u32,
) -> Result<Option<Bytes>, Error> {
    let counter = AtomicU32::new(*failures);
    let attempt = || async {
        match evm.trace_block_expecting(height, expects).await {
            Ok(answer) => Ok(Some(answer.bytes)),
            Err(error) if error.is_of_the_answer() && error.kind() != Kind::NotYet => {
                let failed = counter.fetch_add(1, Ordering::Relaxed) + 1;
                if failed >= FAILURES || error.kind() == Kind::Permanent { Ok(None) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    };
    let outcome = retry_until(height, CALL_TRACES, attempt).await;
    *failures = if matches!(outcome, Ok(None)) { FAILURES } else { counter.into_inner() };
    outcome
}

/// The indexed EVM transactions at `height`, in order.
fn expected(store: &dyn Store, codec: &Codec, flavour: Flavour, height: u64) -> Result<Vec<Traced>, Error> {
    let snapshot = store.snapshot()?;
    let Some(Message(block)) = store::table::read::<Blocks>(&*snapshot, &height)? else {
        return Err(Error::BlockMissing { height });
    };
    let seqs: Vec<u64> = (block.first_evm_tx..block.first_evm_tx + block.evm_txs).collect();
    let mut all = Vec::with_capacity(seqs.len());
    records::each::<EvmTxs>(&*snapshot, codec, &seqs, |record| all.push(traced(record, flavour)))?;
    all.into_iter().collect::<Option<_>>().ok_or(Error::BlockMissing { height })
}

/// The transaction in a stored record.
fn traced(record: &[u8], flavour: Flavour) -> Option<Traced> {
    let receipt: Receipt<'_> = serde_json::from_slice(record).ok()?;
    let hash = receipt.hash().ok()?;
    if flavour.wraps_traces() {
        return Some(hash.into());
    }
    let creates = receipt.to.is_empty();
    let to = if creates { receipt.contract_address } else { Some(receipt.to) };
    let (from, to) = (receipt.from.to_string(), to.map(|to| to.to_string()));
    Some(Traced { hash, call: Some(Call { from, to, creates, succeeded: &*receipt.status == "0x1" }) })
}

/// True if the tracer failed on this request, not a proxy or the transport: it may do so every time.
fn is_of_the_tracer(error: &node::Error) -> bool {
    use node::Error::{Cut, Unreadable};
    error.is_of_the_answer()
        && error.kind() != Kind::NotYet
        && !matches!(error, Cut { .. } | Unreadable { .. })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn at(height: u64) -> watch::Sender<Progress> {
        watch::Sender::new(Progress { height, records: 0 })
    }

    #[test]
    fn one_trace_at_a_time_is_requested_until_the_block_lane_is_near_the_head() {
        let (chain, blocks) = (at(1_000), at(500));
        let pace = Pace::new(chain.subscribe(), blocks.subscribe());
        let first = pace.turn().now_or_never();
        assert!(first.as_ref().is_some_and(Option::is_some), "there is always one");
        assert!(pace.turn().now_or_never().is_none());
        drop(first);
        let _first = pace.turn().now_or_never().unwrap();
        let mut second = Box::pin(pace.turn());
        assert!((&mut second).now_or_never().is_none());
        blocks.send_modify(|progress| progress.height = 1_000 - NEAR);
        assert!(second.now_or_never().is_some_and(|permit| permit.is_none()));
        assert!(pace.turn().now_or_never().is_some_and(|permit| permit.is_none()));
    }

    #[test]
    fn a_block_lane_that_is_stuck_far_behind_does_not_stop_the_traces() {
        let (chain, blocks) = (at(1_000), at(500));
        let pace = Pace::new(chain.subscribe(), blocks.subscribe());
        for _ in 0..10 {
            assert!(pace.turn().now_or_never().is_some());
        }
    }
}
