//! Rollback of a database that may be damaged, by full table scans.
//!
//! # Invariants
//!
//! * Every row of the removed blocks is deleted, even if stored lengths or orders are wrong.
//! * Rows of the remaining blocks are not changed, except that rows whose keys do not decode are deleted.
//! * An interrupted run is repeated from the start.

use std::collections::BTreeSet;

use store::{
    Bounds, BulkWriter, COUNT, Counts, Durability, Key as _, List, Message, Order, Store, Table, Txn,
    Value as _, prefix_end,
};

use super::{block_lane_at, call_lane_at};
use crate::block::Blocks;
use crate::evm_tx::{AccountEvmTxs, EvmTxByHash, EvmTxs};
use crate::internal_tx::{AccountCalls, Calls, CallsByHeight};
use crate::keys::BEYOND;
use crate::meta::{self, BlockLane, CallLane, Identity, Meta, PendingRollback, RichLane};
use crate::msg_set::{MsgSetByNames, MsgSetByType, MsgSets};
use crate::nft::rebuild;
use crate::nft::{NftLog, NonCollections, PendingEvents, Question, Questions, Renewal, Renewals, renewal};
use crate::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use crate::undo::UndoRecords;
use crate::{Error, open, postings, rich};

/// Removes every block above `to`, which may be the height before the first one. Marks the NFT rebuild as pending.
pub(super) fn finish(store: &dyn Store, to: u64) -> Result<(), Error> {
    let Identity { start_height, .. } = open::existing(store)?;
    let (blocks, calls) = if to < start_height {
        (BlockLane::default(), CallLane::default())
    } else {
        let snapshot = store.snapshot()?;
        (block_lane_at(&*snapshot, to)?, call_lane_at(&*snapshot, to)?)
    };

    for spec in [AccountTxs::SPEC, AccountSetTxs::SPEC, SetTxs::SPEC] {
        store::list::rebuild(store, spec, blocks.txs + 1)?;
    }
    store::list::rebuild(store, AccountEvmTxs::SPEC, blocks.evm_txs + 1)?;
    store::list::rebuild(store, AccountCalls::SPEC, calls.calls + 1)?;

    keep::<Txs>(store, |&seq, _| seq <= blocks.txs)?;
    postings::truncate_all(store, TxByHash::SPEC, blocks.txs, true)?;
    keep::<EvmTxs>(store, |&seq, _| seq <= blocks.evm_txs)?;
    postings::truncate_all(store, EvmTxByHash::SPEC, blocks.evm_txs, true)?;
    keep::<Calls>(store, |&seq, _| seq <= calls.calls)?;
    keep::<CallsByHeight>(store, |&height, _| height <= to)?;
    keep::<NftLog>(store, |place, _| place.height <= to)?;
    keep::<NonCollections>(store, |&(_, found_at), _| found_at <= to)?;
    keep::<Questions>(store, |_, value| Message::<Question>::decode(value).is_some())?;
    keep::<Renewals>(store, |_, value| Message::<Renewal>::decode(value).is_some())?;
    renewal::rewind(store, to)?;
    keep::<PendingEvents>(store, |&(_, height, _), _| height <= to)?;
    delete_unused_sets(store)?;
    take_rich_list_back(store, to)?;
    keep::<Blocks>(store, |&height, _| height <= to)?;

    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    if to < start_height {
        txn.delete::<Meta>(&meta::key::<BlockLane>());
        txn.delete::<Meta>(&meta::key::<CallLane>());
    } else {
        meta::put(&mut txn, &blocks);
        if meta::read::<CallLane>(&txn)?.is_some() {
            meta::put(&mut txn, &calls);
        }
    }
    meta::count_rewind(&mut txn, to)?;
    txn.delete::<Meta>(&meta::key::<PendingRollback>());
    let (mut batch, _) = txn.finish();
    rebuild::begin(&mut batch);
    // Undo records may be damaged too, and nothing depends on them.
    batch.delete_range(UndoRecords::SPEC, Vec::new(), BEYOND.to_vec());
    Ok(store.commit(batch, Durability::Synced)?)
}

/// Rewinds the rich list, or clears it if its rows are damaged.
fn take_rich_list_back(store: &dyn Store, to: u64) -> Result<(), Error> {
    let lane = meta::read::<RichLane>(&*store.snapshot()?);
    match lane.and_then(|_| rich::rewind(store, to)) {
        Ok(_) => Ok(()),
        Err(Error::Store(store::Error::Corrupt { .. }) | Error::Record { .. }) => rich::clear(store),
        Err(error) => Err(error),
    }
}

/// Deletes the rows of `T` that are not `wanted`, and those whose keys do not decode.
fn keep<T: Table>(store: &dyn Store, wanted: impl Fn(&T::Key, &[u8]) -> bool) -> Result<(), Error> {
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    store::for_each_row(&*snapshot, T::SPEC, Bounds::all(), |key, value| -> Result<(), Error> {
        if T::Key::from_bytes(key).is_none_or(|decoded| !wanted(&decoded, value)) {
            writer.delete(T::SPEC, key.to_vec())?;
        }
        Ok(())
    })?;
    Ok(writer.finish(Durability::Buffered)?)
}

/// Deletes the message-type sets that no transaction uses any more.
fn delete_unused_sets(store: &dyn Store) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let (start, end) = ([SetTxs::SPEC.tag], prefix_end(&[SetTxs::SPEC.tag]));
    let mut left: BTreeSet<u32> = BTreeSet::new();
    let mut after = start.to_vec();
    loop {
        let bounds = Bounds { start: &after, end: end.as_deref() };
        let counts = snapshot.scan(COUNT, bounds, Order::Asc, 1024)?;
        let Some((last, _)) = counts.last() else { break };
        after = store::key::successor(last);
        left.extend(counts.iter().filter_map(|(key, _)| u32::from_bytes(key.get(1..)?)));
    }
    drop(snapshot);
    keep::<MsgSets>(store, |set, value| {
        left.contains(set) && Message::<crate::msg_set::MsgSet>::decode(value).is_some()
    })?;
    keep::<MsgSetByNames>(store, |_, value| {
        u64::decode(value).and_then(|set| u32::try_from(set).ok()).is_some_and(|set| left.contains(&set))
    })?;
    keep::<MsgSetByType>(store, |(_, set), _| left.contains(set))
}
