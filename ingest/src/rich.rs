//! The rich list's lane: balances of the ERC-20 holders of an EVM chain.
//!
//! ```text
//! baseline ──▶ block by block: logs ──▶ ledger ──▶ balances       in turns: reconcile
//! bank balances  from the block lane's cache,  adds up,             samples, repairs a token whose balances
//! of all         or fetched again              asks if it cannot    drift, checks supplies
//! ```
//!
//! # Invariants
//! * The balances are those of the lane's height.
//! * A balance is computed only from a stored one, and queried without one.
//! * The lane is never ahead of the block lane.
//! * All changes of a block are in one commit with the lane's height. Near the head each block has an undo record of its
//!   own, so the lane can be rewound to each height; far behind it the blocks of a commit share one.
//!
//! The lane runs on a thread of its own and retries requests to the node without a limit.

mod bank;
mod baseline;
mod coins;
mod flow;
mod lane;
mod ledger;
pub(crate) mod native_coin;
mod queue;
mod reconcile;
mod results;
mod search;
mod supply;
pub(crate) mod transfer_cache;

use std::convert::Infallible;
use std::ops::RangeInclusive;

use chain::Vm;
use chain::evm::erc20::Erc20Event;
use futures_util::StreamExt as _;
use schema::meta::{self, RichLane};
use schema::rich::UNDO_HEIGHTS;
use store::{Counts, Durability, Txn};
use tokio::time::Instant;

use self::lane::{BalanceReply, CONCURRENT_REQUESTS, End};
use self::ledger::{Group, Plan, UnknownBalance};
use self::reconcile::Reconciler;
use crate::{Error, Progress};

pub(crate) use self::lane::RichList;
pub(crate) use self::ledger::hex as address_text;

/// Rows of one commit, in bytes.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Heights whose events are in memory at once: some have hundreds.
const HEIGHTS_AT_ONCE: u64 = 128;

/// Attempts to have a balance of a contract that the node fails to call.
const PATIENCE: u32 = 3;

/// A height and its ERC-20 events.
type HeightEvents = (u64, Vec<Erc20Event>);

