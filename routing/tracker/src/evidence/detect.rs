//! Detection of the hops that a transaction or a call starts. Pure.
//!
//! Each detected hop starts a separate transfer, in event order, but for what takes swapped tokens further.

use chain::excerpt;
use node::{FoundEvent, TxSearchHit};
use registry::{Bridge, Registry, denom};

use crate::evidence::asset_location::{denom_of, hex_address, same_contract, wrapper_in};
use crate::evidence::event::{self, is_amount, messages, number};
use crate::evidence::hop::{
    Coin, Deposit, Ibc, LayerZero, ObservedHop, Obstacle, Packet, PacketId, Relation, Swap, TxRef,
    Unfollowed, Withdrawal,
};
use crate::evidence::layer_zero::{self, Log};
use crate::evidence::other_bridges;
use crate::evidence::state::resent;
use crate::evidence::swap::{Tokens, accounts, swapped};

/// The first hops of each transfer that a transaction starts, in the order of its events; none if it stayed on its chain
/// and swapped nothing. A step that cannot be followed is one too. `sent` is the block of the transaction.
pub fn detect_hops(registry: &Registry, tx: &TxSearchHit, sent: &TxRef) -> Vec<Vec<ObservedHop>> {
    let mut steps = Steps::new(registry, sent, Relation::Start);
    messages(tx).for_each(|message| steps.take(message));
    steps.take_others(&tx.events);
    let is_bridge =
        |hop: &ObservedHop| matches!(hop, ObservedHop::Unfollowed(hop) if hop.obstacle == Obstacle::Bridge);
    if let Some(name) = other_bridges::message(tx).filter(|_| !steps.hops().any(is_bridge)) {
        steps.unfollowed(Obstacle::Bridge, format!("{} is of another bridge", excerpt(name)));
    }
    let leaving: Vec<_> = tx.messages.iter().filter(|name| leaves_the_chain(name)).collect();
    if let Some(name) = leaving.last().filter(|_| steps.taken < leaving.len()) {
        steps.unfollowed(
            Obstacle::Malformed,
            format!("{} left no event that tells its packet", excerpt(name)),
        );
    }
    // Every transaction that succeeds has events: its fee, its messages.
    if tx.events.is_empty() && steps.transfers.is_empty() {
        steps.unfollowed(Obstacle::NoLogs, format!("{} shows no events of the transaction", sent.chain));
    }
    steps.transfers
}

/// Whether a message always sends a packet, a deposit or a withdrawal.
fn leaves_the_chain(type_url: &str) -> bool {
    (type_url.starts_with("/ibc.applications.") && type_url.ends_with(".MsgTransfer"))
        || [
            "/ibc.applications.interchain_accounts.controller.v1.MsgSendTx",
            "/ibc.core.channel.v2.MsgSendPacket",
            "/opinit.ophost.v1.MsgInitiateTokenDeposit",
            "/opinit.opchild.v1.MsgInitiateTokenWithdrawal",
        ]
        .contains(&type_url)
}

/// The steps of a transaction, or of one of its messages.
struct Steps<'a> {
    registry: &'a Registry,
    sent: &'a TxRef,
    link: Relation,
    /// Packets, deposits and withdrawals, of any account.
    taken: usize,
    /// The first hops of each transfer.
    transfers: Vec<Vec<ObservedHop>>,
}

impl<'a> Steps<'a> {
    fn new(registry: &'a Registry, sent: &'a TxRef, link: Relation) -> Self {
        Self { registry, sent, link, taken: 0, transfers: Vec::new() }
    }

    fn hops(&self) -> impl Iterator<Item = &ObservedHop> {
        self.transfers.iter().flatten()
    }

