//! Rebuild of the NFT tables from the event log, in a copy of the database, to check and to repair them.
//!
//! The tables are emptied with range deletions. The fold of the log then writes tokens and collections only, and the sets
//! that follow from them are written at the end, each row once (`nft::indexes`).

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
use crate::keys::KEY_END;
use crate::progress::Progress;

/// Size of a commit in bytes, about a second of work.
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

/// Rebuilds the tables of [`FOLDED`] from the log, in many commits.
pub fn rebuild(store: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    for spec in FOLDED {
        batch.delete_range(spec, Vec::new(), KEY_END.to_vec());
        for of_all in [COUNT, RANK] {
            batch.delete_range(of_all, vec![spec.tag], vec![spec.tag + 1]);
        }
    }
    store.commit(batch, Durability::Synced)?;
    let last = store::table::rows::<NftLog>(&*store.snapshot()?, &All, Order::Desc, 1)?.pop();
    let mut progress = Progress::new("rebuilding the NFT tables", last.map_or(0, |(place, _)| place.height));
    let mut counts = Counts::new(REMEMBERED_LISTS);
    let (mut height, mut done) = (0, false);
    while !done {
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        done = fold_some(&mut txn, &mut height)?;
        let (batch, lengths) = txn.finish();
        drop(snapshot);
        store.commit(batch, Durability::Buffered)?;
        counts.absorb(lengths);
        progress.at(height);
    }
    indexes::build(store)?;
    store::commit_rows(store, Durability::Synced, fold::invalidate_all_names)
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
