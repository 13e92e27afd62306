//! The rich list's lane: balances of the ERC-20 holders of an EVM chain.
//!
//! ```text
//! baseline ──▶ block by block: transfers ──▶ ledger ──▶ balances     periodically: reconcile
//! bank balances  from the block lane's cache,  adds up,                samples, and repairs a token
//! of all         or fetched again              queries if it cannot    whose balances drift
//! ```
//!
//! # Invariants
//! * The balances are those of the lane's height.
//! * A balance is computed only from a known one, and queried if none is known.
//! * The lane is never ahead of the block lane.
//! * All changes of a block are in one commit with the lane's height.
//!
//! The lane runs on a thread of its own and retries requests to the node without a limit.

mod baseline;
mod ledger;
mod reconcile;
mod results;
pub(crate) mod transfer_cache;

use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use chain::U256;
use chain::erc20::Erc20Event;
use futures_util::{StreamExt as _, TryStreamExt as _};
use node::retry::{self, Backoff};
use node::{BATCH, ContractCall, Node};
use schema::meta::{self, RichLane};
use schema::rich::Address;
use store::{Counts, Durability, Store, Txn};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::Instant;

use self::ledger::ToAsk;
use self::reconcile::Reconciler;
use self::transfer_cache::TransferCache;
use crate::settled::{Returned, Settled, call_all};
use crate::{Error, Mark};

/// Rows of one commit, in bytes.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Concurrent requests for balances or results of blocks.
const AT_ONCE: usize = 16;

/// Heights whose events are in memory at once: some have hundreds.
const HEIGHTS_AT_ONCE: u64 = 128;

/// A height and its ERC-20 events.
type HeightEvents = (u64, Vec<Erc20Event>);

/// The lane, to be run.
pub(crate) struct RichList {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settled: Settled,
    pub(crate) prefix: String,
    /// The index's first height.
    pub(crate) start_height: u64,
    pub(crate) transfer_cache: Arc<TransferCache>,
    pub(crate) blocks: watch::Receiver<Mark>,
    pub(crate) mark: watch::Sender<Mark>,
    /// True unless `verify = off`: block and result hashes are checked.
    pub(crate) verified: bool,
    /// Pause between two samples; no samples if absent.
    pub(crate) reconcile_every: Option<Duration>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The next job of the lane's thread.
enum Next {
    /// Heights up to this one are indexed.
    Heights(u64),
    /// It is time for a sample.
    Sample,
    Stop,
}

impl RichList {
    /// Runs until `stop` (`Ok`) or an error.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let runtime = Handle::current();
        let work = tokio::task::spawn_blocking(move || Worker { list: self, runtime }.run());
        work.await.map_err(|error| Error::Crashed { lane: "rich_list", reason: error.to_string() })?
    }
}

/// Result of applying heights.
enum Applied {
    /// This many were applied.
    Heights(usize),
    /// None: these balances at the first of them are unknown and must be queried.
    Unknown(Vec<ToAsk>),
}

/// The lane on its thread.
struct Worker {
    list: RichList,
    runtime: Handle,
}

impl Worker {
    fn run(mut self) -> Result<(), Error> {
        let Some(mut lane) = self.baseline()? else { return Ok(()) };
        self.publish(&lane);
        let mut reconciler = Reconciler::default();
        let mut sampled = Instant::now();
        loop {
            match self.next(&lane, sampled, reconciler.is_healing()) {
                Next::Stop => return Ok(()),
                Next::Heights(last) => {
                    if self.heights(&mut lane, last)?.is_none() {
                        return Ok(());
                    }
                    self.publish(&lane);
                    // Otherwise a steady stream of blocks would starve the repair.
                    if reconciler.is_healing() && self.sample(&mut reconciler, &lane)?.is_none() {
                        return Ok(());
                    }
                }
                Next::Sample => {
                    if self.sample(&mut reconciler, &lane)?.is_none() {
                        return Ok(());
                    }
                    sampled = Instant::now();
                }
            }
        }
    }

    fn publish(&self, lane: &RichLane) {
        self.list.mark.send_replace(Mark { height: lane.height, records: 0 });
    }

