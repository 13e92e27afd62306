//! Taking back blocks: afterwards the database is what it was when `to` was its last height.
//!
//! Every list is in the order of sequences, so the rows of the blocks that go are the tail of each list; nothing needs
//! to be remembered for it. Tables by sequence or height end earlier; rows by hash are found by the records that go. NFTs are
//! folded again from what stays of their log, if it was cut; the rich list takes back its changes, or begins anew if they are
//! too many. Of what stays it reads the end of each list of a Cosmos account, and the log of NFTs if that was cut. Where few
//! blocks go, folding that log is most of the time, and more than half of it is finding the next tower of ranked sets.
//!
//! It takes several commits. The first writes down that it has begun, those after it how far it has come: a database
//! with the mark is finished before anything else is done with it, from where it was interrupted ([`finish_pending`]).
//!
//! A damaged database is taken back by [`take_back`]: it relies on the row of the last block that stays and on nothing
//! else.

mod damaged;
mod records;

use store::{
    Batch, Bounds, BulkWriter, Counts, Durability, Key as _, Message, Order, Snapshot, Store, Table,
    TableSpec, Txn,
};

use self::records::remove_others;
use crate::block::Blocks;
use crate::evm_tx::EvmTxs;
use crate::internal_tx::{Calls, CallsByHeight};
use crate::keys::BEYOND;
use crate::meta::{self, BlockLane, CallLane, Identity, Meta, PendingRollback};
use crate::msg_set::{MsgSetByNames, MsgSetByType, MsgSets, joined};
use crate::nft::{NftLog, Questions, Refused, Waiting, question_number};
use crate::payload::Codec;
use crate::tx::Txs;
use crate::{Error, block, nft, open, rich, undo};

