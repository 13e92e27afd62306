//! The records of packets and channels of IBC, from their rows, their blocks and their transactions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use chain::Timestamp;
use chain::packet::{self, End, Outcome, Payload, Ports, Side};
use schema::block::Blocks;
use schema::packets::{
    self, Blob, Channel, ChannelStage, Connections, EndPackets, PacketEnd, PacketRow, PacketState, Packets,
    PacketsByState, Stage,
};
use schema::payload::Codec;
use schema::records;
use schema::tx::Txs;
use serde::Deserialize;
use store::key::Text;
use store::{Message, Order, Snapshot, Table as _};
use web::http_error::HttpError;
use web::limits::lane;

use crate::indexer::Indexer;
use crate::page_writer::PageWriter;
use crate::record::missing;
use crate::v1::{
    IbcChannel, IbcEnd, IbcOldestPacket, IbcPacket, IbcPacketCounts, IbcPacketData, IbcPacketName,
    IbcPacketStage,
};

/// Records that are made at once: what is in memory does not grow with the page.
const AT_ONCE: usize = 64;

/// The state in the API of a packet that waits while its channel is closed.
pub(crate) const STUCK: &str = "stuck";

/// Makes records of a snapshot.
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    codec: &'a Codec,
    snapshot: &'a dyn Snapshot,
    /// Header time of the last block.
    now: i64,
}

/// What the records of a page are made with, besides their rows.
#[derive(Default)]
struct Sources {
    /// Time of each block.
    blocks: BTreeMap<u64, i64>,
    /// Hash of each transaction, by its sequence.
    txs: BTreeMap<u64, String>,
    /// Packets that others forward, or are forwarded by, by number.
    linked: BTreeMap<u64, PacketRow>,
    /// Whether each channel is closed.
    closed: BTreeMap<(String, String), bool>,
}

impl<'a> Records<'a> {
    /// The records of `snapshot`, whose last block has the time `now`.
    pub(crate) fn new(indexer: &'a Indexer, snapshot: &'a dyn Snapshot, now: i64) -> Self {
        Self { codec: &indexer.codec, snapshot, now }
    }

