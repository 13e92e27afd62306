//! The optional index `packets`: packets of IBC that were sent or received here, and the channels that they passed through.
//!
//! # Invariants
//!
//! * A packet has the number of its first event. What happens to it later changes its row and its place in
//!   [`PacketsByState`], and no list.
//! * Of each step the first event counts: older versions of ibc-go repeat `recv_packet` for redundant relays.
//! * An index that begins in the middle of a chain has rows of packets without what came before.

mod fold;
mod row;

use chain::Account;
use chain::packet::{End, Side};
use serde_json::Value as Json;
use store::key::Text;
use store::{Key, List as _, Message, Order, Snapshot, Table as _, Txn};

pub use self::fold::read_tx;
pub use self::row::{Blob, Channel, ChannelStage, PacketRow, Stage};
use crate::Error;
use crate::index::{Index, Input};

/// The index.
pub const PACKETS: Index = Index {
    name: "packets",
    version: 1,
    tables: &[
        Packets::SPEC,
        PacketNumbers::SPEC,
        PacketsByState::SPEC,
        EndPackets::SPEC,
        AccountPackets::SPEC,
        Channels::SPEC,
        Connections::SPEC,
        ChannelReplies::SPEC,
    ],
    replies: &[ChannelReplies::SPEC],
    input: Input::Records,
    needs_evm: false,
    rows: fold::rows,
};

store::tables! {
    /// Packets, numbered from 1 in the order of their first events.
    ///
    /// | number (8, BE) | → [`PacketRow`] (protobuf)
    pub table Packets("packet", 0x80, Scan): u64 => Message<PacketRow>;

    /// The numbers of packets by their end on this chain, which in IBC v2 is a client without a port.
    ///
    /// | side: 0 sent, 1 received (1) | port, channel (escaped texts) | sequence (8, BE) | → number (8, BE)
    pub table PacketNumbers("packet_number", 0x81, Point): (PacketEnd, u64) => u64;

    /// Packets of an end by state.
    ///
    /// | side, port, channel | state: 0 pending, 1 acknowledged, 2 failed, 3 timed out, 4 received (1) | number (8, BE) | → nothing
    pub set PacketsByState("packet_by_state", 0x82): (PacketEnd, PacketState), u64 => ();

    /// Packets of an end.
    ///
    /// | side, port, channel | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list EndPackets("end_packet", 0x83): PacketEnd;

    /// Packets whose data names an account.
    ///
    /// | account: that of this chain in hex, another as the packet spells it (escaped text) | first ordinal (8, BE) | → up to 32
    /// numbers (varints)
    pub list AccountPackets("account_packet", 0x84): Text;

    /// Channels, and clients of IBC v2.
    ///
    /// | length of the channel (1), channel, port (escaped texts) | → [`Channel`] (protobuf)
    pub set Channels("channel", 0x85): (), ChannelKey => Message<Channel>;

    /// The clients of connections.
    ///
    /// | connection (escaped text) | → client (text)
    pub table Connections("connection", 0x86, Point): Text => String;

    /// The node's replies about channels that events describe in part: those that were opened before the first block, and the
    /// ordering of those without packets.
    ///
    /// | length of the channel (1), channel, port (escaped texts) | → [`Channel`] (protobuf)
    pub table ChannelReplies("channel_reply", 0x87, Point): ChannelKey => Message<Channel>;
}

/// An end of a channel on this chain, with its side of packets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PacketEnd {
    /// Whether packets are sent there, or received.
    pub side: Side,
    /// The end.
    pub end: End,
}

impl Key for PacketEnd {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self.side {
            Side::Sent => 0,
            Side::Received => 1,
        });
        Text(self.end.port.clone()).put(out);
        Text(self.end.channel.clone()).put(out);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(match self.side {
            Side::Sent => "sent".into(),
            Side::Received => "received".into(),
        });
        out.push(self.end.port.as_str().into());
        out.push(self.end.channel.as_str().into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let side = match u8::take(input)? {
            0 => Side::Sent,
            1 => Side::Received,
            _ => return None,
        };
        let (Text(port), Text(channel)) = <(Text, Text)>::take(input)?;
        Some(Self { side, end: End { port, channel } })
    }
}

/// A channel as a key: `channel-2` is before `channel-10`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ChannelKey(pub End);

impl ChannelKey {
    /// IBC's names have at most 64 bytes; longer ones would only be out of order.
    fn length(channel: &str) -> u8 {
        u8::try_from(channel.len()).unwrap_or(u8::MAX)
    }

