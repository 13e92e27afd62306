//! Location of a transfer's tokens: chain, denomination and amount. Pure.
//!
//! Denominations are computed as the chains compute them. If a hook wrapped the tokens on arrival, or a wrapper sent
//! them, the location names the wrapped token in its own decimals, provided that the registry has it.

use chain::U256;
use registry::{ChainRef, Leg, Oft, Origin, Pair, Registry, denom};

use crate::evidence::hop::{LayerZero, ObservedHop, Packet};
use crate::evidence::transfer::Place;

/// Tokens on a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) chain: String,
    pub(crate) denom: String,
    /// Base units, if known.
    pub(crate) amount: Option<String>,
}

/// The tokens at a place of these hops.
pub(crate) fn tokens(registry: &Registry, hops: &[ObservedHop], place: Place) -> Option<Tokens> {
    match place {
        Place::SenderOf(at) => sent(registry, hops.get(at)?),
        Place::ReceiverOf(at) => received(registry, hops.get(at)?, true),
        Place::Uncalled(at) => received(registry, hops.get(at)?, false),
    }
}

fn sent(registry: &Registry, hop: &ObservedHop) -> Option<Tokens> {
    let plain = |chain: &str, denom: &str, amount: &str| Tokens {
        chain: chain.to_owned(),
        denom: denom.to_owned(),
        amount: Some(amount.to_owned()),
    };
    Some(match hop {
        ObservedHop::Ibc(hop) => {
            let packet = &hop.packet;
            if let Some((denom, amount)) = hop.refund.as_deref() {
                return Some(plain(&packet.id.chain, denom, amount));
            }
            let tokens = plain(&packet.id.chain, &packet.sent_denom(), &packet.amount);
            match contract_of(&packet.sender) {
                Some(sender) => wrapped(registry, &tokens, &sender).unwrap_or(tokens),
                None => tokens,
            }
        }
        ObservedHop::Deposit(hop) => plain(&hop.from, &hop.l1_denom, &hop.amount),
        ObservedHop::Withdrawal(hop) => plain(&hop.from, &hop.l2_denom, &hop.amount),
        ObservedHop::LayerZero(hop) => {
            let chain = registry.chain(&hop.from)?;
            let denom = leg(registry, chain, &hop.sender_oft)?;
            plain(&hop.from, &denom, &hop.amount)
        }
        ObservedHop::Swap(hop) => plain(&hop.chain, hop.offered.denom.as_deref()?, &hop.offered.amount),
        ObservedHop::Unfollowed(_) => return None,
    })
}

fn received(registry: &Registry, hop: &ObservedHop, is_called: bool) -> Option<Tokens> {
    let chain = hop.to()?.to_owned();
    let plain =
        |denom: String, amount: &str| Tokens { chain: chain.clone(), denom, amount: Some(amount.to_owned()) };
    Some(match hop {
        ObservedHop::Ibc(hop) => {
            let tokens = plain(hop.packet.received_denom(), &hop.packet.amount);
            match called(&hop.packet) {
                Some(contract) => wrapped(registry, &tokens, contract).unwrap_or(tokens),
                None => tokens,
            }
        }
        ObservedHop::Deposit(hop) => {
            let tokens = plain(hop.l2_denom.clone(), &hop.amount);
            match hop.wrapper.as_deref().filter(|_| is_called) {
                Some(contract) => wrapped(registry, &tokens, contract).unwrap_or(tokens),
                None => tokens,
            }
        }
        ObservedHop::Withdrawal(hop) => plain(hop.l1_denom.clone(), &hop.amount),
        ObservedHop::LayerZero(hop) => {
            let (_, amount) = hop.received.as_ref()?;
            plain(registry[receiving_leg(registry, hop)?.asset].denom.clone(), amount)
        }
        // What a call did with the result is unknown.
        ObservedHop::Swap(hop) => {
            let coin = hop.outcome.as_ref().ok().filter(|_| !hop.called)?;
            plain(coin.denom.clone()?, &coin.amount)
        }
        ObservedHop::Unfollowed(_) => return None,
    })
}

fn called(packet: &Packet) -> Option<&str> {
    packet.hook.as_ref()?.contract.as_deref()
}

