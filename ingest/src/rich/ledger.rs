//! Balance changes: the transfers of a block → balances. Planned without writes, so that unknown balances can be
//! requested before the block is applied. The balances of the blocks of a commit are written together, so a busy holder
//! moves once in the list of holders.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use chain::evm::coin;
use chain::evm::erc20::Erc20Event;
use chain::{Account, U256};
use schema::keys::AccountKey;
use schema::nft::{Collections, Refusals};
use schema::rich::{self, Address, Balances, Denoms, DenomsFolded, Erc20, Erc20s, NewContracts, UndoBuilder};
use store::key::Text;
use store::{Message, Snapshot, Txn};

use super::flow::{Flow, ZERO, coin_flows, flows};
use super::lane::BalanceReply;
use crate::Error;
use crate::meter::Event;

/// A balance that cannot be computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownBalance {
    pub(super) contract: Address,
    pub(super) account: Address,
    held: Option<U256>,
    /// `None` if only the contract can tell.
    flow: Option<Flow>,
}

impl UnknownBalance {
    /// True if the index continues without a reply, and reconciliation finds out later: anyone can make a contract that
    /// the node cannot call log an account.
    pub(super) fn is_optional(&self) -> bool {
        self.flow.is_none()
    }
}

/// The changes of one block.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Contracts that the block creates, unless it also shows that they are ERC-20s.
    created: BTreeSet<Address>,
    denoms: Vec<(String, Address)>,
    /// The contracts of coins that a bank keeps, by denom.
    pub(super) coins: BTreeMap<String, Address>,
    tokens: BTreeMap<Address, Erc20>,
    /// Contracts that are tokens if they tell a balance.
    candidates: BTreeMap<Address, Erc20>,
    /// Contract, account and balance.
    balances: Vec<(Address, Address, U256)>,
    /// Balances that the contracts must be queried for.
    pub(super) unknown: Vec<UnknownBalance>,
    /// Tokens that turn out to be drifting, with the reason.
    drifting: Vec<(Address, &'static str)>,
}

/// The balances that the blocks of one commit leave.
#[derive(Default)]
pub(super) struct Group {
    /// The amount, and whether all holders of its token are known.
    balances: BTreeMap<(Address, Address), (U256, bool)>,
    before: UndoBuilder,
}

/// Bytes of the rows of one balance, about: the balance, the holder before and now, and the undo record.
const BALANCE_BYTES: usize = 320;

impl Group {
    /// The stored balance, or the one that an earlier block of the group leaves.
    fn balance(
        &self,
        snapshot: &dyn Snapshot,
        contract: &Address,
        account: &Address,
    ) -> Result<Option<U256>, Error> {
        match self.balances.get(&(*contract, *account)) {
            Some((amount, complete)) => Ok(Some(*amount).filter(|_| !has_no_row(*amount, *complete))),
            None => Ok(rich::balance(snapshot, contract, account)?.map(U256::from_be_bytes)),
        }
    }

    /// Bytes of the rows that [`Group::finish`] writes, about.
    pub(super) fn bytes(&self) -> usize {
        self.balances.len() * BALANCE_BYTES
    }

    /// Writes the balances and the undo record of `heights`.
    pub(super) fn finish(self, heights: RangeInclusive<u64>, txn: &mut Txn<'_>) -> Result<(), Error> {
        let Self { balances, mut before } = self;
        for ((contract, account), (amount, complete)) in balances {
            put_balance(&contract, &account, amount, complete, &mut before, txn)?;
        }
        Ok(rich::put_undo(txn, heights, before)?)
    }
}

/// Plans the changes by `events` after the blocks of `group`, without writing; `native` is the native coin of a chain whose bank
/// keeps balances itself.
pub(super) fn plan(
    snapshot: &dyn Snapshot,
    group: &Group,
    events: &[Erc20Event],
    native: Option<&str>,
) -> Result<Plan, Error> {
    let mut plan = Plan::default();
    let mut asked = BTreeSet::new();
    if let Some(native) = native {
        plan.add_coins(events, native, snapshot)?;
    }
    for event in events {
        match event {
            Erc20Event::Contract { contract } => {
                let is_token = plan.tokens.contains_key(contract)
                    || store::table::read::<Erc20s>(snapshot, contract)?.is_some();
                plan.created.extend((!is_token).then_some(*contract));
            }
            Erc20Event::Denom { denom, contract } => {
                plan.add_token(contract, snapshot)?;
                plan.denoms.push((denom.clone(), *contract));
            }
            Erc20Event::Transfer { contract, to, .. } => {
                plan.add_token(contract, snapshot)?;
                if plan.is_coin(contract) {
                    continue;
                }
                asked.extend((*to == ZERO).then_some((*contract, ZERO)));
            }
            Erc20Event::Touched { contract, account, like_nft } => {
                if plan.may_be_token(contract, *like_nft, snapshot)? && !plan.is_coin(contract) {
                    asked.insert((*contract, *account));
                }
            }
            Erc20Event::Active { .. }
            | Erc20Event::Coin { .. }
            | Erc20Event::ValuesInEvents
            | Erc20Event::Untraced => {}
        }
    }
    // The logs of a coin only repeat what the bank does.
    let of_logs = flows(events).into_iter().filter(|((contract, _), _)| !plan.is_coin(contract));
    let mut flows: BTreeMap<_, _> =
        of_logs.chain(coin_flows(events, &plan.coins)).map(|(of, flow)| (of, Some(flow))).collect();
    for of in &asked {
        flows.entry(*of).or_insert(None);
    }
    for ((contract, account), flow) in flows {
        let held = group.balance(snapshot, &contract, &account)?;
        let unknown = UnknownBalance { contract, account, held, flow };
        let Some(token) = plan.tokens.get_mut(&contract) else {
            plan.unknown.push(unknown);
            continue;
        };
        if asked.contains(&(contract, account)) && !token.silent {
            plan.unknown.push(unknown);
            continue;
        }
        let Some(flow) = flow else { continue };
        if let Some(amount) = balance(token, held, flow) {
            plan.balances.push((contract, account, amount));
            continue;
        }
        if held.is_some() || token.complete {
            plan.drifting.extend(drifts(token, contract, "more went out of an account than it held"));
        }
        plan.unknown.push(unknown);
    }
    Ok(plan)
}

