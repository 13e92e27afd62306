//! Rollback: removal of all blocks above a height, without the undo log.
//!
//! Lists are ordered by sequence, so the rows of the removed blocks are the tail of each list. Tables keyed by
//! sequence or height are truncated; rows keyed by hash are found through the removed records. If the NFT log is
//! truncated, the tokens of the removed events are restored from the rest of it, or all NFT tables rebuilt if that
//! concerns very many. The rich list applies its own undo log, or is cleared if that is too short. Of the rows that
//! remain, a rollback reads the end of each Cosmos account's list, and the NFT log if that was truncated.
//!
//! [`force_rollback`] does the same on a damaged database: it relies on the row of the last remaining block only.
//!
//! # Invariants
//!
//! A rollback takes several commits. The first one writes [`PendingRollback`], the others update its position and the
//! last one deletes it. [`finish_pending`] resumes an interrupted rollback before any other use of the database.
//! Afterwards the database equals one whose last height was always `to`.

mod force;
mod records;

use std::sync::Mutex;

use store::{
    Batch, Bounds, BulkWriter, Counts, Durability, Key as _, Message, Order, Snapshot, Store, Table,
    TableSpec, Txn,
};

use self::records::remove_dependents;
use crate::block::Blocks;
use crate::evm_tx::EvmTxs;
use crate::internal_tx::{Calls, CallsByHeight};
use crate::keys::BEYOND;
use crate::meta::{self, BlockLane, CallLane, Identity, Meta, PendingReindex, PendingRollback};
use crate::msg_set::{MsgSetByNames, MsgSetByType, MsgSets, joined};
use crate::nft::truncate::Truncated;
use crate::nft::{NftLog, NonCollections, PendingEvents};
use crate::payload::Codec;
use crate::tx::Txs;
use crate::{Error, block, nft, open, parallel, rich, undo};

/// The reason why a rollback is not possible.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// The height is not indexed.
    #[error("cannot go back to height {to}: the database holds {first} to {last}")]
    OutOfRange {
        /// The requested height.
        to: u64,
        /// The first indexed height.
        first: u64,
        /// The last indexed height.
        last: u64,
    },
    /// The database is damaged or unreadable.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<store::Error> for RollbackError {
    fn from(error: store::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Removes every block above `to`.
pub fn rollback(store: &dyn Store, to: u64) -> Result<(), RollbackError> {
    last_height(store, to)?;
    store::commit_rows::<Error>(store, Durability::Synced, |txn| {
        let blocks = meta::read::<BlockLane>(txn)?.unwrap_or_default();
        let calls = meta::read::<CallLane>(txn)?.unwrap_or_default().calls;
        let (txs, evm_txs, calls) = (Some(blocks.txs), Some(blocks.evm_txs), Some(calls));
        meta::put(txn, &PendingRollback { to, force: false, txs, evm_txs, calls });
        // API requests no longer see the blocks whose rows are about to be deleted.
        put_lanes(txn, to)
    })?;
    Ok(finish_pending(store)?)
}

/// The last indexed height, if the database can be rolled back to `to`.
pub(crate) fn last_height(store: &dyn Store, to: u64) -> Result<u64, RollbackError> {
    let Identity { start_height: first, .. } = open::existing(store)?;
    let last = meta::read::<BlockLane>(&*store.snapshot()?)?.map_or(0, |lane| lane.height);
    if to < first || to > last {
        return Err(RollbackError::OutOfRange { to, first, last });
    }
    Ok(last)
}

/// Removes `from` and every block above it from a database that may be damaged: reads every row, and tolerates gaps
/// in lists, wrong lengths and rows that do not decode. The block before `from` must be intact, unless `from` is the
/// first height.
pub fn force_rollback(store: &dyn Store, from: u64) -> Result<(), RollbackError> {
    begin_force_rollback(store, from)?;
    Ok(finish_pending(store)?)
}

/// The first commit of [`force_rollback`]; [`finish_pending`] does the rest.
fn begin_force_rollback(store: &dyn Store, from: u64) -> Result<(), RollbackError> {
    begin_force(store, from, |_| {})
}

/// The first commit of a [`force_rollback`] of heights that are indexed again; [`finish_pending`] does the rest.
pub fn begin_reindex(store: &dyn Store, reindex: &PendingReindex) -> Result<(), RollbackError> {
    begin_force(store, reindex.from, |txn| meta::put(txn, reindex))
}

fn begin_force(store: &dyn Store, from: u64, add: impl Fn(&mut Txn<'_>)) -> Result<(), RollbackError> {
    let Identity { start_height: first, .. } = open::existing(store)?;
    let snapshot = store.snapshot()?;
    let last = meta::read::<BlockLane>(&*snapshot)?.map_or(0, |lane| lane.height);
    let to = from.saturating_sub(1);
    if from < first || (to > last && from > first) {
        return Err(RollbackError::OutOfRange { to, first, last });
    }
    if from > first {
        block_lane_at(&*snapshot, to)?;
    }
    drop(snapshot);
    store::commit_rows::<Error>(store, Durability::Synced, |txn| {
        meta::put(txn, &PendingRollback { to, force: true, ..PendingRollback::default() });
        add(txn);
        Ok(())
    })?;
    Ok(())
}

/// Records that a reindex is complete.
pub fn end_reindex(store: &dyn Store) -> Result<(), Error> {
    store::commit_rows::<Error>(store, Durability::Synced, |txn| {
        txn.delete::<Meta>(&meta::key::<PendingReindex>());
        Ok(())
    })
}

/// True if a rollback or an NFT rebuild was interrupted.
pub fn is_pending(store: &dyn Store) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let rollback: Option<PendingRollback> = meta::read(&*snapshot)?;
    let rebuild: Option<meta::PendingNftRebuild> = meta::read(&*snapshot)?;
    Ok(rollback.is_some() || rebuild.is_some())
}

/// Resumes an interrupted rollback or rebuild, if there is one. Must be called before a lane starts.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    // Not a temporary of the match, which would hold the snapshot for the whole rollback.
    let pending: Option<PendingRollback> = meta::read(&*store.snapshot()?)?;
    match pending {
        Some(PendingRollback { to, force: true, .. }) => force::finish(store, to)?,
        Some(pending) => finish(store, pending)?,
        None => {}
    }
    nft::rebuild::finish_pending(store)?;
    rich::finish_pending(store)
}

