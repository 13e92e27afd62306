//! The events of a packet, of both versions of IBC.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cosmrs::proto::prost::encoding::{WireType, encode_key};
use serde::Deserialize;

use super::{End, Outcome, Packet, Step, outcome};
use crate::comet::Event;
use crate::serde_lenient::JsonText;
use crate::wire::push_len_prefixed;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A packet and what an event says that happened to it. `message` gives the JSON of the event's message, `failed` whether an
/// application's event reports a failure.
pub(super) fn packet<'a>(
    event: &Event<'_>,
    message: impl FnOnce() -> Option<&'a str>,
    failed: impl FnOnce() -> bool,
) -> Option<(Packet, Step)> {
    let is_step = matches!(
        &*event.kind,
        "send_packet" | "recv_packet" | "write_acknowledgement" | "acknowledge_packet" | "timeout_packet"
    );
    let packet = is_step.then(|| v1(event).or_else(|| v2(event)))??;
    let step = match &*event.kind {
        "send_packet" => Step::Send,
        "recv_packet" => Step::Receive,
        "write_acknowledgement" => {
            let acknowledgement = bytes(event, "packet_ack", "packet_ack_hex")
                .or_else(|| bytes(event, "", "encoded_acknowledgement_hex"));
            Step::WriteAcknowledgement(acknowledgement.unwrap_or_default())
        }
        "acknowledge_packet" => {
            let acknowledgement = message().and_then(acknowledgement);
            let failed = match &acknowledgement {
                Some(bytes) => matches!(outcome(packet.version, bytes), Outcome::Failure(_)),
                None => failed(),
            };
            Step::Acknowledge { acknowledgement, failed }
        }
        _ => Step::TimeOut,
    };
    Some((packet, step))
}

fn v1(event: &Event<'_>) -> Option<Packet> {
    let text = |key: &str| event.value(key).map(|text| (**text).to_owned());
    let end = |port, channel| Some(End { port: text(port)?, channel: text(channel)? });
    Some(Packet {
        version: 1,
        source: end("packet_src_port", "packet_src_channel")?,
        destination: end("packet_dst_port", "packet_dst_channel")?,
        sequence: number(event, "packet_sequence")?,
        ordering: text("packet_channel_ordering").unwrap_or_default(),
        connection: text("packet_connection").or_else(|| text("connection_id")).unwrap_or_default(),
        timeout_height: text("packet_timeout_height").filter(|height| height != "0-0").unwrap_or_default(),
        timeout_time: number(event, "packet_timeout_timestamp").unwrap_or_default(),
        data: bytes(event, "packet_data", "packet_data_hex"),
    })
}

fn v2(event: &Event<'_>) -> Option<Packet> {
    let end = |key| Some(End { port: String::new(), channel: (**event.value(key)?).to_owned() });
    let seconds: u64 = number(event, "packet_timeout_timestamp").unwrap_or_default();
    // An acknowledgement or a timeout counts by its name only.
    let has_data = matches!(&*event.kind, "send_packet" | "recv_packet" | "write_acknowledgement");
    Some(Packet {
        version: 2,
        source: end("packet_source_client")?,
        destination: end("packet_dest_client")?,
        sequence: number(event, "packet_sequence")?,
        timeout_time: seconds.saturating_mul(SECOND),
        data: bytes(event, "", "encoded_packet_hex").filter(|_| has_data),
        ..Packet::default()
    })
}

fn number(event: &Event<'_>, key: &str) -> Option<u64> {
    event.value(key)?.parse().ok()
}

/// Bytes that an event has in hex, or as text only.
fn bytes(event: &Event<'_>, plain: &str, in_hex: &str) -> Option<Vec<u8>> {
    let text = |key| event.value(key).filter(|text| !text.is_empty());
    let decoded = text(in_hex).and_then(|digits| hex::decode(digits.as_bytes()).ok());
    decoded.or_else(|| text(plain).map(|text| text.as_bytes().to_vec()))
}

/// The acknowledgement in a message that delivers one; of IBC v2 in protobuf.
fn acknowledgement(message: &str) -> Option<Vec<u8>> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Delivery<'a> {
        #[serde(rename = "@type")]
        kind: JsonText<'a>,
        acknowledgement: Acknowledgement<'a>,
    }
    #[derive(Deserialize)]
    #[serde(untagged, bound(deserialize = "'de: 'a"))]
    enum Acknowledgement<'a> {
        Bytes(JsonText<'a>),
        Applications { app_acknowledgements: Vec<JsonText<'a>> },
    }
    let Delivery { kind, acknowledgement } = serde_json::from_str(message).ok()?;
    if !kind.ends_with(".MsgAcknowledgement") {
        return None;
    }
    match acknowledgement {
        Acknowledgement::Bytes(text) => BASE64.decode(text.as_bytes()).ok(),
        Acknowledgement::Applications { app_acknowledgements } => {
            let mut encoded = Vec::new();
            for text in app_acknowledgements {
                encode_key(1, WireType::LengthDelimited, &mut encoded);
                push_len_prefixed(&mut encoded, &BASE64.decode(text.as_bytes()).ok()?);
            }
            Some(encoded)
        }
    }
}
