//! Balance changes: the transfers of one block → balances.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use chain::U256;
use chain::erc20::Erc20Event;
use schema::rich::{self, Address, Balances, Before, Denoms, DenomsFolded, Erc20, Erc20s, NewContracts};
use store::key::Text;
use store::{Message, Txn};

use super::BalanceAnswer;
use crate::Error;
use crate::meter::Event;

/// The amounts that an account received and sent in a block; `None` if a sum exceeds 256 bits, which no honest token
/// does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow(Option<(U256, U256)>);

impl Default for Flow {
    fn default() -> Self {
        Self(Some((U256::ZERO, U256::ZERO)))
    }
}

impl Flow {
    fn add(&mut self, amount: U256, into: bool) {
        self.0 = self.0.and_then(|(received, sent)| {
            Some(if into {
                (received.checked_add(amount)?, sent)
            } else {
                (received, sent.checked_add(amount)?)
            })
        });
    }

    /// The balance after this flow, from the balance `before`; `None` if that is impossible.
    pub(super) fn after(self, before: U256) -> Option<U256> {
        let (received, sent) = self.0?;
        // The intermediate sum may exceed 256 bits.
        if received >= sent {
            before.checked_add(received - sent)
        } else {
            before.checked_sub(sent - received)
        }
    }

    /// Like [`Flow::after`], for a token that cannot be queried: zero if impossible.
    fn at_least_nothing(self, before: U256) -> U256 {
        self.after(before).unwrap_or(U256::ZERO)
    }
}

/// The flows of a block, by contract and account; the zero address, where tokens come from and go to, holds nothing.
pub(super) fn flows(events: &[Erc20Event]) -> BTreeMap<(Address, Address), Flow> {
    let mut flows: BTreeMap<(Address, Address), Flow> = BTreeMap::new();
    for event in events {
        if let Erc20Event::Transfer { contract, from, to, amount } = event {
            for (account, into) in [(from, false), (to, true)] {
                if *account != [0; 20] {
                    flows.entry((*contract, *account)).or_default().add(*amount, into);
                }
            }
        }
    }
    flows
}

/// A balance that cannot be computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToAsk {
    pub(super) contract: Address,
    pub(super) account: Address,
    held: Option<U256>,
    flow: Flow,
}

/// Applies the events of `height`. `ask` returns the contracts' answers at that height, in the order of its argument;
/// `None` from it means stop, and is returned.
pub(super) fn apply(
    height: u64,
    events: &[Erc20Event],
    txn: &mut Txn<'_>,
    ask: impl FnOnce(&[ToAsk]) -> Result<Option<Vec<BalanceAnswer>>, Error>,
) -> Result<Option<()>, Error> {
    let mut before = Before::default();
    for event in events {
        apply_metadata(event, &mut before, txn)?;
    }
    let mut tokens: BTreeMap<Address, Erc20> = BTreeMap::new();
    let (mut settled, mut to_ask, mut drifting) = (Vec::new(), Vec::new(), Vec::new());
    for ((contract, account), flow) in flows(events) {
        let token = match tokens.entry(contract) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unread) => {
                let stored = txn.get::<Erc20s>(&contract)?;
                unread.insert(stored.map_or_else(Erc20::default, |Message(token)| token))
            }
        };
        let held = rich::balance(txn, &contract, &account)?.map(U256::from_be_bytes);
        if let Some(amount) = balance(token, held, flow) {
            settled.push((contract, account, amount));
            continue;
        }
        if held.is_some() || token.complete {
            drifting.extend(drifts(token, contract, "more went out of an account than it held"));
        }
        to_ask.push(ToAsk { contract, account, held, flow });
    }
    let Some(answers) = ask(&to_ask)? else { return Ok(None) };
    for (asked, answer) in to_ask.into_iter().zip(answers) {
        let token = tokens.entry(asked.contract).or_default();
        let amount = match answer {
            BalanceAnswer::AtHeight(amount) => amount,
            BalanceAnswer::Latest(amount) => {
                let reason = "the node has forgotten its balances of this height";
                drifting.extend(drifts(token, asked.contract, reason));
                amount
            }
            BalanceAnswer::NoAnswer => {
                token.silent = true;
                asked.flow.at_least_nothing(asked.held.unwrap_or_default())
            }
        };
        settled.push((asked.contract, asked.account, amount));
    }
    for (contract, reason) in drifting {
        Event::Drift.count();
        let contract = hex(&contract);
        tracing::warn!(contract, height, reason, "balances of a token drift: they are asked for from now on");
    }
    for (contract, token) in &tokens {
        put_token(contract, token, &mut before, txn)?;
    }
    for (contract, account, amount) in settled {
        let known_without = tokens.get(&contract).is_some_and(|token| token.complete);
        put_balance(&contract, &account, amount, known_without, &mut before, txn)?;
    }
    rich::put_undo(txn, height, before)?;
    Ok(Some(()))
}

