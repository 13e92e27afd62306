//! Folding the whole log again: after it was cut, and where a table is not what it says.
//!
//! It takes several commits. The first writes down that it has begun, and the last takes that mark away: a database with
//! the mark is finished before anything else is done with it ([`finish_pending`]).

use store::{
    Batch, Bounds, COUNT, Counts, Durability, List, Message, RANK, Store, Table, TableSpec, Txn, prefix_end,
};

use super::fold::{self, At};
use super::{
    Collections, CollectionsByHeight, CollectionsByName, Holdings, HoldingsByHeight, NftLog, ObjectTokens,
    OriginNames, OwnedCollections, OwnedTokens, OwnedTokensByHeight, TokenObjects, TokenTxs, Tokens,
    TokensByHeight,
};
use crate::Error;
use crate::meta::{self, Meta, PendingNftRebuild};
use crate::rollback::commit;

/// Rows of one commit, in bytes.
const BATCH_BYTES: usize = 8 << 20;

/// Lists whose lengths are remembered.
const REMEMBERED_LISTS: usize = 1 << 16;

/// The tables that are a fold of the log.
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

/// Makes the tables of [`FOLDED`] what the log says.
pub fn rebuild(store: &dyn Store) -> Result<(), Error> {
    commit(store, |txn| {
        meta::put(txn, &PendingNftRebuild {});
        Ok(())
    })?;
    finish_pending(store)
}

/// Finishes a rebuild that was begun and interrupted, if there is one.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    if meta::read::<PendingNftRebuild>(&*store.snapshot()?)?.is_none() {
        return Ok(());
    }
    for spec in FOLDED {
        wipe(store, spec, &[])?;
        wipe(store, COUNT, &[spec.tag])?;
        wipe(store, RANK, &[spec.tag])?;
    }
    fold_all(store, store)?;
    commit(store, |txn| {
        fold::everything_changed(txn)?;
        txn.delete::<Meta>(&meta::key::<PendingNftRebuild>());
        Ok(())
    })
}

/// Folds the log in `from` into `to`, which has nothing of it yet.
pub fn fold_all(from: &dyn Store, to: &dyn Store) -> Result<(), Error> {
    let log = from.snapshot()?;
    let mut counts = Counts::new(REMEMBERED_LISTS);
    let mut next = Some(Vec::new());
    while let Some(start) = next.take() {
        let snapshot = to.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let mut start = start;
        loop {
            let bounds = Bounds { start: &start, end: None };
            let Some((key, value)) = log.scan(NftLog::SPEC, bounds, store::Order::Asc, 1)?.pop() else {
                break;
            };
            let (height, Message(block)) = store::table::decode_row::<NftLog>(&key, &value)?;
            for entry in &block.entries {
                fold::apply(&mut txn, At { height, time: block.time }, entry)?;
            }
            start = [&key[..], &[0]].concat();
            if txn.bytes() >= BATCH_BYTES {
                next = Some(start);
                break;
            }
        }
        let (batch, pending) = txn.finish();
        drop(snapshot);
        to.commit(batch, Durability::Buffered)?;
        counts.absorb(pending);
    }
    Ok(to.sync()?)
}

/// Deletes the rows of a table whose keys begin with `prefix`.
pub(crate) fn wipe(store: &dyn Store, spec: &'static TableSpec, prefix: &[u8]) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let end = prefix_end(prefix);
    let mut batch = Batch::new();
    store::for_each_row(&*snapshot, spec, Bounds { start: prefix, end: end.as_deref() }, |key, _| {
        batch.delete(spec, key.to_vec());
        if batch.bytes() >= BATCH_BYTES {
            store.commit(std::mem::take(&mut batch), Durability::Buffered)?;
        }
        Ok::<(), Error>(())
    })?;
    if !batch.is_empty() {
        store.commit(batch, Durability::Buffered)?;
    }
    Ok(())
}
