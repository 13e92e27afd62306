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

/// Where contracts of an EVM chain send what they destroy.
const ZERO: Address = [0; 20];

/// A balance that is known at one height, and so at each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it was before the first block of the ledger, if movements tell all changes since.
    base: U256,
    /// False if they do not: the token changes balances without movements, or its contract tells none.
    is_exact: bool,
    /// Without a movement it is not known before this block: 0, or the one where a token that drifts was asked about.
    from: u64,
}

impl Known {
    /// What is known of the balance of `account` in `token`, which has this history.
    pub fn of(
        snapshot: &dyn Snapshot,
        token: &Token,
        account: Account,
        history: &History<'_>,
    ) -> Result<Option<Self>, Error> {
        let Token::Erc20(contract) = token else {
            let Some((base, is_exact)) = balances::base(snapshot, token, account)? else { return Ok(None) };
            let is_drifting = !is_exact && balances::is_drifting(snapshot, token)?;
            let lane: Option<RichLane> = if is_drifting { meta::read(snapshot)? } else { None };
            return Ok(Some(Self { base, is_exact, from: lane.unwrap_or_default().height }));
        };
        let Ok(address) = Address::try_from(account.as_bytes()) else { return Ok(None) };
        let known = Self::of_contract(snapshot, contract, &address, history)?;
        // What a contract itself sends to the zero address is logged as destroyed, though the contract may keep it there.
        Ok(known.filter(|known| address != ZERO || known.base.is_zero()))
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
        let is_exact = !is_drifting && !state.silent && !is_negative(base);
        Ok(Some(Self { base, is_exact, from: if is_drifting { lane.height } else { 0 } }))
    }

    /// The balance after the block `height`, up to which this was the last change ([`History::until`]); `None` if it is not known,
    /// or would be negative.
    pub fn at(&self, height: u64, last: Option<(u64, Change)>) -> Option<U256> {
        let change = match last {
            Some((_, change)) => change,
            None if height < self.from => return None,
            None => Change::default(),
        };
        change.amount_after(self.base)
    }

    /// True if it is the balance at every height.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }
}

/// True if the contract keeps other amounts at the zero address than movements tell: some of what they call destroyed, or less than
/// was sent there.
pub(crate) fn is_kept_at_zero(snapshot: &dyn Snapshot, contract: &Address) -> Result<bool, Error> {
    let lane: RichLane = meta::read(snapshot)?.unwrap_or_default();
    let held = rich::balance(snapshot, contract, &ZERO)?.map_or(U256::ZERO, U256::from_be_bytes);
    let history = History::of(snapshot, &Token::Erc20(*contract), Holder(Some(ZERO.into())))?;
    let change = history.until(lane.height)?.map_or_else(Change::default, |(_, change)| change);
    Ok(!change.taken_from(held).is_zero())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_that_drifts_is_unknown_before_its_first_movement() {
        let (base, change) = (U256::from(7), Change(U256::from(2)));
        let steady = Known { base, is_exact: true, from: 0 };
        let drifting = Known { base, is_exact: false, from: 10 };
        assert_eq!([1, 10].map(|height| steady.at(height, None)), [Some(base); 2]);
        assert_eq!([1, 9].map(|height| drifting.at(height, None)), [None; 2]);
        assert_eq!(drifting.at(10, None), Some(base), "the node was asked there");
        assert_eq!(drifting.at(5, Some((4, change))), Some(U256::from(9)));
    }
}
