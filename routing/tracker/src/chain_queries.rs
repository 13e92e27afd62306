//! Node queries of one poll, and the observations made from their results.
//!
//! # Invariants
//!
//! * An observation comes from one event that has all queried attributes.
//! * A failed query makes no observation.
//! * A search is for one item and reads one page; a search for outputs reads a few.

mod bridge;
mod lz;

use std::sync::{Mutex, PoisonError};

use chain::Vm;
use chain::hash::Hash;
use node::{Evm, FoundEvent, TxSearchHit};
use registry::{ChainKind, ChainRef, Registry};
use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::chain_clients::ChainClients;
use crate::detect;
use crate::event::{around, find, names, returned_ack, written_ack};
use crate::hop::{Ibc, ObservedHop, Packet, TxRef};
use crate::hop_query::{HopQuery, may_be_expired};
use crate::layer_zero::{self, Receipt};
use crate::limiter::Limiters;
use crate::options::Options;
use crate::query_error::QueryError;
use crate::search::{Found, Search};
use crate::state::Observation;

/// Node queries on behalf of one poll.
pub(crate) struct ChainQueries<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) clients: &'a ChainClients,
    pub(crate) limiters: &'a Limiters,
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
    /// It was executed and started these hops.
    Executed { tx: TxRef, is_final: bool, hops: Vec<ObservedHop>, other_hash: Option<String> },
}

