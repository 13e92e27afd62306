//! The undo log of the rich list.
//!
//! A record has the prior values of the rows that a group of heights changed: near the head of a single height, far behind
//! it of all heights of a commit. A rewind into a group ends before it, and the ingest applies its first heights again. A
//! rewind beyond [`UNDO_HEIGHTS`] clears the list, and the ingest builds it anew.

use std::ops::RangeInclusive;

use store::{Batch, Counts, Durability, Message, RANK, Store, Table, TableSpec, Txn};

use super::{
    AccountTokens, Balances, Denoms, DenomsFolded, Erc20s, Holders, NewContracts, RichUndo, amount_of,
    set_balance,
};
use crate::Error;
use crate::balances::BALANCES;
use crate::keys::KEY_END;
use crate::meta::{self, Meta, RichLane};

/// Heights that the undo log covers.
pub const UNDO_HEIGHTS: u64 = 1000;

/// Every table of the rich list.
const TABLES: [&TableSpec; 8] = [
    Erc20s::SPEC,
    NewContracts::SPEC,
    Balances::SPEC,
    AccountTokens::SPEC,
    Holders::SPEC,
    Denoms::SPEC,
    DenomsFolded::SPEC,
    RichUndo::SPEC,
];

/// Prior values of the rows that a group of heights changed, in the order of the changes.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Undo {
    /// The rows; of several with the same key the first one applies.
    #[prost(message, repeated, tag = "1")]
    pub rows: Vec<UndoRow>,
    /// The height before the group; 0 for a group of one height.
    #[prost(uint64, tag = "2")]
    pub from: u64,
}

/// The prior value of a row.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct UndoRow {
    /// Tag of its table.
    #[prost(uint32, tag = "1")]
    pub table: u32,
    /// Its key.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// Its value; none if there was no row.
    #[serde(serialize_with = "crate::json::optional_hex")]
    #[prost(bytes = "vec", optional, tag = "3")]
    pub value: Option<Vec<u8>>,
}

/// A builder of the undo record of a group of heights.
#[derive(Debug, Default)]
pub struct UndoBuilder {
    undo: Undo,
    seen: std::collections::HashSet<(u8, Vec<u8>)>,
}

impl UndoBuilder {
    /// Records the current value of the row `key`, unless it is recorded already.
    pub fn record<T: Table>(&mut self, txn: &Txn<'_>, key: &T::Key) -> Result<(), Error> {
        let key = store::Key::to_bytes(key);
        if self.seen.insert((T::SPEC.tag, key.clone())) {
            let value = store::Snapshot::get(txn, T::SPEC, &key)?;
            self.undo.rows.push(UndoRow { table: u32::from(T::SPEC.tag), key, value });
        }
        Ok(())
    }
}

/// Appends to the undo record of the group `heights`, and deletes the records that are too old.
pub fn put_undo(txn: &mut Txn<'_>, heights: RangeInclusive<u64>, before: UndoBuilder) -> Result<(), Error> {
    let (first, last) = heights.into_inner();
    if !before.undo.rows.is_empty() {
        let mut undo = txn.get::<RichUndo>(&last)?.map_or_else(Undo::default, |Message(undo)| undo);
        undo.rows.extend(before.undo.rows);
        if first < last {
            undo.from = first.saturating_sub(1);
        }
        txn.put::<RichUndo>(&last, &Message(undo));
    }
    for old in first.saturating_sub(UNDO_HEIGHTS)..=last.saturating_sub(UNDO_HEIGHTS) {
        txn.delete::<RichUndo>(&old);
    }
    Ok(())
}

/// The outcome of a rewind of the rich list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindOutcome {
    /// The rich list was not beyond the target height.
    Unchanged,
    /// The rich list is restored: at the target height, or at the last one before it that ends a group.
    Restored,
    /// The rich list is cleared and will be built anew.
    Cleared,
}

/// Rewinds the rich list to `to`. May be interrupted and called again. The result is durable after the next synced
/// commit.
pub fn rewind(store: &dyn Store, to: u64) -> Result<RewindOutcome, Error> {
    let Some(lane) = meta::read::<RichLane>(&*store.snapshot()?)? else {
        return Ok(RewindOutcome::Unchanged);
    };
    // Off EVM the balances follow from movements.
    let is_of_bank = BALANCES.state(&*store.snapshot()?)?.is_some();
    if is_of_bank || (lane.height <= to && lane.baseline <= to) {
        return Ok(RewindOutcome::Unchanged);
    }
    if lane.baseline > to || lane.height.saturating_sub(to) > UNDO_HEIGHTS {
        clear(store)?;
        return Ok(RewindOutcome::Cleared);
    }
    let (mut height, mut counts) = (lane.height, Counts::new(1));
    while height > to {
        height = undo(store, &mut counts, height)?;
    }
    Ok(RewindOutcome::Restored)
}

/// Reverts the group that ends with `height`, the lane's last, in one commit. Returns the height before.
fn undo(store: &dyn Store, counts: &mut Counts, height: u64) -> Result<u64, Error> {
    let snapshot = store.snapshot()?;
    let mut txn = Txn::new(&*snapshot, counts);
    let Undo { rows, from } = txn.get::<RichUndo>(&height)?.map_or_else(Undo::default, |Message(undo)| undo);
    let mut raw = Batch::new();
    // In reverse order, so that the first recorded value of a row is written last.
    for row in rows.into_iter().rev() {
        let invalid = || Error::Record {
            table: RichUndo::SPEC.name,
            key: height.to_string(),
            reason: "a row is not one of the rich list's".to_owned(),
        };
        if row.table == u32::from(Balances::SPEC.tag) {
            let key: (super::Address, super::Address) =
                store::Key::from_bytes(&row.key).ok_or_else(invalid)?;
            let amount = row.value.map(|value| amount_of(&value).ok_or_else(invalid)).transpose()?;
            set_balance(&mut txn, &key.0, &key.1, amount)?;
            continue;
        }
        let specs = [Erc20s::SPEC, NewContracts::SPEC, Denoms::SPEC, DenomsFolded::SPEC];
        let spec = specs.into_iter().find(|spec| u32::from(spec.tag) == row.table).ok_or_else(invalid)?;
        match row.value {
            Some(value) => raw.put(spec, row.key, value),
            None => raw.delete(spec, row.key),
        }
    }
    txn.delete::<RichUndo>(&height);
    let mut lane: RichLane = meta::read(&txn)?.unwrap_or_default();
    lane.height = if from == 0 { height - 1 } else { from };
    meta::put(&mut txn, &lane);
    let (mut batch, pending) = txn.finish();
    batch.extend(raw);
    drop(snapshot);
    store.commit(batch, Durability::Buffered)?;
    counts.absorb(pending);
    Ok(lane.height)
}

/// Deletes the whole rich list.
pub fn clear(store: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.delete(Meta::SPEC, store::Key::to_bytes(&meta::key::<RichLane>()));
    for spec in TABLES {
        batch.delete_range(spec, Vec::new(), KEY_END.to_vec());
    }
    batch.delete_range(RANK, vec![Holders::SPEC.tag], vec![Holders::SPEC.tag + 1]);
    Ok(store.commit(batch, Durability::Synced)?)
}