impl Plan {
    /// Adds the coins that `events` move.
    fn add_coins(
        &mut self,
        events: &[Erc20Event],
        native: &str,
        snapshot: &dyn Snapshot,
    ) -> Result<(), Error> {
        let is_untraced = events.contains(&Erc20Event::Untraced);
        let listed = store::table::read::<Erc20s>(snapshot, &coin::NATIVE)?;
        let began_with_all = listed.is_some_and(|Message(token)| token.coin && token.complete);
        let denoms = events.iter().filter_map(|event| match event {
            Erc20Event::Coin { denom, .. } => Some(denom.as_str()),
            _ => None,
        });
        for denom in denoms.chain(is_untraced.then_some(native)) {
            let Some(contract) = coin::contract_of(denom, native).filter(|_| !self.coins.contains_key(denom))
            else {
                continue;
            };
            self.coins.insert(denom.to_owned(), contract);
            self.add_token(&contract, snapshot)?;
            let Some(token) = self.tokens.get_mut(&contract) else { continue };
            if !token.coin {
                // Where the list began with all coins, it did not exist before.
                (token.coin, token.complete) = (true, began_with_all);
                self.denoms.push((denom.to_owned(), contract));
            }
            if is_untraced && denom == native {
                self.drifting.extend(drifts(
                    token,
                    contract,
                    "transactions have no calls, which tell what they sent",
                ));
            }
        }
        Ok(())
    }

    fn is_coin(&self, contract: &Address) -> bool {
        self.tokens.get(contract).is_some_and(|token| token.coin)
    }

    /// Adds a token.
    fn add_token(&mut self, contract: &Address, snapshot: &dyn Snapshot) -> Result<(), Error> {
        if !self.tokens.contains_key(contract) {
            let stored = store::table::read::<Erc20s>(snapshot, contract)?;
            let token = match stored {
                Some(Message(token)) => token,
                None => self.new_token(contract, snapshot)?,
            };
            self.tokens.insert(*contract, token);
        }
        self.created.remove(contract);
        Ok(())
    }

    /// A token without a row. If it was created since the list began, all of its holders will be known.
    fn new_token(&self, contract: &Address, snapshot: &dyn Snapshot) -> Result<Erc20, Error> {
        let complete = self.created.contains(contract)
            || store::table::read::<NewContracts>(snapshot, contract)?.is_some();
        Ok(Erc20 { complete, ..Erc20::default() })
    }

    /// Whether a contract that tells a balance is a token, and no collection of NFTs; a new one is a candidate. The block
    /// lane has found out which contracts are collections, and which only log like one.
    fn may_be_token(
        &mut self,
        contract: &Address,
        like_nft: bool,
        snapshot: &dyn Snapshot,
    ) -> Result<bool, Error> {
        if self.tokens.contains_key(contract) || store::table::read::<Erc20s>(snapshot, contract)?.is_some() {
            self.add_token(contract, snapshot)?;
            return Ok(true);
        }
        let key = AccountKey(Account::from(*contract));
        let is_token = if like_nft {
            Refusals::read(snapshot, key)?.is_some()
        } else {
            store::table::read::<Collections>(snapshot, &key)?.is_none()
        };
        if is_token {
            let token = self.new_token(contract, snapshot)?;
            self.candidates.insert(*contract, token);
        }
        Ok(is_token)
    }
}

