//! Packets of IBC and the channels that they pass through, in the events of a block.
//!
//! | | IBC v1 | IBC v2 |
//! |---|---|---|
//! | an end is | port and channel | client, without a port |
//! | data | `packet_data` (ibc-go 8), `packet_data_hex` | `encoded_packet_hex`: the whole packet in protobuf |
//! | time of the timeout | nanoseconds | seconds |
//! | refusal | `{"error":…}` | the hash of a constant |
//!
//! # Invariants
//!
//! * Only events of successful transactions and of blocks count. No contract can emit these types: the chain writes the type of
//!   what contracts emit, and a failed callback leaves its events under other types.
//! * Both ends of a channel often have the same name, so a packet is named by its side too.
//! * Events of an acknowledgement or a timeout have no data: the message has the acknowledgement.
//! * Data and acknowledgements are bytes that another chain chose: what is malformed is kept, and not decoded.

pub(crate) mod acknowledgement;
mod channel;
mod denom;
mod event;
mod payload;

use serde_json::value::RawValue;

pub use self::acknowledgement::{Outcome, outcome};
pub use self::channel::{ChannelEvent, ChannelState};
pub use self::denom::local_denom;
pub use self::payload::{Payload, Ports, payload};

use crate::comet::Event;
use crate::movement::{Group, Source};

/// Which end of a packet this chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The packet was sent here.
    Sent,
    /// It was received here.
    Received,
}

/// An end of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The port; empty in IBC v2.
    pub port: String,
    /// The channel; in IBC v2 the client.
    pub channel: String,
}

/// A packet, as far as an event describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The version of IBC: 1 or 2.
    pub version: u32,
    /// Where it was sent.
    pub source: End,
    /// Where it is received.
    pub destination: End,
    /// Its number among the packets of its source, from 1.
    pub sequence: u64,
    /// `ORDER_UNORDERED` or `ORDER_ORDERED`; empty in IBC v2.
    pub ordering: String,
    /// The connection on this chain; empty if the event has none.
    pub connection: String,
    /// `revision-height` of the other chain after which it cannot be received; empty if there is none.
    pub timeout_height: String,
    /// Time of the other chain after which it cannot be received, nanoseconds since 1970; 0 if there is none.
    pub timeout_time: u64,
    /// Its data; in IBC v2 the whole packet. `None` in events that have none.
    pub data: Option<Vec<u8>>,
}

impl Packet {
    /// Its end on this chain.
    pub fn end(&self, side: Side) -> &End {
        match side {
            Side::Sent => &self.source,
            Side::Received => &self.destination,
        }
    }
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was sent.
    Send,
    /// It was received.
    Receive,
    /// The receiving chain has written this acknowledgement.
    WriteAcknowledgement(Vec<u8>),
    /// The acknowledgement has come back.
    Acknowledge {
        /// It, unless a contract has delivered it.
        acknowledgement: Option<Vec<u8>>,
        /// Whether it, or the application's event, reports a failure.
        failed: bool,
    },
    /// The sending chain has seen that it was not received in time.
    TimeOut,
}

impl Step {
    /// The end that emits it.
    pub fn side(&self) -> Side {
        match self {
            Self::Send | Self::Acknowledge { .. } | Self::TimeOut => Side::Sent,
            Self::Receive | Self::WriteAcknowledgement(_) => Side::Received,
        }
    }
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A packet went a step.
    Packet(Box<Packet>, Step),
    /// A channel was opened or closed.
    Channel(ChannelEvent),
    /// A connection was made over a client.
    Connection {
        /// The connection.
        connection: String,
        /// The client.
        client: String,
    },
}

/// What an event says, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The event, from 0.
    pub at: usize,
    /// The message of the transaction; `None` in events of the block.
    pub message: Option<u32>,
    /// Two events of the same message have the same group: a message that executes others has one for each.
    pub group: (Option<u32>, Option<u32>),
    /// What it says.
    pub found: Found,
}

/// False if the JSON of a transaction has no event of IBC's packets, channels and connections: a search is faster than parsing.
pub fn may_have(record: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(record, text.as_bytes()).is_some();
    has("\"packet_sequence\"") || has("_open_") || has("\"channel_close")
}

/// What the events of a transaction, or of a block before or after its transactions, say, in order. The caller passes those of
/// transactions that succeeded.
pub fn read(source: Source<'_>, events: &[Event<'_>]) -> Vec<Placed> {
    let of = |(at, event): (usize, &Event<'_>)| {
        let group = Group::of(event);
        let message = || source.message(group).map(RawValue::get);
        let found = event::packet(event, message, || reports_failure(events, group))
            .map(|(packet, step)| Found::Packet(Box::new(packet), step))
            .or_else(|| channel::channel(event, message).map(Found::Channel))
            .or_else(|| channel::connection(event))?;
        Some(Placed { at, message: group.message, group: (group.message, group.inner), found })
    };
    events.iter().enumerate().filter_map(of).collect()
}

/// Whether an application's event of the message reports that a packet has failed.
fn reports_failure(events: &[Event<'_>], group: Group) -> bool {
    events.iter().any(|event| {
        matches!(&*event.kind, "fungible_token_packet" | "non_fungible_token_packet")
            && event.value("error").is_some()
            && Group::of(event) == group
    })
}
