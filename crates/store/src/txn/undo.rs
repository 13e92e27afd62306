//! Undo record: the prior values of the rows that a transaction changes, to revert its commit.
//!
//! | left (8, BE) | tables: n, each: tag, rows: n, each: key, value | lists: n, each: tag, owners: n, each: key, base, added |
//!
//! Numbers are varints, tags one byte. Keys are delta-encoded: the number of bytes shared with the previous key of the
//! table, the number of further bytes, and these. A value is 0 for an absent row, else its length plus 1 and its bytes.
//! An owner's key is the key of its list's length, without the tag. `left` is a hash of the rows after the transaction.
//!
//! # Invariants
//!
//! Applied to the state after the transaction, the record restores the state before it, byte for byte. For any other
//! state [`UndoRecord::matches`] returns false.

use std::{collections::BTreeMap, hash::Hasher as _};

use twox_hash::xxhash3_64::Hasher;

use crate::{
    batch::{Batch, Change, Kind},
    engine::Snapshot,
    error::Error,
    list::{COUNT, cut, stored_len},
    spec::TableSpec,
    value::{Value as _, put_varint, take_varint},
};

/// Key and prior value of a row; `None` if there was no row.
type PriorValue = (Vec<u8>, Option<Vec<u8>>);

/// Bytes that a transaction appends to rows, by their keys.
type Appends<'a> = BTreeMap<&'a [u8], Vec<u8>>;

/// The prior values of the rows that a transaction wrote, and the prior lengths of its lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoRecord {
    rows: Vec<(&'static TableSpec, Vec<PriorValue>)>,
    lists: Vec<(&'static TableSpec, Vec<ListGrowth>)>,
    /// Hash of the rows after the transaction.
    left: u64,
}

/// A list that the transaction appended to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListGrowth {
    owner: Vec<u8>,
    /// Its length before.
    base: u64,
    added: u64,
}

/// Builds the undo record of a transaction.
pub(super) struct UndoBuilder<'a> {
    before: UndoRecord,
    left: Hasher,
    excluded_rows: &'a [(&'static TableSpec, Vec<u8>)],
}

impl<'a> UndoBuilder<'a> {
    /// A builder that skips the rows `excluded_rows` (table and key).
    pub(super) fn without(excluded_rows: &'a [(&'static TableSpec, Vec<u8>)]) -> Self {
        let before = UndoRecord { rows: Vec::new(), lists: Vec::new(), left: 0 };
        Self { before, left: Hasher::new(), excluded_rows }
    }

    /// A row that changes from `old` to `new`.
    pub(super) fn row(
        &mut self,
        spec: &'static TableSpec,
        key: &[u8],
        old: Option<Vec<u8>>,
        new: Option<&[u8]>,
    ) {
        if self.excluded_rows.iter().any(|(table, excluded)| table.tag == spec.tag && excluded == key) {
            return;
        }
        hash_row(&mut self.left, spec, key, new);
        of(&mut self.before.rows, spec).push((key.to_vec(), old));
    }

    /// The rows that `batch` appends to, whose prior values are in `snapshot`.
    pub(super) fn appends(&mut self, batch: &Batch, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let mut tables: Vec<(&'static TableSpec, Appends<'_>)> = Vec::new();
        for (spec, key, change) in batch.iter() {
            if let Change::Append(bytes) = change {
                of(&mut tables, spec).entry(key).or_default().extend_from_slice(bytes);
            }
        }
        for (spec, rows) in tables {
            let keys: Vec<_> = rows.keys().map(|key| key.to_vec()).collect();
            for ((key, appended), before) in rows.into_iter().zip(snapshot.multi_get(spec, &keys)?) {
                let after = Change::Append(&appended).apply(before.clone());
                if before != after {
                    self.row(spec, key, before, after.as_deref());
                }
            }
        }
        Ok(())
    }

    /// A list that grows by `added` entries from length `base`.
    pub(super) fn list(&mut self, spec: &'static TableSpec, count_key: &[u8], (base, added): (u64, u64)) {
        let owner = count_key[1..].to_vec();
        of(&mut self.before.lists, spec).push(ListGrowth { owner, base, added });
    }

    pub(super) fn done(self) -> UndoRecord {
        UndoRecord { left: self.left.finish(), ..self.before }
    }
}

/// The part of `parts` for the table `spec`.
fn of<'a, T: Default>(parts: &'a mut Vec<(&'static TableSpec, T)>, spec: &'static TableSpec) -> &'a mut T {
    // Rows come table by table.
    if parts.last().is_none_or(|(last, _)| last.tag != spec.tag) {
        parts.push((spec, T::default()));
    }
    let last = parts.len() - 1;
    &mut parts[last].1
}

impl UndoRecord {
    /// True if all rows that the transaction wrote are in `snapshot` as the transaction left them.
    pub fn matches(&self, snapshot: &dyn Snapshot) -> Result<bool, Error> {
        for (spec, owners) in &self.lists {
            for growth in owners {
                if stored_len(snapshot, &count_key(spec, growth))? != growth.base.saturating_add(growth.added)
                {
                    return Ok(false);
                }
            }
        }
        let mut left = Hasher::new();
        for (spec, rows) in &self.rows {
            let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
            for (key, value) in keys.iter().zip(snapshot.multi_get(spec, &keys)?) {
                hash_row(&mut left, spec, key, value.as_deref());
            }
        }
        Ok(left.finish() == self.left)
    }

