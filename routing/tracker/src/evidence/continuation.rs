//! What a chain did with a packet beyond receiving it: the packet that it forwarded, the step of a call, the packet that it
//! sent again. Pure.

use bech32::{Bech32, Hrp};
use chain::{U256, excerpt};
use node::FoundEvent;
use registry::Registry;
use sha2::{Digest as _, Sha256};

use crate::evidence::asset_location::{contract_of, same_contract};
use crate::evidence::detect::{called_steps, first, packet};
use crate::evidence::hop::{Ack, ObservedHop, Obstacle, Packet, Relation, TxRef, Unfollowed};
use crate::evidence::other_bridges::event_logs;
use crate::evidence::state::Observation;

/// The steps that the receiving chain took in the same message: a packet that it forwarded, or what a called contract
/// swapped and sent.
pub(crate) fn continuation(
    registry: &Registry,
    bech32_prefix: &str,
    packet: &Packet,
    ack: Option<&Ack>,
    message: &[FoundEvent],
    at: &TxRef,
) -> Vec<ObservedHop> {
    let is_good = ack == Some(&Ack::Good);
    let Some(forward) = &packet.forward else {
        return if is_good { called_steps(registry, message, at) } else { Vec::new() };
    };
    let account = forwarder(bech32_prefix, &packet.dst_channel, &packet.sender);
    let is_it = |next: &Packet| next.id.channel == forward.channel && Some(&next.sender) == account.as_ref();
    if let Some(next) = sends(registry, &at.chain, message).find(is_it) {
        return vec![ObservedHop::Ibc(first(next, Relation::Forward, at))];
    }
    // A chain that forwards a packet acknowledges it after the next one, in another message.
    if account.is_none() || !is_good {
        return Vec::new();
    }
    let (port, channel, sequence) = (&packet.dst_port, &packet.dst_channel, packet.id.sequence);
    let what = format!(
        "{} did not forward packet {sequence} of {port}/{channel}: its receiver there has the tokens",
        at.chain
    );
    let (chain, link, obstacle) = (at.chain.clone(), Relation::Hook, Obstacle::NotForwarded);
    let what = excerpt(what);
    vec![ObservedHop::Unfollowed(Unfollowed { chain, link, obstacle, what, sent: at.clone() })]
}

/// The packets that a message sent.
fn sends<'a>(
    registry: &'a Registry,
    chain: &'a str,
    message: &'a [FoundEvent],
) -> impl Iterator<Item = Packet> + 'a {
    let events = message.iter().filter(|event| event.kind == "send_packet");
    events.filter_map(move |event| packet(registry, chain, event).ok())
}

/// The packet that a chain resent in the message that timed out the old one.
pub(crate) fn again(registry: &Registry, old: &Packet, message: &[FoundEvent]) -> Option<Packet> {
    sends(registry, &old.id.chain, message)
        .find(|new| new.sender == old.sender && new.denom == old.denom && new.id.sequence > old.id.sequence)
}

/// The token that the sending contract of a returned packet made of the refund in its callback, in the message that
/// returned the packet: one that it minted or paid to another account.
pub(crate) fn refund(packet: &Packet, message: &[FoundEvent]) -> Option<Observation> {
    let contract = contract_of(&packet.sender)?;
    let is_callback = |event: &FoundEvent| {
        let called = event.get("contract").filter(|_| event.kind == "call");
        called.is_some_and(|called| same_contract(called, &contract))
    };
    let at = message.iter().rposition(is_callback)?;
    let paid = message[at..].iter().flat_map(event_logs).filter_map(|log| {
        let [_, from, to] = log.topics.as_slice() else { return None };
        let is_paid =
            (same_contract(from, "0x0") || same_contract(from, &contract)) && !same_contract(to, &contract);
        let amount = log.word(0).filter(|_| log.is(TRANSFER) && is_paid)?;
        Some((format!("evm/{}", log.address.strip_prefix("0x")?), U256::from_be_bytes(amount).to_string()))
    });
    let (denom, amount) = paid.last()?;
    Some(Observation::Refunded { packet: packet.id.clone(), denom, amount })
}

/// `Transfer(address,address,uint256)` of ERC-20.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// The account that the packet forward middleware sends from: `x/packet-forward/keeper`, with its misspelt name.
fn forwarder(prefix: &str, channel: &str, sender: &str) -> Option<String> {
    let kind = Sha256::digest("packetfowardmiddleware");
    let hash = Sha256::new().chain_update(kind).chain_update(format!("{channel}/{sender}")).finalize();
    let prefix = Hrp::parse(prefix).ok()?;
    bech32::encode::<Bech32>(prefix, &hash[..20]).ok()
}

#[cfg(test)]
mod tests {
    use node::TxSearchHit;
    use registry::Builder;

    use super::*;
    use crate::evidence::detect::detect_hops;
    use crate::evidence::event;
    use crate::evidence::hop::Finalized;
    use crate::evidence::state::Observation;
    use crate::evidence::transfer::{State, Transfer};

    const SENDER: &str = "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr";

    fn event(kind: &str, attributes: &[(&str, &str)]) -> FoundEvent {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        FoundEvent { kind: kind.to_owned(), attributes: attributes.iter().map(owned).collect() }
    }