impl RichList {
    /// Runs until `stop` (`Ok`) or an error.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let work = if self.vm == Vm::Evm { Self::work } else { Self::work_of_bank };
        let thread = tokio::task::spawn_blocking(move || match work(&self) {
            Ok(never) => match never {},
            Err(End::Stopped) => Ok(()),
            Err(End::Failed(error)) => Err(error),
        });
        thread.await.map_err(|error| Error::crashed("lane rich_list", error))?
    }

    fn work(&self) -> Result<Infallible, End> {
        if !schema::rich::list_account_tokens(&*self.store, &|| *self.stop.borrow())? {
            return Err(End::Stopped);
        }
        self.name_native()?;
        let mut lane = self.baseline()?;
        let mut reconciler = Reconciler::default();
        let mut counts = Counts::new(1);
        loop {
            self.progress.send_replace(Progress { height: lane.height, records: 0 });
            let indexed = self.next(&lane, &mut reconciler)?;
            if let Some(last) = indexed {
                self.heights(&mut lane, last, &mut counts, &mut reconciler)?;
            }
            // Otherwise a steady stream of blocks would starve a repair.
            if self.reconcile_every.is_some() && (indexed.is_none() || reconciler.is_busy()) {
                self.reconcile(&mut reconciler, &lane)?;
                // A repair changes the same sets.
                counts = Counts::new(1);
            }
        }
    }

    /// Waits for the next heights, and returns the last one that is indexed; `None` if it is time to reconcile.
    fn next(&self, lane: &RichLane, reconciler: &mut Reconciler) -> Result<Option<u64>, End> {
        let is_busy = reconciler.is_busy();
        let due = self
            .reconcile_every
            .map(|every| if is_busy { Instant::now() } else { reconciler.queue.due(every) });
        let sample = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        self.wait_for(async {
            tokio::select! {
                biased;
                last = self.indexed_after(lane.height) => last.map(Some),
                () = sample => Ok(None),
            }
        })?
    }

    /// Applies the heights up to `last`, or some of them.
    ///
    /// Requests to the node are made between snapshots: the store keeps every version that an open snapshot can read.
    fn heights(
        &self,
        lane: &mut RichLane,
        last: u64,
        counts: &mut Counts,
        reconciler: &mut Reconciler,
    ) -> Result<(), End> {
        let last = last.min(lane.height + HEIGHTS_AT_ONCE);
        let heights = self.events(lane.height + 1..=last)?;
        let mut rest = heights.as_slice();
        while let Some((height, events)) = rest.first() {
            let plan = ledger::plan(&*self.store.snapshot()?, &Group::default(), events, self.native())?;
            let answers = self.unknown_balances(&plan, *height)?;
            let applied = self.apply(lane, rest, (plan, &answers), counts)?;
            // Far behind the head, a token is compared when the lane is there.
            if self.reconcile_every.is_some() && lane.height + UNDO_HEIGHTS > self.chain.borrow().height {
                let snapshot = self.store.snapshot()?;
                for (_, events) in &rest[..applied] {
                    reconciler.queue.touch(events, &*snapshot)?;
                }
            }
            rest = &rest[applied..];
        }
        Ok(())
    }

    /// The contracts' answers about the unknown balances of a plan, in the same order.
    fn unknown_balances(&self, plan: &Plan, height: u64) -> Result<Vec<BalanceReply>, End> {
        let mut coins = self.coin_denoms()?;
        // Some are new in this block.
        coins.extend(plan.coins.iter().map(|(denom, contract)| (*contract, denom.clone())));
        let ask = |optional: bool, patience| {
            let unknown = plan.unknown.iter().filter(|it| it.is_optional() == optional);
            let accounts: Vec<_> = unknown.map(|it| (it.contract, it.account)).collect();
            let coins = &coins;
            self.wait_for(async move { self.balances(&accounts, coins, height, patience).await })
        };
        let mut needed = ask(false, None)??.into_iter();
        let mut optional = ask(true, Some(PATIENCE))??.into_iter();
        let answer = |it: &UnknownBalance| if it.is_optional() { optional.next() } else { needed.next() };
        Ok(plan.unknown.iter().map(answer).map(|answer| answer.unwrap_or(BalanceReply::NoReply)).collect())
    }

    /// Applies the first of `heights` by its plan and the replies about its unknown balances, and as many of the next
    /// as have no unknown balances; returns how many. Far behind the head they have one undo record together.
    fn apply(
        &self,
        lane: &mut RichLane,
        heights: &[HeightEvents],
        (first, answers): (Plan, &[BalanceReply]),
        counts: &mut Counts,
    ) -> Result<usize, Error> {
        let snapshot = self.store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, counts);
        let (mut group, mut applied, mut plan) = (Group::default(), 0, first);
        let head = self.chain.borrow().height;
        for (height, _) in heights {
            ledger::write(*height, plan, if applied == 0 { answers } else { &[] }, &mut group, &mut txn)?;
            applied += 1;
            let is_full = txn.bytes() + group.bytes() >= MAX_BATCH_BYTES;
            let Some((next, events)) = heights.get(applied).filter(|_| !is_full) else { break };
            if next.saturating_add(UNDO_HEIGHTS) > head {
                std::mem::take(&mut group).finish(lane.height + 1..=*height, &mut txn)?;
                lane.height = *height;
            }
            plan = ledger::plan(&txn, &group, events, self.native())?;
            if !plan.unknown.is_empty() {
                break;
            }
        }
        let last = heights.get(applied - 1).map_or(lane.height, |(height, _)| *height);
        if last > lane.height {
            group.finish(lane.height + 1..=last, &mut txn)?;
            lane.height = last;
        }
        meta::put(&mut txn, lane);
        let (batch, pending) = txn.finish();
        drop(snapshot);
        let durability = if applied == heights.len() { Durability::Synced } else { Durability::Buffered };
        self.store.commit(batch, durability)?;
        counts.absorb(pending);
        tracing::debug!(lane = "rich_list", height = lane.height, "committed");
        Ok(applied)
    }

    /// The ERC-20 events of each of `heights`.
    fn events(&self, heights: RangeInclusive<u64>) -> Result<Vec<HeightEvents>, End> {
        let events = futures_util::stream::iter(heights).map(|height| async move {
            let events = match self.transfer_cache.take(height) {
                Some(events) => events,
                None => results::transfers(&self.node, &*self.store, height, &self.workers.rules()).await?,
            };
            Ok::<_, Error>((height, self.with_sent(height, events)?))
        });
        let all = self.wait_for(events.buffered(CONCURRENT_REQUESTS).collect::<Vec<_>>())?;
        Ok(all.into_iter().collect::<Result<_, _>>()?)
    }
}