    /// True if the transaction changed nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.lists.is_empty()
    }

    /// Removes the rows of `spec` from the record. Returns true if there were any.
    pub fn exclude_table(&mut self, spec: &TableSpec) -> bool {
        let all = self.rows.len();
        self.rows.retain(|(other, _)| other.tag != spec.tag);
        self.rows.len() < all
    }

    /// Adds the writes that revert the transaction to `batch`. `snapshot` must [match](UndoRecord::matches).
    pub fn revert_into(self, snapshot: &dyn Snapshot, batch: &mut Batch) -> Result<(), Error> {
        self.revert(snapshot, batch, Err)
    }

    /// The same for a database that may be damaged, to compare it: a list whose last row is missing stays without it.
    pub fn revert_damaged_into(self, snapshot: &dyn Snapshot, batch: &mut Batch) -> Result<(), Error> {
        self.revert(
            snapshot,
            batch,
            |error| if matches!(error, Error::Corrupt { .. }) { Ok(()) } else { Err(error) },
        )
    }

    fn revert(
        self,
        snapshot: &dyn Snapshot,
        batch: &mut Batch,
        on_error: fn(Error) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for (spec, rows) in self.rows {
            for (key, value) in rows {
                match value {
                    Some(value) => batch.put(spec, key, value),
                    None => batch.delete(spec, key),
                }
            }
        }
        for (spec, owners) in self.lists {
            for growth in owners {
                let len = growth.base.saturating_add(growth.added);
                cut(snapshot, spec, &growth.owner, (growth.base, len), batch).or_else(on_error)?;
                let count_key = count_key(spec, &growth);
                match growth.base {
                    0 => batch.delete(COUNT, count_key),
                    base => {
                        batch.write(COUNT, Kind::Put, |out| out.extend(count_key), |out| base.encode(out));
                    }
                }
            }
        }
        Ok(())
    }

    /// Encodes the record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.left.to_be_bytes().to_vec();
        put_tables(
            &self.rows,
            &mut out,
            |(key, _)| key,
            |(_, value), out| match value {
                None => put_varint(0, out),
                Some(value) => {
                    put_varint(length(value) + 1, out);
                    out.extend_from_slice(value);
                }
            },
        );
        put_tables(
            &self.lists,
            &mut out,
            |growth| &growth.owner,
            |growth, out| {
                put_varint(growth.base, out);
                put_varint(growth.added, out);
            },
        );
        out
    }

    /// Decodes a record of a database with `tables`; `None` if `bytes` are malformed.
    pub fn decode(mut bytes: &[u8], tables: &[&'static TableSpec]) -> Option<Self> {
        let (left, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        let rows = take_tables(&mut bytes, tables, |key, input| {
            let value = match take_varint(input)? {
                0 => None,
                longer => Some(take(longer - 1, input)?.to_vec()),
            };
            Some((key, value))
        })?;
        let lists = take_tables(&mut bytes, tables, |owner, input| {
            Some(ListGrowth { owner, base: take_varint(input)?, added: take_varint(input)? })
        })?;
        bytes.is_empty().then_some(Self { rows, lists, left: u64::from_be_bytes(*left) })
    }
}

/// Hashes a row, length-prefixed, so that shifting bytes between key and value changes the hash.
fn hash_row(hash: &mut Hasher, spec: &TableSpec, key: &[u8], value: Option<&[u8]>) {
    hash.write(&[spec.tag, u8::from(value.is_some())]);
    for part in [key, value.unwrap_or_default()] {
        hash.write(&length(part).to_le_bytes());
        hash.write(part);
    }
}

fn count_key(spec: &TableSpec, growth: &ListGrowth) -> Vec<u8> {
    [&[spec.tag][..], &growth.owner].concat()
}

fn length<T>(of: &[T]) -> u64 {
    of.len() as u64
}

fn put_tables<T>(
    tables: &[(&'static TableSpec, Vec<T>)],
    out: &mut Vec<u8>,
    key: impl Fn(&T) -> &[u8],
    rest: impl Fn(&T, &mut Vec<u8>),
) {
    put_varint(length(tables), out);
    for (spec, rows) in tables {
        out.push(spec.tag);
        put_varint(length(rows), out);
        let mut last: &[u8] = &[];
        for row in rows {
            let key = key(row);
            let shared = last.iter().zip(key).take_while(|(a, b)| a == b).count();
            put_varint(shared as u64, out);
            put_varint(length(&key[shared..]), out);
            out.extend_from_slice(&key[shared..]);
            rest(row, out);
            last = key;
        }
    }
}

fn take_tables<T>(
    input: &mut &[u8],
    tables: &[&'static TableSpec],
    row: impl Fn(Vec<u8>, &mut &[u8]) -> Option<T>,
) -> Option<Vec<(&'static TableSpec, Vec<T>)>> {
    let mut all = Vec::new();
    for _ in 0..take_varint(input)? {
        let (&tag, rest) = input.split_first()?;
        *input = rest;
        let spec = tables.iter().find(|spec| spec.tag == tag)?;
        let (mut rows, mut key) = (Vec::new(), Vec::new());
        for _ in 0..take_varint(input)? {
            let shared = usize::try_from(take_varint(input)?).map_or(None, |shared| key.get(..shared))?;
            let own = take_varint(input)?;
            key = [shared, take(own, input)?].concat();
            rows.push(row(key.clone(), input)?);
        }
        all.push((*spec, rows));
    }
    Some(all)
}

fn take<'a>(length: u64, input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    Some(taken)
}
