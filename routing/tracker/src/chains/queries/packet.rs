//! Queries for IBC packets: what the states of both chains say, and the transactions that show how it came about.
//!
//! # Invariants
//!
//! * A state comes first: receipt, acknowledgement, commitment, next sequence. A search only finds the transaction of
//!   what a state says, or stands in for a state that cannot be read.
//! * "Not received" comes from a state only, never from a search that found nothing.
//! * A packet has expired only in a state after its timeout that has not received it: no later block can.

use node::{FoundEvent, PacketPath, Receipt, Rest, TxSearchHit};

use super::ChainQueries;
use crate::chains::local_index::PacketStep;
use crate::chains::query_error::QueryError;
use crate::chains::search::{Found, Search, Wanted};
use crate::evidence::continuation;
use crate::evidence::event::{around, find, names, returned_ack, written_ack};
use crate::evidence::hop::{Ack, Ibc, Packet, Relation};
use crate::evidence::hop_query::may_be_expired;
use crate::evidence::known_acks::known_ack;
use crate::evidence::state::Observation;
use crate::record::moment;

/// The end of a packet's channel on the sending chain, and on the receiving chain.
fn ends(packet: &Packet) -> (PacketPath<'_>, PacketPath<'_>) {
    let sequence = packet.id.sequence;
    (
        PacketPath { port: &packet.id.port, channel: &packet.id.channel, sequence },
        PacketPath { port: &packet.dst_port, channel: &packet.dst_channel, sequence },
    )
}

async fn receipt(rest: &Rest, packet: &Packet, height: Option<u64>) -> Result<Receipt, node::Error> {
    let (_, end) = ends(packet);
    let receipt = rest.packet_receipt(end, height).await?;
    // Channels of the two token modules are unordered; one of a contract may have no receipts.
    let has_receipts = ["transfer", "nft-transfer"].contains(&packet.dst_port.as_str());
    if receipt.received || has_receipts { Ok(receipt) } else { rest.next_packet(end, height).await }
}

