//! The state of IBC packets on one chain, over REST (ibc-go `core/04-channel`).
//!
//! # Invariants
//!
//! * "Absent" is a reply of the module. A missing channel or an unknown path is an error.
//! * A reply about the latest state has the height of that state.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::json::number_at;
use crate::pool::endpoint::Request;
use crate::rest::Rest;
use crate::rest::accounts::encoded;

/// One packet, by an end of its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketPath<'a> {
    /// The port of this end.
    pub port: &'a str,
    /// The channel of this end.
    pub channel: &'a str,
    /// Counts the packets that the sending end sent.
    pub sequence: u64,
}

/// Whether a chain has received a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// Whether it has.
    pub received: bool,
    /// The height of the state that says so.
    pub height: u64,
}

/// An end of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ChannelState {
    /// `STATE_OPEN`, or another state.
    pub state: String,
    /// `ORDER_UNORDERED` or `ORDER_ORDERED`.
    pub ordering: String,
    /// What the applications of both ends agree on.
    pub version: String,
    /// The other end.
    pub counterparty: Counterparty,
    /// The connection, as a list of one.
    pub connection_hops: Vec<String>,
}

/// The other end of a channel; its channel is empty until that is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Counterparty {
    /// Its port.
    pub port_id: String,
    /// Its channel.
    pub channel_id: String,
}

/// Texts of the module for a packet without a commitment or an acknowledgement.
const ABSENT: [&str; 2] = ["packet commitment hash not found", "packet acknowledgement hash not found"];

impl PacketPath<'_> {
    fn end(&self) -> String {
        channel_path(self.port, self.channel)
    }

    fn item(&self, item: &str) -> String {
        format!("{}/{item}/{}", self.end(), self.sequence)
    }
}

fn channel_path(port: &str, channel: &str) -> String {
    format!("/ibc/core/channel/v1/channels/{}/ports/{}", encoded(channel), encoded(port))
}

impl Rest {
    /// An end of a channel in the latest state.
    pub async fn channel(&self, port: &str, channel: &str) -> Result<ChannelState, Error> {
        #[derive(Deserialize)]
        struct Reply {
            channel: ChannelState,
        }
        let request = Request::get("channel", channel_path(port, channel));
        self.query_for(request, |Reply { channel }| Ok(channel)).await
    }

    /// Whether the receiving end of an unordered channel has received a packet (`packet_receipts`). An ordered channel
    /// has no receipts and always answers no: see [`Rest::next_packet`].
    pub async fn packet_receipt(
        &self,
        packet: PacketPath<'_>,
        height: Option<u64>,
    ) -> Result<Receipt, Error> {
        let read = |answer: Value| {
            let received = answer.get("received").and_then(Value::as_bool).ok_or("received is not a bool")?;
            Ok(Receipt { received, height: proof_height(&answer, height)? })
        };
        let path = packet.item("packet_receipts");
        self.query_for(Request::get("packet_receipts", path).in_state(height), read).await
    }

    /// The same of an ordered channel, which receives packets in turn (`next_sequence`).
    pub async fn next_packet(&self, packet: PacketPath<'_>, height: Option<u64>) -> Result<Receipt, Error> {
        let read = |answer: Value| {
            let next: u64 = number_at(&answer, "/next_sequence_receive")?;
            Ok(Receipt { received: next > packet.sequence, height: proof_height(&answer, height)? })
        };
        let path = format!("{}/next_sequence", packet.end());
        self.query_for(Request::get("next_sequence", path).in_state(height), read).await
    }

    /// The SHA-256 of the acknowledgement that the receiving end wrote, if it wrote one (`packet_acks`).
    pub async fn packet_ack(
        &self,
        packet: PacketPath<'_>,
        height: Option<u64>,
    ) -> Result<Option<[u8; 32]>, Error> {
        #[derive(Deserialize)]
        struct Reply {
            acknowledgement: String,
        }
        let read = |answer: Reply| {
            let hash = STANDARD.decode(&answer.acknowledgement).ok().and_then(|hash| hash.try_into().ok());
            hash.ok_or_else(|| "the acknowledgement is not a hash of 32 bytes in base64".to_owned())
        };
        let path = packet.item("packet_acks");
        present(self.query_for(Request::get("packet_acks", path).in_state(height), read).await)
    }

    /// Whether the sending end still waits for the acknowledgement or the timeout of a packet (`packet_commitments`).
    pub async fn is_packet_open(&self, packet: PacketPath<'_>, height: Option<u64>) -> Result<bool, Error> {
        let read = |answer: Value| {
            let is_there = answer.get("commitment").is_some_and(Value::is_string);
            if is_there { Ok(()) } else { Err("the commitment is not text".to_owned()) }
        };
        let path = packet.item("packet_commitments");
        let answer = self.query_for(Request::get("packet_commitments", path).in_state(height), read).await;
        Ok(present(answer)?.is_some())
    }
}

/// The height of a proof is that of the latest state; a reply about the state of a height has a later one.
fn proof_height(answer: &Value, height: Option<u64>) -> Result<u64, String> {
    height.map_or_else(|| number_at(answer, "/proof_height/revision_height"), Ok)
}

fn present<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Refused { message, .. }) if ABSENT.iter().any(|text| message.contains(text)) => Ok(None),
        outcome => outcome.map(Some),
    }
}
