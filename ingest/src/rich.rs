//! The rich list's lane: who holds how much of each ERC-20 of an EVM chain.
//!
//! ```text
//! baseline ──▶ block by block: transfers ──▶ ledger ──▶ balances     and now and then: reconcile
//! asks for     handed over by the block      adds up,                samples, and heals a token
//! all at once  lane, or asked for again      asks if it cannot       that drifts
//! ```
//!
//! What must hold: the balances are those of the lane's height; a balance is added up only from one that was known, and
//! asked for where none was; the lane is never ahead of the block lane; all changes of a block are one commit with the
//! lane's height. It runs on a thread of its own and waits for the node as long as it takes.

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

/// Balances, or results of blocks, that are asked for at once.
const AT_ONCE: usize = 16;

/// Heights whose events are held at once: some have hundreds.
const HEIGHTS_AT_ONCE: u64 = 128;

/// A height and what happened to balances at it.
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
    /// Whether hashes are.
    pub(crate) verified: bool,
    /// Pause between two samples; none of them if absent.
    pub(crate) reconcile_every: Option<Duration>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// Why the lane's thread goes on or ends.
enum Next {
    /// There are heights up to this one.
    Heights(u64),
    /// It is time for a sample.
    Sample,
    Stop,
}

impl RichList {
    /// Runs until it is told to stop (`Ok`) or cannot go on.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let runtime = Handle::current();
        let work = tokio::task::spawn_blocking(move || Worker { list: self, runtime }.run());
        work.await.map_err(|error| Error::Crashed { lane: "rich_list", reason: error.to_string() })?
    }
}

/// How far heights were applied.
enum Applied {
    /// So many of them.
    Heights(usize),
    /// None: these balances at the first of them must be asked for.
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
                    // Otherwise blocks that come without a pause would leave a token as it is.
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

    /// Waits for something to do.
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

    /// Applies the heights up to `last`, or some of them; `None` if it is to stop.
    ///
    /// Whatever the node is asked is asked between snapshots: the store keeps all that an open one can see.
    fn heights(&self, lane: &mut RichLane, last: u64) -> Result<Option<()>, Error> {
        let last = last.min(lane.height + HEIGHTS_AT_ONCE);
        let Some(heights) = self.events(lane.height + 1..=last)? else { return Ok(None) };
        let (mut rest, mut told) = (heights.as_slice(), None);
        while let Some((next, _)) = rest.first() {
            match self.apply(lane, rest, told.take())? {
                Applied::Heights(n) => rest = &rest[n..],
                Applied::Unknown(balances) => {
                    told = self.ask(&balances, *next)?;
                    if told.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        Ok(Some(()))
    }

    /// Applies as many of `heights` as need no more answers than `told`, which is about the first of them.
    fn apply(
        &self,
        lane: &mut RichLane,
        heights: &[HeightEvents],
        mut told: Option<Vec<BalanceAnswer>>,
    ) -> Result<Applied, Error> {
        let snapshot = self.list.store.snapshot()?;
        let mut counts = Counts::new(1);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut applied = 0;
        let first_told = told.clone();
        for (height, events) in heights {
            let mut unknown = Vec::new();
            let known = |balances: &[ToAsk]| {
                let known = told.take().or_else(|| balances.is_empty().then(Vec::new));
                if known.is_none() {
                    unknown = balances.to_vec();
                }
                Ok(known)
            };
            if ledger::apply(*height, events, &mut txn, known)?.is_none() {
                // The transaction has a part of this height, so it cannot be committed.
                drop(txn);
                drop(snapshot);
                return match applied {
                    0 => Ok(Applied::Unknown(unknown)),
                    _ => self.apply(lane, &heights[..applied], first_told),
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

    /// What the contracts say about `balances` at `height`, in the same order; `None` if the lane is to stop.
    fn ask(&self, balances: &[ToAsk], height: u64) -> Result<Option<Vec<BalanceAnswer>>, Error> {
        if balances.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let asked: Vec<_> = balances.iter().map(|asked| (asked.contract, asked.account)).collect();
        let told = futures_util::stream::iter(asked.chunks(BATCH)).map(|some| self.balances(some, height));
        let told = self.wait_for(told.buffered(AT_ONCE).try_concat());
        told.transpose()
    }

    /// What happened to balances at each of `heights`; `None` if it is to stop.
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

    /// The result of `work`, or `None` if it is to stop.
    fn wait_for<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stop = self.list.stop.clone();
        self.runtime.block_on(async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => None,
                result = work => Some(result),
            }
        })
    }

    /// What the contract says that `account` holds at `height`, asked until there is a final answer.
    async fn balance(
        &self,
        contract: &Address,
        account: &Address,
        height: u64,
    ) -> Result<BalanceAnswer, Error> {
        let told = self.balances(&[(*contract, *account)], height).await?;
        Ok(told.first().copied().unwrap_or(BalanceAnswer::NoAnswer))
    }

    /// What contracts say that accounts hold at `height`, in the same order.
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
        let told = retry::until(Backoff::default(), "balances", ask).await;
        let told = told.map_err(|error| Error::node(height, "balances", error))?;
        Ok(told.into_iter().map(BalanceAnswer::from).collect())
    }
}

/// What a contract says about a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BalanceAnswer {
    /// It is this, at the height asked for.
    AtHeight(U256),
    /// It is this now: the node has forgotten the height.
    Latest(U256),
    /// It does not say.
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
