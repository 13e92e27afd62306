//! Sorted sets with ranks, as indexable skip lists (like Redis's ZSET): length, `n`th item and rank of an item, each in
//! logarithmic time.
//!
//! An item is a row of the set's table, `owner | item → value`, ordered by the item's bytes: level 0 of the skip list.
//! The higher levels are rows of the table `rank`: about one item in 64 has a node on level 1, one in 4,096 on level 2,
//! and so on. A node stores its span: the number of items from the previous node of its level up to, and without, its
//! own item. A search for the `n`th item walks each level, from the highest, as far as the sum of the spans allows.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | the set's own | owner, item | value of the item |
//! | `rank` | tag of the set (1), owner, `00` | number of items, then of nodes on level 1, 2, 3, 4 (varints) |
//! | `rank` | tag of the set (1), owner, level (1), item | span of the node (varint) |
//!
//! # Invariants
//!
//! * The height of an item is a hash of owner and item, so equal sets have equal rows, whatever their history. An
//!   adversary who chooses items by their hash makes a set slow, but not wrong.
//! * A set without items has no rows.
//! * Within a transaction, counts and nodes are in memory (`levels`) until the end: [`Txn::set_len`] reads them, the
//!   other functions here read a snapshot of the store only.

mod build;
pub(crate) mod cache;
mod change;
pub(crate) mod levels;
pub(crate) mod skip_list;

use std::ops::Range;

pub use self::build::index_items;
pub use self::skip_list::RANK;
use self::{change::Change, levels::Levels, skip_list::SkipList};
use crate::{
    engine::{Bounds, Order, Snapshot, prefix_end},
    error::Error,
    key::Key,
    spec::Access,
    table::{RowOf, Table, decode_row},
    txn::Txn,
    value::Value,
};

/// An ordered set of items for each owner.
pub trait Ranked: Table<Key = (Self::Owner, Self::Item)> {
    /// Key of the set's owner; `()` for a single set.
    type Owner: Key;
    /// The ordered items.
    type Item: Key;
    /// One item in `2^PROMOTION_BITS` is promoted to the next level. Part of the disk format.
    const PROMOTION_BITS: u32 = 6;
}

/// An item and its value.
pub type ItemOf<R> = (<R as Ranked>::Item, <R as Table>::Value);

fn set<R: Ranked>(owner: &R::Owner) -> SkipList {
    const { assert!(matches!(R::SPEC.access, Access::Ranked), "the table of a ranked set has that access") };
    SkipList::new(R::SPEC, owner.to_bytes(), R::PROMOTION_BITS)
}

/// Number of items of `owner`.
pub fn len<R: Ranked>(snapshot: &dyn Snapshot, owner: &R::Owner) -> Result<u64, Error> {
    Ok(set::<R>(owner).meta(snapshot)?.len)
}

/// Number of items of `owner` before `item`, whether or not `item` is in the set.
pub fn position<R: Ranked>(snapshot: &dyn Snapshot, owner: &R::Owner, item: &R::Item) -> Result<u64, Error> {
    let set = set::<R>(owner);
    let meta = set.meta(snapshot)?;
    set.rank(snapshot, &meta, &item.to_bytes())
}

/// The items at `ranks`, ascending, with their values. All ranks must be below the length that the same snapshot gave:
/// a missing item is an error. The caller bounds the range; it is held in memory.
pub fn slice<R: Ranked>(
    snapshot: &dyn Snapshot,
    owner: &R::Owner,
    ranks: Range<u64>,
) -> Result<Vec<ItemOf<R>>, Error> {
    if ranks.is_empty() {
        return Ok(Vec::new());
    }
    let (set, mut items) = (set::<R>(owner), Vec::new());
    set.slice(snapshot, &set.meta(snapshot)?, ranks, |key, value| items.push(decode_item::<R>(key, value)))?;
    items.into_iter().collect()
}

/// The first `limit` items of `owner` in `order`, without counting.
pub fn items<R: Ranked>(
    snapshot: &dyn Snapshot,
    owner: &R::Owner,
    order: Order,
    limit: usize,
) -> Result<Vec<ItemOf<R>>, Error> {
    let start = owner.to_bytes();
    let end = prefix_end(&start);
    let (bounds, mut items) = (Bounds { start: &start, end: end.as_deref() }, Vec::new());
    snapshot.visit(R::SPEC, bounds, order, limit, &mut |key, value| {
        items.push(decode_item::<R>(key, value));
    })?;
    items.into_iter().collect()
}

fn decode_item<R: Ranked>(key: &[u8], value: &[u8]) -> Result<ItemOf<R>, Error> {
    let ((_, item), value): RowOf<R> = decode_row::<R>(key, value)?;
    Ok((item, value))
}

impl Txn<'_> {
    /// Inserts `item` into the set of `owner`, or replaces its value. Returns true if it was new.
    pub fn insert<R: Ranked>(
        &mut self,
        owner: &R::Owner,
        item: &R::Item,
        value: &R::Value,
    ) -> Result<bool, Error> {
        with_set::<R, _>(self, owner, |set| set.insert(&item.to_bytes(), value.encoded()))
    }

    /// Removes `item` from the set of `owner`. Returns true if it was present.
    pub fn remove<R: Ranked>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<bool, Error> {
        with_set::<R, _>(self, owner, |set| set.remove(&item.to_bytes()))
    }

    /// Number of items of `owner`, as this transaction has left them.
    pub fn set_len<R: Ranked>(&mut self, owner: &R::Owner) -> Result<u64, Error> {
        with_set::<R, _>(self, owner, |set| Ok(set.levels.meta.len))
    }
}

/// Opens the set of `owner` for `change`.
fn with_set<R: Ranked, T>(
    txn: &mut Txn<'_>,
    owner: &R::Owner,
    change: impl FnOnce(&mut Change<'_, '_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let set = set::<R>(owner);
    let set_key = set.set_key().into_boxed_slice();
    let mut levels = if let Some(levels) = txn.take_set(&set_key) {
        levels
    } else {
        let room = txn.sets().room();
        let levels = Levels::load(&set, txn, room)?;
        txn.sets().loaded(&levels);
        Box::new(levels)
    };
    let before = levels.changed_bytes(&set_key);
    let outcome = change(&mut Change { set: &set, levels: &mut levels, txn });
    txn.add_bytes(levels.changed_bytes(&set_key).saturating_sub(before));
    txn.sets().put(set_key, levels);
    outcome
}

#[cfg(test)]
mod tests;
