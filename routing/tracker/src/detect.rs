//! Detection of the hops that a transaction starts, and of the hop that follows a received packet. Pure.
//!
//! Each detected hop starts a separate transfer, in event order.

use bech32::{Bech32, Hrp};
use node::{FoundEvent, TxSearchHit};
use registry::{ChainRef, Registry};
use sha2::{Digest as _, Sha256};

use crate::asset_location::wrapper_in;
use crate::event::{self, number};
use crate::hop::{Ack, Deposit, Ibc, LayerZero, ObservedHop, Packet, Relation, TxRef, Withdrawal};
use crate::layer_zero;
use crate::state::resent;

/// The first hops of the transfers that a transaction of `chain` starts, in the order of its events. An event that does
/// not parse starts none. `sent` is the block of the transaction.
pub fn detect_hops(registry: &Registry, chain: ChainRef, tx: &TxSearchHit, sent: &TxRef) -> Vec<ObservedHop> {
    let begin = |event: &FoundEvent| match event.kind.as_str() {
        "send_packet" => packet(registry, chain, event)
            .map(|packet| ObservedHop::Ibc(first(packet, Relation::Start, sent))),
        "initiate_token_deposit" => deposit(registry, chain, event, sent).map(ObservedHop::Deposit),
        "initiate_token_withdrawal" => {
            withdrawal(registry, chain, event, Relation::Start, sent).map(ObservedHop::Withdrawal)
        }
        "move" => message(registry, chain, event, sent).map(ObservedHop::LayerZero),
        _ => None,
    };
    tx.events.iter().filter_map(begin).collect()
}

fn first(packet: Packet, link: Relation, sent: &TxRef) -> Ibc {
    resent(link, packet, sent.clone())
}

/// A packet with the chain that its channel leads to.
pub(crate) fn packet(registry: &Registry, chain: ChainRef, event: &FoundEvent) -> Option<Packet> {
    let mut packet = event::packet(event, &registry[chain].id)?;
    let channel = registry.channel_at(chain, &packet.id.port, &packet.id.channel);
    let end = channel.and_then(|channel| registry[channel].beyond(chain));
    packet.to = end.map(|end| registry[end.chain].id.clone());
    Some(packet)
}

/// The packet that the receiving chain sent in the same message: forwarded, or sent by a called contract.
pub(crate) fn continuation(
    registry: &Registry,
    packet: &Packet,
    ack: Option<&Ack>,
    message: &[FoundEvent],
    at: &TxRef,
) -> Option<ObservedHop> {
    let chain = registry.chain(&at.chain)?;
    let mut sends = message.iter().filter_map(|event| self::packet(registry, chain, event));
    let (next, link) = match (&packet.forward, &packet.hook, ack) {
        (Some(forward), _, _) => {
            let account = forwarder(&registry[chain].bech32_prefix, &packet.dst_channel, &packet.sender)?;
            let is_it = |next: &Packet| next.id.channel == forward.channel && next.sender == account;
            (sends.find(is_it)?, Relation::Forward)
        }
        (None, Some(_), Some(Ack::Good)) => (sends.next()?, Relation::Hook),
        _ => return None,
    };
    Some(ObservedHop::Ibc(first(next, link, at)))
}

/// The packet that a chain resent in the message that timed out the old one.
pub(crate) fn again(
    registry: &Registry,
    chain: ChainRef,
    old: &Packet,
    message: &[FoundEvent],
) -> Option<Packet> {
    let mut sends = message.iter().filter_map(|event| packet(registry, chain, event));
    sends.find(|new| new.sender == old.sender && new.denom == old.denom && new.id.sequence > old.id.sequence)
}

/// The account that the packet forward middleware sends from: `x/packet-forward/keeper`, with its misspelt name.
fn forwarder(prefix: &str, channel: &str, sender: &str) -> Option<String> {
    let kind = Sha256::digest("packetfowardmiddleware");
    let hash = Sha256::new().chain_update(kind).chain_update(format!("{channel}/{sender}")).finalize();
    let prefix = Hrp::parse(prefix).ok()?;
    bech32::encode::<Bech32>(prefix, &hash[..20]).ok()
}

fn deposit(registry: &Registry, chain: ChainRef, event: &FoundEvent, sent: &TxRef) -> Option<Deposit> {
    let text = |key| event.get(key).map(str::to_owned);
    let bridge = number(event, "bridge_id")?;
    let rollup = registry.bridge_of(chain, bridge).map(|bridge| registry[bridge].l2);
    let call = event.get("data").and_then(|data| hex::decode(data).ok()).unwrap_or_default();
    Some(Deposit {
        from: registry[chain].id.clone(),
        to: rollup.map(|rollup| registry[rollup].id.clone()),
        bridge,
        l1_sequence: number(event, "l1_sequence")?,
        l1_denom: text("l1_denom")?,
        l2_denom: text("l2_denom")?,
        amount: text("amount")?,
        wrapper: rollup.and_then(|rollup| wrapper_in(registry, rollup, &call)),
        sent: sent.clone(),
        finalized: None,
    })
}

/// The withdrawal of an `initiate_token_withdrawal`.
pub(crate) fn withdrawal(
    registry: &Registry,
    chain: ChainRef,
    event: &FoundEvent,
    link: Relation,
    sent: &TxRef,
) -> Option<Withdrawal> {
    let text = |key| event.get(key).map(str::to_owned);
    let bridge = registry.bridge_to(chain).map(|bridge| &registry[bridge]);
    Some(Withdrawal {
        from: registry[chain].id.clone(),
        to: bridge.map(|bridge| (registry[bridge.l1].id.clone(), bridge.id)),
        link,
        l2_sequence: number(event, "l2_sequence")?,
        sender: text("from")?,
        receiver: text("to")?,
        l2_denom: text("denom")?,
        l1_denom: text("base_denom")?,
        amount: text("amount")?,
        finalization_seconds: bridge.map_or(0, |bridge| bridge.finalization_seconds),
        sent: sent.clone(),
        output: None,
        output_as_of: 0,
        claimed: None,
    })
}

/// A LayerZero message that a Move chain sent.
fn message(registry: &Registry, chain: ChainRef, event: &FoundEvent, sent: &TxRef) -> Option<LayerZero> {
    let oft = layer_zero::moved(event, "OftSent")?;
    let dst_eid = oft.number("dst_eid")?;
    Some(LayerZero {
        from: registry[chain].id.clone(),
        to: layer_zero::chain_of(registry, chain, &oft.module, dst_eid),
        guid: oft.guid,
        dst_eid,
        sender_oft: oft.module,
        receiver_oft: None,
        composes: false,
        amount: oft.data.get("amount_sent_ld").and_then(layer_zero::amount)?,
        sent: sent.clone(),
        received: None,
        alert: None,
        composed: None,
        scanned: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forwarding_account_equals_the_one_of_the_chains() {
        // router-mechanics §2.8.
        let account = forwarder("init", "channel-3", "noble1pyq6amga29zfsldw8k26kgvl7a0fhf3k07uyg0");
        assert_eq!(account.unwrap(), "init1h8ec302kh6s2fmy8cxv0rt5nzv8nh5gassfhqe");
        // Recorded: packet 11 from the rollup, forwarded for packet 12 from the L1.
        let account = forwarder("init", "channel-0", "init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfg");
        assert_eq!(account.unwrap(), "init1yvwta0qdzm00p376k3hsr2we8t2lxl9gzz5nhq");
    }
}