impl ChainQueries<'_> {
    pub(super) async fn received(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let Some(to) = &hop.packet.to else { return Ok(Vec::new()) };
        let (search, packet) = (self.search(to)?, &hop.packet);
        let state = match &hop.received {
            Some(at) => Ok(Receipt { received: true, height: at.height }),
            None => match search.clients.rest() {
                Ok(rest) => receipt(rest, packet, None).await.map_err(QueryError::from),
                Err(error) => Err(error.into()),
            },
        };
        let height = match state {
            Ok(Receipt { received: false, height }) => match self.not_received(hop, &search, height).await? {
                Some(observations) => return Ok(observations),
                None => None,
            },
            Ok(Receipt { height, .. }) => Some(height),
            Err(_) => None,
        };
        let found = self.packet_event(&search, "recv_packet", packet, "dst").await;
        let found = match (found, height) {
            (Ok(Some(found)), _) => Some(found),
            (found, None) => return nothing(found, state.err()),
            (_, Some(height)) if hop.received.is_none() => {
                let rest = search.clients.rest()?;
                let holds = |height| async move {
                    receipt(rest, packet, Some(height)).await.map(|receipt| receipt.received)
                };
                self.packet_event_at(&search, (1, height), holds, "recv_packet", packet, "dst").await?
            }
            _ => return Ok(Vec::new()),
        };
        let packet = packet.id.clone();
        let Some((found, event)) = found else {
            let at = search.in_state(height.unwrap_or_default());
            return Ok(vec![Observation::Received { packet, at, ack: None, next: Vec::new() }]);
        };
        let at = search.located(&found).await?;
        let message = around(&found.0, event);
        let written = find_in(message, "write_acknowledgement", &hop.packet);
        let ack = written.and_then(|event| written_ack(event, message));
        let chain = self.chain(to)?;
        let prefix = &chain.bech32_prefix;
        let next = continuation::continuation(self.registry, prefix, &hop.packet, ack.as_ref(), message, &at);
        Ok(vec![Observation::Received { packet, at, ack, next }])
    }

    /// The receiving chain had not received the packet at this height. None if the height is old: its clock is before the
    /// timeout, which is over.
    async fn not_received(
        &self,
        hop: &Ibc,
        search: &Search<'_>,
        height: u64,
    ) -> Result<Option<Vec<Observation>>, QueryError> {
        let packet = &hop.packet;
        if hop.expired || !may_be_expired(hop, self.now) {
            return Ok(Some(Vec::new()));
        }
        let is_over_at = |time: i64| packet.timeout_nanos > 0 && moment(time) >= packet.timeout_nanos;
        let time = search.block_time(height).await?.unix_nanos();
        if is_over_at(time) || (packet.timeout_height > 0 && height >= packet.timeout_height) {
            return Ok(Some(vec![Observation::Expired { packet: packet.id.clone() }]));
        }
        Ok(if is_over_at(self.now) { None } else { Some(Vec::new()) })
    }

    pub(super) async fn written(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        const KIND: &str = "write_acknowledgement";
        let Some(to) = &hop.packet.to else { return Ok(Vec::new()) };
        let (search, packet) = (self.search(to)?, &hop.packet);
        let state = match search.clients.rest() {
            Ok(rest) => rest.packet_ack(ends(packet).1, None).await.map_err(QueryError::from),
            Err(error) => Err(error.into()),
        };
        let known = match &state {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(hash)) => known_ack(*hash),
            Err(_) => None,
        };
        let written = |ack| vec![Observation::Written { packet: packet.id.clone(), ack }];
        if let Some(ack @ Ack::Good) = known {
            return Ok(written(ack));
        }
        let found = self.packet_event(&search, KIND, packet, "dst").await;
        let found = match (found, &state) {
            (Ok(Some(found)), _) => Some(found),
            (found, Err(_)) => return nothing(found, state.err()),
            // Where the receipt was not found either, the states are pruned.
            (_, Ok(_)) if hop.received.as_ref().is_none_or(|at| !at.is_found()) => None,
            (_, Ok(_)) => {
                let rest = search.clients.rest()?;
                let holds = |height| async move {
                    rest.packet_ack(ends(packet).1, Some(height)).await.map(|ack| ack.is_some())
                };
                let from = hop.received.as_ref().map_or(1, |at| at.height);
                let tip = search.tip().await?.map_or(from, |(height, _)| height);
                self.packet_event_at(&search, (from, tip), holds, KIND, packet, "dst").await?
            }
        };
        let ack = found.and_then(|((tx, _), event)| written_ack(&tx.events[event], around(&tx, event)));
        Ok(ack.or(known).map(written).unwrap_or_default())
    }

    pub(super) async fn acknowledged(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let search = self.search(&hop.packet.id.chain)?;
        let packet = hop.packet.id.clone();
        let is_known = hop.acknowledged.is_some();
        Ok(match self.closed(hop, &search, "acknowledge_packet", is_known).await? {
            Closed::By(found, event) => {
                let at = search.located(&found).await?;
                let message = around(&found.0, event);
                let ack = returned_ack(message);
                let refund = match ack {
                    Some(Ack::Error { .. }) => continuation::refund(&hop.packet, message),
                    _ => None,
                };
                let acknowledged = Observation::Acknowledged { packet, at, ack };
                [acknowledged].into_iter().chain(refund).collect()
            }
            // A packet that was received cannot time out.
            Closed::At(height) if hop.received.is_some() && !is_known => {
                vec![Observation::Acknowledged { packet, at: search.in_state(height), ack: None }]
            }
            Closed::No | Closed::At(_) => Vec::new(),
        })
    }

    pub(super) async fn timed_out(&self, hop: &Ibc) -> Result<Vec<Observation>, QueryError> {
        let search = self.search(&hop.packet.id.chain)?;
        let packet = hop.packet.id.clone();
        let is_known = hop.timed_out.is_some();
        Ok(match self.closed(hop, &search, "timeout_packet", is_known).await? {
            Closed::By(found, event) => {
                let at = search.located(&found).await?;
                let message = around(&found.0, event);
                let again = continuation::again(self.registry, &hop.packet, message);
                let again = again.map(|packet| Box::new((packet, at.clone())));
                let refund = continuation::refund(&hop.packet, message).filter(|_| again.is_none());
                [Observation::TimedOut { packet, at, again }].into_iter().chain(refund).collect()
            }
            // A packet that can no longer be received has no acknowledgement. One that the chain forwarded may have been
            // sent again.
            Closed::At(height) if hop.expired && !is_known && hop.link != Relation::Forward => {
                vec![Observation::TimedOut { packet, at: search.in_state(height), again: None }]
            }
            Closed::No | Closed::At(_) => Vec::new(),
        })
    }

    /// Whether the sending chain has ended the packet, and by which event.
    async fn closed(
        &self,
        hop: &Ibc,
        search: &Search<'_>,
        kind: &str,
        is_known: bool,
    ) -> Result<Closed, QueryError> {
        let packet = &hop.packet;
        if is_known {
            let found = self.packet_event(search, kind, packet, "src").await;
            return Ok(found.ok().flatten().map_or(Closed::No, |(found, event)| Closed::By(found, event)));
        }
        let state = self.closed_at(hop, search).await;
        if let Ok(None) = state {
            return Ok(Closed::No);
        }
        let found = self.packet_event(search, kind, packet, "src").await;
        match (found, state) {
            (Ok(Some((found, event))), _) => Ok(Closed::By(found, event)),
            (found, Err(error)) => nothing(found, Some(error)).map(|()| Closed::No),
            (_, Ok(None)) => Ok(Closed::No),
            (_, Ok(Some(height))) => {
                let rest = search.clients.rest()?;
                let holds = |height| async move {
                    rest.is_packet_open(ends(packet).0, Some(height)).await.map(|is_open| !is_open)
                };
                let heights = (hop.sent.height, height);
                let found = self.packet_event_at(search, heights, holds, kind, packet, "src").await?;
                Ok(found.map_or(Closed::At(height), |(found, event)| Closed::By(found, event)))
            }
        }
    }

    /// The height by which the sending chain has ended the packet; none if it waits for it. A node that is behind lacks a
    /// packet that was sent later, so that absence counts only in the state of a recent height.
    async fn closed_at(&self, hop: &Ibc, search: &Search<'_>) -> Result<Option<u64>, QueryError> {
        let (rest, (end, _)) = (search.clients.rest()?, ends(&hop.packet));
        if rest.is_packet_open(end, None).await? {
            return Ok(None);
        }
        let height = search.recent_height(hop.sent.height).await?;
        let is_open = rest.is_packet_open(end, Some(height)).await?;
        Ok((!is_open).then_some(height))
    }

    /// The transaction with an event about a packet.
    async fn packet_event(
        &self,
        search: &Search<'_>,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<(Found, usize)>, QueryError> {
        let place = place(kind, packet);
        let (source, destination) = ends(packet);
        let end = if side == "src" { source } else { destination };
        let PacketPath { port, channel, sequence } = end;
        if let Some((tx, time)) = search.local.packet(PacketStep { event: kind, port, channel, sequence })
            && let Some(at) = place(&tx)
        {
            return Ok(Some(((tx, Some(time)), at)));
        }
        search.event(&wanted(kind, packet, side, &place)).await
    }

    /// The same in the block at whose end a state holds first.
    async fn packet_event_at<F: Future<Output = Result<bool, node::Error>>>(
        &self,
        search: &Search<'_>,
        heights: (u64, u64),
        holds: impl Fn(u64) -> F,
        kind: &str,
        packet: &Packet,
        side: &str,
    ) -> Result<Option<(Found, usize)>, QueryError> {
        let place = place(kind, packet);
        search.event_at_change(heights, holds, &wanted(kind, packet, side, &place)).await
    }
}

