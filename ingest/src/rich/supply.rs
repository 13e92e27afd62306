//! Check of a token's supply: balances are not negative, so if those of the known holders add up to the total supply,
//! there is no other holder. If they are less, the list of holders is incomplete; if they are more, one of them is wrong, or the
//! contract counts its supply in another way: in either case movements do not explain the token.

use std::hash::{BuildHasher as _, RandomState};

use chain::U256;
use schema::rich::{self, Address, Balances, Erc20s, UndoBuilder, amount_of};
use store::{Bounds, Message, Store, Table as _, prefix_end};

use super::ledger::{hex, put_token};
use crate::Error;
use crate::meter::Event;

/// Holders whose balances are added up in each check. A token with more of them is checked less often, in proportion.
const HOLDERS_PER_CHECK: u64 = 4096;

/// Compares the balances of the known holders with the `supply` at `height`, which is the lane's, and marks the token.
/// Returns whether they hold less than that.
pub(super) fn check(store: &dyn Store, contract: &Address, supply: U256, height: u64) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let holders = store::ranked::len::<rich::Holders>(&*snapshot, contract)?;
    if !RandomState::new().hash_one(height).is_multiple_of(holders / HOLDERS_PER_CHECK + 1) {
        return Ok(false);
    }
    let mut held = Some(U256::ZERO);
    let (start, end) = (contract.to_vec(), prefix_end(contract));
    let bounds = Bounds { start: &start, end: end.as_deref() };
    store::for_each_row(&*snapshot, Balances::SPEC, bounds, |_, row| {
        held = held.and_then(|held| held.checked_add(U256::from_be_bytes(amount_of(row)?)));
        Ok::<(), Error>(())
    })?;
    drop(snapshot);
    let complete = held == Some(supply);
    let exceeds = held.is_none_or(|held| held > supply);
    store::commit_rows::<Error>(store, store::Durability::Buffered, |txn| {
        let Some(Message(mut token)) = txn.get::<Erc20s>(contract)? else { return Ok(()) };
        let drifts = exceeds && !token.drifting;
        if token.complete == complete && !drifts {
            return Ok(());
        }
        token.complete = complete;
        token.drifting |= exceeds;
        let mut before = UndoBuilder::default();
        put_token(contract, &token, &mut before, txn)?;
        let (contract, held) =
            (hex(contract), held.map_or_else(|| "over 2^256".to_owned(), |held| held.to_string()));
        if complete {
            tracing::info!(contract, %supply, height, "all holders of a token are known");
        } else if drifts {
            Event::Drift.count();
            tracing::warn!(contract, held, %supply, height, "token drifts: its holders have more than its supply");
        } else {
            Event::Incomplete.count();
            tracing::warn!(contract, held, %supply, height, "token is incomplete: holders are unknown");
        }
        Ok(rich::put_undo(txn, height..=height, before)?)
    })?;
    Ok(held.is_some_and(|held| held < supply))
}

#[cfg(test)]
mod tests {
    use schema::rich::Erc20;
    use store::MemStore;

    use super::super::ledger::put_balance;
    use super::*;

    #[test]
    fn the_sum_of_balances_tells_missing_holders_from_wrong_balances() {
        let (store, contract) = (MemStore::new(), [1; 20]);
        store::commit_rows::<Error>(&store, store::Durability::Buffered, |txn| {
            let mut before = UndoBuilder::default();
            let token = Erc20 { complete: true, ..Erc20::default() };
            put_token(&contract, &token, &mut before, txn)?;
            put_balance(&contract, &[2; 20], U256::from(10), true, &mut before, txn)
        })
        .unwrap();
        let after = |supply: u64| {
            let is_less = check(&store, &contract, U256::from(supply), 1).unwrap();
            let token = store::table::read::<Erc20s>(&*store.snapshot().unwrap(), &contract).unwrap();
            let Message(token) = token.unwrap();
            (is_less, token.complete, token.drifting)
        };
        assert_eq!(after(10), (false, true, false));
        assert_eq!(after(11), (true, false, false), "a holder is missing");
        assert_eq!(after(10), (false, true, false));
        assert_eq!(after(9), (false, false, true), "a balance is wrong");
    }
}
