//! The withdrawals that the executor of a rollup's bridge reports: they locate the transaction of a withdrawal on a rollup
//! whose nodes have no index.
//!
//! # Invariants
//!
//! * The executor names a height and nothing else: the transaction is read from the node.
//! * Requests of one call are bounded by [`READ`] and the search for the newest, memory by [`KEPT`]. Each withdrawal is
//!   read once for all transactions that are looked for.

use std::collections::BTreeMap;

use chain::hash::Hash;
use node::{Error, OpinitExecutor};
use tokio::sync::Mutex;

/// Withdrawals read at once.
const READ: usize = 128;
/// Withdrawals kept, the newest.
const KEPT: usize = 4_096;

#[derive(Default)]
pub(crate) struct ExecutorWithdrawals {
    /// Hash and height by sequence, without gaps. Locked while the executor is queried, so that other polls find them
    /// read.
    read: Mutex<BTreeMap<u64, Option<(Hash, u64)>>>,
}

impl ExecutorWithdrawals {
    /// The height of a withdrawal's transaction, if it is one of the newest [`KEPT`]. These are read over several calls:
    /// first what is new, then what is older.
    pub(crate) async fn height_of(
        &self,
        executor: &OpinitExecutor,
        hash: Hash,
    ) -> Result<Option<u64>, Error> {
        let mut read = self.read.lock().await;
        let mut budget = READ;
        if read.is_empty() {
            let Some((sequence, tx)) = newest(executor).await? else { return Ok(None) };
            read.insert(sequence, tx);
        }
        while budget > 0
            && let Some((&last, _)) = read.last_key_value()
            && let Some(newer) = executor.withdrawal(last + 1).await?
        {
            read.insert(last + 1, newer.tx);
            budget -= 1;
        }
        while read.len() > KEPT {
            read.pop_first();
        }
        while budget > 0
            && read.len() < KEPT
            && find(&read, hash).is_none()
            && let Some((&first, _)) = read.first_key_value()
            && first > 1
        {
            let older = executor.withdrawal(first - 1).await?;
            read.insert(first - 1, older.and_then(|withdrawal| withdrawal.tx));
            budget -= 1;
        }
        Ok(find(&read, hash))
    }
}

fn find(read: &BTreeMap<u64, Option<(Hash, u64)>>, wanted: Hash) -> Option<u64> {
    read.values().flatten().find(|(hash, _)| *hash == wanted).map(|(_, height)| *height)
}

/// The withdrawal with the highest sequence, by doubling and bisection.
async fn newest(executor: &OpinitExecutor) -> Result<Option<(u64, Option<(Hash, u64)>)>, Error> {
    let (mut low, mut high) = (0, 1_u64);
    let mut newest = None;
    while let Some(withdrawal) = executor.withdrawal(high).await? {
        newest = Some((high, withdrawal.tx));
        low = high;
        high = high.saturating_mul(2);
        if low == high {
            return Ok(newest);
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match executor.withdrawal(middle).await? {
            Some(withdrawal) => (low, newest) = (middle, Some((middle, withdrawal.tx))),
            None => high = middle,
        }
    }
    Ok(newest)
}