/// Writes the changes of `height` except for the balances, which it adds to `group`; `answers` are the contracts' answers
/// at that height for the plan's unknown balances, in the same order.
pub(super) fn write(
    height: u64,
    plan: Plan,
    answers: &[BalanceReply],
    group: &mut Group,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    let Plan { mut created, denoms, mut tokens, mut candidates, mut balances, unknown, mut drifting, .. } =
        plan;
    for (UnknownBalance { contract, account, held, flow }, answer) in unknown.into_iter().zip(answers) {
        // An optional one.
        if flow.is_none() && *answer == BalanceReply::NoReply {
            continue;
        }
        let token = tokens.entry(contract).or_insert_with(|| {
            created.remove(&contract);
            candidates.remove(&contract).unwrap_or_default()
        });
        let amount = match answer {
            BalanceReply::AtHeight(amount) => {
                let before = held.or(token.complete.then_some(U256::ZERO));
                let expected = before.and_then(|held| flow.unwrap_or_default().after(held));
                if account != ZERO && expected.is_some_and(|expected| expected != *amount) {
                    // Balances of other heights do not follow from movements.
                    schema::balances::mark_drifting(txn, &chain::movement::Token::Erc20(contract))?;
                }
                *amount
            }
            BalanceReply::Latest(amount) => {
                // What was sent to the zero address stays there, so the current amount is the one after the last event.
                if account != ZERO {
                    let reason = "the node has pruned its balances of this height";
                    drifting.extend(drifts(token, contract, reason));
                }
                *amount
            }
            BalanceReply::NoReply => {
                token.silent = true;
                flow.unwrap_or_default().after_or_zero(held.unwrap_or_default())
            }
        };
        balances.push((contract, account, amount));
    }
    for (contract, reason) in drifting {
        Event::Drift.count();
        tracing::warn!(
            contract = hex(&contract),
            height,
            reason,
            "token drifts: its balances are queried from now on"
        );
    }
    let before = &mut group.before;
    for contract in &created {
        before.record::<NewContracts>(txn, contract)?;
        txn.put::<NewContracts>(contract, &());
    }
    for (contract, token) in &tokens {
        put_token(contract, token, before, txn)?;
    }
    for (denom, contract) in &denoms {
        put_denom(denom, contract, before, txn)?;
    }
    for (contract, account, amount) in balances {
        let complete = account == ZERO || tokens.get(&contract).is_some_and(|token| token.complete);
        group.balances.insert((contract, account), (amount, complete));
    }
    Ok(())
}

/// The balance after `flow`, if it can be computed.
fn balance(token: &Erc20, held: Option<U256>, flow: Flow) -> Option<U256> {
    if token.silent {
        return Some(flow.after_or_zero(held.unwrap_or_default()));
    }
    let held = held.or(token.complete.then_some(U256::ZERO))?;
    flow.after(held).filter(|_| !token.drifting)
}

/// Marks a token as drifting; returns the contract and the reason if it was not marked before.
fn drifts(token: &mut Erc20, contract: Address, reason: &'static str) -> Option<(Address, &'static str)> {
    let before = std::mem::replace(&mut token.drifting, true);
    (!before).then_some((contract, reason))
}

/// Stores the contract of a bank denom.
pub(super) fn put_denom(
    denom: &str,
    contract: &Address,
    before: &mut UndoBuilder,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    let exact = Text(denom.to_owned());
    let folded = (Text(denom.to_lowercase()), exact.clone());
    before.record::<Denoms>(txn, &exact)?;
    before.record::<DenomsFolded>(txn, &folded)?;
    txn.put::<Denoms>(&exact, &contract.to_vec());
    txn.put::<DenomsFolded>(&folded, &());
    Ok(())
}

/// Stores a token, if it has changed; a new one is no longer an unclassified contract.
pub(super) fn put_token(
    contract: &Address,
    token: &Erc20,
    before: &mut UndoBuilder,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    let stored = txn.get::<Erc20s>(contract)?.map(|Message(token)| token);
    if stored.is_none() && txn.get::<NewContracts>(contract)?.is_some() {
        before.record::<NewContracts>(txn, contract)?;
        txn.delete::<NewContracts>(contract);
    }
    if stored.as_ref() != Some(token) {
        before.record::<Erc20s>(txn, contract)?;
        txn.put::<Erc20s>(contract, &Message(token.clone()));
    }
    Ok(())
}

/// Zero needs no row for a token whose holders are all known.
fn has_no_row(amount: U256, complete: bool) -> bool {
    complete && amount.is_zero()
}

/// Sets the balance of `account`.
pub(super) fn put_balance(
    contract: &Address,
    account: &Address,
    amount: U256,
    complete: bool,
    before: &mut UndoBuilder,
    txn: &mut Txn<'_>,
) -> Result<(), Error> {
    before.record::<Balances>(txn, &(*contract, *account))?;
    let row = Some(amount.to_be_bytes()).filter(|_| !has_no_row(amount, complete));
    Ok(rich::set_balance(txn, contract, account, row)?)
}

/// An address as the log shows it.
pub(crate) fn hex(address: &Address) -> String {
    format!("0x{}", hex::encode(address))
}

#[cfg(test)]
mod tests;
