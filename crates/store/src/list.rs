//! Append-only lists as arrays, with O(1) length and random access.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | the list's own | owner, ordinal of the row's first entry (8, BE) | up to [`ROW`] entries (varints) |
//! | `count` | tag of the list (1), owner | length (varint) |
//!
//! A total is one read, an offset is arithmetic at any depth, and a page is a bounded range in both directions. The writer
//! appends to the last row without a read of it.
//!
//! # Invariants
//!
//! A list of length n has exactly the ordinals 0 to n - 1; a row begins at a multiple of [`ROW`], and all rows but the
//! last are full; values strictly increase with the ordinal; an owner without entries has no length row.

mod audit;

use std::ops::Range;

pub use audit::{Inconsistency, audit};

use crate::{
    batch::Batch,
    engine::{Bounds, Order, Snapshot},
    error::Error,
    key::Key,
    spec::{Access, TableSpec},
    table::corrupt,
    value::{Value, put_varint, take_varint},
};

/// Entries of a row. With more, busy owners have fewer rows; a read of one entry decodes more, and at the head of a chain,
/// where each block appends to it, the engine combines more parts of the last row.
pub const ROW: u64 = 32;

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

/// A row: consecutive entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRow {
    /// Ordinal of the first entry.
    first: u64,
    entries: Vec<u64>,
}

impl ListRow {
    /// The row of the entry at `ordinal`, with this key and value.
    fn decode(spec: &'static TableSpec, key: &[u8], ordinal: u64, value: &[u8]) -> Result<Self, Error> {
        let entries = values(value).ok_or_else(|| corrupt(spec, key, "the value is not a row of entries"))?;
        Ok(Self { first: first_of_row(ordinal), entries })
    }

    /// The entry at `ordinal`, if it is in this row.
    pub fn get(&self, ordinal: u64) -> Option<u64> {
        let at = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        self.entries.get(at).copied()
    }
}

/// The entries at `places`, owners with ordinals, in their order, in one batched read, each with its row. All must be
/// below the lengths that the same snapshot gave: a missing entry is an error.
pub fn entries<'a, L: List>(
    snapshot: &dyn Snapshot,
    places: impl Iterator<Item = (&'a L::Owner, u64)>,
) -> Result<Vec<(u64, ListRow)>, Error> {
    let (keys, ordinals): (Vec<_>, Vec<_>) =
        places.map(|(owner, ordinal)| (row_key(&owner.to_bytes(), ordinal), ordinal)).unzip();
    let entry = |((key, ordinal), row): ((&Vec<u8>, u64), Option<Vec<u8>>)| {
        let row = row.ok_or_else(|| corrupt(L::SPEC, key, MISSING))?;
        let row = ListRow::decode(L::SPEC, key, ordinal, &row)?;
        let entry = row.get(ordinal).ok_or_else(|| corrupt(L::SPEC, key, MISSING))?;
        Ok((entry, row))
    };
    keys.iter().zip(ordinals).zip(snapshot.multi_get(L::SPEC, &keys)?).map(entry).collect()
}

/// The entry at `ordinal`; `None` beyond the end.
pub fn get<L: List>(snapshot: &dyn Snapshot, owner: &L::Owner, ordinal: u64) -> Result<Option<u64>, Error> {
    let key = row_key(&owner.to_bytes(), ordinal);
    let row = snapshot.get(L::SPEC, &key)?;
    let row = row.map(|row| ListRow::decode(L::SPEC, &key, ordinal, &row)).transpose()?;
    Ok(row.and_then(|row| row.get(ordinal)))
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
    let (start, end) = (row_key(&owner, ordinals.start), entry_key(&owner, ordinals.end));
    let bounds = Bounds { start: &start, end: Some(&end) };
    let len = usize::try_from(ordinals.end - ordinals.start).unwrap_or(usize::MAX);
    let missing = |ordinal| corrupt(L::SPEC, &row_key(&owner, ordinal), MISSING);
    // The rows of an owner are dense, so the limit never truncates a healthy list.
    let rows = ordinals.end.div_ceil(ROW) - ordinals.start / ROW;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut entries = Ok(Vec::with_capacity(len.min(LIKELY_ENTRIES)));
    snapshot.visit(L::SPEC, bounds, Order::Asc, rows, &mut |key, row| {
        let Ok(found) = &mut entries else { return };
        let next = ordinals.start + found.len() as u64;
        let is_next = key.strip_prefix(&*owner).is_some_and(|rest| rest == first_of_row(next).to_be_bytes());
        let row = if is_next { ListRow::decode(L::SPEC, key, next, row) } else { Err(missing(next)) };
        match row {
            Ok(row) => found.extend((next..ordinals.end).map_while(|ordinal| row.get(ordinal))),
            Err(error) => entries = Err(error),
        }
    })?;
    let entries: Vec<u64> = entries?;
    if entries.len() < len {
        return Err(missing(ordinals.start + entries.len() as u64));
    }
    Ok(entries)
}