/// The same tokens as the local token of the wrapper `contract`, if the registry has its pair. Packets and bridges
/// carry the remote token of a pair, whichever of the two the wrapper made.
fn wrapped(registry: &Registry, tokens: &Tokens, contract: &str) -> Option<Tokens> {
    let remote = registry.asset(registry.chain(&tokens.chain)?, &tokens.denom)?;
    let is_it = |pair: &Pair<'_>| pair.remote == remote && pair.contract.eq_ignore_ascii_case(contract);
    let pair = registry.wrapper_pairs().map(|(_, pair)| pair).find(is_it)?;
    let local = &registry[pair.local];
    let amount = scaled(tokens.amount.as_deref()?, registry[remote].decimals, local.decimals)?;
    Some(Tokens { chain: tokens.chain.clone(), denom: local.denom.clone(), amount: Some(amount) })
}

fn scaled(amount: &str, from: u8, to: u8) -> Option<String> {
    let amount = U256::from_str_radix(amount, 10).ok()?;
    let power = U256::from(10u8).checked_pow(U256::from(from.abs_diff(to)))?;
    let amount = if to >= from { amount.checked_mul(power)? } else { amount.checked_div(power)? };
    Some(amount.to_string())
}

/// The denomination of a metadata object of a Move chain, if the registry has the token.
pub(crate) fn denom_of(registry: &Registry, chain: &str, metadata: &str) -> Option<String> {
    let chain = registry.chain(chain)?;
    let listed = registry.assets().map(|(asset, _)| asset).filter(|asset| registry.chain_of(*asset) == chain);
    let mut denoms =
        listed.chain(registry.derived_on(chain)).map(|asset| registry.passing(asset).0.denom.clone());
    denoms.find(|denom| hex_address(&denom::metadata(denom)) == metadata)
}

/// An address of a Move chain as texts of hops have it.
pub(crate) fn hex_address(address: &[u8; 32]) -> String {
    format!("0x{}", hex::encode(address))
}

/// The contract address of an account, in hex; for a bech32 account of 20 bytes.
pub(crate) fn contract_of(account: &str) -> Option<String> {
    let (_, bytes) = bech32::decode(account).ok()?;
    (bytes.len() == 20).then(|| format!("0x{}", hex::encode(bytes)))
}

/// The wrapper of `chain` whose address, in any spelling, is in a call's bytes.
pub(crate) fn wrapper_in(registry: &Registry, chain: ChainRef, call: &[u8]) -> Option<String> {
    let call = call.to_ascii_lowercase();
    let named = |contract: &str| {
        let text = contract.to_ascii_lowercase();
        call.windows(text.len().max(1)).any(|window| window == text.as_bytes())
    };
    registry.assets().filter(|(_, asset)| asset.chain == chain).find_map(|(_, asset)| match &asset.origin {
        Origin::Wrapped { contract, .. } if named(contract) => Some(contract.clone()),
        _ => None,
    })
}

/// The token that an OFT contract of a chain moves.
fn leg(registry: &Registry, chain: ChainRef, contract: &str) -> Option<String> {
    let leg = group(registry, chain, contract)?.legs.iter().find(|leg| registry[leg.asset].chain == chain)?;
    Some(registry[leg.asset].denom.clone())
}

fn receiving_leg<'a>(registry: &'a Registry, hop: &LayerZero) -> Option<&'a Leg> {
    let (from, to) = (registry.chain(&hop.from)?, registry.chain(hop.to.as_deref()?)?);
    group(registry, from, &hop.sender_oft)?.legs.iter().find(|leg| registry[leg.asset].chain == to)
}

/// The group of tokens that an OFT contract of a chain belongs to.
pub(crate) fn group<'a>(registry: &'a Registry, chain: ChainRef, contract: &str) -> Option<&'a Oft> {
    let is_it = |leg: &Leg| registry[leg.asset].chain == chain && same_contract(&leg.contract, contract);
    registry.ofts().map(|(_, oft)| oft).find(|oft| oft.legs.iter().any(is_it))
}

/// The OFT contract of the receiving chain in the group of the sending one.
pub(crate) fn receiving_oft(registry: &Registry, hop: &LayerZero) -> Option<String> {
    receiving_leg(registry, hop).map(|leg| leg.contract.clone())
}

/// Whether two addresses are equal as hex: case and leading zeros are ignored.
pub(crate) fn same_contract(a: &str, b: &str) -> bool {
    let digits =
        |text: &str| text.strip_prefix("0x").unwrap_or(text).trim_start_matches('0').to_ascii_lowercase();
    digits(a) == digits(b)
}