    /// Waits for the next job.
    fn next(&mut self, lane: &RichLane, sampled: Instant, is_healing: bool) -> Next {
        let RichList { blocks, stop, reconcile_every, .. } = &mut self.list;
        let due = reconcile_every.map(|every| if is_healing { sampled } else { sampled + every });
        self.runtime.block_on(async {
            let sample = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => Next::Stop,
                mark = blocks.wait_for(|mark| mark.height > lane.height) => {
                    mark.map_or(Next::Stop, |mark| Next::Heights(mark.height))
                }
                () = sample => Next::Sample,
            }
        })
    }

    /// Applies the heights up to `last`, or some of them; `None` on stop.
    ///
    /// Requests to the node are made between snapshots: the store keeps every version that an open snapshot can read.
    fn heights(&self, lane: &mut RichLane, last: u64) -> Result<Option<()>, Error> {
        let last = last.min(lane.height + HEIGHTS_AT_ONCE);
        let Some(heights) = self.events(lane.height + 1..=last)? else { return Ok(None) };
        let (mut rest, mut answers) = (heights.as_slice(), None);
        while let Some((next, _)) = rest.first() {
            match self.apply(lane, rest, answers.take())? {
                Applied::Heights(n) => rest = &rest[n..],
                Applied::Unknown(balances) => {
                    answers = self.ask(&balances, *next)?;
                    if answers.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(()))
    }

    /// Applies as many of `heights` as need no more answers than `answers`, which are for the first of them.
    fn apply(
        &self,
        lane: &mut RichLane,
        heights: &[HeightEvents],
        mut answers: Option<Vec<BalanceAnswer>>,
    ) -> Result<Applied, Error> {
        let snapshot = self.list.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut applied = 0;
        let first_answers = answers.clone();
        for (height, events) in heights {
            let mut unknown = Vec::new();
            let known = |balances: &[ToAsk]| {
                let known = answers.take().or_else(|| balances.is_empty().then(Vec::new));
                if known.is_none() {
                    unknown = balances.to_vec();
                }
                Ok(known)
            };
            if ledger::apply(*height, events, &mut txn, known)?.is_none() {
                // The transaction holds a part of this height, so it cannot be committed.
                drop(txn);
                drop(snapshot);
                return match applied {
                    0 => Ok(Applied::Unknown(unknown)),
                    _ => self.apply(lane, &heights[..applied], first_answers),
                };
            }
            applied += 1;
            if txn.bytes() >= MAX_BATCH_BYTES {
                break;
            }
        }
        lane.height += applied as u64;
        meta::put(&mut txn, lane);
        let (batch, _pending) = txn.finish();
        drop(snapshot);
        let synced = if applied == heights.len() { Durability::Synced } else { Durability::Buffered };
        self.list.store.commit(batch, synced)?;
        tracing::debug!(lane = "rich_list", height = lane.height, "committed");
        Ok(Applied::Heights(applied))
    }

    /// The contracts' answers for `balances` at `height`, in the same order; `None` on stop.
    fn ask(&self, balances: &[ToAsk], height: u64) -> Result<Option<Vec<BalanceAnswer>>, Error> {
        if balances.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let asked: Vec<_> = balances.iter().map(|asked| (asked.contract, asked.account)).collect();
        let answers = futures_util::stream::iter(asked.chunks(BATCH)).map(|some| self.balances(some, height));
        let answers = self.wait_for(answers.buffered(AT_ONCE).try_concat());
        answers.transpose()
    }

    /// The ERC-20 events of each of `heights`; `None` on stop.
    fn events(&self, heights: RangeInclusive<u64>) -> Result<Option<Vec<HeightEvents>>, Error> {
        let events = futures_util::stream::iter(heights).map(|height| async move {
            let events = match self.list.transfer_cache.take(height) {
                Some(events) => events,
                None => self.fetch(height).await?,
            };
            Ok((height, events))
        });
        let all = self.wait_for(events.buffered(AT_ONCE).collect::<Vec<_>>());
        all.map(|all| all.into_iter().collect()).transpose()
    }

    async fn fetch(&self, height: u64) -> Result<Vec<Erc20Event>, Error> {
        results::transfers(&self.list.node, &*self.list.store, height, self.list.verified).await
    }

    /// The result of `work`; `None` on stop.
    fn wait_for<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.list.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => None,
                result = work => Some(result),
            }
        })
    }

    /// The balance of `account` at `height` by the contract; retries until the answer is final.
    async fn balance(
        &self,
        contract: &Address,
        account: &Address,
        height: u64,
    ) -> Result<BalanceAnswer, Error> {
        let answers = self.balances(&[(*contract, *account)], height).await?;
        Ok(answers.first().copied().unwrap_or(BalanceAnswer::NoAnswer))
    }

    /// The balances of accounts at `height` by their contracts, in the same order.
    async fn balances(&self, asked: &[(Address, Address)], height: u64) -> Result<Vec<BalanceAnswer>, Error> {
        let settled = &self.list.settled;
        let Some(evm) = &settled.node.evm else { return Ok(vec![BalanceAnswer::NoAnswer; asked.len()]) };
        let call = |(to, account): &(Address, Address)| ContractCall {
            to: *to,
            data: chain::abi::balance_of(*account).to_vec(),
        };
        let calls: Vec<_> = asked.iter().map(call).collect();
        let ask = || async {
            call_all(evm, &settled.contract_state(height), &calls)
                .await
                .into_iter()
                .collect::<Result<Vec<_>, node::Error>>()
        };
        let answers = retry::until(Backoff::default(), "balances", ask).await;
        let answers = answers.map_err(|error| Error::node(height, "balances", error))?;
        Ok(answers.into_iter().map(BalanceAnswer::from).collect())
    }
}

/// A contract's answer for a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BalanceAnswer {
    /// The balance at the requested height.
    AtHeight(U256),
    /// The current balance: the node has pruned the height.
    Latest(U256),
    /// No usable answer.
    NoAnswer,
}

impl From<Option<Returned>> for BalanceAnswer {
    fn from(answer: Option<Returned>) -> Self {
        let amount =
            answer.and_then(|Returned { bytes, latest }| Some((chain::abi::read_uint(&bytes)?, latest)));
        match amount {
            Some((amount, false)) => Self::AtHeight(amount),
            Some((amount, true)) => Self::Latest(amount),
            None => Self::NoAnswer,
        }
    }
}
