//! The rows of packets and channels.

use chain::packet::{End, Packet, Side};
use sha2::{Digest as _, Sha256};

use super::PacketState;

/// Bytes of the longest data that is kept: ICS-20 allows a memo of 32 KiB.
const MAX_BYTES: usize = 64 << 10;

/// A packet.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct PacketRow {
    /// It was received here, and not sent.
    #[prost(bool, tag = "1")]
    pub received: bool,
    /// The version of IBC.
    #[prost(uint32, tag = "2")]
    pub version: u32,
    /// Where it was sent; in IBC v2 an empty port and a client.
    #[prost(string, tag = "3")]
    pub source_port: String,
    /// See `source_port`.
    #[prost(string, tag = "4")]
    pub source_channel: String,
    /// Where it is received.
    #[prost(string, tag = "5")]
    pub destination_port: String,
    /// See `destination_port`.
    #[prost(string, tag = "6")]
    pub destination_channel: String,
    /// Its number among the packets of its source.
    #[prost(uint64, tag = "7")]
    pub sequence: u64,
    /// `revision-height` of the receiving chain; empty if there is none.
    #[prost(string, tag = "8")]
    pub timeout_height: String,
    /// Nanoseconds since 1970; 0 if there is none.
    #[prost(uint64, tag = "9")]
    pub timeout_time: u64,
    /// Its data; in IBC v2 the whole packet. `None` if no event had it.
    #[prost(message, tag = "10")]
    pub data: Option<Blob>,
    /// Its acknowledgement; `None` if it is not known.
    #[prost(message, tag = "11")]
    pub acknowledgement: Option<Blob>,
    /// Its [`PacketState`].
    #[prost(uint32, tag = "12")]
    pub state: u32,
    /// When it was sent.
    #[prost(message, tag = "13")]
    pub send: Option<Stage>,
    /// When it was received.
    #[prost(message, tag = "14")]
    pub receive: Option<Stage>,
    /// When its acknowledgement was written.
    #[prost(message, tag = "15")]
    pub write_acknowledgement: Option<Stage>,
    /// When its acknowledgement came back.
    #[prost(message, tag = "16")]
    pub acknowledge: Option<Stage>,
    /// When it timed out.
    #[prost(message, tag = "17")]
    pub timeout: Option<Stage>,
    /// Number of the packet that forwards it; 0 if there is none.
    #[prost(uint64, tag = "18")]
    pub next: u64,
    /// Number of the packet that it forwards; 0 if there is none.
    #[prost(uint64, tag = "19")]
    pub previous: u64,
}

/// Bytes that another chain chose.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Blob {
    /// They, if there are at most 64 KiB; else their SHA-256.
    #[prost(bytes = "vec", tag = "1")]
    pub bytes: Vec<u8>,
    /// How many there are, if `bytes` is a hash; else 0.
    #[prost(uint64, tag = "2")]
    pub len: u64,
}

impl Blob {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        if bytes.len() <= MAX_BYTES {
            return Self { bytes, len: 0 };
        }
        Self { len: bytes.len() as u64, bytes: Sha256::digest(bytes).to_vec() }
    }

    /// The bytes; `None` if only their hash is kept.
    pub fn whole(&self) -> Option<&[u8]> {
        (self.len == 0).then_some(&*self.bytes)
    }
}

/// The event of a step of a packet.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Stage {
    /// The block.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// Sequence of the transaction; 0 for an event of the block.
    #[prost(uint64, tag = "2")]
    pub tx: u64,
    /// The message of the transaction, from 1; 0 for an event of the block.
    #[prost(uint32, tag = "3")]
    pub message: u32,
    /// The event of the transaction, or of the block before or after its transactions, from 0.
    #[prost(uint64, tag = "4")]
    pub event: u64,
}

/// A channel, or the other client of a client of IBC v2.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Channel {
    /// The port of its other end.
    #[prost(string, tag = "1")]
    pub counterparty_port: String,
    /// Its other end; empty while it is not known.
    #[prost(string, tag = "2")]
    pub counterparty_channel: String,
    /// The connection; empty in IBC v2.
    #[prost(string, tag = "3")]
    pub connection: String,
    /// `ORDER_UNORDERED` or `ORDER_ORDERED`; empty if no event has said it.
    #[prost(string, tag = "4")]
    pub ordering: String,
    /// The version of the application; empty if no event has said it.
    #[prost(string, tag = "5")]
    pub version: String,
    /// Its state.
    #[prost(enumeration = "ChannelStage", tag = "6")]
    pub state: i32,
}

/// The state of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum ChannelStage {
    /// It was opened before the first block of the index.
    Unknown = 0,
    /// This chain has proposed it.
    Init = 1,
    /// This chain has agreed to it.
    TryOpen = 2,
    /// Packets may pass.
    Open = 3,
    /// None may any more.
    Closed = 4,
}

impl Channel {
    /// Fills what is not known.
    pub(super) fn complete(&mut self, reply: &Self) {
        for (member, text) in [
            (&mut self.counterparty_port, &reply.counterparty_port),
            (&mut self.counterparty_channel, &reply.counterparty_channel),
            (&mut self.connection, &reply.connection),
            (&mut self.ordering, &reply.ordering),
            (&mut self.version, &reply.version),
        ] {
            if member.is_empty() {
                member.clone_from(text);
            }
        }
        if self.state() == ChannelStage::Unknown {
            self.state = reply.state;
        }
    }
}

impl PacketRow {
    pub(super) fn new(side: Side, packet: &Packet) -> Self {
        let (source, destination) = (packet.source.clone(), packet.destination.clone());
        let state = if side == Side::Sent { PacketState::Pending } else { PacketState::Received };
        Self {
            received: side == Side::Received,
            version: packet.version,
            source_port: source.port,
            source_channel: source.channel,
            destination_port: destination.port,
            destination_channel: destination.channel,
            sequence: packet.sequence,
            timeout_height: packet.timeout_height.clone(),
            timeout_time: packet.timeout_time,
            state: state as u32,
            ..Self::default()
        }
    }

    /// This chain's side of it.
    pub fn side(&self) -> Side {
        if self.received { Side::Received } else { Side::Sent }
    }

    /// Its state.
    pub fn packet_state(&self) -> PacketState {
        let at = usize::try_from(self.state).unwrap_or_default();
        PacketState::ALL.get(at).copied().unwrap_or(PacketState::Pending)
    }

    /// The packet, as its first event described it.
    pub fn packet(&self) -> Packet {
        let end = |port: &str, channel: &str| End { port: port.to_owned(), channel: channel.to_owned() };
        Packet {
            version: self.version,
            source: end(&self.source_port, &self.source_channel),
            destination: end(&self.destination_port, &self.destination_channel),
            sequence: self.sequence,
            timeout_height: self.timeout_height.clone(),
            timeout_time: self.timeout_time,
            data: self.data.as_ref().and_then(Blob::whole).map(<[u8]>::to_vec),
            ..Packet::default()
        }
    }
}
