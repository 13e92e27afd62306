//! The rows of a block: a fold of the events of packets and channels.

use chain::comet::Event;
use chain::comet::order::is_of_the_end;
use chain::movement::Source;
use chain::packet::{
    self, ChannelEvent, ChannelState, End, Found, Outcome, Packet, Payload, Placed, Side, Step,
};
use store::key::Text;
use store::{Message, Table as _};

use super::{
    AccountPackets, Blob, Channel, ChannelKey, ChannelStage, Channels, Connections, EndPackets, PacketEnd,
    PacketNumbers, PacketRow, PacketState, Packets, PacketsByState, Stage, account_key,
};
use crate::Error;
use crate::block::BlockEvents;
use crate::index::{Rows, StoredBlock};
use crate::records::damaged;
use crate::tx::{TxRecord, Txs};

/// What the record of a transaction says of packets and channels; nothing if it failed.
pub fn read_tx(record: &[u8]) -> Result<Vec<Placed>, serde_json::Error> {
    if !packet::may_have(record) {
        return Ok(Vec::new());
    }
    let content = TxRecord::read(record)?;
    if content.code != 0 {
        return Ok(Vec::new());
    }
    Ok(packet::read(Source::Tx(&content.messages()), &content.events))
}

pub(super) fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let mut fold = Fold { height: block.height, prefix: rows.chain().prefix.clone(), rows };
    let events = block.events()?;
    let (mut begin, mut end) = (Vec::new(), Vec::new());
    if packet::may_have(&events) {
        let damaged_events =
            |error: serde_json::Error| damaged::<BlockEvents>(block.height, &error.to_string());
        let events: Vec<Event<'_>> = serde_json::from_slice(&events).map_err(damaged_events)?;
        let (of_end, of_begin): (Vec<_>, Vec<_>) = events.into_iter().partition(is_of_the_end);
        begin = packet::read(Source::Block, &of_begin);
        end = packet::read(Source::Block, &of_end);
    }
    fold.apply(0, begin)?;
    block.txs(|seq, record| {
        let found = read_tx(record).map_err(|error| damaged::<Txs>(seq, &error.to_string()))?;
        fold.apply(seq, found)
    })?;
    fold.apply(0, end)
}

struct Fold<'r, 't, 's> {
    height: u64,
    prefix: String,
    rows: &'r mut Rows<'t, 's>,
}

/// A step of a packet in a transaction.
struct Taken {
    group: (Option<u32>, Option<u32>),
    step: Step,
    number: u64,
}

