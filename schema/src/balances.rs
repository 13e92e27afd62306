//! Balances of chains without an EVM: what accounts held before the first block of the ledger, and the holders of each token
//! now. (On EVM chains [`crate::rich`] has them.)
//!
//! # Invariants
//!
//! * A balance is its base and the change by movements ([`crate::ledger::History`]). A base is the same at whatever height it
//!   was asked for, and on both sides of a fork.
//! * The holders are those of the height of [`RichLane`].

use std::collections::BTreeSet;

use chain::movement::Token;
use chain::{Account, U256};
use store::{Counts, Durability, Message, Order, Snapshot, Store, Table as _, Txn};

use crate::Error;
use crate::index::{Index, Input, State};
use crate::keys::AccountKey;
use crate::ledger::{self, Change, History, Holder, LEDGER, Movements, has_balances, is_negative};
use crate::meta::{self, RichLane};
use crate::movement::{Place, TokenKey};
use crate::records::damaged;

/// The index: what a node was asked for, by a lane of its own.
pub const BALANCES: Index = Index {
    name: "balances",
    version: 1,
    tables: &[Bases::SPEC, AskedAccounts::SPEC, TokenHolders::SPEC, TokenStates::SPEC],
    input: Input::Lane,
    needs_evm: false,
    rows: |_, _| Ok(()),
};

store::tables! {
    /// Balances before the first block of the ledger, apart from those of 0.
    ///
    /// | account (1 + 20 or 32) | token | → amount (big-endian, without leading zeros)
    pub table Bases("balance_base", 0x7a, Scan): (AccountKey, TokenKey) => Vec<u8>;

    /// Accounts whose balances a node has told. Not part of the digest: others had none.
    ///
    /// | account (1 + 20 or 32) | → nothing
    pub table AskedAccounts("balance_asked", 0x7b, Point): AccountKey => ();

    /// Holders of a token by amount.
    ///
    /// | token | amount (32, BE) | account (1 + 20 or 32) | → nothing
    pub set TokenHolders("token_holder", 0x7c): TokenKey, ([u8; 32], AccountKey) => ();

    /// Tokens with holders.
    ///
    /// | token | → [`TokenState`] (protobuf)
    pub table TokenStates("balance_token", 0x7d, Point): TokenKey => Message<TokenState>;
}

/// What is known of a token's balances.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct TokenState {
    /// The known balances add up to another amount than its supply, so there are other holders.
    #[prost(bool, tag = "1")]
    pub incomplete: bool,
    /// They add up to its supply, so there is no other holder.
    #[prost(bool, tag = "2")]
    pub proved: bool,
    /// Balances change without movements.
    #[prost(bool, tag = "3")]
    pub drifting: bool,
    /// The sum of its bases (big-endian, without leading zeros).
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "4")]
    pub bases: Vec<u8>,
    /// Its denom as the bank writes it, if an account held some at the baseline.
    #[prost(string, tag = "5")]
    pub denom: String,
}

/// What an account held of a token before the first block.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// The amount.
    pub amount: U256,
    /// The denom, if the bank named it.
    pub denom: String,
}

/// The balance of `account` in `token` before the first block, and whether it is certain; `None` if it is not known.
pub fn base(snapshot: &dyn Snapshot, token: &Token, account: Account) -> Result<Option<(U256, bool)>, Error> {
    let (token, account) = (TokenKey(token.clone()), AccountKey(account));
    // Until all accounts are asked, a missing base may be another one than 0.
    if meta::read::<RichLane>(snapshot)?.is_none_or(|lane| !lane.next_accounts.is_empty()) {
        return Ok(None);
    }
    let Some(Message(state)) = store::table::read::<TokenStates>(snapshot, &token)? else { return Ok(None) };
    if let Some(amount) = store::table::read::<Bases>(snapshot, &(account, token.clone()))? {
        return Ok(Some((number(&amount, &account)?, !state.drifting)));
    }
    // On Move an account of 32 bytes may be a store of an object, of which the bank tells nothing.
    let is_listed = !matches!(token.0, Token::Asset(_)) || account.0.as_bytes().len() == 20;
    let is_told =
        !state.incomplete || is_listed && store::table::read::<AskedAccounts>(snapshot, &account)?.is_some();
    Ok(is_told.then_some((U256::ZERO, !state.drifting && (is_listed || state.proved))))
}

/// The tokens that `account` held before the first block; at most `limit`.
pub fn tokens_before(
    snapshot: &dyn Snapshot,
    account: Account,
    limit: usize,
) -> Result<Vec<TokenKey>, Error> {
    let rows = store::table::rows::<Bases>(snapshot, &AccountKey(account), Order::Asc, limit)?;
    Ok(rows.into_iter().map(|((_, token), _)| token).collect())
}

