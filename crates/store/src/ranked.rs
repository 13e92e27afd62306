//! Ordered sets that change, with a rank for every item: how many there are, which one is the `n`th, and how many stand
//! before one, each in time that grows with the logarithm of the set.
//!
//! An item is a row of its own table, `owner | item → value`, in the order of the item's bytes. Beside them, in the table
//! `rank`, stand *nodes*: of every 64 items about one has a node of height 1, of 4,096 one of height 2, and so on. A
//! node of height `n` has a row at each level up to `n` that counts the items since the node before it on that level
//! (itself not among them). To find the `n`th item is to walk the highest level as far as the counts allow, then the one
//! below.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | the set's own | owner, item | what the item holds |
//! | `rank` | tag of the set (1), owner, `00` | number of items, then of nodes on level 1, 2, 3, 4 (varints) |
//! | `rank` | tag of the set (1), owner, level (1), item | items since the node before it (varint) |
//!
//! What must hold: which items have nodes depends on their bytes alone (a hash of owner and item), so the same set is the
//! same rows, whatever was added and removed on the way; a set without items has no rows. Somebody who chooses items by
//! their hash makes their own set slow, not wrong.

mod audit;
mod skip_list;

use std::ops::Range;

pub use audit::{Inconsistency, audit, repair};

use self::skip_list::SkipList;
use crate::{
    engine::{Bounds, Order, Snapshot, prefix_end},
    error::Error,
    key::Key,
    spec::{Access, TableSpec},
    table::{RowOf, Table, decode_row},
    txn::Txn,
    value::Value,
};

/// Lengths and nodes of all ranked sets; every database with ranked sets opens it.
pub const RANK: &TableSpec = &TableSpec { name: "rank", tag: 0x05, access: Access::Scan };

/// An ordered set of items for each owner.
pub trait Ranked: Table<Key = (Self::Owner, Self::Item)> {
    /// Whose set it is; `()` if there is only one.
    type Owner: Key;
    /// What is ordered.
    type Item: Key;
    /// One item in 2^this has a node on the next level. Part of the format.
    const PROMOTION_BITS: u32 = 6;
}

/// An item and what it holds.
pub type ItemOf<R> = (<R as Ranked>::Item, <R as Table>::Value);

/// Number of items of `owner`.
pub fn len<R: Ranked>(snapshot: &dyn Snapshot, owner: &R::Owner) -> Result<u64, Error> {
    Ok(SkipList::of::<R>(owner).meta(snapshot)?.len)
}

/// Number of items of `owner` before `item`, whether or not that one is among them.
pub fn position<R: Ranked>(snapshot: &dyn Snapshot, owner: &R::Owner, item: &R::Item) -> Result<u64, Error> {
    let set = SkipList::of::<R>(owner);
    let meta = set.meta(snapshot)?;
    set.rank(snapshot, &meta, &item.to_bytes())
}

/// The items at `ranks`, ascending, with their values. All must be below the length that the same snapshot gave: one that
/// is missing is an error. The caller bounds the range; it is held in memory.
pub fn slice<R: Ranked>(
    snapshot: &dyn Snapshot,
    owner: &R::Owner,
    ranks: Range<u64>,
) -> Result<Vec<ItemOf<R>>, Error> {
    if ranks.is_empty() {
        return Ok(Vec::new());
    }
    let set = SkipList::of::<R>(owner);
    let rows = set.slice(snapshot, &set.meta(snapshot)?, ranks)?;
    let typed = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let ((_, item), value): RowOf<R> = decode_row::<R>(key, value)?;
        Ok((item, value))
    };
    rows.iter().map(typed).collect()
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
    let rows = snapshot.scan(R::SPEC, Bounds { start: &start, end: end.as_deref() }, order, limit)?;
    let typed = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let ((_, item), value): RowOf<R> = decode_row::<R>(key, value)?;
        Ok((item, value))
    };
    rows.iter().map(typed).collect()
}

impl Txn<'_> {
    /// Adds `item` to the set of `owner`, or gives it a new value. Whether it was new.
    pub fn insert<R: Ranked>(
        &mut self,
        owner: &R::Owner,
        item: &R::Item,
        value: &R::Value,
    ) -> Result<bool, Error> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        SkipList::of::<R>(owner).insert(self, &item.to_bytes(), bytes)
    }

    /// Takes `item` out of the set of `owner`. Whether it was there.
    pub fn remove<R: Ranked>(&mut self, owner: &R::Owner, item: &R::Item) -> Result<bool, Error> {
        SkipList::of::<R>(owner).remove(self, &item.to_bytes())
    }
}
