//! Rebuild of the NFT tables from the event log, after a rollback or as a repair.
//!
//! The tables are emptied with range deletions. The fold of the log then writes tokens and collections only, and the sets
//! that follow from them are written at the end, each row once (`nft::indexes`).
//!
//! # Invariants
//!
//! The first commit empties the tables and writes [`PendingNftRebuild`]; each further commit applies some heights and
//! updates the position, and the last one deletes it. [`finish_pending`] resumes an interrupted rebuild before any
//! other use of the database.

use store::key::All;
use store::{
    Batch, Bounds, COUNT, Counts, Durability, Key as _, List, Message, Order, RANK, RowCursor, Store, Table,
    TableSpec, Txn,
};

use super::fold;
use super::indexes;
use super::{
    Collections, CollectionsByHeight, CollectionsByName, Holdings, HoldingsByHeight, NftLog, ObjectTokens,
    OriginNames, OwnedCollections, OwnedTokens, OwnedTokensByHeight, TokenObjects, TokenTxs, Tokens,
    TokensByHeight,
};
use crate::Error;
use crate::keys::BEYOND;
use crate::meta::{self, Meta, PendingNftRebuild};
use crate::progress::Progress;

/// Size of a commit in bytes, about a second of work. An interruption loses at most this much.
const BATCH_BYTES: usize = 1 << 20;

/// Capacity of the cache of list lengths.
const REMEMBERED_LISTS: usize = 1 << 16;

/// The tables that are derived from the log.
pub const FOLDED: [&TableSpec; 14] = [
    Collections::SPEC,
    CollectionsByHeight::SPEC,
    OwnedCollections::SPEC,
    Tokens::SPEC,
    TokensByHeight::SPEC,
    OwnedTokens::SPEC,
    OwnedTokensByHeight::SPEC,
    Holdings::SPEC,
    HoldingsByHeight::SPEC,
    <TokenTxs as List>::SPEC,
    TokenObjects::SPEC,
    ObjectTokens::SPEC,
    OriginNames::SPEC,
    CollectionsByName::SPEC,
];

/// Rebuilds the tables of [`FOLDED`] from the log.
pub fn rebuild(store: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    begin(&mut batch);
    store.commit(batch, Durability::Synced)?;
    finish_pending(store)
}

/// Empties the tables of [`FOLDED`] with the batch and marks the rebuild as pending.
pub(crate) fn begin(batch: &mut Batch) {
    for spec in FOLDED {
        batch.delete_range(spec, Vec::new(), BEYOND.to_vec());
        for of_all in [COUNT, RANK] {
            batch.delete_range(of_all, vec![spec.tag], vec![spec.tag + 1]);
        }
    }
    meta::put_in(batch, &PendingNftRebuild { emptied: true, height: 0, indexes_last: true });
}

/// Resumes an interrupted rebuild, if there is one.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    let Some(mut pending) = meta::read::<PendingNftRebuild>(&*store.snapshot()?)? else { return Ok(()) };
    if !pending.emptied || !pending.indexes_last {
        // Started by an earlier version, which emptied the tables row by row, or wrote sets with the tokens.
        return rebuild(store);
    }
    let last = store::table::rows::<NftLog>(&*store.snapshot()?, &All, Order::Desc, 1)?.pop();
    let mut progress = Progress::new("rebuilding the NFT tables", last.map_or(0, |(place, _)| place.height));
    let mut counts = Counts::new(REMEMBERED_LISTS);
    loop {
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let done = fold_some(&mut txn, &mut pending.height)?;
        meta::put(&mut txn, &pending);
        let (batch, lengths) = txn.finish();
        drop(snapshot);
        store.commit(batch, Durability::Buffered)?;
        counts.absorb(lengths);
        progress.at(pending.height);
        if done {
            break;
        }
    }
    indexes::build(store)?;
    store::commit_rows(store, Durability::Synced, |txn| {
        txn.delete::<Meta>(&meta::key::<PendingNftRebuild>());
        fold::invalidate_all_names(txn)
    })
}

/// Applies the log after `height` until the commit is full, whole blocks at a time. Returns true at the end of the log.
fn fold_some(txn: &mut Txn<'_>, height: &mut u64) -> Result<bool, Error> {
    let start = height.saturating_add(1).to_bytes();
    let bounds = Bounds { start: &start, end: None };
    for row in RowCursor::new(txn.base(), NftLog::SPEC, bounds, Order::Asc) {
        let (key, value) = row?;
        let (place, Message(entry)) = store::table::decode_row::<NftLog>(&key, &value)?;
        if place.height > *height && txn.bytes() >= BATCH_BYTES {
            return Ok(false);
        }
        *height = place.height;
        fold::apply_without_indexes(txn, &place, &entry)?;
    }
    Ok(true)
}
