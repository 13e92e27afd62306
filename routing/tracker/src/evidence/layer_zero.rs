//! Parsing of LayerZero messages: EVM receipts and logs, and events of Move chains. Pure.
//!
//! Topics and layouts are those of LayerZero v2's endpoint and OFT contracts.
//!
//! # Invariants
//!
//! * A log counts only with the right topic at the right position.
//! * A log that does not decode is ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::U256;
use node::FoundEvent;
use registry::Registry;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::evidence::asset_location::{group, same_contract};
use crate::evidence::hop::{LayerZero, TxRef};

pub(crate) const OFT_SENT: &str = "0x85496b760a4b7f8d66384b9df21b381f5d1b1e79f229a47aaf4c232edc2fe59a";
pub(crate) const OFT_RECEIVED: &str = "0xefed6d3500546b29533b128a29e3a94d70788727f0507505ac12eaf2e578fd9c";
pub(crate) const PACKET_SENT: &str = "0x1ab700d4ced0c005b164c0f789fd09fcbb0156d4c2041b8a3bfbcd961cd1567f";
pub(crate) const ALERT: &str = "0x7edfa10fe10193301ad8a8bea7e968c7bcabcc64981f368e3aeada40ce26ae2c";
pub(crate) const COMPOSE_DELIVERED: &str =
    "0x0036c98efcf9e6641dfbc9051f66f405253e8e0c2ab4a24dccda15595b7378c8";

const WORD: usize = 32;

/// A log of an EVM.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Log {
    pub(crate) address: String,
    pub(crate) topics: Vec<String>,
    data: String,
    #[serde(default)]
    pub(crate) transaction_hash: String,
    #[serde(default)]
    block_number: Option<String>,
}

/// A transaction's receipt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Receipt {
    status: Option<String>,
    block_number: String,
    pub(crate) logs: Vec<Log>,
}

impl Receipt {
    pub(crate) fn succeeded(&self) -> bool {
        self.status.as_deref() != Some("0x0")
    }

    pub(crate) fn block(&self) -> Option<u64> {
        quantity(&self.block_number)
    }
}

impl Log {
    /// The log in an attribute of an event, whose data is hex or, by ethermint, base64.
    pub(crate) fn of_event(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Given {
            address: String,
            topics: Vec<String>,
            #[serde(default)]
            data: String,
        }
        let Given { address, topics, data } = serde_json::from_str(json).ok()?;
        let data = match STANDARD.decode(&data) {
            Ok(bytes) if !data.starts_with("0x") => format!("0x{}", hex::encode(bytes)),
            _ => data,
        };
        Some(Self { address, topics, data, transaction_hash: String::new(), block_number: None })
    }

    pub(crate) fn block(&self) -> Option<u64> {
        quantity(self.block_number.as_deref()?)
    }

    pub(crate) fn is(&self, topic: &str) -> bool {
        self.topics.first().is_some_and(|first| first.eq_ignore_ascii_case(topic))
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        hex::decode(self.data.strip_prefix("0x")?).ok()
    }

    /// The number in a word of the data.
    pub(crate) fn word(&self, at: usize) -> Option<[u8; WORD]> {
        self.bytes()?.get(at * WORD..(at + 1) * WORD)?.try_into().ok()
    }
}

fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The messages that an EVM transaction sent, in the order of its logs.
pub(crate) fn sent(registry: &Registry, logs: &[Log], at: &TxRef) -> Vec<LayerZero> {
    let packets: Vec<_> = logs.iter().filter_map(Payload::read).collect();
    let message = |log: &Log| {
        let guid = log.topics.get(1).filter(|_| log.is(OFT_SENT))?.strip_prefix("0x")?.to_ascii_lowercase();
        let dst_eid = u32::try_from(U256::from_be_bytes(log.word(0)?)).ok()?;
        let packet = packets.iter().find(|packet| packet.guid == guid);
        Some(LayerZero {
            from: at.chain.clone(),
            to: chain_of(registry, &at.chain, &log.address, dst_eid),
            guid,
            dst_eid,
            sender_oft: log.address.clone(),
            receiver_oft: packet.map(|packet| packet.receiver.clone()),
            composes: packet.is_some_and(|packet| packet.composes),
            amount: U256::from_be_bytes(log.word(1)?).to_string(),
            sent: at.clone(),
            received: None,
            alert: None,
            composed: None,
            scanned: None,
        })
    };
    logs.iter().filter_map(message).collect()
}

