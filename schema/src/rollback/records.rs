//! Removal of the rows that are derived from a record: its entries in a hash index and in account lists.
//!
//! Records are read from the last one down, and [`PendingRollback`] stores the position, so time is proportional to the
//! removed records and an interrupted run continues. If a record is missing or does not decode, the dependent rows are
//! found by scanning their whole tables.
//!
//! The accounts of a Cosmos transaction do not follow from its record (on Move chains, block events count too), so
//! those lists are truncated by reading the end of each.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use chain::Account;
use chain::AccountSet;
use chain::evm::Receipt;
use serde::Deserialize;
use store::{Batch, Bounds, Durability, Key as _, List as _, Order, Snapshot, Store, Table as _, TableSpec};

use crate::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use crate::internal_tx::{AccountCalls, Calls};
use crate::keys::{AccountKey, HashPrefix, Role, hash_prefix, leading_hash, record_hash};
use crate::meta::{self, PendingRollback};
use crate::payload::{Chunk, Codec};
use crate::progress::Progress;
use crate::records::Records;
use crate::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use crate::{Error, postings};

/// Rows of records per commit. They are decompressed one at a time. With many, an account that is in most of them is
/// looked up rarely.
const ROWS: usize = 2_048;

/// Rows that are derived from records and must be deleted with them.
#[derive(Default)]
pub(super) struct DependentRows {
    hashes: BTreeSet<HashPrefix>,
    /// Keys of the owners of the lists that contain the records.
    owners: BTreeSet<Vec<u8>>,
}

/// A table of records with dependent rows.
pub(super) trait Removable: Records {
    /// The hash index, if there is one.
    const BY_HASH: Option<&'static TableSpec>;
    /// The list whose owners can be derived from a record, if there is one.
    const LIST: Option<&'static TableSpec>;
    /// The lists whose owners cannot be derived.
    const OTHER_LISTS: &'static [&'static TableSpec];
    /// The message of progress log lines.
    const REMOVING: &'static str;

    /// Adds the rows that depend on `record`; `None` if the record is malformed.
    fn dependents(record: &[u8], others: &mut DependentRows) -> Option<()>;

    /// The position in [`PendingRollback`]: the last record whose dependent rows still exist.
    fn last(pending: &mut PendingRollback) -> &mut Option<u64>;
}

impl Removable for Txs {
    const BY_HASH: Option<&'static TableSpec> = Some(TxByHash::SPEC);
    const LIST: Option<&'static TableSpec> = None;
    const OTHER_LISTS: &'static [&'static TableSpec] = &[AccountTxs::SPEC, AccountSetTxs::SPEC, SetTxs::SPEC];
    const REMOVING: &'static str = "removing transactions";

    fn dependents(record: &[u8], others: &mut DependentRows) -> Option<()> {
        others.hashes.insert(leading_hash(record).or_else(|| record_hash(record).ok())?);
        Some(())
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.txs
    }
}

impl Removable for EvmTxs {
    const BY_HASH: Option<&'static TableSpec> = Some(EvmTxByHash::SPEC);
    const LIST: Option<&'static TableSpec> = Some(AccountEvmTxs::SPEC);
    const OTHER_LISTS: &'static [&'static TableSpec] = &[];
    const REMOVING: &'static str = "removing EVM transactions";

    fn dependents(record: &[u8], others: &mut DependentRows) -> Option<()> {
        // The record is the receipt that these accounts were extracted from.
        let receipt: Receipt<'_> = serde_json::from_slice(record).ok()?;
        let mut accounts = AccountSet::default();
        receipt.accounts(&mut accounts).ok()?;
        let signer = (AccountKey(receipt.signer().ok()?), Role::Signer).to_bytes();
        let involved = accounts.iter().map(|account| (AccountKey(*account), Role::Involved).to_bytes());
        others.owners.extend(involved.chain([signer]));
        others.hashes.insert(hash_prefix(&receipt.hash().ok()?));
        Some(())
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.evm_txs
    }
}

/// The members of a call frame that are needed here.
#[derive(Deserialize)]
struct Frame {
    from: String,
    to: String,
}

