//! What is known of a balance.

use chain::movement::Token;
use chain::{Account, U256};
use store::{Bounds, Key as _, Message, Order, RowCursor, Snapshot, Table as _, prefix_end};

use crate::Error;
use crate::balances::{self, TokenHolders};
use crate::keys::AccountKey;
use crate::ledger::{BalanceTotals, Change, History, Holder, is_negative};
use crate::meta::{self, RichLane};
use crate::movement::TokenKey;
use crate::rich::{self, Address, Balances, Erc20s};

/// A balance that is known at one height, and so at each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it was before the first block of the ledger, if movements tell all changes since.
    base: U256,
    /// False if they do not: the token changes balances without movements, or its contract tells none.
    is_exact: bool,
}

impl Known {
    /// What is known of the balance of `account` in `token`, which has this history.
    pub fn of(
        snapshot: &dyn Snapshot,
        token: &Token,
        account: Account,
        history: &History<'_>,
    ) -> Result<Option<Self>, Error> {
        if let Token::Erc20(contract) = token {
            // Movements to the zero address destroy the amount, though a contract may keep it there.
            let account = Address::try_from(account.as_bytes()).ok().filter(|account| *account != [0; 20]);
            return account
                .map_or(Ok(None), |account| Self::of_contract(snapshot, contract, &account, history));
        }
        Ok(balances::base(snapshot, token, account)?.map(|(base, is_exact)| Self { base, is_exact }))
    }

    /// The rich list knows it at its height.
    fn of_contract(
        snapshot: &dyn Snapshot,
        contract: &Address,
        account: &Address,
        history: &History<'_>,
    ) -> Result<Option<Self>, Error> {
        let lane: RichLane = meta::read(snapshot)?.unwrap_or_default();
        let state = store::table::read::<Erc20s>(snapshot, contract)?.filter(|_| lane.height > 0);
        // What the EVM sends of a coin is no movement of the ledger.
        let Some(Message(state)) = state.filter(|Message(state)| !state.coin) else { return Ok(None) };
        let held = rich::balance(snapshot, contract, account)?.or(state.complete.then_some([0; 32]));
        let Some(held) = held.map(U256::from_be_bytes) else { return Ok(None) };
        let change = history.until(lane.height)?.map_or_else(Change::default, |(_, change)| change);
        let base = change.taken_from(held);
        let is_drifting = state.drifting || balances::is_drifting(snapshot, &Token::Erc20(*contract))?;
        Ok(Some(Self { base, is_exact: !is_drifting && !state.silent && !is_negative(base) }))
    }

    /// The balance after a change since the first block; `None` if it would be negative.
    pub fn after(&self, change: Change) -> Option<U256> {
        change.amount_after(self.base)
    }

    /// True if it is the balance at every height.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// The accounts that may have held some of `token` at some height, each once: those of its movements, then those that hold some
/// without any.
pub fn ever_held<'a>(
    snapshot: &'a dyn Snapshot,
    token: &Token,
) -> impl Iterator<Item = Result<Account, Error>> + use<'a> {
    let key = TokenKey(token.clone());
    let moved = rows(snapshot, BalanceTotals::SPEC, &key.to_bytes()).filter_map(|row| {
        let row = row.and_then(|(key, value)| store::table::decode_row::<BalanceTotals>(&key, &value));
        row.map(|((_, Holder(account)), _)| account).transpose()
    });
    let others: Box<dyn Iterator<Item = Result<Account, store::Error>> + 'a> = match token {
        Token::Erc20(contract) => Box::new(rows(snapshot, Balances::SPEC, contract).map(|row| {
            let (key, value) = row?;
            let ((_, account), _) = store::table::decode_row::<Balances>(&key, &value)?;
            Ok(Account::from(account))
        })),
        _ => Box::new(rows(snapshot, TokenHolders::SPEC, &key.to_bytes()).map(|row| {
            let (key, value) = row?;
            let ((_, (_, AccountKey(account))), ()) = store::table::decode_row::<TokenHolders>(&key, &value)?;
            Ok(account)
        })),
    };
    let unmoved = others.filter_map(move |account| {
        let is_new = account.and_then(|account| {
            let total = (key.clone(), Holder(Some(account)));
            let moved = store::table::read::<BalanceTotals>(snapshot, &total)?;
            Ok(moved.is_none().then_some(account))
        });
        is_new.transpose()
    });
    moved.chain(unmoved).map(|account| account.map_err(Error::from))
}

fn rows<'a>(snapshot: &'a dyn Snapshot, table: &'static store::TableSpec, prefix: &[u8]) -> RowCursor<'a> {
    let end = prefix_end(prefix);
    RowCursor::new(snapshot, table, Bounds { start: prefix, end: end.as_deref() }, Order::Asc)
}
