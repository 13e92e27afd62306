//! The state of the rich list's lane, and its requests to the node.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chain::{Account, U256, Vm};
use futures_util::{StreamExt as _, TryStreamExt as _};
use node::{BATCH, ContractCall, Node};
use schema::rich::Address;
use store::Store;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::native_coin::Coins;
use super::transfer_cache::TransferCache;
use crate::derive::WorkerPool;
use crate::finality::{Finality, Returned, call_all};
use crate::retry::retry_until;
use crate::{Error, Progress};

/// Concurrent requests for balances or results of blocks.
pub(super) const CONCURRENT_REQUESTS: usize = 16;

/// Attempts to have a balance that the list needs, before it is missing: half a minute.
const FAILURES: u32 = 12;

/// The lane, which runs on a thread of the blocking pool.
pub(crate) struct RichList {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) finality: Finality,
    pub(crate) vm: Vm,
    pub(crate) prefix: String,
    /// The index's first height.
    pub(crate) start_height: u64,
    pub(crate) transfer_cache: Arc<TransferCache>,
    /// The head of the chain.
    pub(crate) chain: watch::Receiver<Progress>,
    pub(crate) blocks: watch::Receiver<Progress>,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) workers: Arc<WorkerPool>,
    /// Coins of a bank that keeps balances itself.
    pub(crate) coins: Option<Coins>,
    /// Time within which a change that a block shows is compared; no comparisons if absent.
    pub(crate) reconcile_every: Option<Duration>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// The reason why the lane ends.
pub(super) enum End {
    /// `stop` became true, or the block lane has ended.
    Stopped,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for End {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// A contract's reply for a balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BalanceReply {
    /// The balance at the requested height.
    AtHeight(U256),
    /// The current balance: the node has pruned the height.
    Latest(U256),
    /// No usable reply.
    NoReply,
}

impl From<Option<Returned>> for BalanceReply {
    fn from(answer: Option<Returned>) -> Self {
        let amount =
            answer.and_then(|Returned { bytes, latest }| Some((chain::evm::abi::read_uint(&bytes)?, latest)));
        match amount {
            Some((amount, false)) => Self::AtHeight(amount),
            Some((amount, true)) => Self::Latest(amount),
            None => Self::NoReply,
        }
    }
}

impl RichList {
    /// The result of `work`, unless `stop` becomes true first.
    pub(super) fn wait_for<T>(&self, work: impl Future<Output = T>) -> Result<T, End> {
        let mut stop = self.stop.clone();
        Handle::current().block_on(async {
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => Err(End::Stopped),
                result = work => Ok(result),
            }
        })
    }

    /// The balances of `accounts`, each with its contract, at `height` as the contracts report them, or the bank for its `coins`, in the same order;
    /// retries until the replies are final. Of a call that the node rejects, alone or with others, for a reason of its own,
    /// there is no reply after `patience` attempts; without it, after [`FAILURES`], and only while the node runs other calls: one
    /// contract must not stop the list, and a fault of the node may pass.
    pub(super) async fn balances(
        &self,
        accounts: &[(Address, Address)],
        coins: &BTreeMap<Address, String>,
        height: u64,
        patience: Option<u32>,
    ) -> Result<Vec<BalanceReply>, Error> {
        let (of_bank, others): (Vec<_>, Vec<_>) =
            accounts.iter().copied().partition(|(contract, _)| coins.contains_key(contract));
        let call = |(to, account): &(Address, Address)| ContractCall {
            to: *to,
            data: chain::evm::abi::balance_of(*account),
        };
        let calls = others.iter().map(call).collect::<Vec<_>>();
        let mut of_contracts = self.amounts(&calls, height, patience).await?.into_iter();
        let mut of_bank = self.bank_amounts(&of_bank, coins, height).await?.into_iter();
        let reply = |(contract, _): &(Address, Address)| {
            let next = if coins.contains_key(contract) { of_bank.next() } else { of_contracts.next() };
            next.unwrap_or(BalanceReply::NoReply)
        };
        Ok(accounts.iter().map(reply).collect())
    }

    /// The amounts that `calls` return at `height`, as [`Self::balances`].
    pub(super) async fn amounts(
        &self,
        calls: &[ContractCall],
        height: u64,
        patience: Option<u32>,
    ) -> Result<Vec<BalanceReply>, Error> {
        let batches =
            futures_util::stream::iter(calls.chunks(BATCH)).map(|batch| self.batch(batch, height, patience));
        batches.buffered(CONCURRENT_REQUESTS).try_concat().await
    }

    async fn batch(
        &self,
        calls: &[ContractCall],
        height: u64,
        patience: Option<u32>,
    ) -> Result<Vec<BalanceReply>, Error> {
        let Some(evm) = &self.node.evm else { return Ok(vec![BalanceReply::NoReply; calls.len()]) };
        let failures = AtomicU32::new(0);
        let request = || async {
            let answers = call_all(evm, &self.finality.contract_state(height), calls).await;
            let mut failed = BTreeSet::new();
            for (answer, call) in answers.iter().zip(calls) {
                failed.extend(matches!(answer, Err(node::Error::Faulty { .. })).then_some(call.to));
            }
            let count = failures.fetch_add(u32::from(!failed.is_empty()), Ordering::Relaxed) + 1;
            let gives_up = match patience {
                Some(patience) => count >= patience,
                None => count >= FAILURES && !failed.is_empty() && evm.runs_calls(height).await,
            };
            let answer = |(answer, call): (Result<_, node::Error>, &ContractCall)| match answer {
                Err(error @ node::Error::Faulty { .. }) if gives_up => {
                    // Once for each contract.
                    if patience.is_none() && failed.remove(&call.to) {
                        let contract = Account::from(call.to).to_hex();
                        tracing::warn!(contract, height, %error, "the node cannot call a token: its balances are sums of its transfers");
                    }
                    Ok(BalanceReply::NoReply)
                }
                answer => answer.map(BalanceReply::from),
            };
            answers.into_iter().zip(calls).map(answer).collect::<Result<Vec<_>, node::Error>>()
        };
        retry_until(height, "balances", request).await
    }
}