/// Initial capacity for a page; a slice may be far longer.
const LIKELY_ENTRIES: usize = 128;

/// Number of entries of `owner` that are less than `value`: the ordinal of `value`, or the one it would have. `len` is
/// the length that the same snapshot gave. Costs about log2(`len` / [`ROW`]) reads.
pub fn position<L: List>(
    snapshot: &dyn Snapshot,
    owner: &L::Owner,
    len: u64,
    value: u64,
) -> Result<u64, Error> {
    let owner = owner.to_bytes();
    // Rows before `low` have only smaller entries, rows from `high` on only others.
    let (mut low, mut high) = (0, len.div_ceil(ROW));
    while low < high {
        let middle = low.midpoint(high);
        let (first, key) = (middle * ROW, entry_key(&owner, middle * ROW));
        let row = snapshot.get(L::SPEC, &key)?.ok_or_else(|| corrupt(L::SPEC, &key, MISSING))?;
        let row = ListRow::decode(L::SPEC, &key, first, &row)?.entries;
        let smaller = row.partition_point(|entry| *entry < value) as u64;
        let expected = ROW.min(len - first);
        if (row.len() as u64) < expected {
            return Err(corrupt(L::SPEC, &key, MISSING));
        }
        match smaller {
            0 => high = middle,
            _ if smaller >= expected => low = middle + 1,
            _ => return Ok(first + smaller),
        }
    }
    Ok(len.min(low * ROW))
}

/// The entries of a row; `None` if there are none, or more than [`ROW`], or if they do not decode.
pub fn values(mut row: &[u8]) -> Option<Vec<u64>> {
    let mut values = Vec::new();
    while !row.is_empty() {
        values.push(take_varint(&mut row)?);
    }
    Some(values).filter(|values| (1..=ROW).contains(&(values.len() as u64)))
}

const MISSING: &str = "an entry below the length of its list is missing";

/// Adds writes to `batch` that remove the entries from `keep` on of a list of `len` entries. Its length stays.
pub(crate) fn cut(
    snapshot: &dyn Snapshot,
    spec: &'static TableSpec,
    owner: &[u8],
    (keep, len): (u64, u64),
    batch: &mut Batch,
) -> Result<(), Error> {
    let whole = keep.next_multiple_of(ROW);
    if keep < whole {
        let key = row_key(owner, keep);
        let row = snapshot.get(spec, &key)?.ok_or_else(|| corrupt(spec, &key, MISSING))?;
        let (row, mut kept) = (ListRow::decode(spec, &key, keep, &row)?, Vec::new());
        for ordinal in row.first..keep {
            put_varint(row.get(ordinal).ok_or_else(|| corrupt(spec, &key, MISSING))?, &mut kept);
        }
        batch.put(spec, key, kept);
    }
    let mut first = whole;
    while first < len {
        batch.delete(spec, entry_key(owner, first));
        first += ROW;
    }
    Ok(())
}

/// The length stored under `count_key`.
pub(crate) fn stored_len(snapshot: &dyn Snapshot, count_key: &[u8]) -> Result<u64, Error> {
    let len = snapshot.get(COUNT, count_key)?;
    len.map_or(Ok(0), |len| decode_number(COUNT, count_key, &len))
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

/// Key of a row that begins at `ordinal`: owner, ordinal.
pub(crate) fn entry_key(owner: &[u8], ordinal: u64) -> Vec<u8> {
    [owner, &ordinal.to_be_bytes()].concat()
}

/// Key of the row of an entry.
fn row_key(owner: &[u8], ordinal: u64) -> Vec<u8> {
    entry_key(owner, first_of_row(ordinal))
}

/// The first ordinal of the row of an entry.
pub(crate) fn first_of_row(ordinal: u64) -> u64 {
    ordinal - ordinal % ROW
}