    /// The steps of a message.
    fn take(&mut self, message: &[FoundEvent]) {
        let swap = swapped(message).map(|swapped| {
            let coin = |tokens: Tokens| coin(self.registry, &self.sent.chain, tokens);
            let (chain, sent, called) = (self.sent.chain.clone(), self.sent.clone(), swapped.called);
            let (offered, outcome) = (coin(swapped.offered), swapped.outcome.map(coin));
            Swap { chain, link: self.link, offered, outcome, called, sent }
        });
        self.transfers.extend(swap.clone().map(|swap| vec![ObservedHop::Swap(swap)]));
        let mut swap = swap.map(|swap| (self.transfers.len() - 1, swap));
        for event in message {
            let link = if swap.is_some() { Relation::Hook } else { self.link };
            match self.step(event, message, link) {
                Some(hop) if swap.as_ref().is_some_and(|(_, swap)| takes_further(&hop, swap)) => {
                    let at = swap.take().map_or(0, |(at, _)| at);
                    self.transfers[at].push(hop);
                }
                Some(hop) => self.transfers.push(vec![hop]),
                None => {}
            }
        }
    }

    /// The step that an event shows.
    fn step(&mut self, event: &FoundEvent, message: &[FoundEvent], link: Relation) -> Option<ObservedHop> {
        let malformed = || (Obstacle::Malformed, format!("{} cannot be read", excerpt(&event.kind)));
        let hop = match event.kind.as_str() {
            "send_packet" => match packet(self.registry, &self.sent.chain, event) {
                Ok(packet) if is_of_another_account(message, &packet.sender) => {
                    self.taken += 1;
                    return None;
                }
                packet => packet.map(|packet| ObservedHop::Ibc(first(packet, link, self.sent))),
            },
            "initiate_token_deposit" => {
                deposit(self.registry, event, self.sent).map(ObservedHop::Deposit).ok_or_else(malformed)
            }
            "initiate_token_withdrawal" => withdrawal(self.registry, event, link, self.sent)
                .map(ObservedHop::Withdrawal)
                .ok_or_else(malformed),
            "move" if layer_zero::is_oft_sent(event) => self::message(self.registry, event, self.sent)
                .map(ObservedHop::LayerZero)
                .ok_or_else(malformed),
            _ => return None,
        };
        self.taken += 1;
        Some(hop.unwrap_or_else(|(obstacle, what)| self.obstacle(obstacle, what, link)))
    }

    /// Steps over LayerZero by an EVM, and over other bridges. One of the latter stands for all.
    fn take_others(&mut self, events: &[FoundEvent]) {
        let logs: Vec<_> = events.iter().flat_map(other_bridges::event_logs).collect();
        let messages = layer_zero::sent(self.registry, &logs, self.sent);
        self.transfers.extend(messages.into_iter().map(|hop| vec![ObservedHop::LayerZero(hop)]));
        let is_followed = |hop: &ObservedHop| matches!(hop, ObservedHop::LayerZero(_));
        if let Some(name) = events.iter().find_map(other_bridges::event) {
            self.unfollowed(Obstacle::Bridge, format!("{} is of another bridge", excerpt(name)));
        } else if !self.hops().any(is_followed) && events.iter().any(other_bridges::is_layer_zero_packet) {
            self.unfollowed(Obstacle::Bridge, NO_OFT.to_owned());
        }
    }

    fn unfollowed(&mut self, obstacle: Obstacle, what: String) {
        let hop = self.obstacle(obstacle, what, self.link);
        self.transfers.push(vec![hop]);
    }

    fn obstacle(&self, obstacle: Obstacle, what: String, link: Relation) -> ObservedHop {
        let (chain, sent) = (self.sent.chain.clone(), self.sent.clone());
        ObservedHop::Unfollowed(Unfollowed { chain, link, obstacle, what, sent })
    }
}

/// Whether a step leaves with the tokens that the swap before it returned.
fn takes_further(hop: &ObservedHop, swap: &Swap) -> bool {
    let Ok(returned) = &swap.outcome else { return false };
    let is_returned = |denom: &str| hex_address(&denom::metadata(denom)) == returned.metadata;
    match hop {
        ObservedHop::Ibc(hop) => is_returned(&hop.packet.sent_denom()),
        ObservedHop::Deposit(hop) => is_returned(&hop.l1_denom),
        ObservedHop::Withdrawal(hop) => is_returned(&hop.l2_denom),
        ObservedHop::LayerZero(_) | ObservedHop::Unfollowed(_) => true,
        ObservedHop::Swap(_) => false,
    }
}