/// How a packet ended on its sending chain.
enum Closed {
    /// It has not.
    No,
    /// By this event.
    By(Found, usize),
    /// It has by this height; no node has the event.
    At(u64),
}

/// The outcome of a query if neither the state nor a search has it: an error that may pass is one.
pub(super) fn nothing<T, R: Default>(
    found: Result<T, QueryError>,
    state: Option<QueryError>,
) -> Result<R, QueryError> {
    match (found, state) {
        (Err(error), _) => Err(error),
        (Ok(_), Some(error)) if error.is_transient() && !matches!(error, QueryError::NoAddress(_)) => {
            Err(error)
        }
        _ => Ok(R::default()),
    }
}

/// An event must have all attributes of the packet.
fn place(kind: &str, packet: &Packet) -> impl Fn(&TxSearchHit) -> Option<usize> + Sync {
    let names = names(packet);
    move |tx| find(tx, kind, &names.each_ref().map(|(key, value)| (*key, value.as_str())))
}

fn wanted<'a>(
    kind: &str,
    packet: &Packet,
    side: &str,
    place: &'a (dyn Fn(&TxSearchHit) -> Option<usize> + Sync),
) -> Wanted<'a> {
    let channel = if side == "src" { &packet.id.channel } else { &packet.dst_channel };
    Wanted {
        condition: format!("{kind}.packet_sequence='{}'", packet.id.sequence),
        narrower: format!("{kind}.packet_{side}_channel='{channel}'"),
        place,
    }
}

fn find_in<'a>(message: &'a [FoundEvent], kind: &str, packet: &Packet) -> Option<&'a FoundEvent> {
    let names = names(packet);
    message.iter().find(|event| {
        event.kind == kind && names.iter().all(|(key, value)| event.get(key) == Some(value.as_str()))
    })
}
