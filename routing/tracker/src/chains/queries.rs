//! Node queries of one poll, and the observations made from their results.
//!
//! # Invariants
//!
//! * An observation comes from one event that has all queried attributes.
//! * A failed query makes no observation.

mod bridge;
mod lz;
mod packet;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use chain::Vm;
use chain::hash::Hash;
use node::{Evm, TxSearchHit};
use registry::{ChainKind, Registry};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::chains::clients::{ChainClients, Clients};
use crate::chains::known_chain::{KnownChain, KnownChains};
use crate::chains::limiter::Limiters;
use crate::chains::local_index::{LocalChain, LocalIndex};
use crate::chains::query_error::QueryError;
use crate::chains::search::Search;
use crate::evidence::detect;
use crate::evidence::event::evm_calls;
use crate::evidence::hop::{ObservedHop, Swap, TxRef};
use crate::evidence::hop_query::HopQuery;
use crate::evidence::layer_zero::Receipt;
use crate::evidence::state::Observation;
use crate::options::Options;

/// Node queries on behalf of one poll.
pub(crate) struct ChainQueries<'a> {
    pub(crate) registry: &'a Registry,
    /// The chains of the record, which the registry may have lost.
    pub(crate) kept: KnownChains,
    pub(crate) clients: &'a ChainClients,
    pub(crate) limiters: &'a Limiters,
    /// The chains that this process indexes.
    pub(crate) local: Option<&'a Arc<dyn LocalIndex>>,
    pub(crate) options: &'a Options,
    /// Start time of the poll.
    pub(crate) now: i64,
    /// Current time, for the circuit breakers.
    pub(crate) clock: &'a dyn Fn() -> i64,
    pub(crate) home: HomeSlot<'a>,
}

/// The slot of a poll in the queue of its chain. When the poll queries another chain, it releases the slot and waits
/// for that chain, so the next poll of the queue can start.
pub(crate) struct HomeSlot<'a> {
    pub(crate) chain: &'a str,
    pub(crate) permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Notified when the permit is released.
    pub(crate) left: &'a Notify,
}

impl HomeSlot<'_> {
    /// Releases the slot unless `chain`, which is queried next, is the poll's own; returns whether the slot is still
    /// taken.
    fn keeps(&self, chain: &str) -> bool {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        if chain != self.chain && permit.take().is_some() {
            self.left.notify_one();
        }
        permit.is_some()
    }
}

/// EVM calls of one transaction whose receipts are read.
const EVM_CALLS: usize = 64;
/// How long an EVM may lack a transaction that its chain has, in nanoseconds.
const EVM_LAG: i64 = 600_000_000_000;

/// The EVM's hash of a transaction with an EVM call. It is only a second key, so a failure is ignored.
async fn hash_in_the_evm(evm: &Evm, tx: &TxSearchHit) -> Option<String> {
    let calls = |action: &str| action.starts_with("/minievm.evm.v1.");
    if !tx.events.iter().any(|event| event.kind == "message" && event.get("action").is_some_and(calls)) {
        return None;
    }
    let hash = evm.eth_hashes(tx.hash).await.inspect_err(|error| {
        tracing::debug!(hash = hex::encode_upper(tx.hash), %error, "no EVM hash");
    });
    hash.ok()?.map(|hash| format!("0x{}", hex::encode(hash)))
}

/// Outcome of a registered transaction.
pub(crate) enum Outcome {
    /// No node has it.
    Unseen,
    /// A node has it, and its block may still change.
    Unsure,
    /// It failed.
    Failed { code: Option<u64>, message: String },
    /// It was executed and started transfers with these hops.
    Executed { tx: TxRef, is_final: bool, hops: Vec<Vec<ObservedHop>>, other_hash: Option<String> },
}