impl Fold<'_, '_, '_> {
    /// Applies what the events of a transaction say, or those of the block with `tx` 0.
    fn apply(&mut self, tx: u64, found: Vec<Placed>) -> Result<(), Error> {
        let mut taken = Vec::new();
        for Placed { at, message, group, found } in found {
            match found {
                Found::Packet(packet, step) => {
                    let message = message.map_or(0, |message| message.saturating_add(1));
                    let stage = Stage { height: self.height, tx, message, event: at as u64 };
                    if let Some(number) = self.packet(&packet, &step, stage)? {
                        taken.push(Taken { group, step, number });
                    }
                }
                Found::Channel(event) => self.channel(event)?,
                Found::Connection { connection, client } => {
                    self.rows.set::<Connections>(&Text(connection), &client);
                }
            }
        }
        self.link(&taken)
    }

    /// Applies a step of a packet, unless it was taken before. Returns the number of the packet.
    fn packet(&mut self, packet: &Packet, step: &Step, stage: Stage) -> Result<Option<u64>, Error> {
        let side = step.side();
        let end = PacketEnd { side, end: packet.end(side).clone() };
        let key = (end.clone(), packet.sequence);
        let (number, mut row, before) = match self.rows.get::<PacketNumbers>(&key)? {
            Some(number) => {
                let row = self.row(number)?;
                let state = row.packet_state();
                (number, row, Some(state))
            }
            None => (self.rows.number(), PacketRow::new(side, packet), None),
        };
        let place = match step {
            Step::Send => &mut row.send,
            Step::Receive => &mut row.receive,
            Step::WriteAcknowledgement(_) => &mut row.write_acknowledgement,
            Step::Acknowledge { .. } => &mut row.acknowledge,
            Step::TimeOut => &mut row.timeout,
        };
        if place.is_some() {
            return Ok(None);
        }
        *place = Some(stage);
        if row.data.is_none() {
            row.data = packet.data.clone().map(Blob::new);
        }
        let state = match step {
            Step::Send | Step::Receive => row.packet_state(),
            Step::WriteAcknowledgement(bytes) => {
                row.acknowledgement = Some(Blob::new(bytes.clone()));
                let failed = matches!(packet::outcome(packet.version, bytes), Outcome::Failure(_));
                if failed { PacketState::Failed } else { PacketState::Acknowledged }
            }
            Step::Acknowledge { acknowledgement, failed } => {
                row.acknowledgement = acknowledgement.clone().map(Blob::new);
                if *failed { PacketState::Failed } else { PacketState::Acknowledged }
            }
            Step::TimeOut => PacketState::TimedOut,
        };
        row.state = state as u32;
        if before != Some(state) {
            if let Some(before) = before {
                self.rows.remove::<PacketsByState>(&(end.clone(), before), &number)?;
            }
            self.rows.insert::<PacketsByState>(&(end.clone(), state), &number, &())?;
        }
        if before.is_none() {
            self.rows.set::<PacketNumbers>(&key, &number);
            self.rows.push::<EndPackets>(&end, number)?;
            self.list_accounts(number, packet)?;
            self.seen_channel(side, packet)?;
        }
        self.rows.set::<Packets>(&number, &Message(row));
        Ok(Some(number))
    }

    fn row(&self, number: u64) -> Result<PacketRow, Error> {
        let row = self.rows.get::<Packets>(&number)?;
        row.map(|Message(row)| row).ok_or_else(|| {
            let (table, key) = (Packets::SPEC.name, number.to_string());
            Error::Record { table, key, reason: "the row is missing".to_owned() }
        })
    }

    fn list_accounts(&mut self, number: u64, packet: &Packet) -> Result<(), Error> {
        let (payload, _): (Payload, _) = packet::payload(packet);
        let accounts = payload.accounts().into_iter();
        let mut owners: Vec<Text> =
            accounts.filter_map(|account| account_key(account, &self.prefix)).collect();
        // Two spellings of one account.
        owners.dedup();
        owners.iter().try_for_each(|owner| self.rows.push::<AccountPackets>(owner, number))
    }

    /// Writes what a packet says of its channel, if nothing else has: the channel may be older than the index.
    fn seen_channel(&mut self, side: Side, packet: &Packet) -> Result<(), Error> {
        let (own, other) = match side {
            Side::Sent => (&packet.source, &packet.destination),
            Side::Received => (&packet.destination, &packet.source),
        };
        let known = self.known(own)?;
        let mut channel = known.clone().unwrap_or_default();
        channel.know(other, &packet.connection, &packet.ordering);
        self.put(own, known, channel)
    }

    fn channel(&mut self, event: ChannelEvent) -> Result<(), Error> {
        let known = self.known(&event.end)?;
        let mut channel = known.clone().unwrap_or_default();
        channel.know(&event.counterparty, &event.connection, &event.ordering);
        if !event.version.is_empty() {
            channel.version = event.version;
        }
        channel.set_state(match event.state {
            ChannelState::Init => ChannelStage::Init,
            ChannelState::TryOpen => ChannelStage::TryOpen,
            ChannelState::Open => ChannelStage::Open,
            ChannelState::Closed => ChannelStage::Closed,
        });
        self.put(&event.end, known, channel)
    }

    fn known(&self, end: &End) -> Result<Option<Channel>, Error> {
        let row = self.rows.get::<Channels>(&((), ChannelKey(end.clone())))?;
        Ok(row.map(|Message(channel)| channel))
    }

    fn put(&mut self, end: &End, known: Option<Channel>, channel: Channel) -> Result<(), Error> {
        if known.as_ref() == Some(&channel) {
            return Ok(());
        }
        self.rows.insert::<Channels>(&(), &ChannelKey(end.clone()), &Message(channel))
    }

    /// Joins packets that are forwarded: a message that receives one without an acknowledgement, and sends another one. If that
    /// one times out, the message may send it again.
    fn link(&mut self, taken: &[Taken]) -> Result<(), Error> {
        for Taken { group, step, number } in taken {
            let is_receipt = matches!(step, Step::Receive);
            if !is_receipt && !matches!(step, Step::TimeOut) {
                continue;
            }
            let of_group = |other: &&Taken| other.group == *group;
            let is_acknowledged = |other: &Taken| {
                other.number == *number && matches!(other.step, Step::WriteAcknowledgement(_))
            };
            let sent = taken.iter().filter(of_group).find(|other| matches!(other.step, Step::Send));
            let Some(sent) = sent.filter(|_| !taken.iter().any(is_acknowledged)) else { continue };
            let first = if is_receipt { *number } else { self.row(*number)?.previous };
            if first == 0 {
                continue;
            }
            let (mut from, mut to) = (self.row(first)?, self.row(sent.number)?);
            (from.next, to.previous) = (sent.number, first);
            self.rows.set::<Packets>(&first, &Message(from));
            self.rows.set::<Packets>(&sent.number, &Message(to));
        }
        Ok(())
    }
}

impl Channel {
    fn know(&mut self, other: &End, connection: &str, ordering: &str) {
        for (member, text) in [
            (&mut self.counterparty_port, &*other.port),
            (&mut self.counterparty_channel, &*other.channel),
            (&mut self.connection, connection),
            (&mut self.ordering, ordering),
        ] {
            if !text.is_empty() && member.as_str() != text {
                text.clone_into(member);
            }
        }
    }
}