/// Performs the rollback except for the NFT rebuild, which it marks as pending.
fn finish(store: &dyn Store, pending: PendingRollback) -> Result<(), Error> {
    let to = pending.to;
    let snapshot = store.snapshot()?;
    let (blocks, calls) = (block_lane_at(&*snapshot, to)?, call_lane_at(&*snapshot, to)?);
    let codec = Codec::load(&*snapshot)?;
    drop(snapshot);

    let (codec, pending) = (&codec, &Mutex::new(pending));
    let mut nfts = Truncated::NotDone;
    // These tables are not ordered by height, but small.
    delete_by::<NonCollections>(store, |&(_, found_at), ()| found_at > to)?;
    delete_by::<PendingEvents>(store, |&(_, height, _), _| height > to)?;
    nft::renewal::rewind(store, to)?;
    rich::rewind(store, to)?;
    // They write disjoint rows.
    parallel::run::<()>(vec![
        Box::new(|| remove_dependents::<Txs>(store, codec, pending, blocks.txs)),
        Box::new(|| remove_dependents::<Calls>(store, codec, pending, calls.calls)),
        Box::new(|| {
            nfts = nft::truncate::truncate(store, to, blocks.txs)?;
            Ok(())
        }),
        Box::new(|| remove_dependents::<EvmTxs>(store, codec, pending, blocks.evm_txs)),
    ])?;

    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    delete_unused_sets(&mut txn, blocks.txs)?;
    put_lanes(&mut txn, to)?;
    meta::count_rewind(&mut txn, to)?;
    if nfts == Truncated::Restored {
        nft::fold::invalidate_all_names(&mut txn)?;
    }
    txn.delete::<Meta>(&meta::key::<PendingRollback>());
    let (mut batch, _) = txn.finish();
    for (spec, first) in [
        (Txs::SPEC, blocks.txs + 1),
        (EvmTxs::SPEC, blocks.evm_txs + 1),
        (Calls::SPEC, calls.calls + 1),
        (CallsByHeight::SPEC, to + 1),
        (Blocks::SPEC, to + 1),
        (NftLog::SPEC, to + 1),
    ] {
        cut(&*snapshot, &mut batch, spec, first)?;
    }
    if nfts == Truncated::NotDone {
        nft::rebuild::begin(&mut batch);
    }
    undo::delete_above(&mut batch, to);
    Ok(store.commit(batch, Durability::Synced)?)
}

