//! Append-only lists as dense arrays: one row per ordinal and owner, with O(1) length and random access.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | the list's own | owner, ordinal (8, BE) | value (varint) |
//! | `count` | tag of the list (1), owner | length (varint) |
//!
//! A total is one read, an offset is arithmetic at any depth, and a page is a bounded range in both directions.
//!
//! # Invariants
//!
//! A list of length n has exactly the ordinals 0 to n - 1; values strictly increase with the ordinal; an owner without
//! entries has no length row.

mod audit;
mod truncate;

use std::ops::Range;

pub use audit::{Inconsistency, audit, rebuild};
pub use truncate::{LONG, truncate, truncate_long, truncate_owners};

use crate::{
    engine::{Bounds, Order, Snapshot},
    error::Error,
    key::Key,
    spec::{Access, TableSpec},
    table::corrupt,
    value::Value,
};

/// Lengths of all lists. Every database with lists needs it.
pub const COUNT: &TableSpec = &TableSpec { name: "count", tag: 0x01, access: Access::Point };

/// An append-only list of increasing numbers for each owner.
pub trait List: 'static {
    /// The table of its entries.
    const SPEC: &'static TableSpec;
    /// Key of the list's owner; `()` for a single list.
    type Owner: Key;
}

/// Number of entries of `owner`'s list.
pub fn len<L: List>(snapshot: &dyn Snapshot, owner: &L::Owner) -> Result<u64, Error> {
    stored_len(snapshot, &count_key(L::SPEC, owner))
}

/// Lengths of the lists of `owners`, in their order, in one batched read.
pub fn lens<L: List>(snapshot: &dyn Snapshot, owners: &[L::Owner]) -> Result<Vec<u64>, Error> {
    let keys: Vec<_> = owners.iter().map(|owner| count_key(L::SPEC, owner)).collect();
    let len = |(key, value): (&Vec<u8>, Option<Vec<u8>>)| {
        value.map_or(Ok(0), |value| decode_number(COUNT, key, &value))
    };
    keys.iter().zip(snapshot.multi_get(COUNT, &keys)?).map(len).collect()
}

/// The entries at `places`, owners with ordinals, in their order, in one batched read. All must be below the lengths
/// that the same snapshot gave: a missing entry is an error.
pub fn entries<'a, L: List>(
    snapshot: &dyn Snapshot,
    places: impl Iterator<Item = (&'a L::Owner, u64)>,
) -> Result<Vec<u64>, Error> {
    let keys: Vec<_> = places.map(|(owner, ordinal)| entry_key(&owner.to_bytes(), ordinal)).collect();
    let entry = |(key, value): (&Vec<u8>, Option<Vec<u8>>)| {
        let value = value.ok_or_else(|| corrupt(L::SPEC, key, MISSING))?;
        decode_number(L::SPEC, key, &value)
    };
    keys.iter().zip(snapshot.multi_get(L::SPEC, &keys)?).map(entry).collect()
}

/// The entry at `ordinal`; `None` beyond the end.
pub fn get<L: List>(snapshot: &dyn Snapshot, owner: &L::Owner, ordinal: u64) -> Result<Option<u64>, Error> {
    entry(snapshot, L::SPEC, &entry_key(&owner.to_bytes(), ordinal))
}

/// The entries at `ordinals`, ascending. All must be below the length that the same snapshot gave: a missing entry is
/// an error. The caller bounds the range; it is held in memory.
pub fn slice<L: List>(
    snapshot: &dyn Snapshot,
    owner: &L::Owner,
    ordinals: Range<u64>,
) -> Result<Vec<u64>, Error> {
    if ordinals.is_empty() {
        return Ok(Vec::new());
    }
    let owner = owner.to_bytes();
    let (start, end) = (entry_key(&owner, ordinals.start), entry_key(&owner, ordinals.end));
    let bounds = Bounds { start: &start, end: Some(&end) };
    // The keys of an owner are dense, so the limit never truncates a healthy list.
    let limit = usize::try_from(ordinals.end - ordinals.start).unwrap_or(usize::MAX);
    let missing = |ordinal| corrupt(L::SPEC, &entry_key(&owner, ordinal), MISSING);
    let mut entries = Ok(Vec::with_capacity(limit.min(LIKELY_ENTRIES)));
    snapshot.visit(L::SPEC, bounds, Order::Asc, limit, &mut |key, value| {
        let Ok(found) = &mut entries else { return };
        let ordinal = ordinals.start + found.len() as u64;
        let is_next = key.strip_prefix(&*owner).is_some_and(|rest| rest == ordinal.to_be_bytes());
        let entry = if is_next { decode_number(L::SPEC, key, value) } else { Err(missing(ordinal)) };
        match entry {
            Ok(entry) => found.push(entry),
            Err(error) => entries = Err(error),
        }
    })?;
    let entries: Vec<u64> = entries?;
    if entries.len() < limit {
        return Err(missing(ordinals.start + entries.len() as u64));
    }
    Ok(entries)
}

/// Initial capacity for a page; a slice may be far longer.
const LIKELY_ENTRIES: usize = 128;

/// Number of entries of `owner` that are less than `value`: the ordinal of `value`, or the one it would have. `len` is
/// the length that the same snapshot gave. Costs about log2(`len`) reads.
pub fn position<L: List>(
    snapshot: &dyn Snapshot,
    owner: &L::Owner,
    len: u64,
    value: u64,
) -> Result<u64, Error> {
    let owner = owner.to_bytes();
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        let key = entry_key(&owner, middle);
        let found = entry(snapshot, L::SPEC, &key)?.ok_or_else(|| corrupt(L::SPEC, &key, MISSING))?;
        if found < value { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

const MISSING: &str = "an entry below the length of its list is missing";

fn entry(snapshot: &dyn Snapshot, spec: &'static TableSpec, key: &[u8]) -> Result<Option<u64>, Error> {
    let value = snapshot.get(spec, key)?;
    value.map(|value| decode_number(spec, key, &value)).transpose()
}

/// The length stored under `count_key`.
pub(crate) fn stored_len(snapshot: &dyn Snapshot, count_key: &[u8]) -> Result<u64, Error> {
    Ok(entry(snapshot, COUNT, count_key)?.unwrap_or(0))
}

fn decode_number(spec: &'static TableSpec, key: &[u8], value: &[u8]) -> Result<u64, Error> {
    u64::decode(value).ok_or_else(|| corrupt(spec, key, "the value is not a varint"))
}

/// Key of a list's length: tag of the list, owner.
pub(crate) fn count_key(spec: &TableSpec, owner: &impl Key) -> Vec<u8> {
    let mut key = Vec::with_capacity(40);
    key.push(spec.tag);
    owner.put(&mut key);
    key
}

/// Key of an entry: owner, ordinal.
pub(crate) fn entry_key(owner: &[u8], ordinal: u64) -> Vec<u8> {
    [owner, &ordinal.to_be_bytes()].concat()
}
