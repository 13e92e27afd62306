//! Node queries of one poll, and the observations made from their results.
//!
//! # Invariants
//!
//! * An observation comes from one event that has all queried attributes.
//! * A failed query makes no observation.
//! * A search is for one item and reads one page; a search for outputs reads a few.

mod bridge;
mod lz;

use std::sync::{Arc, Mutex, PoisonError};

use chain::Vm;
use chain::hash::Hash;
use node::FoundTx;
use registry::{ChainKind, ChainRef, Registry};
use tokio::sync::Notify;

use crate::detect;
use crate::event::{around, find, names, returned_ack, written_ack};
use crate::hop::{Ibc, ObservedHop, Packet, TxRef};
use crate::hop_query::{HopQuery, may_be_expired};
use crate::layer_zero::{self, Receipt};
use crate::limiter::PollPermit;
use crate::nodes::{Clients, Nodes};
use crate::options::Options;
use crate::search::{QueryError, Search};
use crate::state::Observation;

/// Node queries on behalf of one poll.
pub(crate) struct ChainQueries<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) nodes: &'a Nodes,
    pub(crate) options: &'a Options,
    /// When the poll began.
    pub(crate) now: i64,
    /// Current time, for the circuit breakers.
    pub(crate) clock: &'a dyn Fn() -> i64,
    pub(crate) home: HomeSlot<'a>,
}

/// The place that a poll takes in the queue of its chain, until it queries another chain: then it waits for that one,
/// and the next poll of the queue may begin.
pub(crate) struct HomeSlot<'a> {
    pub(crate) chain: &'a str,
    pub(crate) permit: Mutex<Option<PollPermit>>,
    /// Notified when the permit is released.
    pub(crate) left: &'a Notify,
}

impl HomeSlot<'_> {
    /// Whether the poll is still in the queue of its chain, `chain` being the one that it is about to ask.
    fn keeps(&self, chain: &str) -> bool {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        if chain != self.chain && permit.take().is_some() {
            self.left.notify_one();
        }
        permit.is_some()
    }
}

/// The EVM's hash of a transaction that calls it. Only so that it is found by either: without it nothing is lost.
async fn hash_in_the_evm(evm: &node::Evm, tx: &FoundTx) -> Option<String> {
    let calls = |action: &str| action.starts_with("/minievm.evm.v1.");
    if !tx.events.iter().any(|event| event.kind == "message" && event.get("action").is_some_and(calls)) {
        return None;
    }
    match evm.eth_hashes(tx.hash).await {
        Ok(hash) => hash.map(|hash| format!("0x{}", hex::encode(hash))),
        Err(e) => {
            tracing::debug!("the EVM's hash of {}: {e}", hex::encode_upper(tx.hash));
            None
        }
    }
}

/// Outcome of a registered transaction.
pub(crate) enum Outcome {
    /// No node has it.
    Unseen,
    /// It is there, and its block may still change.
    Unsure,
    /// It failed.
    Failed { code: Option<u64>, message: String },
    /// It was executed, and this is what it began.
    Executed { tx: TxRef, is_final: bool, hops: Vec<ObservedHop>, other_hash: Option<String> },
}

