//! The transfers of one block → balances.

use std::collections::BTreeMap;

use chain::U256;
use chain::erc20::Erc20Event;
use futures_util::StreamExt as _;
use schema::rich::{self, Address, Balances, Before, Denoms, DenomsFolded, Erc20, Erc20s, Newborns};
use store::key::Text;
use store::{Message, Txn};

use super::{AT_ONCE, Told, Worker};
use crate::Error;

/// What went into and out of an account in a block; `None` if it is more than 256 bits can count, which no honest token
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

    /// What an account holds after it that held `before`; `None` if that cannot be.
    pub(super) fn after(self, before: U256) -> Option<U256> {
        let (received, sent) = self.0?;
        // The sum may pass 256 bits on the way to what is left.
        if received >= sent {
            before.checked_add(received - sent)
        } else {
            before.checked_sub(sent - received)
        }
    }

    /// Like [`Flow::after`], for a token that cannot be asked: never below nothing.
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

/// Applies the events of `height`; `None` if the lane is to stop.
pub(super) fn apply(
    worker: &Worker,
    height: u64,
    events: &[Erc20Event],
    txn: &mut Txn<'_>,
) -> Result<Option<()>, Error> {
    let mut before = Before::default();
    for event in events {
        introduce(event, &mut before, txn)?;
    }
    let mut tokens: BTreeMap<Address, Erc20> = BTreeMap::new();
    let (mut settled, mut to_ask) = (Vec::new(), Vec::new());
    for ((contract, account), flow) in flows(events) {
        let token = match tokens.get_mut(&contract) {
            Some(token) => token,
            None => tokens
                .entry(contract)
                .or_insert(txn.get::<Erc20s>(&contract)?.map_or_else(Erc20::default, |Message(token)| token)),
        };
        let held = rich::balance(txn, &contract, &account)?.map(U256::from_be_bytes);
        match balance(token, held, flow) {
            Some(amount) => settled.push((contract, account, amount)),
            None => {
                if held.is_some() || token.complete {
                    drifts(token, &contract, height, "more went out of an account than it held");
                }
                to_ask.push((contract, account, held, flow));
            }
        }
    }
    let asked = futures_util::stream::iter(to_ask).map(|(contract, account, held, flow)| async move {
        let told = worker.balance(&contract, &account, height).await?;
        Ok::<_, Error>((contract, account, held, flow, told))
    });
    let Some(answers) = worker.wait_for(asked.buffered(AT_ONCE).collect::<Vec<_>>()) else { return Ok(None) };
    for answer in answers {
        let (contract, account, held, flow, told) = answer?;
        let token = tokens.entry(contract).or_default();
        let amount = match told {
            Told::Exactly(amount) => amount,
            Told::Latest(amount) => {
                drifts(token, &contract, height, "the node has forgotten its balances of this height");
                amount
            }
            Told::Nothing => {
                token.silent = true;
                flow.at_least_nothing(held.unwrap_or_default())
            }
        };
        settled.push((contract, account, amount));
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

/// What an account holds after `flow`, if that can be added up.
fn balance(token: &Erc20, held: Option<U256>, flow: Flow) -> Option<U256> {
    if token.silent {
        return Some(flow.at_least_nothing(held.unwrap_or_default()));
    }
    let held = held.or(token.complete.then_some(U256::ZERO))?;
    flow.after(held).filter(|_| !token.drifting)
}

fn drifts(token: &mut Erc20, contract: &Address, height: u64, reason: &str) {
    if !token.drifting {
        super::reconcile::count_drift();
        let contract = hex(contract);
        tracing::warn!(contract, height, reason, "balances of a token drift: they are asked for from now on");
    }
    token.drifting = true;
}

/// What an event makes known about contracts and denoms.
fn introduce(event: &Erc20Event, before: &mut Before, txn: &mut Txn<'_>) -> Result<(), Error> {
    match event {
        Erc20Event::Contract { contract } => {
            if txn.get::<Erc20s>(contract)?.is_none() {
                before.note::<Newborns>(txn, contract)?;
                txn.put::<Newborns>(contract, &());
            }
        }
        Erc20Event::Denom { denom, contract } => {
            know_token(contract, before, txn)?;
            know_denom(denom, contract, before, txn)?;
        }
        Erc20Event::Transfer { contract, .. } => know_token(contract, before, txn)?,
    }
    Ok(())
}

/// A contract is an ERC-20. If it was made since the list began, all of its holders will be known.
fn know_token(contract: &Address, before: &mut Before, txn: &mut Txn<'_>) -> Result<(), Error> {
    if txn.get::<Erc20s>(contract)?.is_some() {
        return Ok(());
    }
    let complete = txn.get::<Newborns>(contract)?.is_some();
    if complete {
        before.note::<Newborns>(txn, contract)?;
        txn.delete::<Newborns>(contract);
    }
    put_token(contract, &Erc20 { complete, ..Erc20::default() }, before, txn)
}

/// A bank denom has a contract.
pub(super) fn know_denom(
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

/// Makes `account` a holder of `amount`. Nothing needs no row where whoever has none holds nothing.
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
mod tests {
    use super::*;

    fn transfer(from: u8, to: u8, amount: u64) -> Erc20Event {
        Erc20Event::Transfer { contract: [9; 20], from: [from; 20], to: [to; 20], amount: U256::from(amount) }
    }

    fn after(events: &[Erc20Event], account: u8, before: u64) -> Option<U256> {
        flows(events).get(&([9; 20], [account; 20])).copied().unwrap_or_default().after(U256::from(before))
    }

    #[test]
    fn a_block_is_added_up_per_account_whatever_the_order() {
        let events = [transfer(1, 2, 7), transfer(2, 1, 3), transfer(0, 1, 5), transfer(2, 0, 1)];
        assert_eq!(after(&events, 1, 4), Some(U256::from(4 - 7 + 3 + 5)));
        assert_eq!(after(&events, 2, 0), Some(U256::from(3)));
        assert_eq!(flows(&events).len(), 2, "the zero address holds nothing");
    }

    #[test]
    fn a_transfer_to_oneself_changes_nothing() {
        assert_eq!(after(&[transfer(1, 1, 50)], 1, 8), Some(U256::from(8)));
    }

    #[test]
    fn more_out_than_in_and_more_than_256_bits_cannot_be() {
        assert_eq!(after(&[transfer(1, 2, 9)], 1, 8), None);
        let mut flow = Flow::default();
        flow.add(U256::MAX, true);
        assert_eq!(flow.after(U256::from(1)), None);
        flow.add(U256::from(1), true);
        assert_eq!(flow.after(U256::ZERO), None);
        assert_eq!(flow.at_least_nothing(U256::from(1)), U256::ZERO);
    }

    #[test]
    fn a_balance_is_added_up_only_from_a_known_one() {
        let flow = flows(&[transfer(0, 1, 5)])[&([9; 20], [1; 20])];
        let (unknown, complete) = (Erc20::default(), Erc20 { complete: true, ..Erc20::default() });
        let drifting = Erc20 { drifting: true, ..complete.clone() };
        let silent = Erc20 { silent: true, ..Erc20::default() };
        let ten = Some(U256::from(10));
        assert_eq!(balance(&unknown, None, flow), None);
        assert_eq!(balance(&unknown, ten, flow), Some(U256::from(15)));
        assert_eq!(balance(&complete, None, flow), Some(U256::from(5)));
        assert_eq!(balance(&drifting, ten, flow), None);
        assert_eq!(balance(&silent, None, flow), Some(U256::from(5)));
    }
}
