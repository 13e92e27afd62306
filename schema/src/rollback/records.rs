//! The rows that go with a record and are found by what it contains: those by hash, and entries of accounts' lists.
//!
//! The records are read from the last one down, and the rollback's mark keeps how far: time grows with what goes, and what is
//! interrupted continues. Where a record is missing or does not decode, these rows are looked for in their whole tables.
//!
//! The accounts of a Cosmos transaction do not follow from its record (on Move chains, events of the block count too): those
//! lists are cut by reading the end of each.

use std::collections::BTreeSet;

use chain::Account;
use chain::account_set::AccountSet;
use chain::evm::Receipt;
use serde::Deserialize;
use store::{
    Batch, Bounds, BulkWriter, Durability, Key as _, List as _, Order, Snapshot, Store, Table, TableSpec,
};

use crate::Error;
use crate::audit::records::hash_in;
use crate::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use crate::internal_tx::{AccountCalls, Calls, CallsByHash};
use crate::keys::{HashPrefix, Owner, Role, hash_prefix};
use crate::meta::{self, PendingRollback};
use crate::payload::{Codec, Frames, Payload};
use crate::progress::Progress;
use crate::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};

/// Records of one commit. They are decompressed one at a time.
const RECORDS: usize = 64;

/// Rows that go with records.
#[derive(Default)]
pub(super) struct Others {
    batch: Batch,
    /// Keys of the owners of the lists that the records are in.
    owners: BTreeSet<Vec<u8>>,
}

/// A table of records.
pub(super) trait Records: Table<Key = u64, Value = Payload> {
    /// The rows that are found by a hash and a sequence.
    const BY_HASH: &'static TableSpec;
    /// The list whose owners follow from a record, if there is one.
    const LIST: Option<&'static TableSpec>;
    /// The lists whose owners do not.
    const OTHER_LISTS: &'static [&'static TableSpec];
    /// What the log calls them.
    const REMOVING: &'static str;

    /// Adds what goes with the record at `seq`, and returns how many sequences it takes; `None` if that does not follow.
    fn others(seq: u64, record: &[u8], others: &mut Others) -> Option<u64>;

    /// Where the mark keeps the last record whose other rows are still there.
    fn last(pending: &mut PendingRollback) -> &mut Option<u64>;
}

impl Records for Txs {
    const BY_HASH: &'static TableSpec = TxByHash::SPEC;
    const LIST: Option<&'static TableSpec> = None;
    const OTHER_LISTS: &'static [&'static TableSpec] = &[AccountTxs::SPEC, AccountSetTxs::SPEC, SetTxs::SPEC];
    const REMOVING: &'static str = "removing transactions";

    fn others(seq: u64, record: &[u8], others: &mut Others) -> Option<u64> {
        others.batch.delete(TxByHash::SPEC, (hash_in(record).ok()?, seq).to_bytes());
        Some(1)
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.txs
    }
}

impl Records for EvmTxs {
    const BY_HASH: &'static TableSpec = EvmTxByHash::SPEC;
    const LIST: Option<&'static TableSpec> = Some(AccountEvmTxs::SPEC);
    const OTHER_LISTS: &'static [&'static TableSpec] = &[];
    const REMOVING: &'static str = "removing EVM transactions";

    fn others(seq: u64, record: &[u8], others: &mut Others) -> Option<u64> {
        // A record is a receipt with every member that these accounts were found in.
        let receipt: Receipt<'_> = serde_json::from_slice(record).ok()?;
        let mut accounts = AccountSet::new();
        receipt.accounts(&mut accounts).ok()?;
        let signer = (Owner(receipt.signer().ok()?), Role::Signer).to_bytes();
        let involved = accounts.as_slice().iter().map(|account| (Owner(*account), Role::Involved).to_bytes());
        others.owners.extend(involved.chain([signer]));
        others.batch.delete(EvmTxByHash::SPEC, (hash_prefix(&receipt.hash().ok()?), seq).to_bytes());
        Some(1)
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.evm_txs
    }
}

/// A call frame, as far as it is needed here.
#[derive(Deserialize)]
struct Frame {
    hash: String,
    index: u64,
    from: String,
    to: String,
}

