//! Names of collections that arrived by IBC (ICS-721): the name of a voucher's class on its own chain.
//!
//! # Invariants
//!
//! * A packet counts only if its acknowledgement in the same transaction reports success; a refused packet can contain
//!   any name.
//! * Packet data is text from a relayer, so malformed packets are skipped.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::NftEvent;
use crate::comet::{Event, TxResult};
use crate::json::push_hex_upper;
use crate::packet::acknowledgement::{Outcome, outcome};
use crate::vm::Vm;

/// The attributes that identify a packet at its receiver.
const IDENTITY: [&str; 3] = ["packet_sequence", "packet_dst_port", "packet_dst_channel"];

/// ICS-721 packet data, in protobuf's JSON or with the names of the specification.
#[derive(Deserialize)]
struct PacketData {
    #[serde(alias = "class_id", rename = "classId")]
    class_id: String,
    #[serde(alias = "class_data", rename = "classData")]
    class_data: String,
}

/// The pair of names in a `recv_packet` event of this transaction.
pub(super) fn class_name(vm: Vm, packet: &Event<'_>, result: &TxResult<'_>) -> Option<NftEvent> {
    let value = |key| packet.value(key).map(AsRef::as_ref);
    let src_port = value("packet_src_port").filter(|port| *port == "nft-transfer" && result.code == 0)?;
    let data: PacketData = serde_json::from_slice(&bytes(packet, "packet_data", "packet_data_hex")?).ok()?;
    // A returning token is the original again, not a voucher.
    let way_home = format!("{src_port}/{}/", value("packet_src_channel")?);
    if data.class_id.starts_with(&way_home) || !is_received(packet, &data.class_id, &result.events) {
        return None;
    }
    let (port, channel) = (value("packet_dst_port")?, value("packet_dst_channel")?);
    Some(NftEvent::ClassName {
        local: local_name(vm, port, channel, &data.class_id),
        origin: origin_name(&data.class_data)?,
    })
}

/// The name in the class data: base64 of JSON.
fn origin_name(class_data: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Class {
        name: String,
    }
    let class: Class = serde_json::from_slice(&BASE64.decode(class_data).ok()?).ok()?;
    Some(crate::sanitize::without_nuls(&class.name)).filter(|name| !name.is_empty())
}

/// The name of the class on this chain: the whole trace on wasm; elsewhere a hash of it, as for denoms (Initia
/// `x/ibc/nft-transfer` `ParseClassTrace`, `IBCClassId`).
fn local_name(vm: Vm, port: &str, channel: &str, class_id: &str) -> String {
    let mut trace = format!("{port}/{channel}/{class_id}");
    if vm == Vm::Wasm || !is_channel(channel) {
        return trace;
    }
    let parts: Vec<&str> = trace.split('/').collect();
    let hops = parts.chunks_exact(2).take_while(|hop| is_channel(hop[1])).count();
    if 2 * hops == parts.len() {
        // Nothing remains for the base, which still has its slash.
        trace.push('/');
    }
    let mut name = b"ibc/".to_vec();
    push_hex_upper(&mut name, &Sha256::digest(trace));
    name.into_iter().map(char::from).collect()
}

/// ibc-go `ParseChannelSequence`.
fn is_channel(text: &str) -> bool {
    let digits = text.strip_prefix("channel-").unwrap_or_default();
    digits.bytes().all(|digit| digit.is_ascii_digit()) && digits.parse::<u64>().is_ok()
}

/// True if the packet was received. Its own acknowledgement decides; if the transaction wrote none, the module's event
/// about this class in the same message does.
fn is_received(packet: &Event<'_>, class_id: &str, events: &[Event<'_>]) -> bool {
    let same =
        |event: &Event<'_>, key| event.value(key).is_some_and(|value| Some(value) == packet.value(key));
    let is_ack = |event: &&Event<'_>| {
        event.kind == "write_acknowledgement" && IDENTITY.iter().all(|key| same(event, key))
    };
    if let Some(ack) = events.iter().find(is_ack) {
        let ack = bytes(ack, "packet_ack", "packet_ack_hex");
        return ack.is_some_and(|ack| outcome(1, &ack) == Outcome::Success);
    }
    let is = |event: &Event<'_>, key, wanted: &str| event.value(key).is_some_and(|value| value == wanted);
    events.iter().any(|event| {
        event.kind == "non_fungible_token_packet"
            && is(event, "success", "true")
            && is(event, "class_id", class_id)
            && same(event, "msg_index")
    })
}

/// Bytes that an event has as text, or, since ibc-go 9, in hex only.
fn bytes<'e>(event: &'e Event<'_>, plain: &str, in_hex: &str) -> Option<Cow<'e, [u8]>> {
    let text = |key| event.value(key).filter(|text| !text.is_empty());
    match text(plain) {
        Some(text) => Some(Cow::Borrowed(text.as_bytes())),
        None => hex::decode(text(in_hex)?.as_bytes()).ok().map(Cow::Owned),
    }
}