/// The denom of a token as the bank has named it.
pub fn denom_of(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<String>, Error> {
    let state = store::table::read::<TokenStates>(snapshot, &TokenKey(token.clone()))?;
    Ok(state.map(|Message(state)| state.denom).filter(|denom| !denom.is_empty()))
}

/// True for tokens whose balances the bank tells.
pub fn is_of_bank(token: &Token) -> bool {
    matches!(token, Token::Asset(_) | Token::Denom(_))
}

fn number(amount: &[u8], account: &AccountKey) -> Result<U256, Error> {
    U256::try_from_be_slice(amount).ok_or_else(|| Error::Record {
        table: Bases::SPEC.name,
        key: hex::encode(account.0.as_bytes()),
        reason: "an amount has more than 256 bits".to_owned(),
    })
}

/// The balance of `account` at `height`, as far as it is known and not negative.
pub fn balance(
    snapshot: &dyn Snapshot,
    token: &Token,
    account: Account,
    height: u64,
) -> Result<Option<U256>, Error> {
    let history = History::of(snapshot, token, Holder(Some(account)))?;
    let change = history.until(height)?.map_or_else(Change::default, |(_, change)| change);
    Ok(base(snapshot, token, account)?.and_then(|(base, _)| change.amount_after(base)))
}

/// Writes what an account held before the first block, in tokens of the bank, and that it was asked.
pub fn put_bases(txn: &mut Txn<'_>, account: Account, bases: &[(Token, Base)]) -> Result<(), Error> {
    let account = AccountKey(account);
    if txn.get::<AskedAccounts>(&account)?.is_some() {
        return Ok(());
    }
    txn.put::<AskedAccounts>(&account, &());
    for (token, Base { amount, denom }) in bases {
        let token = TokenKey(token.clone());
        let mut state =
            txn.get::<TokenStates>(&token)?.map_or_else(TokenState::default, |Message(state)| state);
        if is_negative(*amount) {
            state.drifting = true;
        } else if !amount.is_zero() {
            state.bases = sum_of_bases(&state).wrapping_add(*amount).to_be_bytes_trimmed_vec();
            txn.put::<Bases>(&(account, token.clone()), &amount.to_be_bytes_trimmed_vec());
        }
        if state.denom.is_empty() {
            state.denom.clone_from(denom);
        }
        txn.put::<TokenStates>(&token, &Message(state));
    }
    Ok(())
}

/// The sum of the bases of a token.
pub fn sum_of_bases(state: &TokenState) -> U256 {
    U256::try_from_be_slice(&state.bases).unwrap_or_default()
}

/// Adds a token of the bank whose first movement is seen: nothing of it was held before.
pub fn add_token(txn: &mut Txn<'_>, token: &Token) -> Result<(), Error> {
    let token = TokenKey(token.clone());
    if is_of_bank(&token.0) && txn.get::<TokenStates>(&token)?.is_none() {
        txn.put::<TokenStates>(&token, &Message(TokenState::default()));
    }
    Ok(())
}

/// Changes the place of a holder.
pub fn move_holder(
    txn: &mut Txn<'_>,
    token: &TokenKey,
    account: AccountKey,
    (before, after): (Option<U256>, Option<U256>),
) -> Result<(), Error> {
    if before == after {
        return Ok(());
    }
    if let Some(amount) = before.filter(|amount| !amount.is_zero()) {
        txn.remove::<TokenHolders>(token, &(amount.to_be_bytes(), account))?;
    }
    if let Some(amount) = after.filter(|amount| !amount.is_zero()) {
        txn.insert::<TokenHolders>(token, &(amount.to_be_bytes(), account), &())?;
    }
    Ok(())
}

/// The balances that the blocks after `from` up to `to` have changed.
pub fn changed(snapshot: &dyn Snapshot, (from, to): (u64, u64)) -> Result<BTreeSet<(Token, Account)>, Error> {
    let len = LEDGER.state(snapshot)?.map_or(0, |state| state.numbered);
    let before = |height| ledger::position(snapshot, len, height, Place::Begin);
    let (mut next, end) = (before(from.saturating_add(1))? + 1, before(to.saturating_add(1))?);
    let mut found = BTreeSet::new();
    while next <= end {
        let first = ledger::row_of(next);
        let row = ledger::read_row(snapshot, first)?;
        if row.0.is_empty() {
            return Err(damaged::<Movements>(first, "the row is empty"));
        }
        let after = first + row.0.len() as u64;
        for (_, placed) in (first..=end).zip(&row.0).skip_while(|(number, _)| *number < next) {
            let movement = &placed.movement;
            if has_balances(&movement.token) {
                let sides = [movement.from, movement.to].into_iter().flatten();
                found.extend(sides.map(|account| (movement.token.clone(), account)));
            }
        }
        next = after;
    }
    Ok(found)
}

/// Moves the holders that the blocks after the lane's height up to `to`, or back from there, have changed, and the lane.
pub fn move_lane(txn: &mut Txn<'_>, mut lane: RichLane, to: u64) -> Result<(), Error> {
    let from = lane.height;
    for (token, account) in changed(txn, (from.min(to), from.max(to)))? {
        add_token(txn, &token)?;
        let at = |height| balance(txn, &token, account, height);
        let both = (at(from)?, at(to)?);
        move_holder(txn, &TokenKey(token), AccountKey(account), both)?;
    }
    lane.height = to;
    put_lane(txn, &lane);
    Ok(())
}

/// Writes the lane, and its height as that of the index.
pub fn put_lane(txn: &mut Txn<'_>, lane: &RichLane) {
    meta::put(txn, lane);
    BALANCES.put_state(
        txn,
        State { version: BALANCES.version, from: lane.baseline, height: lane.height, time: 0, numbered: 0 },
    );
}

/// Reverts the holders to those of `to`, if the lane is above it. Before the ledger is rewound.
pub(crate) fn rewind(store: &dyn Store, to: u64) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    if BALANCES.state(&*snapshot)?.is_none() {
        return Ok(());
    }
    let Some(lane) = meta::read::<RichLane>(&*snapshot)?.filter(|lane| lane.height > to) else {
        return Ok(());
    };
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    move_lane(&mut txn, lane, to)?;
    let (batch, _) = txn.finish();
    Ok(store.commit(batch, Durability::Buffered)?)
}