fn coin(registry: &Registry, chain: &str, tokens: Tokens) -> Coin {
    let Tokens { metadata, amount } = tokens;
    Coin { denom: denom_of(registry, chain, &metadata), metadata, amount }
}

const NO_OFT: &str = "a message of LayerZero moves no token in a known way";

/// The hop of a transaction whose EVM calls have logs that no node shows.
pub(crate) fn without_logs(sent: &TxRef, calls: usize) -> ObservedHop {
    let what =
        format!("{} shows no logs of its {calls} EVM calls; give it an address of json_rpc", sent.chain);
    let (chain, link, obstacle) = (sent.chain.clone(), Relation::Start, Obstacle::NoLogs);
    ObservedHop::Unfollowed(Unfollowed { chain, link, obstacle, what, sent: sent.clone() })
}

/// The hops of a transaction of an EVM chain.
pub(crate) fn detect_evm_hops(registry: &Registry, logs: &[Log], sent: &TxRef) -> Vec<Vec<ObservedHop>> {
    let messages = layer_zero::sent(registry, logs, sent);
    let mut steps = Steps::new(registry, sent, Relation::Start);
    steps.transfers.extend(messages.into_iter().map(|hop| vec![ObservedHop::LayerZero(hop)]));
    if let Some(name) = logs.iter().find_map(other_bridges::log) {
        steps.unfollowed(Obstacle::Bridge, format!("{name} is of another bridge"));
    } else if steps.transfers.is_empty() && logs.iter().any(|log| log.is(layer_zero::PACKET_SENT)) {
        steps.unfollowed(Obstacle::Bridge, NO_OFT.to_owned());
    }
    steps.transfers
}

/// Whether a packet belongs to another account than the ones that a message executes Move calls for, such as the
/// arbitrage of a pool inside of a swap. Chains with another VM move a user's tokens in the name of contracts.
fn is_of_another_account(message: &[FoundEvent], sender: &str) -> bool {
    let accounts = accounts(message);
    let Some((_, sender)) = accounts.first().and_then(|_| bech32::decode(sender).ok()) else { return false };
    let sender = hex::encode(sender);
    !accounts.into_iter().any(|account| same_contract(account, &sender))
}

pub(crate) fn first(packet: Packet, link: Relation, sent: &TxRef) -> Ibc {
    resent(link, packet, sent.clone())
}

/// A packet with the chain that its channel leads to, or the reason why it cannot be followed.
pub(crate) fn packet(
    registry: &Registry,
    chain: &str,
    event: &FoundEvent,
) -> Result<Packet, (Obstacle, String)> {
    let mut packet = event::packet(event, chain)?;
    packet.to = beyond(registry, &packet.id);
    Ok(packet)
}

/// The chain that the channel of a packet leads to.
fn beyond(registry: &Registry, packet: &PacketId) -> Option<String> {
    let chain = registry.chain(&packet.chain)?;
    let channel = registry.channel_at(chain, &packet.port, &packet.channel)?;
    Some(registry[registry[channel].beyond(chain)?.chain].id.clone())
}

/// Looks up the receiving chain of a hop that was found when the registry did not have its channel or bridge.
pub(crate) fn resolve(registry: &Registry, hop: &mut ObservedHop) {
    match hop {
        ObservedHop::Ibc(hop) if hop.packet.to.is_none() => hop.packet.to = beyond(registry, &hop.packet.id),
        ObservedHop::Deposit(hop) if hop.to.is_none() => hop.to = rollup(registry, &hop.from, hop.bridge),
        ObservedHop::Withdrawal(hop) if hop.to.is_none() => {
            if let Some(bridge) = bridge_to(registry, &hop.from) {
                hop.to = Some((registry[bridge.l1].id.clone(), bridge.id));
                hop.finalization_seconds = bridge.finalization_seconds;
            }
        }
        ObservedHop::LayerZero(hop) if hop.to.is_none() => {
            hop.to = layer_zero::chain_of(registry, &hop.from, &hop.sender_oft, hop.dst_eid);
        }
        ObservedHop::Swap(hop) => {
            let chain = hop.chain.clone();
            for coin in hop.coins_mut().filter(|coin| coin.denom.is_none()) {
                coin.denom = denom_of(registry, &chain, &coin.metadata);
            }
        }
        _ => {}
    }
}