impl ChainQueries<'_> {
    /// Queries the outcome of a registered transaction.
    pub(crate) async fn source(&self, chain: &str, hash: Hash) -> Result<Outcome, QueryError> {
        let reference = self.registry.chain(chain);
        let (reference, clients) = reference.zip(self.nodes.of(self.registry, chain)).ok_or_else(|| {
            QueryError::NoNode { chain: chain.to_owned(), service: "any kind, since the chain itself is not" }
        })?;
        self.within_limits(chain, async {
            match self.registry[reference].kind {
                ChainKind::Cosmos => self.cosmos_source(reference, &clients, hash).await,
                ChainKind::Evm => self.evm_source(reference, &clients, hash).await,
            }
        })
        .await
    }

    /// Runs a query within the concurrency limit of its chain.
    async fn within_limits<T>(
        &self,
        chain: &str,
        ask: impl Future<Output = Result<T, QueryError>>,
    ) -> Result<T, QueryError> {
        let limiter = self.nodes.limiter(chain);
        let _waiting = if self.home.keeps(chain) { None } else { Some(limiter.wait()?) };
        limiter.call(self.clock, ask).await
    }

    async fn cosmos_source(
        &self,
        chain: ChainRef,
        clients: &Clients,
        hash: Hash,
    ) -> Result<Outcome, QueryError> {
        let search = Search { chain: &self.registry[chain].id, clients };
        let evm = clients.evm.as_ref().filter(|_| self.registry[chain].vm == Vm::Evm);
        let (found, other_hash) = match (search.tx(hash).await?, evm) {
            (Some(found), Some(evm)) => {
                let other_hash = hash_in_the_evm(evm, &found.0).await;
                (Some(found), other_hash)
            }
            (None, Some(evm)) => {
                // It may be the EVM's hash of it.
                let known = evm.cosmos_hash(hash).await.map_err(QueryError::Partly)?;
                let Some(hash) = known else { return Ok(Outcome::Unseen) };
                (search.tx(hash).await?, Some(hex::encode_upper(hash)))
            }
            (found, None) => (found, None),
        };
        let Some(found) = found else { return Ok(Outcome::Unseen) };
        if found.0.code != 0 {
            return Ok(Outcome::Failed { code: Some(found.0.code.into()), message: found.0.log });
        }
        let tx = search.seen(&found).await?;
        let hops = detect::detect_hops(self.registry, chain, &found.0, &tx);
        Ok(Outcome::Executed { tx, is_final: true, hops, other_hash })
    }

    async fn evm_source(
        &self,
        chain: ChainRef,
        clients: &Clients,
        hash: Hash,
    ) -> Result<Outcome, QueryError> {
        let evm = evm_of(&self.registry[chain].id, clients)?;
        let Some(json) = evm.receipt(hash).await? else { return Ok(Outcome::Unseen) };
        let (receipt, block) = read_receipt(&self.registry[chain].id, &json)?;
        let is_final = self.is_final(chain, evm, block).await?;
        if !receipt.succeeded() {
            let message = "execution reverted".to_owned();
            return Ok(if is_final { Outcome::Failed { code: None, message } } else { Outcome::Unsure });
        }
        let Some(time) = evm.block_time(block).await? else { return Ok(Outcome::Unsure) };
        let tx = TxRef {
            chain: self.registry[chain].id.clone(),
            hash: format!("0x{}", hex::encode(hash)),
            height: block,
            time: Some(time.unix_nanos()),
        };
        let hops: Vec<_> = layer_zero::sent(self.registry, chain, &receipt, &tx)
            .into_iter()
            .map(ObservedHop::LayerZero)
            .collect();
        if hops.is_empty() && !is_final {
            return Ok(Outcome::Unsure);
        }
        Ok(Outcome::Executed { tx, is_final, hops, other_hash: None })
    }

    /// Final by depth, or by the chain's own finalized height.
    async fn is_final(&self, chain: ChainRef, evm: &node::Evm, block: u64) -> Result<bool, QueryError> {
        let tip = evm.block_number().await?;
        if tip.saturating_sub(block) >= u64::from(self.registry[chain].confirmations) {
            return Ok(true);
        }
        Ok(evm.finalized().await?.is_some_and(|finalized| finalized >= block))
    }

    /// Runs a query about a hop.
    pub(crate) async fn ask(
        &self,
        hop: &ObservedHop,
        query: HopQuery,
    ) -> Result<Vec<Observation>, QueryError> {
        match query.chain(hop) {
            Some(chain) => self.within_limits(chain, self.put(hop, query)).await,
            None => Ok(Vec::new()),
        }
    }

    async fn put(&self, hop: &ObservedHop, query: HopQuery) -> Result<Vec<Observation>, QueryError> {
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
        let clients = self.clients(to)?;
        let search = Search { chain: to, clients: &clients };
        // Before the search: what comes in between only makes a packet late that was received, which is then found.
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

    /// Whether the receiving chain refuses the packet from now on, with a margin.
    async fn is_expired_on(&self, search: &Search<'_>, packet: &Packet) -> Result<bool, QueryError> {
        /// Blocks, for a timeout that is a height.
        const MARGIN: u64 = 10;
        if search.clients.comet.is_none() {
            return Ok(false);
        }
        let (height, time) = search.tip().await?;
        let margin = u64::try_from(self.options.expiry_margin.as_nanos()).unwrap_or(u64::MAX);
        let time = crate::record::moment(time.unix_nanos());
        let by_time = packet.timeout_nanos > 0 && time >= packet.timeout_nanos.saturating_add(margin);
        let by_height = packet.timeout_height > 0 && height >= packet.timeout_height.saturating_add(MARGIN);
        Ok(by_time || by_height)
    }

    async fn written(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let Some(to) = &hop.packet.to else { return Ok(Vec::new()) };
        let clients = self.clients(to)?;
        let search = Search { chain: to, clients: &clients };
        let found = self.find(&search, "write_acknowledgement", &hop.packet, "dst").await?;
        let ack = found.and_then(|((tx, _), event)| written_ack(&tx.events[event], around(&tx, event)));
        Ok(ack.into_iter().map(|ack| Observation::Written { packet: hop.packet.id.clone(), ack }).collect())
    }

    async fn acknowledged(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let clients = self.clients(&hop.packet.id.chain)?;
        let search = Search { chain: &hop.packet.id.chain, clients: &clients };
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
        let clients = self.clients(from)?;
        let search = Search { chain: from, clients: &clients };
        let Some((tx, at, event)) = self.one(&search, "timeout_packet", &hop.packet, "src").await? else {
            return Ok(Vec::new());
        };
        let chain = self.registry.chain(from);
        let again =
            chain.and_then(|chain| detect::again(self.registry, chain, &hop.packet, around(&tx, event)));
        let again = again.map(|packet| Box::new((packet, at.clone())));
        Ok(vec![Observation::TimedOut { packet: hop.packet.id.clone(), at, again }])
    }

    /// The transaction with an event about a packet, where it is, and which event it is.
    async fn one(
        &self,
        search: &Search<'_>,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<(FoundTx, TxRef, usize)>, QueryError> {
        let Some((found, event)) = self.find(search, kind, packet, side).await? else { return Ok(None) };
        let at = search.seen(&found).await?;
        Ok(Some((found.0, at, event)))
    }

    /// Searches by sequence and by the channel on the side of the chain that is queried; the event must name all of it.
    async fn find(
        &self,
        search: &Search<'_>,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<((FoundTx, Option<chain::Timestamp>), usize)>, QueryError> {
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

    fn clients(&self, chain: &str) -> Result<Arc<Clients>, QueryError> {
        let no_node = || QueryError::NoNode { chain: chain.to_owned(), service: "any kind" };
        self.nodes.of(self.registry, chain).ok_or_else(no_node)
    }
}

fn find_in<'a>(message: &'a [node::FoundEvent], kind: &str, packet: &Packet) -> Option<&'a node::FoundEvent> {
    let names = names(packet);
    message.iter().find(|event| {
        event.kind == kind && names.iter().all(|(key, value)| event.get(key) == Some(value.as_str()))
    })
}

fn evm_of<'a>(chain: &str, clients: &'a Clients) -> Result<&'a node::Evm, QueryError> {
    let no_node = || QueryError::NoNode { chain: chain.to_owned(), service: "json-rpc" };
    clients.evm.as_ref().ok_or_else(no_node)
}

fn read_receipt(chain: &str, json: &[u8]) -> Result<(Receipt, u64), QueryError> {
    let unreadable =
        |reason: String| QueryError::Unreadable { chain: chain.to_owned(), what: "a receipt", reason };
    let receipt: Receipt = serde_json::from_slice(json).map_err(|e| unreadable(e.to_string()))?;
    let block = receipt.block().ok_or_else(|| unreadable("blockNumber is no number".to_owned()))?;
    Ok((receipt, block))
}