    /// Appends the records of the packets `numbers`, as many as the page takes.
    pub(crate) fn write(self, page: &mut PageWriter, numbers: &[u64]) -> Result<(), HttpError> {
        for numbers in numbers.chunks(AT_ONCE) {
            for record in self.packets(numbers)? {
                if page.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The rows of packets, in the order of `numbers`.
    pub(crate) fn rows(self, numbers: &[u64]) -> Result<Vec<PacketRow>, HttpError> {
        let rows = store::table::read_many::<Packets>(self.snapshot, numbers).map_err(HttpError::internal)?;
        let row = |(number, row): (&u64, Option<Message<PacketRow>>)| {
            row.map(|Message(row)| row).ok_or_else(|| missing(Packets::SPEC, *number))
        };
        let rows: Vec<PacketRow> = numbers.iter().zip(rows).map(row).collect::<Result<_, _>>()?;
        lane::spend(
            rows.iter().map(|row| row.data.as_ref().map_or(0, |data| data.bytes.len()) as u64).sum(),
        )?;
        Ok(rows)
    }

    /// The records of packets, in the order of `numbers`.
    pub(crate) fn packets(self, numbers: &[u64]) -> Result<Vec<IbcPacket>, HttpError> {
        let rows = self.rows(numbers)?;
        let sources = self.sources(&rows)?;
        Ok(rows.iter().map(|row| self.packet(&sources, row)).collect())
    }

    fn sources(self, rows: &[PacketRow]) -> Result<Sources, HttpError> {
        /// The member of a record that is needed here.
        #[derive(Deserialize)]
        struct Head {
            txhash: String,
        }
        let mut sources = Sources::default();
        let stages = || rows.iter().flat_map(stages).flatten();
        let heights: Vec<u64> =
            stages().map(|stage| stage.height).collect::<BTreeSet<_>>().into_iter().collect();
        let blocks =
            store::table::read_many::<Blocks>(self.snapshot, &heights).map_err(HttpError::internal)?;
        for (height, block) in heights.into_iter().zip(blocks) {
            let Message(block) = block.ok_or_else(|| missing(Blocks::SPEC, height))?;
            sources.blocks.insert(height, block.time);
        }
        let txs = stages().map(|stage| stage.tx).filter(|tx| *tx > 0);
        let txs: Vec<u64> = txs.collect::<BTreeSet<_>>().into_iter().collect();
        let (mut heads, mut refused) = (Vec::with_capacity(txs.len()), None);
        records::each::<Txs>(self.snapshot, self.codec, &txs, |record| {
            if refused.is_none() {
                refused = lane::spend(record.len() as u64).err();
                heads.push(serde_json::from_slice::<Head>(record));
            }
        })
        .map_err(HttpError::internal)?;
        refused.map_or(Ok(()), Err)?;
        for (tx, head) in txs.into_iter().zip(heads) {
            sources.txs.insert(tx, head.map_err(HttpError::internal)?.txhash);
        }
        let linked = rows.iter().flat_map(|row| [row.next, row.previous]).filter(|number| *number > 0);
        let linked: Vec<u64> = linked.collect::<BTreeSet<_>>().into_iter().collect();
        sources.linked = linked.iter().copied().zip(self.rows(&linked)?).collect();
        let pending = rows.iter().filter(|row| row.packet_state() == PacketState::Pending);
        for row in pending {
            let key = (row.source_channel.clone(), row.source_port.clone());
            if let Entry::Vacant(place) = sources.closed.entry(key) {
                let (channel, port) = place.key().clone();
                place.insert(self.is_closed(&End { port, channel })?);
            }
        }
        Ok(sources)
    }

    fn packet(self, sources: &Sources, row: &PacketRow) -> IbcPacket {
        let packet = row.packet();
        let (payload, ports) = packet::payload(&packet);
        let stage = |stage: &Option<Stage>| stage.as_ref().map(|stage| sources.stage(stage));
        let name = |number: u64| sources.linked.get(&number).map(name);
        let acknowledgement = row.acknowledgement.as_ref().and_then(Blob::whole).unwrap_or_default();
        let error = match packet::outcome(row.version, acknowledgement) {
            Outcome::Failure(reason) => reason,
            Outcome::Success | Outcome::Other => String::new(),
        };
        let state = row.packet_state();
        let is_closed = sources.closed.get(&(row.source_channel.clone(), row.source_port.clone()));
        let is_stuck = state == PacketState::Pending && is_closed == Some(&true);
        IbcPacket {
            side: if row.received { "received" } else { "sent" }.to_owned(),
            version: row.version,
            source_port: ports.source.clone(),
            source_channel: row.source_channel.clone(),
            destination_port: ports.destination.clone(),
            destination_channel: row.destination_channel.clone(),
            sequence: row.sequence,
            state: if is_stuck { STUCK } else { state.name() }.to_owned(),
            timeout_height: row.timeout_height.clone(),
            timeout_timestamp: row.timeout_time,
            timeout_passed: self.timeout_passed(row),
            data: Some(data(row.side(), &packet, payload, ports)),
            data_hex: hex::encode(packet.data.unwrap_or_default()),
            acknowledgement_hex: hex::encode(acknowledgement),
            error,
            send: stage(&row.send),
            receive: stage(&row.receive),
            write_acknowledgement: stage(&row.write_acknowledgement),
            acknowledge: stage(&row.acknowledge),
            timeout: stage(&row.timeout),
            forwarded_to: name(row.next),
            forwarded_from: name(row.previous),
        }
    }

    fn timeout_passed(self, row: &PacketRow) -> Option<bool> {
        if row.packet_state() != PacketState::Pending || row.timeout_time == 0 {
            return None;
        }
        let passed = u64::try_from(self.now).unwrap_or_default() >= row.timeout_time;
        // Its height may have passed before its time.
        (passed || row.timeout_height.is_empty()).then_some(passed)
    }

    /// Whether a channel is known to be closed.
    pub(crate) fn is_closed(self, end: &End) -> Result<bool, HttpError> {
        let channel = packets::channel(self.snapshot, end).map_err(HttpError::internal)?;
        Ok(channel.is_some_and(|channel| channel.state() == ChannelStage::Closed))
    }

    /// The record of a channel.
    pub(crate) fn channel(self, end: &End, channel: &Channel) -> Result<IbcChannel, HttpError> {
        let Self { snapshot, .. } = self;
        let own = |side| PacketEnd { side, end: end.clone() };
        let all = |side| store::list::len::<EndPackets>(snapshot, &own(side)).map_err(HttpError::internal);
        let with = |side, state| {
            store::ranked::len::<PacketsByState>(snapshot, &(own(side), state)).map_err(HttpError::internal)
        };
        let is_closed = channel.state() == ChannelStage::Closed;
        let waiting = with(Side::Sent, PacketState::Pending)?;
        let client = if end.port.is_empty() {
            // A client of IBC v2.
            Some(end.channel.clone())
        } else {
            store::table::read::<Connections>(snapshot, &Text(channel.connection.clone()))
                .map_err(HttpError::internal)?
        };
        let state = match channel.state() {
            ChannelStage::Unknown => "",
            ChannelStage::Init => "STATE_INIT",
            ChannelStage::TryOpen => "STATE_TRYOPEN",
            ChannelStage::Open => "STATE_OPEN",
            ChannelStage::Closed => "STATE_CLOSED",
        };
        Ok(IbcChannel {
            port_id: end.port.clone(),
            channel_id: end.channel.clone(),
            counterparty: Some(IbcEnd {
                port_id: channel.counterparty_port.clone(),
                channel_id: channel.counterparty_channel.clone(),
            }),
            connection_id: channel.connection.clone(),
            client_id: client.unwrap_or_default(),
            ordering: channel.ordering.clone(),
            version: channel.version.clone(),
            state: state.to_owned(),
            packets: Some(IbcPacketCounts {
                sent: all(Side::Sent)?,
                received: all(Side::Received)?,
                pending: if is_closed { 0 } else { waiting },
                acknowledged: with(Side::Sent, PacketState::Acknowledged)?,
                failed: with(Side::Sent, PacketState::Failed)?,
                timed_out: with(Side::Sent, PacketState::TimedOut)?,
                stuck: if is_closed { waiting } else { 0 },
                unacknowledged: with(Side::Received, PacketState::Received)?,
            }),
            oldest_pending: self.oldest_pending(own(Side::Sent))?,
        })
    }

    fn oldest_pending(self, end: PacketEnd) -> Result<Option<IbcOldestPacket>, HttpError> {
        let owner = (end, PacketState::Pending);
        let first = store::ranked::items::<PacketsByState>(self.snapshot, &owner, Order::Asc, 1)
            .map_err(HttpError::internal)?;
        let numbers: Vec<u64> = first.into_iter().map(|(number, ())| number).collect();
        let Some(row) = self.rows(&numbers)?.pop() else { return Ok(None) };
        let height = row.send.map_or(0, |send| send.height);
        let block = store::table::read::<Blocks>(self.snapshot, &height).map_err(HttpError::internal)?;
        let timestamp = block.map_or_else(String::new, |Message(block)| time(block.time));
        Ok(Some(IbcOldestPacket { sequence: row.sequence, height, timestamp }))
    }
}

impl Sources {
    fn stage(&self, stage: &Stage) -> IbcPacketStage {
        IbcPacketStage {
            height: stage.height,
            txhash: self.txs.get(&stage.tx).cloned().unwrap_or_default(),
            timestamp: self.blocks.get(&stage.height).map_or_else(String::new, |nanos| time(*nanos)),
            msg_index: stage.message.checked_sub(1),
        }
    }
}

fn time(nanos: i64) -> String {
    Timestamp::from_unix_nanos(nanos).nanos()
}

/// The steps of a packet that this chain has seen.
fn stages(row: &PacketRow) -> [Option<&Stage>; 5] {
    [&row.send, &row.receive, &row.write_acknowledgement, &row.acknowledge, &row.timeout].map(Option::as_ref)
}

fn name(row: &PacketRow) -> IbcPacketName {
    let (port, channel) = match row.side() {
        Side::Sent => (&row.source_port, &row.source_channel),
        Side::Received => (&row.destination_port, &row.destination_channel),
    };
    IbcPacketName { port_id: port.clone(), channel_id: channel.clone(), sequence: row.sequence }
}

fn data(side: Side, packet: &packet::Packet, payload: Payload, ports: Ports) -> IbcPacketData {
    match payload {
        Payload::Tokens { sender, receiver, denom, amount, memo } => {
            let end = |port, end: &End| End { port, channel: end.channel.clone() };
            let (source, destination) =
                (end(ports.source, &packet.source), end(ports.destination, &packet.destination));
            IbcPacketData {
                r#type: "tokens".to_owned(),
                local_denom: packet::local_denom(side, &source, &destination, &denom),
                sender,
                receiver,
                denom,
                amount,
                memo,
                ..IbcPacketData::default()
            }
        }
        Payload::Nfts { sender, receiver, class_id, token_ids, memo } => IbcPacketData {
            r#type: "nfts".to_owned(),
            sender,
            receiver,
            denom: class_id,
            token_ids,
            memo,
            ..IbcPacketData::default()
        },
        Payload::Transaction { owner, messages, memo } => IbcPacketData {
            r#type: "transaction".to_owned(),
            sender: owner,
            messages,
            memo,
            ..IbcPacketData::default()
        },
        Payload::Raw => IbcPacketData { r#type: "raw".to_owned(), ..IbcPacketData::default() },
    }
}