/// The rollup of a bridge of an L1.
fn rollup(registry: &Registry, l1: &str, bridge: u64) -> Option<String> {
    let bridge = registry.bridge_of(registry.chain(l1)?, bridge)?;
    Some(registry[registry[bridge].l2].id.clone())
}

/// The bridge of a rollup.
fn bridge_to<'a>(registry: &'a Registry, rollup: &str) -> Option<&'a Bridge> {
    Some(&registry[registry.bridge_to(registry.chain(rollup)?)?])
}

/// The steps that a call took with the tokens of a packet or deposit: a swap, and one to another chain. One that cannot be
/// followed counts first.
pub(crate) fn called_steps(registry: &Registry, message: &[FoundEvent], at: &TxRef) -> Vec<ObservedHop> {
    let mut steps = Steps::new(registry, at, Relation::Hook);
    steps.take(message);
    steps.take_others(message);
    let is_unfollowed = |hops: &Vec<ObservedHop>| matches!(hops.last(), Some(ObservedHop::Unfollowed(_)));
    let at = steps.transfers.iter().position(is_unfollowed).unwrap_or(0);
    steps.transfers.into_iter().nth(at).unwrap_or_default()
}

fn deposit(registry: &Registry, event: &FoundEvent, sent: &TxRef) -> Option<Deposit> {
    let text = |key| event.get(key).map(str::to_owned);
    let bridge = number(event, "bridge_id")?;
    let to = rollup(registry, &sent.chain, bridge);
    let call = event.get("data").and_then(|data| hex::decode(data).ok()).unwrap_or_default();
    Some(Deposit {
        from: sent.chain.clone(),
        bridge,
        l1_sequence: number(event, "l1_sequence")?,
        l1_denom: text("l1_denom")?,
        l2_denom: text("l2_denom")?,
        amount: text("amount").filter(|text| is_amount(text))?,
        wrapper: to.as_deref().and_then(|to| wrapper_in(registry, registry.chain(to)?, &call)),
        to,
        sent: sent.clone(),
        finalized: None,
    })
}

/// The withdrawal of an `initiate_token_withdrawal`.
pub(crate) fn withdrawal(
    registry: &Registry,
    event: &FoundEvent,
    link: Relation,
    sent: &TxRef,
) -> Option<Withdrawal> {
    let text = |key| event.get(key).map(str::to_owned);
    let bridge = bridge_to(registry, &sent.chain);
    Some(Withdrawal {
        from: sent.chain.clone(),
        to: bridge.map(|bridge| (registry[bridge.l1].id.clone(), bridge.id)),
        link,
        l2_sequence: number(event, "l2_sequence")?,
        sender: text("from")?,
        receiver: text("to")?,
        l2_denom: text("denom")?,
        l1_denom: text("base_denom")?,
        amount: text("amount").filter(|text| is_amount(text))?,
        finalization_seconds: bridge.map_or(0, |bridge| bridge.finalization_seconds),
        sent: sent.clone(),
        output: None,
        output_as_of: 0,
        claimed: None,
    })
}

/// A LayerZero message that a Move chain sent.
fn message(registry: &Registry, event: &FoundEvent, sent: &TxRef) -> Option<LayerZero> {
    let oft = layer_zero::moved(event, "OftSent")?;
    let dst_eid = oft.number("dst_eid")?;
    Some(LayerZero {
        from: sent.chain.clone(),
        to: layer_zero::chain_of(registry, &sent.chain, &oft.module, dst_eid),
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