impl ChainQueries<'_> {
    /// Queries the outcome of a registered transaction.
    pub(crate) async fn source(&self, chain: &str, hash: Hash) -> Result<Outcome, QueryError> {
        let (search, known) = (self.search(chain)?, self.chain(chain)?);
        self.within_limits(chain, async {
            match known.kind() {
                ChainKind::Cosmos => self.cosmos_source(known.vm(), &search, hash).await,
                ChainKind::Evm => {
                    self.evm_source(chain, known.confirmations, search.clients.evm()?, hash).await
                }
            }
        })
        .await
    }

    /// Runs a query within the concurrency limit of its chain.
    async fn within_limits<T>(
        &self,
        chain: &str,
        query: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let limiter = self.limiters.of(chain);
        let _waiting = if self.home.keeps(chain) { None } else { Some(limiter.wait()?) };
        let clients = self.search(chain)?.clients;
        // Boxed: it is rare, and large.
        Box::pin(clients.check_chain((self.clock)())).await;
        limiter.call(self.clock, query).await
    }

    async fn cosmos_source(&self, vm: Vm, search: &Search<'_>, hash: Hash) -> Result<Outcome, QueryError> {
        let evm = search.clients.evm.as_ref().filter(|_| vm == Vm::Evm);
        let (found, other_hash) = match (search.tx(hash).await?, evm) {
            (Some(found), Some(evm)) => {
                let other_hash = hash_in_the_evm(evm, &found.0).await;
                (Some(found), other_hash)
            }
            (None, Some(evm)) => {
                // The hash may be the EVM's.
                let cosmos = evm.cosmos_hash(hash).await.map_err(QueryError::Partly)?;
                let Some(hash) = cosmos else { return Ok(Outcome::Unseen) };
                (search.tx(hash).await?, Some(hex::encode_upper(hash)))
            }
            (found, None) => (found, None),
        };
        let Some(found) = found else { return Ok(Outcome::Unseen) };
        if found.0.code != 0 {
            return Ok(Outcome::Failed { code: Some(found.0.code.into()), message: found.0.log });
        }
        let tx = search.located(&found).await?;
        let mut hops = detect::detect_hops(self.registry, &found.0, &tx);
        let calls = evm_calls(&found.0);
        match calls.failure {
            Some(message) if hops.is_empty() => return Ok(Outcome::Failed { code: None, message }),
            _ if calls.has_logs || !hops.is_empty() => {}
            _ => match self.hops_of_calls(&search.clients, &calls.hashes, &tx).await? {
                Some(more) => hops.extend(more),
                None => return Ok(Outcome::Unsure),
            },
        }
        Ok(Outcome::Executed { tx, is_final: true, hops, other_hash })
    }

    /// The hops that EVM calls started whose logs are in their receipts only; none if the EVM may have them soon.
    async fn hops_of_calls(
        &self,
        clients: &Clients,
        hashes: &[Hash],
        tx: &TxRef,
    ) -> Result<Option<Vec<Vec<ObservedHop>>>, QueryError> {
        let unseen = || Ok(Some(vec![vec![detect::without_logs(tx, hashes.len())]]));
        if hashes.len() > EVM_CALLS {
            return unseen();
        }
        let mut logs = Vec::new();
        for hash in hashes {
            let receipt = match &clients.evm {
                Some(evm) => evm.receipt(*hash).await.map_err(QueryError::Partly)?,
                None => None,
            };
            match receipt {
                Some(json) => logs.extend(read_receipt(&tx.chain, &json)?.0.logs),
                None if clients.evm.is_some()
                    && tx.time.is_some_and(|at| self.now.saturating_sub(at) < EVM_LAG) =>
                {
                    return Ok(None);
                }
                None => return unseen(),
            }
        }
        Ok(Some(detect::detect_evm_hops(self.registry, &logs, tx)))
    }

    async fn evm_source(
        &self,
        chain: &str,
        confirmations: u32,
        evm: &Evm,
        hash: Hash,
    ) -> Result<Outcome, QueryError> {
        let Some(json) = evm.receipt(hash).await? else { return Ok(Outcome::Unseen) };
        let (receipt, block) = read_receipt(chain, &json)?;
        let is_final = is_final(evm, confirmations, block).await?;
        if !receipt.succeeded() {
            let message = "execution reverted".to_owned();
            return Ok(if is_final { Outcome::Failed { code: None, message } } else { Outcome::Unsure });
        }
        let Some(time) = evm.block_time(block).await? else { return Ok(Outcome::Unsure) };
        let hash = format!("0x{}", hex::encode(hash));
        let tx =
            TxRef { chain: chain.to_owned(), hash: Some(hash), height: block, time: Some(time.unix_nanos()) };
        let hops = detect::detect_evm_hops(self.registry, &receipt.logs, &tx);
        if hops.is_empty() && !is_final {
            return Ok(Outcome::Unsure);
        }
        Ok(Outcome::Executed { tx, is_final, hops, other_hash: None })
    }

    /// Runs a query about a hop.
    pub(crate) async fn query(
        &self,
        hop: &ObservedHop,
        query: HopQuery,
    ) -> Result<Vec<Observation>, QueryError> {
        match query.chain(hop) {
            // Boxed: the future of all kinds of queries is large, and each poll would hold copies of it.
            Some(chain) => self.within_limits(chain, Box::pin(self.dispatch(hop, query))).await,
            None => Ok(Vec::new()),
        }
    }

    async fn dispatch(&self, hop: &ObservedHop, query: HopQuery) -> Result<Vec<Observation>, QueryError> {
        match (hop, query) {
            (ObservedHop::Ibc(hop), HopQuery::Received) => self.received(hop).await,
            (ObservedHop::Ibc(hop), HopQuery::Written) => self.written(hop).await,
            (ObservedHop::Ibc(hop), HopQuery::Acknowledged) => self.acknowledged(hop).await,
            (ObservedHop::Ibc(hop), HopQuery::TimedOut) => self.timed_out(hop).await,
            (ObservedHop::Deposit(hop), HopQuery::Finalized) => self.finalized(hop).await,
            (ObservedHop::Withdrawal(hop), HopQuery::Output) => self.output(hop).await,
            (ObservedHop::Withdrawal(hop), HopQuery::Claimed) => self.claimed(hop).await,
            (ObservedHop::LayerZero(hop), HopQuery::Delivered) => self.delivered(hop).await,
            (ObservedHop::Swap(hop), HopQuery::Denoms) => self.denoms(hop).await,
            // No other combination is generated.
            _ => Ok(Vec::new()),
        }
    }

    /// The denominations of swapped tokens that the registry does not have.
    async fn denoms(&self, hop: &Swap) -> Result<Vec<Observation>, QueryError> {
        let search = self.search(&hop.chain)?;
        let rest = search.clients.rest()?;
        let mut named = Vec::new();
        for coin in hop.coins().filter(|coin| coin.denom.is_none()) {
            let denom = rest.denom_of_metadata(&coin.metadata).await?;
            named.extend(denom.map(|denom| Observation::Named { metadata: coin.metadata.clone(), denom }));
        }
        Ok(named)
    }

    fn search(&self, chain: &str) -> Result<Search<'_>, QueryError> {
        let known = self.chain(chain)?;
        Ok(Search {
            chain: chain.to_owned(),
            clients: match self.registry.chain(chain) {
                Some(chain) => self.clients.of(&self.registry[chain]),
                None => self.clients.at(chain, known.kind(), &known.endpoints()),
            },
            limiter: self.limiters.of(chain),
            local: LocalChain { chain: chain.to_owned(), index: self.local.cloned() },
            clock: self.clock,
        })
    }

    /// The chain in the registry, or as the record knows it.
    fn chain(&self, chain: &str) -> Result<Cow<'_, KnownChain>, QueryError> {
        KnownChain::find(self.registry, &self.kept, chain).ok_or_else(|| unknown(chain))
    }
}

/// Final by depth, or by the chain's own finalized height.
async fn is_final(evm: &Evm, confirmations: u32, block: u64) -> Result<bool, QueryError> {
    let tip = evm.block_number().await?;
    if tip.saturating_sub(block) >= u64::from(confirmations) {
        return Ok(true);
    }
    Ok(evm.finalized().await?.is_some_and(|finalized| finalized >= block))
}

fn unknown(chain: &str) -> QueryError {
    QueryError::UnknownChain { chain: chain.to_owned() }
}

fn read_receipt(chain: &str, json: &[u8]) -> Result<(Receipt, u64), QueryError> {
    let unreadable =
        |reason: String| QueryError::Unreadable { chain: chain.to_owned(), what: "a receipt", reason };
    let receipt: Receipt = serde_json::from_slice(json).map_err(|e| unreadable(e.to_string()))?;
    let block = receipt.block().ok_or_else(|| unreadable("blockNumber is no number".to_owned()))?;
    Ok((receipt, block))
}