    /// The ends that have this channel: of IBC's own names there is one.
    pub fn prefix(channel: &str) -> Vec<u8> {
        let mut out = vec![Self::length(channel)];
        Text(channel.to_owned()).put(&mut out);
        out
    }
}

impl Key for ChannelKey {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(Self::prefix(&self.0.channel));
        Text(self.0.port.clone()).put(out);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(self.0.channel.as_str().into());
        out.push(self.0.port.as_str().into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let length = u8::take(input)?;
        let (Text(channel), Text(port)) = <(Text, Text)>::take(input)?;
        (length == Self::length(&channel)).then_some(Self(End { port, channel }))
    }
}

/// The state of a packet, as far as this chain knows it; one byte of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketState {
    /// Sent, and neither acknowledged nor timed out.
    Pending,
    /// Its acknowledgement reports no failure: the one that has come back, or the one that was written here.
    Acknowledged,
    /// Its acknowledgement reports a failure.
    Failed,
    /// Not received in time; its tokens have gone back.
    TimedOut,
    /// Received, and not acknowledged yet.
    Received,
}

impl PacketState {
    /// Every state; the place of a state is its number on disk.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Acknowledged, Self::Failed, Self::TimedOut, Self::Received];

    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Received => "received",
        }
    }
}

impl Key for PacketState {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(self.name().into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(u8::take(input)?)).copied()
    }
}

/// Bytes of the longest text of an account that is listed: the longest of any chain has fewer.
const MAX_ACCOUNT: usize = 128;

/// The owner of the list of an account's packets: one text for each spelling of an address of this chain. `None` for a text
/// that is no address of any chain.
pub fn account_key(text: &str, prefix: &str) -> Option<Text> {
    let account = Account::from_bech32(text, prefix).or_else(|| Account::from_hex_literal(text));
    let text = account.map_or_else(|| text.to_owned(), |account| account.to_hex());
    (1..=MAX_ACCOUNT).contains(&text.len()).then_some(Text(text))
}

/// What is known of a channel; `None` if no packet and no event names it. Events take precedence over the reply of the node, which is older.
pub fn channel(snapshot: &dyn Snapshot, end: &End) -> Result<Option<Channel>, Error> {
    let key = ChannelKey(end.clone());
    let reply = store::table::read::<ChannelReplies>(snapshot, &key)?;
    let Some(Message(mut channel)) = store::table::read::<Channels>(snapshot, &((), key))? else {
        return Ok(None);
    };
    if let Some(Message(reply)) = reply {
        channel.complete(&reply);
    }
    Ok(Some(channel))
}

/// Channels of which neither events nor a reply of the node say all, among the first `limit`.
pub fn unknown_channels(snapshot: &dyn Snapshot, limit: usize) -> Result<Vec<End>, Error> {
    let mut unknown = Vec::new();
    for (key, Message(row)) in store::ranked::items::<Channels>(snapshot, &(), Order::Asc, limit)? {
        let is_known =
            row.state() != ChannelStage::Unknown && !row.ordering.is_empty() && !row.version.is_empty();
        // A client of IBC v2 has neither a port nor a state.
        if !is_known
            && !key.0.port.is_empty()
            && store::table::read::<ChannelReplies>(snapshot, &key)?.is_none()
        {
            unknown.push(key.0);
        }
    }
    Ok(unknown)
}

/// Writes what the node says of a channel.
pub fn put_reply(txn: &mut Txn<'_>, end: &End, reply: &Channel) {
    txn.put::<ChannelReplies>(&ChannelKey(end.clone()), &Message(reply.clone()));
}

/// The number and the row of a packet.
pub fn find(
    snapshot: &dyn Snapshot,
    side: Side,
    end: &End,
    sequence: u64,
) -> Result<Option<(u64, PacketRow)>, Error> {
    let key = (PacketEnd { side, end: end.clone() }, sequence);
    let Some(number) = store::table::read::<PacketNumbers>(snapshot, &key)? else { return Ok(None) };
    Ok(Some((number, row(snapshot, number)?)))
}

/// The packet with this number.
pub fn row(snapshot: &dyn Snapshot, number: u64) -> Result<PacketRow, Error> {
    let row = store::table::read::<Packets>(snapshot, &number)?;
    let missing = || store::table::corrupt(Packets::SPEC, &number.to_bytes(), "the row is missing");
    Ok(row.map(|Message(row)| row).ok_or_else(missing)?)
}