    fn send(memo: &str) -> FoundEvent {
        let data =
            serde_json::json!({"denom": "u", "amount": "5", "sender": SENDER, "receiver": "x", "memo": memo});
        event(
            "send_packet",
            &[
                ("packet_data", &data.to_string()),
                ("packet_sequence", "7"),
                ("packet_src_port", "transfer"),
                ("packet_src_channel", "channel-3"),
                ("packet_dst_port", "transfer"),
                ("packet_dst_channel", "channel-4"),
            ],
        )
    }

    fn at(chain: &str) -> TxRef {
        TxRef { chain: chain.to_owned(), hash: Some("AA".to_owned()), height: 1, time: None }
    }

    /// The step of the receiving chain after a packet with this memo, and the state of the transfer.
    fn after(memo: &str, ack: Option<Ack>, message: &[FoundEvent]) -> (Option<ObservedHop>, State) {
        let registry = Builder::new().finish("test".to_owned());
        let mut packet = event::packet(&send(memo), "a-1").unwrap();
        packet.to = Some("b-1".to_owned());
        let next = continuation(&registry, "init", &packet, ack.as_ref(), message, &at("b-1"));
        let id = packet.id.clone();
        let mut transfer =
            Transfer::new(Some(ObservedHop::Ibc(first(packet, Relation::Start, &at("a-1")))), 0);
        let received = Observation::Received { packet: id, at: at("b-1"), ack, next: next.clone() };
        transfer.observe(0, &received, 1);
        assert!(next.len() < 2);
        (next.into_iter().next(), transfer.state())
    }

    #[test]
    fn what_the_receiving_chain_sends_on_is_followed_whatever_the_memo_says() {
        let burn = event("circle.cctp.v1.DepositForBurn", &[("nonce", "1")]);
        for memo in ["", "for lunch", r#"{"orbiter":{}}"#, r#"{"dest_callback":{}}"#] {
            let (next, state) = after(memo, Some(Ack::Good), &[]);
            assert_eq!((next, state), (None, State::CompletedSuccess), "{memo}");
            let (next, state) = after(memo, Some(Ack::Good), &[send("")]);
            assert!(matches!(next, Some(ObservedHop::Ibc(_))), "{memo}");
            assert_eq!(state, State::Pending, "{memo}");
            let (next, state) = after(memo, Some(Ack::Good), &[send(""), burn.clone()]);
            assert!(matches!(next, Some(ObservedHop::Unfollowed(_))), "{memo}");
            assert_eq!(state, State::Pending, "{memo}");
            let error = Ack::Error { message: "no".to_owned(), reason: None };
            assert_eq!(after(memo, Some(error), &[send("")]).0, None, "{memo}");
        }
    }

    #[test]
    fn a_packet_that_the_receiving_chain_keeps_although_it_was_to_forward_it_is_not_done() {
        let memo = r#"{"forward":{"receiver":"x","port":"transfer","channel":"channel-9"}}"#;
        let (next, state) = after(memo, Some(Ack::Good), &[]);
        let Some(ObservedHop::Unfollowed(hop)) = next else { panic!("{next:?}") };
        assert_eq!((hop.obstacle, state), (Obstacle::NotForwarded, State::Pending));
        assert!(hop.what.starts_with("b-1 did not forward packet 7 of transfer/channel-4"), "{}", hop.what);
        // Its acknowledgement follows the next packet.
        assert_eq!(after(memo, None, &[]), (None, State::Pending));
    }

    #[test]
    fn a_call_that_calls_other_chains_in_a_deposit_is_a_step_of_its_own() {
        let registry = Builder::new().finish("test".to_owned());
        let sent = [
            ("bridge_id", "1"),
            ("l1_sequence", "3"),
            ("l1_denom", "u"),
            ("l2_denom", "l2/u"),
            ("amount", "5"),
            ("data", ""),
        ];
        let (codespace, log, messages) = (String::new(), String::new(), Vec::new());
        let events = vec![event("initiate_token_deposit", &sent)];
        let tx =
            TxSearchHit { hash: [1; 32], height: 1, index: 0, code: 0, codespace, log, events, messages };
        let first = detect_hops(&registry, &tx, &at("l1")).remove(0);
        let withdrawal = event(
            "initiate_token_withdrawal",
            &[
                ("l2_sequence", "9"),
                ("from", SENDER),
                ("to", SENDER),
                ("denom", "l2/u"),
                ("base_denom", "u"),
                ("amount", "5"),
            ],
        );
        for message in [vec![withdrawal], vec![send("")], vec![]] {
            let next = called_steps(&registry, &message, &at("l2"));
            assert_eq!(next.is_empty(), message.is_empty());
            let mut transfer = Transfer::new(first.clone(), 0);
            let is_on_its_way = !next.is_empty();
            let finalized = Observation::Finalized { sequence: 3, at: at("l2"), how: Finalized::Good, next };
            transfer.observe(0, &finalized, 1);
            let state = if is_on_its_way { State::Pending } else { State::CompletedSuccess };
            assert_eq!(transfer.state(), state);
        }
    }

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