impl ChainQueries<'_> {
    /// Queries the outcome of a registered transaction.
    pub(crate) async fn source(&self, chain: &str, hash: Hash) -> Result<Outcome, QueryError> {
        let search = self.search(chain)?;
        let reference = self.registry.chain(chain).ok_or_else(|| unknown(chain))?;
        self.within_limits(chain, async {
            match self.registry[reference].kind {
                ChainKind::Cosmos => self.cosmos_source(reference, &search, hash).await,
                ChainKind::Evm => self.evm_source(reference, search.clients.evm()?, hash).await,
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
        limiter.call(self.clock, query).await
    }

    async fn cosmos_source(
        &self,
        chain: ChainRef,
        search: &Search,
        hash: Hash,
    ) -> Result<Outcome, QueryError> {
        let evm = search.clients.evm.as_ref().filter(|_| self.registry[chain].vm == Vm::Evm);
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
        let hops = detect::detect_hops(self.registry, chain, &found.0, &tx);
        Ok(Outcome::Executed { tx, is_final: true, hops, other_hash })
    }

    async fn evm_source(&self, chain: ChainRef, evm: &Evm, hash: Hash) -> Result<Outcome, QueryError> {
        let Some(json) = evm.receipt(hash).await? else { return Ok(Outcome::Unseen) };
        let id = &self.registry[chain].id;
        let (receipt, block) = read_receipt(id, &json)?;
        let is_final = self.is_final(chain, evm, block).await?;
        if !receipt.succeeded() {
            let message = "execution reverted".to_owned();
            return Ok(if is_final { Outcome::Failed { code: None, message } } else { Outcome::Unsure });
        }
        let Some(time) = evm.block_time(block).await? else { return Ok(Outcome::Unsure) };
        let hash = format!("0x{}", hex::encode(hash));
        let tx = TxRef { chain: id.clone(), hash, height: block, time: Some(time.unix_nanos()) };
        let messages = layer_zero::sent(self.registry, chain, &receipt, &tx);
        let hops: Vec<_> = messages.into_iter().map(ObservedHop::LayerZero).collect();
        if hops.is_empty() && !is_final {
            return Ok(Outcome::Unsure);
        }
        Ok(Outcome::Executed { tx, is_final, hops, other_hash: None })
    }

    /// Final by depth, or by the chain's own finalized height.
    async fn is_final(&self, chain: ChainRef, evm: &Evm, block: u64) -> Result<bool, QueryError> {
        let tip = evm.block_number().await?;
        if tip.saturating_sub(block) >= u64::from(self.registry[chain].confirmations) {
            return Ok(true);
        }
        Ok(evm.finalized().await?.is_some_and(|finalized| finalized >= block))
    }

    /// Runs a query about a hop.
    pub(crate) async fn query(
        &self,
        hop: &ObservedHop,
        query: HopQuery,
    ) -> Result<Vec<Observation>, QueryError> {
        match query.chain(hop) {
            Some(chain) => self.within_limits(chain, self.dispatch(hop, query)).await,
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
            // No other combination is generated.
            _ => Ok(Vec::new()),
        }
    }

    async fn received(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let Some(to) = &hop.packet.to else { return Ok(Vec::new()) };
        let search = self.search(to)?;
        // Queried before the search: a packet received in between is then found by the search.
        let is_expired_on =
            !hop.expired && may_be_expired(hop, self.now) && self.is_expired_on(&search, &hop.packet).await?;
        let Some((tx, at, event)) = self.one(&search, "recv_packet", &hop.packet, "dst").await? else {
            let expired = Observation::Expired { packet: hop.packet.id.clone() };
            return Ok(if is_expired_on { vec![expired] } else { Vec::new() });
        };
        let message = around(&tx, event);
        let written = find_in(message, "write_acknowledgement", &hop.packet);
        let ack = written.and_then(|event| written_ack(event, message));
        let next = detect::continuation(self.registry, &hop.packet, ack.as_ref(), message, &at).map(Box::new);
        Ok(vec![Observation::Received { packet: hop.packet.id.clone(), at, ack, next }])
    }

    /// Whether the receiving chain will refuse the packet from now on, with a margin.
    async fn is_expired_on(&self, search: &Search, packet: &Packet) -> Result<bool, QueryError> {
        /// Blocks, for a timeout by height.
        const MARGIN: u64 = 10;
        let Some((height, time)) = search.tip().await? else { return Ok(false) };
        let margin = u64::try_from(self.options.expiry_margin.as_nanos()).unwrap_or(u64::MAX);
        let time = crate::record::moment(time.unix_nanos());
        let by_time = packet.timeout_nanos > 0 && time >= packet.timeout_nanos.saturating_add(margin);
        let by_height = packet.timeout_height > 0 && height >= packet.timeout_height.saturating_add(MARGIN);
        Ok(by_time || by_height)
    }

    async fn written(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let Some(to) = &hop.packet.to else { return Ok(Vec::new()) };
        let search = self.search(to)?;
        let found = self.find(&search, "write_acknowledgement", &hop.packet, "dst").await?;
        let ack = found.and_then(|((tx, _), event)| written_ack(&tx.events[event], around(&tx, event)));
        Ok(ack.into_iter().map(|ack| Observation::Written { packet: hop.packet.id.clone(), ack }).collect())
    }

    async fn acknowledged(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let search = self.search(&hop.packet.id.chain)?;
        let found = self.one(&search, "acknowledge_packet", &hop.packet, "src").await?;
        Ok(found
            .into_iter()
            .map(|(tx, at, event)| Observation::Acknowledged {
                packet: hop.packet.id.clone(),
                at,
                ack: returned_ack(around(&tx, event)),
            })
            .collect())
    }

    async fn timed_out(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let from = &hop.packet.id.chain;
        let search = self.search(from)?;
        let Some((tx, at, event)) = self.one(&search, "timeout_packet", &hop.packet, "src").await? else {
            return Ok(Vec::new());
        };
        let chain = self.registry.chain(from);
        let again =
            chain.and_then(|chain| detect::again(self.registry, chain, &hop.packet, around(&tx, event)));
        let again = again.map(|packet| Box::new((packet, at.clone())));
        Ok(vec![Observation::TimedOut { packet: hop.packet.id.clone(), at, again }])
    }

    /// The transaction with an event about a packet, its location, and the position of the event.
    async fn one(
        &self,
        search: &Search,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<(TxSearchHit, TxRef, usize)>, QueryError> {
        let Some((found, event)) = self.find(search, kind, packet, side).await? else { return Ok(None) };
        let at = search.located(&found).await?;
        Ok(Some((found.0, at, event)))
    }

    /// Searches by sequence and by the channel end on the queried chain; the event must match all attributes.
    async fn find(
        &self,
        search: &Search,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<(Found, usize)>, QueryError> {
        let channel = if side == "src" { &packet.id.channel } else { &packet.dst_channel };
        let sequence = packet.id.sequence;
        let query =
            format!("{kind}.packet_sequence='{sequence}' AND {kind}.packet_{side}_channel='{channel}'");
        let names = names(packet);
        let wanted = names.each_ref().map(|(key, value)| (*key, value.as_str()));
        let (txs, _) = search.txs(&query, 1, false).await?;
        Ok(txs.into_iter().find_map(|found| {
            let event = find(&found.0, kind, &wanted)?;
            Some((found, event))
        }))
    }

    fn search(&self, chain: &str) -> Result<Search, QueryError> {
        let reference = self.registry.chain(chain).ok_or_else(|| unknown(chain))?;
        Ok(Search { chain: chain.to_owned(), clients: self.clients.of(&self.registry[reference]) })
    }
}

fn unknown(chain: &str) -> QueryError {
    QueryError::UnknownChain { chain: chain.to_owned() }
}

fn find_in<'a>(message: &'a [FoundEvent], kind: &str, packet: &Packet) -> Option<&'a FoundEvent> {
    let names = names(packet);
    message.iter().find(|event| {
        event.kind == kind && names.iter().all(|(key, value)| event.get(key) == Some(value.as_str()))
    })
}

fn read_receipt(chain: &str, json: &[u8]) -> Result<(Receipt, u64), QueryError> {
    let unreadable =
        |reason: String| QueryError::Unreadable { chain: chain.to_owned(), what: "a receipt", reason };
    let receipt: Receipt = serde_json::from_slice(json).map_err(|e| unreadable(e.to_string()))?;
    let block = receipt.block().ok_or_else(|| unreadable("blockNumber is no number".to_owned()))?;
    Ok((receipt, block))
}
