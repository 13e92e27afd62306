//! Movements of bank coins, on chains whose bank keeps the balances itself.

use alloy::primitives::U256;

use super::pairing::{Leg, Pairing};
use super::{Group, Placed, Token, amount};
use crate::address::Account;
use crate::comet::Event;

/// Adds the movements of `events`.
pub(super) fn read(prefix: &str, events: &[Event<'_>], out: &mut Vec<Placed>) {
    let mut pairing = Pairing::default();
    for (at, event) in events.iter().enumerate() {
        // What makes or destroys coins names the same account and the same coins right behind.
        let (key, by_chain) = match event.kind.as_ref() {
            "coin_spent" => ("spender", ("burn", "burner")),
            "coin_received" => ("receiver", ("coinbase", "minter")),
            _ => continue,
        };
        let (Some(name), Some(text)) = (event.value(key), event.value("amount")) else { continue };
        let Some(account) = Account::from_bech32(name, prefix) else { continue };
        let is_by_chain = events.get(at + 1).is_some_and(|next| {
            next.kind == by_chain.0
                && next.value(by_chain.1) == Some(name)
                && next.value("amount") == Some(text)
                && Group::of(next) == Group::of(event)
        });
        for (denom, amount) in coins(text) {
            let (group, token) = (Group::of(event), Token::Denom(denom.to_owned()));
            if is_by_chain {
                let sides = if key == "spender" { [Some(account), None] } else { [None, Some(account)] };
                out.push(Placed::new(at, group, token, sides, amount));
                continue;
            }
            let leg = Leg { at, group, token, account: Some(account), amount };
            if key == "spender" { pairing.give(leg) } else { pairing.take(leg, out) }
        }
    }
    pairing.finish(out);
}

/// The coins of a list, such as `12uinit,5move/ab`; often there are none.
pub(crate) fn coins(text: &str) -> impl Iterator<Item = (&str, U256)> {
    text.split(',').filter_map(|coin| {
        let digits = coin.bytes().take_while(u8::is_ascii_digit).count();
        let (number, denom) = coin.split_at_checked(digits)?;
        Some((is_denom(denom).then_some(denom)?, amount(number).filter(|amount| !amount.is_zero())?))
    })
}

/// The denoms in what accounts have spent and received, each once.
pub(super) fn denoms<'e>(events: &'e [Event<'_>]) -> impl Iterator<Item = &'e str> {
    let of_bank = events.iter().filter(|event| matches!(event.kind.as_ref(), "coin_spent" | "coin_received"));
    let texts = of_bank.filter_map(|event| event.value("amount"));
    let denoms: indexmap::IndexSet<&str> =
        texts.flat_map(|text| coins(text)).map(|(denom, _)| denom).collect();
    denoms.into_iter()
}

/// The rule of the Cosmos SDK for a denom.
fn is_denom(text: &str) -> bool {
    let others = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-".contains(&byte);
    (3..=128).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(others)
}