impl Removable for Calls {
    const BY_HASH: Option<&'static TableSpec> = None;
    const LIST: Option<&'static TableSpec> = Some(AccountCalls::SPEC);
    const OTHER_LISTS: &'static [&'static TableSpec] = &[];
    const REMOVING: &'static str = "removing internal transactions";

    fn dependents(record: &[u8], others: &mut DependentRows) -> Option<()> {
        let frame: Frame = serde_json::from_slice(record).ok()?;
        for party in [&frame.from, &frame.to].into_iter().filter(|party| !party.is_empty()) {
            others.owners.insert(AccountKey(Account::from_hex_literal(party)?).to_bytes());
        }
        Some(())
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.calls
    }
}

/// Removes the dependent rows of the records above `keep`, but not the records themselves.
pub(super) fn remove_dependents<R: Removable>(
    store: &dyn Store,
    codec: &Codec,
    pending: &Mutex<PendingRollback>,
    keep: u64,
) -> Result<(), Error> {
    // Locked for assignments and commits only, which do not panic.
    let pending = || pending.lock().unwrap_or_else(PoisonError::into_inner);
    let mut last = *R::last(&mut pending());
    if last == Some(keep) {
        return Ok(());
    }
    for list in R::OTHER_LISTS {
        store::list::truncate(store, list, keep + 1)?;
    }
    let total = last.map_or(0, |last| last.saturating_sub(keep));
    if let Some(list) = R::LIST
        && total >= store::list::LONG
    {
        store::list::truncate_long(store, list, keep + 1)?;
    }
    let mut progress = Progress::new(R::REMOVING, total);
    while last != Some(keep) {
        let snapshot = store.snapshot()?;
        let (mut others, mut batch) = (DependentRows::default(), Batch::new());
        let next = match last {
            Some(last) => read::<R>(&*snapshot, codec, keep, last, &mut others)?,
            None => None,
        };
        if next.is_some() {
            if let Some(table) = R::BY_HASH {
                postings::truncate(&*snapshot, table, &others.hashes, keep, &mut batch)?;
            }
            drop(snapshot);
            if let Some(list) = R::LIST {
                store::list::truncate_owners(store, list, &others.owners, keep + 1)?;
            }
        } else {
            drop(snapshot);
            remove_by_scan::<R>(store, keep)?;
        }
        let next = next.unwrap_or(keep);
        last = Some(next);
        let mut pending = pending();
        *R::last(&mut pending) = last;
        meta::put_in(&mut batch, &*pending);
        store.commit(batch, Durability::Buffered)?;
        drop(pending);
        progress.at(total.saturating_sub(next - keep));
    }
    Ok(())
}

/// Reads up to [`ROWS`] rows of records above `keep`, from `last` down, and returns the last one left to read. `None` if a
/// record is missing or malformed.
fn read<R: Removable>(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    keep: u64,
    mut last: u64,
    others: &mut DependentRows,
) -> Result<Option<u64>, Error> {
    let (start, end) = ((keep + 1).to_bytes(), (last + 1).to_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let rows = snapshot.scan(R::SPEC, bounds, Order::Desc, ROWS)?;
    let (missing, mut chunk) = (rows.is_empty(), Vec::new());
    for (key, value) in rows {
        chunk.clear();
        let decoded =
            u64::from_bytes(&key).filter(|seq| codec.decode_into(R::SPEC, *seq, &value, &mut chunk).is_ok());
        let (Some(first), Some(records)) = (decoded, Chunk::ranges(&chunk)) else { return Ok(None) };
        if records.is_empty() || first + records.len() as u64 != last + 1 {
            return Ok(None);
        }
        let mut dependents = records.into_iter().map(|record| R::dependents(&chunk[record], others));
        if dependents.any(|malformed| malformed.is_none()) {
            return Ok(None);
        }
        last = first - 1;
    }
    Ok(Some(last).filter(|_| !missing))
}

/// Removes the dependent rows of all records above `keep` by scanning the dependent tables.
fn remove_by_scan<R: Removable>(store: &dyn Store, keep: u64) -> Result<(), Error> {
    tracing::info!(table = R::SPEC.name, "record missing or corrupt: whole tables are read");
    if let Some(list) = R::LIST {
        store::list::truncate(store, list, keep + 1)?;
    }
    match R::BY_HASH {
        Some(table) => postings::truncate_all(store, table, keep, false),
        None => Ok(()),
    }
}