/// Deletes the rows of `spec`, whose keys are numbers, from `first` on.
fn cut(
    snapshot: &dyn Snapshot,
    batch: &mut Batch,
    spec: &'static TableSpec,
    first: u64,
) -> Result<(), Error> {
    let start = first.to_bytes();
    let bounds = Bounds { start: &start, end: None };
    if !snapshot.scan(spec, bounds, Order::Asc, 1)?.is_empty() {
        batch.delete_range(spec, start, BEYOND.to_vec());
    }
    Ok(())
}

/// Sets the block and internal-transaction lanes to their state at height `to`.
fn put_lanes(txn: &mut Txn<'_>, to: u64) -> Result<(), Error> {
    let (blocks, calls) = (block_lane_at(txn, to)?, call_lane_at(txn, to)?);
    meta::put(txn, &blocks);
    if meta::read::<CallLane>(txn)?.is_some() {
        meta::put(txn, &calls);
    }
    Ok(())
}

/// The block lane's row at height `to`.
fn block_lane_at(snapshot: &dyn Snapshot, to: u64) -> Result<BlockLane, Error> {
    let invalid = |reason: &str| Error::Record {
        table: Blocks::SPEC.name,
        key: to.to_string(),
        reason: reason.to_owned(),
    };
    let Message(block) =
        store::table::read::<Blocks>(snapshot, &to)?.ok_or_else(|| invalid("the block is missing"))?;
    let hash = block::hash_at(snapshot, to)?.ok_or_else(|| invalid("it has no hash"))?;
    Ok(BlockLane {
        height: to,
        txs: block.first_tx + block.txs - 1,
        evm_txs: block.first_evm_tx + block.evm_txs - 1,
        time: block.time,
        hash: hash.to_vec(),
    })
}

/// The call lane's row at height `to`, or the current one if the lane is not beyond `to`.
fn call_lane_at(snapshot: &dyn Snapshot, to: u64) -> Result<CallLane, Error> {
    let lane: CallLane = meta::read(snapshot)?.unwrap_or_default();
    if lane.height <= to {
        return Ok(lane);
    }
    let above = (to + 1).to_be_bytes();
    let bounds = Bounds { start: &[], end: Some(&above) };
    let last = snapshot.scan(CallsByHeight::SPEC, bounds, Order::Desc, 1)?;
    let calls = match last.first() {
        None => 0,
        Some((key, value)) => {
            let (_, Message(calls)) = store::table::decode_row::<CallsByHeight>(key, value)?;
            calls.first + calls.count() - 1
        }
    };
    // Blocks that were not traced below `to` remain without frames.
    let untraced = lane.untraced.into_iter().filter(|height| *height <= to).collect();
    Ok(CallLane { height: to, calls, complete_from: lane.complete_from.min(to + 1), untraced })
}

/// Deletes the rows of `T` that are `unwanted`.
fn delete_by<T: Table>(
    store: &dyn Store,
    unwanted: impl Fn(&T::Key, &T::Value) -> bool,
) -> Result<(), Error> {
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    store::for_each_row(&*snapshot, T::SPEC, Bounds::all(), |key, value| -> Result<(), Error> {
        let (decoded, value) = store::table::decode_row::<T>(key, value)?;
        if unwanted(&decoded, &value) {
            writer.delete(T::SPEC, key.to_vec())?;
        }
        Ok(())
    })?;
    Ok(writer.finish(Durability::Buffered)?)
}

/// Deletes the message-type sets that no transaction up to `txs` uses.
fn delete_unused_sets(txn: &mut Txn<'_>, txs: u64) -> Result<(), Error> {
    let sets = store::table::rows::<MsgSets>(txn, &store::key::All, Order::Asc, usize::MAX)?;
    for (set, Message(row)) in sets.iter().filter(|(_, Message(row))| row.first_tx > txs) {
        for name in &row.names {
            txn.delete::<MsgSetByType>(&(store::key::Text(name.clone()), *set));
        }
        txn.delete::<MsgSetByNames>(&store::key::Text(joined(&row.names)));
        txn.delete::<MsgSets>(set);
    }
    Ok(())
}
