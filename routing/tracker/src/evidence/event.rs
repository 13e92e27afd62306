//! Parsing of IBC and bridge events of a found transaction. Pure.
//!
//! # Invariants
//!
//! * All attributes of one result come from one event, because a node may match attributes of several events.
//! * Related events are grouped by their message index, or for old nodes without it, by position between two packets.
//! * Chain data never causes a failure: a packet that does not parse is reported, any other event is ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::hash::Hash;
use chain::{U256, excerpt};
use node::{FoundEvent, TxSearchHit};
use serde::Deserialize;
use serde_json::Value;

use crate::evidence::hop::{Ack, Finalized, Forward, Hook, Obstacle, Packet, PacketId};

/// An event of this kind that has all of these attributes.
pub(crate) fn find(tx: &TxSearchHit, kind: &str, attributes: &[(&str, &str)]) -> Option<usize> {
    let is_it = |event: &FoundEvent| {
        event.kind == kind && attributes.iter().all(|(key, value)| event.get(key) == Some(*value))
    };
    tx.events.iter().position(is_it)
}

/// Attributes that identify a packet in an event of its sending chain, and in one of its receiving chain.
pub(crate) fn names(packet: &Packet) -> [(&'static str, String); 5] {
    [
        ("packet_sequence", packet.id.sequence.to_string()),
        ("packet_src_port", packet.id.port.clone()),
        ("packet_src_channel", packet.id.channel.clone()),
        ("packet_dst_port", packet.dst_port.clone()),
        ("packet_dst_channel", packet.dst_channel.clone()),
    ]
}

/// Events that begin a message of a relayer.
const BOUNDS: [&str; 3] = ["recv_packet", "acknowledge_packet", "timeout_packet"];

/// The message of an event, by its indices.
fn message(event: &FoundEvent) -> (Option<&str>, Option<&str>) {
    (event.get("msg_index"), event.get("authz_msg_index"))
}

/// The events of each message of a transaction, and those before the first one.
pub(crate) fn messages(tx: &TxSearchHit) -> impl Iterator<Item = &[FoundEvent]> {
    tx.events.chunk_by(|before, event| {
        let is_begin = || message(event).0.is_none() && BOUNDS.contains(&event.kind.as_str());
        message(before) == message(event) && !is_begin()
    })
}

/// The events of the message of the event `at`.
pub(crate) fn around(tx: &TxSearchHit, at: usize) -> &[FoundEvent] {
    let own = message(&tx.events[at]);
    let is_other = |event: &FoundEvent| match own.0 {
        Some(_) => message(event) != own,
        None => BOUNDS.contains(&event.kind.as_str()),
    };
    let from = match own.0 {
        Some(_) => tx.events[..at].iter().rposition(is_other).map_or(0, |last| last + 1),
        None => at,
    };
    let to = tx.events[at + 1..].iter().position(is_other).map_or(tx.events.len(), |next| at + 1 + next);
    &tx.events[from..to]
}

/// The packet of a `send_packet` on `chain`, or what it is instead of one that moves tokens in a known way.
pub(crate) fn packet(event: &FoundEvent, chain: &str) -> Result<Packet, (Obstacle, String)> {
    let given = |key| event.get(key).unwrap_or_default();
    let name = || {
        let [sequence, port, channel] =
            ["packet_sequence", "packet_src_port", "packet_src_channel"].map(given);
        excerpt(format!("packet {sequence} of {port}/{channel}"))
    };
    let client = event.get("packet_source_client");
    if let Some(client) = client.or_else(|| event.get("packet_src_channel").filter(|id| is_client(id))) {
        let name = excerpt(format!("packet {} of client {client}", given("packet_sequence")));
        return Err((Obstacle::IbcV2, format!("{name} is one of IBC v2")));
    }
    let port = given("packet_src_port");
    if !port.is_empty() && port != "transfer" && port != "nft-transfer" && !port.starts_with("wasm.") {
        return Err((
            Obstacle::Port,
            format!("{} is not of a port that moves tokens in a known way", name()),
        ));
    }
    let malformed = |what: &str| (Obstacle::Malformed, format!("{} has {what}", name()));
    let text =
        |key| event.get(key).filter(|text| !text.is_empty()).ok_or_else(|| malformed(&format!("no {key}")));
    let data = Data::read(event).ok_or_else(|| malformed("no data of ICS-20 or ICS-721 in JSON"))?;
    let memo = data.memo.as_deref().and_then(Memo::read).unwrap_or_default();
    let (denom, amount) = data.what().ok_or_else(|| malformed("no token and amount in its data"))?;
    Ok(Packet {
        id: PacketId {
            chain: chain.to_owned(),
            port: text("packet_src_port")?.to_owned(),
            channel: text("packet_src_channel")?.to_owned(),
            sequence: number(event, "packet_sequence").ok_or_else(|| malformed("no sequence"))?,
        },
        to: None,
        dst_port: text("packet_dst_port")?.to_owned(),
        dst_channel: text("packet_dst_channel")?.to_owned(),
        timeout_nanos: number(event, "packet_timeout_timestamp").unwrap_or(0),
        timeout_height: event
            .get("packet_timeout_height")
            .and_then(|text| text.rsplit_once('-'))
            .and_then(|(_, height)| height.parse().ok())
            .unwrap_or(0),
        denom,
        amount,
        sender: data.sender,
        forward: memo.forward,
        hook: memo.hook,
    })
}

/// Whether an id that stands for a channel is a client's, such as `07-tendermint-0` or `08-wasm-1369`.
fn is_client(id: &str) -> bool {
    id.split_once('-').is_some_and(|(kind, _)| !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn number(event: &FoundEvent, key: &str) -> Option<u64> {
    event.get(key)?.parse().ok()
}

/// ICS-20 and ICS-721 packet data.
#[derive(Deserialize)]
struct Data {
    denom: Option<String>,
    amount: Option<String>,
    #[serde(alias = "classId")]
    class_id: Option<String>,
    #[serde(alias = "tokenIds")]
    token_ids: Option<Vec<String>>,
    #[serde(default)]
    sender: String,
    memo: Option<String>,
}

impl Data {
    fn read(event: &FoundEvent) -> Option<Self> {
        let given = |key| event.get(key).filter(|text| !text.is_empty());
        let read = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
        // The hex is exact; the text is not if the data is not UTF-8.
        let exact = given("packet_data_hex").and_then(|text| hex::decode(text).ok());
        exact.and_then(|bytes| read(&bytes)).or_else(|| read(given("packet_data")?.as_bytes()))
    }

    fn what(&self) -> Option<(String, String)> {
        match (&self.denom, &self.class_id) {
            (Some(denom), _) => Some((denom.clone(), self.amount.clone().filter(|text| is_amount(text))?)),
            (None, Some(class)) => Some((class.clone(), self.token_ids.as_ref()?.len().to_string())),
            (None, None) => None,
        }
    }
}

/// Whether a text is a number of base units.
pub(crate) fn is_amount(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && U256::from_str_radix(text, 10).is_ok()
}

/// Members of a memo by which the receiving chain acts on the tokens: hooks of the three VMs, callbacks of ibc-go, Noble's
/// Orbiter, Stride's Autopilot, Axelar's general messages.
const CALLS: [&str; 7] =
    ["evm", "move", "wasm", "dest_callback", "orbiter", "autopilot", "destination_chain"];

#[derive(Default)]
struct Memo {
    forward: Option<Forward>,
    hook: Option<Hook>,
}

impl Memo {
    /// A memo that is a JSON object; users write other texts into it too.
    fn read(text: &str) -> Option<Self> {
        let memo: Value = serde_json::from_str(text).ok()?;
        let memo = memo.as_object()?;
        let forward = memo.get("forward").and_then(|forward| {
            let channel = forward.get("channel")?.as_str()?.to_owned();
            Some(Forward { channel, retries: forward.get("retries").and_then(Value::as_u64) })
        });
        let is_called = CALLS.iter().any(|key| memo.contains_key(*key));
        let contract = memo.get("evm").and_then(|evm| evm.get("message")?.get("contract_addr")?.as_str());
        Some(Self { forward, hook: is_called.then(|| Hook { contract: contract.map(str::to_owned) }) })
    }
}

/// The acknowledgement in a `write_acknowledgement`, with the reason from the events of the reverted work.
pub(crate) fn written_ack(event: &FoundEvent, message: &[FoundEvent]) -> Option<Ack> {
    let plain = event.get("packet_ack").filter(|text| !text.is_empty()).map(|text| text.as_bytes().to_vec());
    let bytes = event.get("packet_ack_hex").and_then(|text| hex::decode(text).ok()).or(plain)?;
    let mut ack = ack_of(&bytes)?;
    if let Ack::Error { message: text, reason } = &mut ack
        && text.contains("see events for details")
    {
        *reason = undone_because(message);
    }
    Some(ack)
}

/// ICS-4's JSON, with or without the envelope of ICS-29.
fn ack_of(bytes: &[u8]) -> Option<Ack> {
    #[derive(Deserialize)]
    struct Plain {
        result: Option<Value>,
        error: Option<String>,
        app_acknowledgement: Option<String>,
    }
    let read = |bytes: &[u8]| serde_json::from_slice::<Plain>(bytes).ok();
    let mut ack = read(bytes)?;
    if let Some(inner) = ack.app_acknowledgement {
        ack = read(&STANDARD.decode(inner).ok()?)?;
    }
    match (ack.result, ack.error) {
        (Some(_), _) => Some(Ack::Good),
        (None, Some(message)) => Some(Ack::Error { message, reason: None }),
        (None, None) => None,
    }
}

fn undone_because(message: &[FoundEvent]) -> Option<String> {
    let undone = message.iter().filter(|event| {
        event.kind.starts_with("ibccallbackerror-") && event.kind.ends_with("fungible_token_packet")
    });
    undone.filter_map(|event| event.get("ibccallbackerror-error")).map(str::to_owned).next()
}

/// The acknowledgement that a sending chain processed, from the events of its transfer module.
pub(crate) fn returned_ack(message: &[FoundEvent]) -> Option<Ack> {
    let mut ours = message
        .iter()
        .filter(|event| event.kind == "fungible_token_packet" || event.kind == "non_fungible_token_packet");
    ours.find_map(|event| match (event.get("error"), event.get("success"), event.get("acknowledgement")) {
        (Some(error), _, _) => Some(Ack::Error { message: error.to_owned(), reason: None }),
        // The text form of the protobuf message: `result:"\001" ` or `error:"…" `.
        (None, _, Some(text)) if text.starts_with("error:") => {
            let quoted = text.trim_start_matches("error:").trim();
            let message =
                serde_json::from_str(quoted).unwrap_or_else(|_| quoted.trim_matches('"').to_owned());
            Some(Ack::Error { message, reason: None })
        }
        (None, _, Some(text)) if text.starts_with("result:") => Some(Ack::Good),
        // The value is a byte here, not `true`; its presence means success.
        (None, Some(_), None) => Some(Ack::Good),
        _ => None,
    })
}

/// The calls of an EVM in a transaction of ethermint or its successors, which succeeds even if they fail.
pub(crate) struct EvmCalls {
    /// Their hashes in the EVM.
    pub(crate) hashes: Vec<Hash>,
    /// Why the first one failed that did.
    pub(crate) failure: Option<String>,
    /// Whether the events have their logs.
    pub(crate) has_logs: bool,
}

/// The EVM calls of a transaction, if its events have any.
pub(crate) fn evm_calls(tx: &TxSearchHit) -> EvmCalls {
    let calls = || tx.events.iter().filter(|event| event.kind == "ethereum_tx");
    let hash = |event: &FoundEvent| {
        let text = event.get("ethereumTxHash")?;
        Hash::try_from(hex::decode(text.strip_prefix("0x").unwrap_or(text)).ok()?).ok()
    };
    let mut hashes: Vec<_> = calls().filter_map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    EvmCalls {
        hashes,
        failure: calls().find_map(|event| event.get("ethereumTxFailed")).map(str::to_owned),
        has_logs: tx.events.iter().any(|event| event.kind == "tx_log"),
    }
}

/// Outcome of a `finalize_token_deposit`.
pub(crate) fn finalized(event: &FoundEvent) -> Option<Finalized> {
    if event.get("success")? == "true" {
        return Some(Finalized::Good);
    }
    let reason = event.get("reason").unwrap_or("the rollup gave no reason").to_owned();
    let hook = reason.starts_with("hook failed");
    Some(if hook { Finalized::HookFailed(reason) } else { Finalized::DepositFailed(reason) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, attributes: &[(&str, &str)]) -> FoundEvent {
        let attributes = attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        FoundEvent { kind: kind.to_owned(), attributes: attributes.collect() }
    }

    /// Two acknowledgements delivered by one relayer: the first a success, the second an error.
    fn batch(index: [&[(&str, &str)]; 2]) -> TxSearchHit {
        let of = |index: &[(&str, &str)], events: [(&str, (&str, &str)); 2]| {
            events.map(|(kind, attribute)| event(kind, &[&[attribute], index].concat()))
        };
        let good = of(
            index[0],
            [
                ("acknowledge_packet", ("packet_sequence", "1")),
                ("fungible_token_packet", ("success", "\u{1}")),
            ],
        );
        let bad = of(
            index[1],
            [("acknowledge_packet", ("packet_sequence", "2")), ("fungible_token_packet", ("error", "no"))],
        );
        let events = good.into_iter().chain(bad).collect();
        let (codespace, log) = (String::new(), String::new());
        TxSearchHit {
            hash: [0; 32],
            height: 1,
            index: 0,
            code: 0,
            codespace,
            log,
            events,
            messages: Vec::new(),
        }
    }

    #[test]
    fn events_of_two_messages_of_one_transaction_are_kept_apart() {
        let numbered: [&[_]; 2] = [&[("msg_index", "1")], &[("msg_index", "2")]];
        let within: [&[_]; 2] = [
            &[("authz_msg_index", "0"), ("msg_index", "0")],
            &[("authz_msg_index", "1"), ("msg_index", "0")],
        ];
        for index in [numbered, within, [&[], &[]]] {
            let tx = batch(index);
            let answer = |sequence| {
                let at = find(&tx, "acknowledge_packet", &[("packet_sequence", sequence)]).unwrap();
                returned_ack(around(&tx, at))
            };
            assert_eq!(answer("1"), Some(Ack::Good));
            assert_eq!(answer("2"), Some(Ack::Error { message: "no".to_owned(), reason: None }));
        }
    }

    #[test]
    fn acknowledgements_are_read_with_and_without_the_envelope_of_fees() {
        let error = Some(Ack::Error { message: "no".to_owned(), reason: None });
        assert_eq!(ack_of(br#"{"result":"AQ=="}"#), Some(Ack::Good));
        assert_eq!(ack_of(br#"{"error":"no"}"#), error);
        let inner = STANDARD.encode(r#"{"error":"no"}"#);
        let wrapped = format!(r#"{{"app_acknowledgement":"{inner}","underlying_app_success":false}}"#);
        assert_eq!(ack_of(wrapped.as_bytes()), error);
        assert_eq!((ack_of(b"{}"), ack_of(b"\x01")), (None, None));
    }
}
