//! Movements of CW20 tokens.
//!
//! A contract is not known to be a CW20 by its events: any contract may use the same words. It can invent movements of its own
//! token only.

use alloy::primitives::U256;
use serde::Deserialize;

use super::{Group, Placed, Source, Token, amount};
use crate::address::Account;
use crate::comet::Event;
use crate::serde_lenient::JsonText;

/// Adds the movements of `events`. Returns the new contracts whose first balances are among them.
pub(super) fn read(
    prefix: &str,
    source: Source<'_>,
    events: &[Event<'_>],
    out: &mut Vec<Placed>,
) -> Vec<Token> {
    let (mut instantiated, mut whole) = (Vec::new(), Vec::new());
    for (at, event) in events.iter().enumerate() {
        let group = Group::of(event);
        match event.kind.as_ref() {
            "wasm" => out.extend(action(prefix, event, at, group)),
            "instantiate" if !instantiated.contains(&group) => {
                // Later ones of the message are of contracts that this one instantiates: their messages are in no transaction.
                instantiated.push(group);
                whole.extend(first_balances(prefix, source, event, at, group, out));
            }
            _ => {}
        }
    }
    whole
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

/// Adds the balances in the message that instantiates a contract, which the contract emits no event for. `None` unless all
/// of them are there.
fn first_balances(
    prefix: &str,
    source: Source<'_>,
    event: &Event<'_>,
    at: usize,
    group: Group,
    out: &mut Vec<Placed>,
) -> Option<Token> {
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
    let parsed: Instantiate<'_> = serde_json::from_str(source.message(group)?.get()).ok()?;
    let is_instantiate = matches!(
        parsed.kind.as_ref(),
        "/cosmwasm.wasm.v1.MsgInstantiateContract" | "/cosmwasm.wasm.v1.MsgInstantiateContract2"
    );
    let token = Token::Cw20(contract(prefix, event).filter(|_| is_instantiate)?);
    let first = |balance: &Balance<'_>| {
        let holder = Account::from_bech32(&balance.address, prefix)?;
        Some(Placed::new(at, group, token.clone(), [None, Some(holder)], amount(&balance.amount)?))
    };
    let balances = &parsed.msg.initial_balances;
    let found: Vec<Placed> = balances.iter().filter_map(first).collect();
    let is_whole = found.len() == balances.len();
    out.extend(found);
    is_whole.then_some(token)
}
