//! Folding the whole log again: after it was cut, and where a table is not what it says.
//!
//! The first commit empties the tables and writes down that it has begun; each of the others folds some heights and writes
//! down how far it has come, and the last takes that mark away. A database with the mark is finished before anything else is
//! done with it ([`finish_pending`]), from where it was interrupted.
//!
//! The tables are emptied as ranges, so that the fold does not read past the rows that were there: a ranked set looks for the
//! next tower behind every item that it gets.

use store::key::All;
use store::{Batch, COUNT, Counts, Durability, List, Message, Order, RANK, Store, Table, TableSpec, Txn};

use super::fold::{self, At};
use super::{
    Collections, CollectionsByHeight, CollectionsByName, Holdings, HoldingsByHeight, NftLog, ObjectTokens,
    OriginNames, OwnedCollections, OwnedTokens, OwnedTokensByHeight, TokenObjects, TokenTxs, Tokens,
    TokensByHeight,
};
use crate::Error;
use crate::keys::BEYOND;
use crate::meta::{self, Meta, PendingNftRebuild};
use crate::progress::Progress;

/// Rows of one commit, in bytes: a second of work that is done again after an interruption.
const BATCH_BYTES: usize = 1 << 20;

/// Heights of the log that are read at a time; the last of them may be read again for the next commit.
const LOGS: usize = 8;

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
    let mut batch = Batch::new();
    begin(&mut batch);
    store.commit(batch, Durability::Synced)?;
    finish_pending(store)
}

/// Empties the tables of [`FOLDED`] with the batch, and marks that they are to be folded again.
pub(crate) fn begin(batch: &mut Batch) {
    for spec in FOLDED {
        batch.delete_range(spec, Vec::new(), BEYOND.to_vec());
        for of_all in [COUNT, RANK] {
            batch.delete_range(of_all, vec![spec.tag], vec![spec.tag + 1]);
        }
    }
    meta::put_in(batch, &PendingNftRebuild { emptied: true, height: 0 });
}

/// Finishes a rebuild that was begun and interrupted, if there is one.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    let Some(mut pending) = meta::read::<PendingNftRebuild>(&*store.snapshot()?)? else { return Ok(()) };
    if !pending.emptied {
        // Begun by a version that emptied the tables row by row.
        return rebuild(store);
    }
    let last = store::table::rows::<NftLog>(&*store.snapshot()?, &All, Order::Desc, 1)?.pop();
    let mut progress = Progress::new("rebuilding the NFT tables", last.map_or(0, |(height, _)| height));
    let mut counts = Counts::new(REMEMBERED_LISTS);
    loop {
        let snapshot = store.snapshot()?;
        let mut txn = Txn::new(&*snapshot, &mut counts);
        let done = fold_some(&mut txn, &mut pending.height)?;
        if done {
            fold::everything_changed(&mut txn)?;
            txn.delete::<Meta>(&meta::key::<PendingNftRebuild>());
        } else {
            meta::put(&mut txn, &pending);
        }
        let (batch, lengths) = txn.finish();
        drop(snapshot);
        store.commit(batch, if done { Durability::Synced } else { Durability::Buffered })?;
        counts.absorb(lengths);
        if done {
            return Ok(());
        }
        progress.at(pending.height);
    }
}

/// Folds the log on from behind `height`, until there is enough for a commit. True if there is no more.
fn fold_some(txn: &mut Txn<'_>, height: &mut u64) -> Result<bool, Error> {
    loop {
        let logs = store::table::rows_after::<NftLog>(txn.base(), &All, height, Order::Asc, LOGS)?;
        if logs.is_empty() {
            return Ok(true);
        }
        for (at, Message(log)) in logs {
            for entry in &log.entries {
                fold::apply(txn, At { height: at, time: log.time }, entry)?;
            }
            *height = at;
            if txn.bytes() >= BATCH_BYTES {
                return Ok(false);
            }
        }
    }
}