impl Records for Calls {
    const BY_HASH: &'static TableSpec = CallsByHash::SPEC;
    const LIST: Option<&'static TableSpec> = Some(AccountCalls::SPEC);
    const OTHER_LISTS: &'static [&'static TableSpec] = &[];
    const REMOVING: &'static str = "removing internal transactions";

    fn others(first: u64, record: &[u8], others: &mut Others) -> Option<u64> {
        let ranges = Frames::ranges(record)?;
        for (seq, range) in (first..).zip(&ranges) {
            let frame: Frame = serde_json::from_slice(&record[range.clone()]).ok()?;
            for party in [&frame.from, &frame.to].into_iter().filter(|party| !party.is_empty()) {
                others.owners.insert(Owner(Account::from_hex_literal(party)?).to_bytes());
            }
            if frame.index == 0 {
                let mut hash = [0; 32];
                hex::decode_to_slice(frame.hash.strip_prefix("0x")?, &mut hash).ok()?;
                others.batch.delete(CallsByHash::SPEC, (hash_prefix(&hash), seq).to_bytes());
            }
        }
        Some(ranges.len() as u64)
    }

    fn last(pending: &mut PendingRollback) -> &mut Option<u64> {
        &mut pending.calls
    }
}

/// Removes what goes with the records beyond `keep`, but not these themselves.
pub(super) fn remove_others<R: Records>(
    store: &dyn Store,
    codec: &Codec,
    pending: &mut PendingRollback,
    keep: u64,
) -> Result<(), Error> {
    if *R::last(pending) == Some(keep) {
        return Ok(());
    }
    for list in R::OTHER_LISTS {
        store::list::truncate(store, list, keep + 1)?;
    }
    let total = R::last(pending).map_or(0, |last| last.saturating_sub(keep));
    let mut progress = Progress::new(R::REMOVING, total);
    while *R::last(pending) != Some(keep) {
        let snapshot = store.snapshot()?;
        let mut others = Others::default();
        let next = match *R::last(pending) {
            Some(last) => read::<R>(&*snapshot, codec, keep, last, &mut others)?,
            None => None,
        };
        drop(snapshot);
        if next.is_none() {
            remove_by_scan::<R>(store, keep)?;
            others = Others::default();
        }
        if let Some(list) = R::LIST {
            store::list::truncate_owners(store, list, &others.owners, keep + 1)?;
        }
        let next = next.unwrap_or(keep);
        *R::last(pending) = Some(next);
        meta::put_in(&mut others.batch, pending);
        store.commit(others.batch, Durability::Buffered)?;
        progress.at(total.saturating_sub(next - keep));
    }
    Ok(())
}

/// Reads some records beyond `keep`, from `last` down, and returns the last one that is left to read. `None` if one is missing
/// or is not what it must be.
fn read<R: Records>(
    snapshot: &dyn Snapshot,
    codec: &Codec,
    keep: u64,
    mut last: u64,
    others: &mut Others,
) -> Result<Option<u64>, Error> {
    let (start, end) = ((keep + 1).to_bytes(), (last + 1).to_bytes());
    let bounds = Bounds { start: &start, end: Some(&end) };
    let rows = snapshot.scan(R::SPEC, bounds, Order::Desc, RECORDS)?;
    let (missing, mut record) = (rows.is_empty(), Vec::new());
    for (key, value) in rows {
        record.clear();
        let decoded =
            u64::from_bytes(&key).filter(|seq| codec.decode_into(R::SPEC, *seq, &value, &mut record).is_ok());
        let Some(seq) = decoded else { return Ok(None) };
        let Some(taken) = R::others(seq, &record, others) else { return Ok(None) };
        if taken == 0 || seq + taken != last + 1 {
            return Ok(None);
        }
        last = seq - 1;
    }
    Ok(Some(last).filter(|_| !missing))
}

/// The same for all records beyond `keep` at once, by a look at each row of the other tables.
fn remove_by_scan<R: Records>(store: &dyn Store, keep: u64) -> Result<(), Error> {
    tracing::info!(table = R::SPEC.name, "a record is missing or damaged: reading whole tables");
    if let Some(list) = R::LIST {
        store::list::truncate(store, list, keep + 1)?;
    }
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    store::for_each_row(
        &*snapshot,
        R::BY_HASH,
        Bounds::all(),
        |key, _| match <(HashPrefix, u64)>::from_bytes(key) {
            Some((_, seq)) if seq <= keep => Ok(()),
            Some(_) => writer.delete(R::BY_HASH, key.to_vec()),
            None => Err(store::table::corrupt(R::BY_HASH, key, "the key does not decode")),
        },
    )?;
    Ok(writer.finish(Durability::Buffered)?)
}
