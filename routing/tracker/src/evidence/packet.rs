//! Evidence about an IBC packet. It is stored as hops are.

use registry::denom;
use serde::{Deserialize, Serialize};

use crate::evidence::link::{Relation, TxRef};

/// Globally unique packet id. It includes the sending chain, because both ends of a channel may have the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PacketId {
    /// The sending chain's id.
    pub chain: String,
    /// The port there.
    pub port: String,
    /// The channel there.
    pub channel: String,
    /// Counts the packets of that channel.
    pub sequence: u64,
}

/// A packet as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Its id.
    pub id: PacketId,
    /// The receiving chain, if the registry has the channel.
    pub to: Option<String>,
    /// The port there.
    pub dst_port: String,
    /// The channel there.
    pub dst_channel: String,
    /// Block time of the receiving chain from which on it is refused; nanoseconds since 1970, 0 for never.
    pub timeout_nanos: u64,
    /// Height of the receiving chain from which on it is refused; 0 for never.
    pub timeout_height: u64,
    /// The full path of the denomination on the sending chain, or of the class of NFTs.
    pub denom: String,
    /// Base units, or number of NFTs.
    pub amount: String,
    /// Sender.
    pub sender: String,
    /// Forwarding by the receiving chain.
    #[serde(default)]
    pub forward: Option<Forward>,
    /// Contract call on the receiving chain.
    #[serde(default)]
    pub hook: Option<Hook>,
}

/// `forward` of a memo (packet-forward-middleware).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// The channel of the next packet.
    pub channel: String,
    /// Number of times that a packet is resent after a timeout; none leaves it to the chain.
    pub retries: Option<u64>,
}

/// A call that accompanies tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The contract if it is an EVM's: `0x…`.
    pub contract: Option<String>,
}

/// Acknowledgement of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ack {
    /// Success.
    Good,
    /// Error; the tokens are refunded.
    Error {
        /// Error text of the acknowledgement.
        message: String,
        /// Error text of the module, if the acknowledgement has only a code.
        reason: Option<String>,
    },
}

/// One IBC packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ibc {
    /// The packet.
    pub packet: Packet,
    /// Relation to the previous hop.
    pub link: Relation,
    /// `send_packet`.
    pub sent: TxRef,
    /// `recv_packet`.
    pub received: Option<TxRef>,
    /// `acknowledge_packet`.
    pub acknowledged: Option<TxRef>,
    /// `timeout_packet`.
    pub timed_out: Option<TxRef>,
    /// The acknowledgement, from the chain on which it was found first.
    pub ack: Option<Ack>,
    /// A state of the receiving chain after the timeout has not received it: it can only time out. Earlier versions stored
    /// `expired`, which a search that found nothing could set.
    #[serde(default, rename = "expired_in_state")]
    pub expired: bool,
    /// What the sending contract made of the refund: a token and its base units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Box<(String, String)>>,
}

impl Packet {
    /// The denomination that the sender paid with.
    pub fn sent_denom(&self) -> String {
        denom::of_path(&self.denom)
    }

    /// The denomination that it becomes on the receiving chain.
    pub fn received_denom(&self) -> String {
        let (src, dst) = ((&*self.id.port, &*self.id.channel), (&*self.dst_port, &*self.dst_channel));
        denom::of_path(&denom::received(&self.denom, src, dst))
    }
}
