//! The tokens of an account.
//!
//! A database that a version without the table has made gets it from its balances once, before its rich list continues.

use store::{Bounds, BulkWriter, Durability, Key as _, Order, Snapshot, Store, Table as _};

use super::{AccountTokens, Address, Balances};
use crate::Error;
use crate::keys::KEY_END;
use crate::meta::{self, ListedAccountTokens};

/// Balances between two looks at whether to stop.
const STEP: u64 = 10_000;

/// True if [`AccountTokens`] has the tokens of all balances: [`list_account_tokens`] has been called once.
pub fn has_account_tokens(snapshot: &dyn Snapshot) -> Result<bool, Error> {
    Ok(meta::read::<ListedAccountTokens>(snapshot)?.is_some())
}

/// The first `limit` tokens of `account` behind the contract `after`, in the order of their contracts.
pub fn tokens_of(
    snapshot: &dyn Snapshot,
    account: &Address,
    after: Option<&Address>,
    order: Order,
    limit: usize,
) -> Result<Vec<Address>, Error> {
    let rows = match after {
        None => store::table::rows::<AccountTokens>(snapshot, account, order, limit)?,
        Some(after) => {
            let after = (*account, *after);
            store::table::rows_after::<AccountTokens>(snapshot, account, &after, order, limit)?
        }
    };
    Ok(rows.into_iter().map(|((_, contract), ())| contract).collect())
}

/// Lists the tokens of all balances, unless they are listed. No lane may write balances meanwhile. False if `is_stopped` became true:
/// the next call begins again.
pub fn list_account_tokens(store: &dyn Store, is_stopped: &dyn Fn() -> bool) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    if has_account_tokens(&*snapshot)? {
        return Ok(true);
    }
    // What an interrupted call has listed may be gone.
    let mut batch = store::Batch::new();
    batch.delete_range(AccountTokens::SPEC, Vec::new(), KEY_END.to_vec());
    store.commit(batch, Durability::Buffered)?;
    let (mut writer, mut listed) = (BulkWriter::new(store), 0_u64);
    for row in store::RowCursor::new(&*snapshot, Balances::SPEC, Bounds::all(), Order::Asc) {
        let (key, value) = row?;
        let ((contract, account), _) = store::table::decode_row::<Balances>(&key, &value)?;
        writer.put(AccountTokens::SPEC, (account, contract).to_bytes(), Vec::new())?;
        listed += 1;
        if listed.is_multiple_of(STEP) && is_stopped() {
            return Ok(false);
        }
    }
    writer.finish(Durability::Buffered)?;
    store::commit_rows::<Error>(store, Durability::Synced, |txn| {
        meta::put(txn, &ListedAccountTokens { balances: listed });
        Ok(())
    })?;
    Ok(true)
}
