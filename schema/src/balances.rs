//! Balances of chains without an EVM: what accounts held before the first block of the ledger, and the holders of each token
//! now. (On EVM chains [`crate::rich`] has them.)
//!
//! # Invariants
//!
//! * A balance is its base and the change by movements ([`crate::ledger::History`]). A base is the same at whatever height it
//!   was asked for, and on both sides of a fork.
//! * The holders are those of the height of [`RichLane`].

use std::collections::BTreeSet;

use chain::movement::{Token, denom_of_contract};
use chain::{Account, U256};
use store::{
    Bounds, Counts, Durability, Key as _, Message, Order, Snapshot, Store, Table as _, Txn, prefix_end,
};

use crate::Error;
use crate::index::{Index, Input, State};
use crate::keys::AccountKey;
use crate::ledger::{
    self, BalanceTotals, History, Holder, LEDGER, Movements, TokenMovements, has_balances, is_negative,
};
use crate::meta::{self, RichLane};
use crate::movement::{Place, TokenKey};
use crate::records::damaged;
use crate::supply::SupplyReplies;

/// The index: what a node was asked for, by a lane of its own.
pub const BALANCES: Index = Index {
    name: "balances",
    version: 1,
    tables: &[Bases::SPEC, AskedAccounts::SPEC, TokenHolders::SPEC, TokenStates::SPEC, SupplyReplies::SPEC],
    input: Input::Lane,
    needs_evm: false,
    replies: &[SupplyReplies::SPEC],
    rows: |_, _| Ok(()),
};

store::tables! {
    /// Balances before the first block of the ledger, apart from those of 0.
    ///
    /// | account (1 + 20 or 32) | token | → amount (big-endian, without leading zeros)
    pub table Bases("balance_base", 0x7a, Scan): (AccountKey, TokenKey) => Vec<u8>;

    /// Accounts whose balances a node has given. Not part of the digest: others had none.
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
    let is_known =
        !state.incomplete || is_listed && store::table::read::<AskedAccounts>(snapshot, &account)?.is_some();
    Ok(is_known.then_some((U256::ZERO, !state.drifting && (is_listed || state.proved))))
}

/// The first `limit` tokens behind `after` that `account` held before the first block, in the order of their keys.
pub fn tokens_before(
    snapshot: &dyn Snapshot,
    account: Account,
    after: Option<&TokenKey>,
    order: Order,
    limit: usize,
) -> Result<Vec<TokenKey>, Error> {
    let account = AccountKey(account);
    let rows = match after {
        None => store::table::rows::<Bases>(snapshot, &account, order, limit)?,
        Some(token) => {
            store::table::rows_after::<Bases>(snapshot, &account, &(account, token.clone()), order, limit)?
        }
    };
    Ok(rows.into_iter().map(|((_, token), _)| token).collect())
}

