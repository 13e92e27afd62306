//! Taking the rich list back to an earlier height.
//!
//! Each block leaves behind what the rows were that it changed, for some heights; further back the list is cleared and
//! made anew.

use store::{Batch, Bounds, Counts, Durability, Message, Order, RANK, Store, Table, TableSpec, Txn};

use super::{Balances, Denoms, DenomsFolded, Erc20s, Holders, Newborns, RichUndo, amount_of, set_balance};
use crate::Error;
use crate::keys::BEYOND;
use crate::meta::{self, Meta, RichLane};

/// Heights that can be taken back.
pub const UNDO_HEIGHTS: u64 = 1000;

/// Every table of the rich list.
const TABLES: [&TableSpec; 7] = [
    Erc20s::SPEC,
    Newborns::SPEC,
    Balances::SPEC,
    Holders::SPEC,
    Denoms::SPEC,
    DenomsFolded::SPEC,
    RichUndo::SPEC,
];

/// The rows that a block changed, as they were before it, first change first.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Undo {
    /// The rows; later ones of the same key count for nothing.
    #[prost(message, repeated, tag = "1")]
    pub rows: Vec<UndoRow>,
}

/// A row as it was.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UndoRow {
    /// Tag of its table.
    #[prost(uint32, tag = "1")]
    pub table: u32,
    /// Its key.
    #[prost(bytes = "vec", tag = "2")]
    pub key: Vec<u8>,
    /// Its value; none if there was no row.
    #[prost(bytes = "vec", optional, tag = "3")]
    pub value: Option<Vec<u8>>,
}

/// Rows that a block is about to change.
#[derive(Debug, Default)]
pub struct Before {
    undo: Undo,
    seen: std::collections::HashSet<(u8, Vec<u8>)>,
}

impl Before {
    /// Notes the row of `key` as it is in `txn`, if it was not noted before.
    pub fn note<T: Table>(&mut self, txn: &Txn<'_>, key: &T::Key) -> Result<(), Error> {
        let key = store::Key::to_bytes(key);
        if self.seen.insert((T::SPEC.tag, key.clone())) {
            let value = store::Snapshot::get(txn, T::SPEC, &key)?;
            self.undo.rows.push(UndoRow { table: u32::from(T::SPEC.tag), key, value });
        }
        Ok(())
    }
}

/// Stores what was changed at `height`, behind what was before, and forgets the height that is too far back.
pub fn put_undo(txn: &mut Txn<'_>, height: u64, before: Before) -> Result<(), Error> {
    if !before.undo.rows.is_empty() {
        let mut undo = txn.get::<RichUndo>(&height)?.map_or_else(Undo::default, |Message(undo)| undo);
        undo.rows.extend(before.undo.rows);
        txn.put::<RichUndo>(&height, &Message(undo));
    }
    if let Some(old) = height.checked_sub(UNDO_HEIGHTS) {
        txn.delete::<RichUndo>(&old);
    }
    Ok(())
}

/// What became of a wish to go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// It was no further than that.
    Nothing,
    /// It is what it was.
    Exactly,
    /// It is empty, and will be made anew.
    Cleared,
}

/// Takes the rich list back to `to`. May be interrupted and called again. The result is on the device after the next commit
/// that is.
pub fn go_back(store: &dyn Store, to: u64) -> Result<Undone, Error> {
    let Some(lane) = meta::read::<RichLane>(&*store.snapshot()?)? else { return Ok(Undone::Nothing) };
    if lane.height <= to && lane.baseline <= to {
        return Ok(Undone::Nothing);
    }
    if lane.baseline > to || lane.height.saturating_sub(to) > UNDO_HEIGHTS {
        clear(store)?;
        return Ok(Undone::Cleared);
    }
    for height in (to + 1..=lane.height).rev() {
        undo(store, height)?;
    }
    Ok(Undone::Exactly)
}

/// Takes back one height, the lane's last, in one commit.
fn undo(store: &dyn Store, height: u64) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    let rows = txn.get::<RichUndo>(&height)?.map_or_else(Vec::new, |Message(undo)| undo.rows);
    let mut raw = Batch::new();
    // The first note of a row is what it was.
    for row in rows.into_iter().rev() {
        let damaged = || Error::Record {
            table: RichUndo::SPEC.name,
            key: height.to_string(),
            reason: "a row is not one of the rich list's".to_owned(),
        };
        if row.table == u32::from(Balances::SPEC.tag) {
            let key: (super::Address, super::Address) =
                store::Key::from_bytes(&row.key).ok_or_else(damaged)?;
            let amount = row.value.map(|value| amount_of(&value).ok_or_else(damaged)).transpose()?;
            set_balance(&mut txn, &key.0, &key.1, amount)?;
            continue;
        }
        let specs = [Erc20s::SPEC, Newborns::SPEC, Denoms::SPEC, DenomsFolded::SPEC];
        let spec = specs.into_iter().find(|spec| u32::from(spec.tag) == row.table).ok_or_else(damaged)?;
        match row.value {
            Some(value) => raw.put(spec, row.key, value),
            None => raw.delete(spec, row.key),
        }
    }
    txn.delete::<RichUndo>(&height);
    let mut lane: RichLane = meta::read(&txn)?.unwrap_or_default();
    lane.height = height - 1;
    meta::put(&mut txn, &lane);
    let (mut batch, _pending) = txn.finish();
    batch.append(raw);
    Ok(store.commit(batch, Durability::Buffered)?)
}

/// Forgets the whole rich list.
pub fn clear(store: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.delete(Meta::SPEC, store::Key::to_bytes(&meta::key::<RichLane>()));
    for spec in TABLES {
        batch.delete_range(spec, Vec::new(), BEYOND.to_vec());
    }
    batch.delete_range(RANK, vec![Holders::SPEC.tag], vec![Holders::SPEC.tag + 1]);
    Ok(store.commit(batch, Durability::Synced)?)
}

/// Finishes a clearing that was interrupted, as those of earlier versions could be: without a lane there is no rich list.
pub fn finish_pending(store: &dyn Store) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    if meta::read::<RichLane>(&*snapshot)?.is_some() {
        return Ok(());
    }
    for spec in TABLES {
        if !snapshot.scan(spec, Bounds::all(), Order::Asc, 1)?.is_empty() {
            return clear(store);
        }
    }
    Ok(())
}
