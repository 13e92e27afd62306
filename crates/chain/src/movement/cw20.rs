//! Movements of CW20 tokens.
//!
//! A contract is not known to be a CW20 by its events: any contract may use the same words. It can invent movements of its own
//! token only.

use alloy::primitives::U256;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Group, Placed, Source, Token, amount};
use crate::address::Account;
use crate::comet::Event;
use crate::serde_lenient::JsonText;

/// Adds the movements of `events`.
pub(super) fn read(prefix: &str, source: Source<'_>, events: &[Event<'_>], out: &mut Vec<Placed>) {
    let mut instantiated = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let group = Group::of(event);
        match event.kind.as_ref() {
            "wasm" => out.extend(action(prefix, event, at, group)),
            "instantiate" if !instantiated.contains(&group) => {
                // Later ones of the message are of contracts that this one instantiates.
                instantiated.push(group);
                first_balances(prefix, source, event, at, group, out);
            }
            _ => {}
        }
    }
}

/// The contract of an event: the chain writes this key, contracts cannot.
fn contract(prefix: &str, event: &Event<'_>) -> Option<[u8; 32]> {
    let account = Account::from_bech32(event.value("_contract_address")?, prefix)?;
    account.as_bytes().try_into().ok()
}

fn action(prefix: &str, event: &Event<'_>, at: usize, group: Group) -> Option<Placed> {
    let account = |key| Account::from_bech32(event.value(key)?, prefix);
    let sides = match event.value("action")?.as_ref() {
        "transfer" | "send" | "transfer_from" | "send_from" => [Some(account("from")?), Some(account("to")?)],
        "mint" => [None, Some(account("to")?)],
        "burn" | "burn_from" => [Some(account("from")?), None],
        _ => return None,
    };
    let amount = amount(event.value("amount")?).filter(|amount| *amount <= U256::from(u128::MAX))?;
    Some(Placed::new(at, group, Token::Cw20(contract(prefix, event)?), sides, amount))
}

/// The balances in the message that instantiates a contract, which the contract emits no event for.
fn first_balances(
    prefix: &str,
    source: Source<'_>,
    event: &Event<'_>,
    at: usize,
    group: Group,
    out: &mut Vec<Placed>,
) {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Instantiate<'a> {
        #[serde(rename = "@type")]
        kind: JsonText<'a>,
        msg: Cw20<'a>,
    }
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Cw20<'a> {
        initial_balances: Vec<Balance<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Balance<'a> {
        address: JsonText<'a>,
        amount: JsonText<'a>,
    }
    let (Source::Tx(messages), Some(message), None) = (source, group.message, group.inner) else { return };
    let message = usize::try_from(message).ok().and_then(|message| messages.get(message));
    let parsed =
        message.and_then(|message: &&RawValue| serde_json::from_str::<Instantiate<'_>>(message.get()).ok());
    let (Some(parsed), Some(contract)) = (parsed, contract(prefix, event)) else { return };
    let is_instantiate = matches!(
        parsed.kind.as_ref(),
        "/cosmwasm.wasm.v1.MsgInstantiateContract" | "/cosmwasm.wasm.v1.MsgInstantiateContract2"
    );
    for balance in parsed.msg.initial_balances.iter().filter(|_| is_instantiate) {
        let holder = Account::from_bech32(&balance.address, prefix);
        if let (Some(holder), Some(amount)) = (holder, amount(&balance.amount)) {
            out.push(Placed::new(at, group, Token::Cw20(contract), [None, Some(holder)], amount));
        }
    }
}