/// The denom of a token as the bank has named it.
pub fn denom_of(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<String>, Error> {
    let state = store::table::read::<TokenStates>(snapshot, &TokenKey(token.clone()))?;
    Ok(state.map(|Message(state)| state.denom).filter(|denom| !denom.is_empty()))
}

/// The bank's denom of a token.
pub fn denom_in_bank(snapshot: &dyn Snapshot, token: &Token) -> Result<String, Error> {
    let mut stored = ledger::denom_of(snapshot, token)?;
    if stored.is_none() {
        stored = denom_of(snapshot, token)?;
    }
    Ok(match token {
        Token::Denom(denom) => denom.clone(),
        Token::Asset(object) => stored.unwrap_or_else(|| format!("move/{}", hex::encode(object))),
        Token::Erc20(contract) => stored.unwrap_or_else(|| denom_of_contract(contract)),
        Token::Cw20(_) | Token::Erc721(_) | Token::Erc1155(_) | Token::Collection(_) | Token::Cw721(_) => {
            String::new()
        }
    })
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

/// What `account` holds after the block `height` if what is not known was nothing; `None` if that is negative.
fn held(
    snapshot: &dyn Snapshot,
    token: &Token,
    account: Account,
    height: u64,
) -> Result<Option<U256>, Error> {
    let history = History::of(snapshot, token, Holder(Some(account)))?;
    let change = history.until(height)?.unwrap_or_default().1;
    let base = store::table::read::<Bases>(snapshot, &(AccountKey(account), TokenKey(token.clone())))?;
    Ok(change.amount_after(number(&base.unwrap_or_default(), &AccountKey(account))?))
}

/// Writes what an account held before the first block, in tokens of the bank, and that it was asked.
pub fn put_bases(txn: &mut Txn<'_>, account: Account, bases: &[(Token, Base)]) -> Result<(), Error> {
    let account = AccountKey(account);
    if txn.get::<AskedAccounts>(&account)?.is_some() {
        return Ok(());
    }
    txn.put::<AskedAccounts>(&account, &());
    for (token, Base { amount, denom }) in bases {
        if amount.is_zero() && denom.is_empty() {
            continue;
        }
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

/// The first CW20 after `after` that is not known to be explained by movements.
pub fn next_unproved(snapshot: &dyn Snapshot, after: Option<&TokenKey>) -> Result<Option<TokenKey>, Error> {
    // One byte of its type is before its address.
    let first = TokenKey(Token::Cw20([0; 32])).to_bytes();
    let end = prefix_end(&first[..1]);
    let mut start = after.map_or(Some(first), |after| prefix_end(&after.to_bytes()));
    while let Some(from) = start {
        let bounds = Bounds { start: &from, end: end.as_deref() };
        let Some((key, value)) = snapshot.scan(BalanceTotals::SPEC, bounds, Order::Asc, 1)?.pop() else {
            break;
        };
        let ((token, _), _) = store::table::decode_row::<BalanceTotals>(&key, &value)?;
        if store::table::read::<TokenStates>(snapshot, &token)?.is_none() {
            return Ok(Some(token));
        }
        start = prefix_end(&token.to_bytes());
    }
    Ok(None)
}

/// Adds a CW20 whose supply is what its movements have minted: nothing of it was held before. `height` is the lane's.
pub fn add_proved(txn: &mut Txn<'_>, token: &TokenKey, height: u64) -> Result<(), Error> {
    txn.put::<TokenStates>(token, &Message(TokenState { proved: true, ..TokenState::default() }));
    let moved = store::table::rows::<BalanceTotals>(txn, token, Order::Asc, usize::MAX)?;
    for account in moved.into_iter().filter_map(|((_, Holder(account)), _)| account) {
        let amount = held(txn, &token.0, account, height)?;
        move_holder(txn, token, AccountKey(account), (None, amount))?;
    }
    Ok(())
}

/// Remembers that balances of a token change without movements; of an ERC-20 too.
pub fn mark_drifting(txn: &mut Txn<'_>, token: &Token) -> Result<(), Error> {
    let token = TokenKey(token.clone());
    let state = txn.get::<TokenStates>(&token)?.map_or_else(TokenState::default, |Message(state)| state);
    if !state.drifting {
        txn.put::<TokenStates>(&token, &Message(TokenState { drifting: true, ..state }));
    }
    Ok(())
}

/// True if balances of a token change without movements.
pub fn is_drifting(snapshot: &dyn Snapshot, token: &Token) -> Result<bool, Error> {
    let state = store::table::read::<TokenStates>(snapshot, &TokenKey(token.clone()))?;
    Ok(state.is_some_and(|Message(state)| state.drifting))
}

/// Removes a token that has not moved up to the block `to`, and that nothing was held of before.
fn remove_new_token(txn: &mut Txn<'_>, token: &Token, to: u64) -> Result<(), Error> {
    let token = TokenKey(token.clone());
    let Some(Message(state)) = txn.get::<TokenStates>(&token)? else { return Ok(()) };
    let len = LEDGER.state(txn)?.map_or(0, |state| state.numbered);
    let moved = store::list::get::<TokenMovements>(txn, &token, 0)?;
    let last = ledger::position(txn, len, to.saturating_add(1), Place::Begin)?;
    if state.denom.is_empty() && moved.is_some_and(|first| first > last) {
        txn.delete::<TokenStates>(&token);
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
    let changed = changed(txn, (from.min(to), from.max(to)))?;
    for (token, account) in &changed {
        if to > from {
            add_token(txn, token)?;
        }
        if txn.get::<TokenStates>(&TokenKey(token.clone()))?.is_none() {
            continue;
        }
        let at = |height| held(txn, token, *account, height);
        let both = (at(from)?, at(to)?);
        move_holder(txn, &TokenKey(token.clone()), AccountKey(*account), both)?;
    }
    for (token, _) in changed.iter().filter(|_| to < from) {
        remove_new_token(txn, token, to)?;
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