/// Why a rollback is refused.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    /// There is no such block.
    #[error("cannot go back to height {to}: the database holds {first} to {last}")]
    OutOfRange {
        /// The height asked for.
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

impl From<store::Error> for Impossible {
    fn from(error: store::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Takes back every block above `to`.
pub fn rollback(store: &dyn Store, to: u64) -> Result<(), Impossible> {
    last_height(store, to)?;
    commit(store, |txn| {
        let blocks = meta::read::<BlockLane>(txn)?.unwrap_or_default();
        let calls = meta::read::<CallLane>(txn)?.unwrap_or_default().calls;
        let (txs, evm_txs, calls) = (Some(blocks.txs), Some(blocks.evm_txs), Some(calls));
        meta::put(txn, &PendingRollback { to, damaged: false, txs, evm_txs, calls });
        // Who reads meanwhile does not look for what goes.
        put_lanes(txn, to)
    })?;
    Ok(finish_pending(store)?)
}

/// The last indexed height, if the database can be taken back to `to`.
pub(crate) fn last_height(store: &dyn Store, to: u64) -> Result<u64, Impossible> {
    let Identity { start_height: first, .. } = open::existing(store)?;
    let last = meta::read::<BlockLane>(&*store.snapshot()?)?.map_or(0, |lane| lane.height);
    if to < first || to > last {
        return Err(Impossible::OutOfRange { to, first, last });
    }
    Ok(last)
}

/// Takes back `from` and every block above, also where lists have gaps, lengths are wrong or rows do not decode: every row
/// is read. The block before `from` must be whole; there need not be one if `from` is the first height.
pub fn take_back(store: &dyn Store, from: u64) -> Result<(), Impossible> {
    let Identity { start_height: first, .. } = open::existing(store)?;
    let snapshot = store.snapshot()?;
    let last = meta::read::<BlockLane>(&*snapshot)?.map_or(0, |lane| lane.height);
    let to = from.saturating_sub(1);
    if from < first || to > last {
        return Err(Impossible::OutOfRange { to, first, last });
    }
    if from > first {
        block_lane_at(&*snapshot, to)?;
    }
    drop(snapshot);
    commit(store, |txn| {
        meta::put(txn, &PendingRollback { to, damaged: true, ..PendingRollback::default() });
        Ok(())
    })?;
    Ok(finish_pending(store)?)
}

/// Whether something was begun and interrupted.
pub fn is_pending(store: &dyn Store) -> Result<bool, Error> {
    let snapshot = store.snapshot()?;
    let rollback: Option<PendingRollback> = meta::read(&*snapshot)?;
    let rebuild: Option<meta::PendingNftRebuild> = meta::read(&*snapshot)?;
    Ok(rollback.is_some() || rebuild.is_some())
}

/// Finishes what was begun and interrupted, if there is anything. To be called before a lane starts.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    // Read before the match, whose arms would else hold the snapshot through the whole rollback.
    let pending: Option<PendingRollback> = meta::read(&*store.snapshot()?)?;
    match pending {
        Some(PendingRollback { to, damaged: true, .. }) => damaged::finish(store, to)?,
        Some(pending) => finish(store, pending)?,
        None => {}
    }
    nft::rebuild::finish_pending(store)?;
    rich::finish_pending(store)
}

/// Does all but the rebuild of NFTs, for which it leaves the mark.
fn finish(store: &dyn Store, mut pending: PendingRollback) -> Result<(), Error> {
    let to = pending.to;
    let snapshot = store.snapshot()?;
    let (blocks, calls) = (block_lane_at(&*snapshot, to)?, call_lane_at(&*snapshot, to)?);
    let codec = Codec::load(&*snapshot)?;
    drop(snapshot);

    remove_others::<Txs>(store, &codec, &mut pending, blocks.txs)?;
    remove_others::<EvmTxs>(store, &codec, &mut pending, blocks.evm_txs)?;
    remove_others::<Calls>(store, &codec, &mut pending, calls.calls)?;
    // The tables of what is open and of what is not an NFT are not by height; they are small.
    delete_by::<Refused>(store, |_, &found_at| found_at > to)?;
    delete_by::<Waiting>(store, |&(_, height, _), _| height > to)?;
    rich::go_back(store, to)?;

    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    forget_sets(&mut txn, blocks.txs)?;
    put_lanes(&mut txn, to)?;
    meta::count_rewind(&mut txn, to)?;
    txn.delete::<Meta>(&meta::key::<PendingRollback>());
    let (mut batch, _) = txn.finish();
    for (spec, first) in [
        (Txs::SPEC, blocks.txs + 1),
        (EvmTxs::SPEC, blocks.evm_txs + 1),
        (Calls::SPEC, calls.calls + 1),
        (CallsByHeight::SPEC, to + 1),
        (Questions::SPEC, question_number(to + 1, 0)),
        (Blocks::SPEC, to + 1),
    ] {
        cut(&*snapshot, &mut batch, spec, first)?;
    }
    if cut(&*snapshot, &mut batch, NftLog::SPEC, to + 1)? {
        nft::rebuild::begin(&mut batch);
    }
    undo::forget_above(&mut batch, to);
    Ok(store.commit(batch, Durability::Synced)?)
}

/// Deletes the rows of `spec`, whose keys are numbers, from `first` on. Whether there are any.
fn cut(
    snapshot: &dyn Snapshot,
    batch: &mut Batch,
    spec: &'static TableSpec,
    first: u64,
) -> Result<bool, Error> {
    let start = first.to_bytes();
    let bounds = Bounds { start: &start, end: None };
    let any = !snapshot.scan(spec, bounds, Order::Asc, 1)?.is_empty();
    if any {
        batch.delete_range(spec, start, BEYOND.to_vec());
    }
    Ok(any)
}

/// Sets the lanes of blocks and of internal transactions to where they were when `to` was the last height.
fn put_lanes(txn: &mut Txn<'_>, to: u64) -> Result<(), Error> {
    let (blocks, calls) = (block_lane_at(txn, to)?, call_lane_at(txn, to)?);
    meta::put(txn, &blocks);
    if meta::read::<CallLane>(txn)?.is_some() {
        meta::put(txn, &calls);
    }
    Ok(())
}

/// The block lane's row as it was when `to` was its last height.
fn block_lane_at(snapshot: &dyn Snapshot, to: u64) -> Result<BlockLane, Error> {
    let damaged = |reason: &str| Error::Record {
        table: Blocks::SPEC.name,
        key: to.to_string(),
        reason: reason.to_owned(),
    };
    let Message(block) =
        store::table::read::<Blocks>(snapshot, &to)?.ok_or_else(|| damaged("the block is missing"))?;
    let hash = block::hash_at(snapshot, to)?.ok_or_else(|| damaged("it has no hash"))?;
    Ok(BlockLane {
        height: to,
        txs: block.first_tx + block.txs - 1,
        evm_txs: block.first_evm_tx + block.evm_txs - 1,
        time: block.time,
        hash: hash.to_vec(),
    })
}

/// The call lane's row as it was when `to` was the last height, or as it is if it has not come that far.
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
            calls.first + calls.count - 1
        }
    };
    // What is missing below stays missing.
    Ok(CallLane { height: to, calls, complete_from: lane.complete_from.min(to + 1) })
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

/// Forgets the message-type sets that no transaction up to `txs` has.
fn forget_sets(txn: &mut Txn<'_>, txs: u64) -> Result<(), Error> {
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

/// One commit of what `write` writes.
pub(crate) fn commit(
    store: &dyn Store,
    write: impl FnOnce(&mut Txn<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    write(&mut txn)?;
    let (batch, _) = txn.finish();
    Ok(store.commit(batch, Durability::Synced)?)
}