/// The balance after `flow`, if it can be computed.
fn balance(token: &Erc20, held: Option<U256>, flow: Flow) -> Option<U256> {
    if token.silent {
        return Some(flow.at_least_nothing(held.unwrap_or_default()));
    }
    let held = held.or(token.complete.then_some(U256::ZERO))?;
    flow.after(held).filter(|_| !token.drifting)
}

/// Marks a token as drifting; returns the contract and the reason if it was not marked before. They are logged only
/// when the block is applied, which may take a second attempt.
fn drifts(token: &mut Erc20, contract: Address, reason: &'static str) -> Option<(Address, &'static str)> {
    let before = std::mem::replace(&mut token.drifting, true);
    (!before).then_some((contract, reason))
}

/// Records the contracts and denoms that an event reveals.
fn apply_metadata(event: &Erc20Event, before: &mut Before, txn: &mut Txn<'_>) -> Result<(), Error> {
    match event {
        Erc20Event::Contract { contract } => {
            if txn.get::<Erc20s>(contract)?.is_none() {
                before.note::<NewContracts>(txn, contract)?;
                txn.put::<NewContracts>(contract, &());
            }
        }
        Erc20Event::Denom { denom, contract } => {
            register_token(contract, before, txn)?;
            register_denom(denom, contract, before, txn)?;
        }
        Erc20Event::Transfer { contract, .. } => register_token(contract, before, txn)?,
    }
    Ok(())
}

/// Registers a contract as an ERC-20. If it was created since the list began, all of its holders will be known.
fn register_token(contract: &Address, before: &mut Before, txn: &mut Txn<'_>) -> Result<(), Error> {
    if txn.get::<Erc20s>(contract)?.is_some() {
        return Ok(());
    }
    let complete = txn.get::<NewContracts>(contract)?.is_some();
    if complete {
        before.note::<NewContracts>(txn, contract)?;
        txn.delete::<NewContracts>(contract);
    }
    put_token(contract, &Erc20 { complete, ..Erc20::default() }, before, txn)
}

/// Registers the contract of a bank denom.
pub(super) fn register_denom(
    denom: &str,
    contract: &Address,
    before: &mut Before,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    let exact = Text(denom.to_owned());
    let folded = (Text(denom.to_lowercase()), exact.clone());
    before.note::<Denoms>(txn, &exact)?;
    before.note::<DenomsFolded>(txn, &folded)?;
    txn.put::<Denoms>(&exact, &contract.to_vec());
    txn.put::<DenomsFolded>(&folded, &());
    Ok(())
}

pub(super) fn put_token(
    contract: &Address,
    token: &Erc20,
    before: &mut Before,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    let stored = txn.get::<Erc20s>(contract)?.map(|Message(token)| token);
    if stored.as_ref() != Some(token) {
        before.note::<Erc20s>(txn, contract)?;
        txn.put::<Erc20s>(contract, &Message(token.clone()));
    }
    Ok(())
}

/// Sets the balance of `account`. Zero needs no row for a token whose holders are all known.
pub(super) fn put_balance(
    contract: &Address,
    account: &Address,
    amount: U256,
    known_without: bool,
    before: &mut Before,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    before.note::<Balances>(txn, &(*contract, *account))?;
    let row = Some(amount.to_be_bytes()).filter(|_| !(known_without && amount.is_zero()));
    Ok(rich::set_balance(txn, contract, account, row)?)
}

/// An address as the log shows it.
pub(super) fn hex(address: &Address) -> String {
    address.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests;
