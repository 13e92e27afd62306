//! The withdrawals that the executor of a rollup's bridge reports: they locate the transaction of a withdrawal on a rollup
//! whose nodes have no index.
//!
//! # Invariants
//!
//! * The executor names a height and nothing else: the transaction is read from the node.
//! * Requests and the time of one call are bounded by [`READ`], [`AGAIN`] and [`PATIENCE`], memory by [`KEPT`]. A withdrawal
//!   that the executor reports is read once for all transactions that are looked for.
//! * However many transactions are looked for, the executor is queried once a second.
//! * A withdrawal that the executor did not report is requested again, after those that were never requested.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use chain::hash::Hash;
use node::{Error, OpinitExecutor};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Withdrawals read at once ...
const READ: usize = 128;
/// ... and requested again.
const AGAIN: usize = 16;
/// Withdrawals kept, the newest.
const KEPT: u64 = 4_096;
/// Nanoseconds between two calls that query the executor.
const INTERVAL: i64 = 1_000_000_000;
/// The longest time of a call, and of the wait for another one. It takes a slot of the chain's queries, which others
/// about the chain's state wait for.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct ExecutorWithdrawals {
    executor: OpinitExecutor,
    /// Locked while the executor is queried, so that other polls find them read.
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// Hash and height by sequence; none without a transaction.
    txs: BTreeMap<u64, Option<(Hash, u64)>>,
    /// The sequences that the executor did not report, the longest ago first.
    missing: VecDeque<u64>,
    /// When the executor was last queried, in nanoseconds.
    queried: Option<i64>,
}

impl ExecutorWithdrawals {
    pub(crate) fn new(executor: OpinitExecutor) -> Self {
        Self { executor, read: Mutex::default() }
    }

    /// The height of a withdrawal's transaction, if it is one of the newest [`KEPT`]. These are read over several calls,
    /// the newest first.
    pub(crate) async fn height_of(&self, now: i64, hash: Hash) -> Result<Option<u64>, Error> {
        let search = async { self.read.lock().await.height_of(&self.executor, now, hash).await };
        timeout(PATIENCE, search).await.unwrap_or(Ok(None))
    }
}

impl Read {
    // May be dropped while it waits: all that was read until then counts.
    async fn height_of(
        &mut self,
        executor: &OpinitExecutor,
        now: i64,
        hash: Hash,
    ) -> Result<Option<u64>, Error> {
        let known = self.find(hash);
        if known.is_some() || self.queried.is_some_and(|at| (0..INTERVAL).contains(&now.saturating_sub(at))) {
            return Ok(known);
        }
        self.queried = Some(now);
        let last = executor.last_withdrawal().await?;
        let kept = last.saturating_sub(KEPT - 1).max(1)..=last;
        self.txs.retain(|sequence, _| kept.contains(sequence));
        self.missing.retain(|sequence| kept.contains(sequence));
        let again = self.missing.len().min(AGAIN);
        let unread = kept.rev().filter(|sequence| !self.txs.contains_key(sequence));
        for sequence in unread.take(READ).collect::<Vec<_>>() {
            self.read(executor, sequence).await?;
        }
        for _ in 0..again {
            let Some(&sequence) = self.missing.front() else { break };
            let outcome = self.read(executor, sequence).await;
            self.missing.pop_front();
            outcome?;
        }
        Ok(self.find(hash))
    }

    async fn read(&mut self, executor: &OpinitExecutor, sequence: u64) -> Result<(), Error> {
        let reply = executor.withdrawal(sequence).await;
        if !matches!(reply, Ok(Some(_))) {
            self.missing.push_back(sequence);
        }
        let (reported, outcome) = match reply {
            Ok(reported) => (reported, Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.txs.insert(sequence, reported.and_then(|withdrawal| withdrawal.tx));
        outcome
    }

    fn find(&self, wanted: Hash) -> Option<u64> {
        self.txs.values().flatten().find(|(hash, _)| *hash == wanted).map(|(_, height)| *height)
    }
}