/// `encodedPayload` of `PacketSent`.
struct Payload {
    guid: String,
    receiver: String,
    composes: bool,
}

impl Payload {
    fn read(log: &Log) -> Option<Self> {
        /// `sendTo`, 32 bytes, and the amount in shared decimals, 8 bytes; a call follows.
        const PLAIN_MESSAGE: usize = 40;
        const RECEIVER: usize = 49;
        const GUID: usize = 81;
        const MESSAGE: usize = 113;
        if !log.is(PACKET_SENT) {
            return None;
        }
        let data = log.bytes()?;
        let offset = usize::try_from(U256::from_be_bytes(log.word(0)?)).ok()?;
        let rest = data.get(offset..)?;
        let len = usize::try_from(U256::from_be_bytes::<WORD>(rest.get(..WORD)?.try_into().ok()?)).ok()?;
        let payload = rest.get(WORD..)?.get(..len)?;
        Some(Self {
            guid: hex::encode(payload.get(GUID..MESSAGE)?),
            receiver: hex::encode(payload.get(RECEIVER..GUID)?),
            composes: payload.len() > MESSAGE + PLAIN_MESSAGE,
        })
    }
}

/// The amount of an `OFTReceived` with this guid.
pub(crate) fn received(log: &Log, guid: &str) -> Option<String> {
    let is_it = log.is(OFT_RECEIVED) && log.topics.get(1).is_some_and(|topic| same_contract(topic, guid));
    is_it.then(|| log.word(1).map(|word| U256::from_be_bytes(word).to_string())).flatten()
}

/// Whether it is an `LzReceiveAlert` of this guid: the fourth word, after (eid, sender, nonce).
pub(crate) fn is_alert(log: &Log, guid: &str) -> bool {
    log.is(ALERT) && log.word(3).is_some_and(|word| hex::encode(word) == guid)
}

/// Whether it is a `ComposeDelivered` of this guid: the third word, after (from, to).
pub(crate) fn is_composed(log: &Log, guid: &str) -> bool {
    log.is(COMPOSE_DELIVERED) && log.word(2).is_some_and(|word| hex::encode(word) == guid)
}

/// An event of a Move chain about an OFT.
pub(crate) struct Moved {
    /// The module's address.
    pub(crate) module: String,
    /// 32 bytes in lower-case hex.
    pub(crate) guid: String,
    pub(crate) data: Map<String, Value>,
}

impl Moved {
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        amount(self.data.get(key)?)?.parse().ok()
    }
}

/// Whether an event of a Move chain is that of an OFT that was sent.
pub(crate) fn is_oft_sent(event: &FoundEvent) -> bool {
    event.kind == "move" && event.get("type_tag").and_then(|tag| tag.rsplit("::").next()) == Some("OftSent")
}

/// An event of type `move` whose struct has this name.
pub(crate) fn moved(event: &FoundEvent, name: &str) -> Option<Moved> {
    if event.kind != "move" {
        return None;
    }
    let (module, rest) = event.get("type_tag")?.split_once("::")?;
    if rest.rsplit("::").next() != Some(name) {
        return None;
    }
    let data: Map<String, Value> = serde_json::from_str(event.get("data")?).ok()?;
    let guid = data.get("guid")?.as_str()?;
    let guid = guid.strip_prefix("0x").unwrap_or(guid).to_ascii_lowercase();
    Some(Moved { module: module.to_owned(), guid, data })
}

/// Move writes large numbers as texts and small ones as numbers.
pub(crate) fn amount(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
}

/// The chain with a LayerZero endpoint id: according to the token's own group, else according to the chains.
pub(crate) fn chain_of(registry: &Registry, from: &str, oft: &str, eid: u32) -> Option<String> {
    let group = registry.chain(from).and_then(|from| group(registry, from, oft));
    let leg = group.and_then(|group| group.legs.iter().find(|leg| leg.eid == eid));
    let by_leg = leg.map(|leg| registry[leg.asset].chain);
    let by_chain = || {
        registry.chains().find(|(_, chain)| chain.layer_zero_eid == Some(eid)).map(|(reference, _)| reference)
    };
    by_leg.or_else(by_chain).map(|chain| registry[chain].id.clone())
}
