//! What rows were before a transaction: enough to take its commit back.
//!
//! | left (8, BE) | tables: n, each: tag, rows: n, each: key, value | lists: n, each: tag, owners: n, each: key, base, added |
//!
//! Numbers are varints, tags one byte. A key is the number of bytes that it shares with the one before it in its table, the
//! number of its other bytes, and these. A value is 0 if there was no row, else its length plus 1 and its bytes. An owner's
//! key is that of its list's length, without the tag.
//!
//! What must hold: a transaction that is taken back on the state that it left leaves the state that it found, byte for byte;
//! on any other state [`UndoRecord::matches`] says no.

use std::hash::Hasher as _;

use twox_hash::xxhash3_64::Hasher;

use super::Pushed;
use crate::{
    batch::Batch,
    engine::Snapshot,
    error::Error,
    list::{COUNT, entry_key, stored_len},
    spec::TableSpec,
    value::{Value as _, put_varint, take_varint},
};

/// A row's key and what it held; `None` if there was no row.
type PriorValue = (Vec<u8>, Option<Vec<u8>>);

/// The rows that a transaction wrote as they were before it, and how its lists were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoRecord {
    rows: Vec<(&'static TableSpec, Vec<PriorValue>)>,
    lists: Vec<(&'static TableSpec, Vec<ListGrowth>)>,
    /// Hash of the rows as the transaction left them.
    left: u64,
}

/// A list that got longer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListGrowth {
    owner: Vec<u8>,
    /// Its length before.
    base: u64,
    added: u64,
}

/// Collects what a transaction is about to change.
pub(super) struct UndoBuilder<'a> {
    before: UndoRecord,
    left: Hasher,
    excluded_rows: &'a [(&'static TableSpec, Vec<u8>)],
}

impl<'a> UndoBuilder<'a> {
    /// Collects everything but the rows `excluded_rows`.
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
        if self
            .excluded_rows
            .iter()
            .any(|(table, excluded_rows)| table.tag == spec.tag && excluded_rows == key)
        {
            return;
        }
        hash_row(&mut self.left, spec, key, new);
        of(&mut self.before.rows, spec).push((key.to_vec(), old));
    }

    /// A list that grows.
    pub(super) fn list(&mut self, count_key: &[u8], list: &Pushed) {
        let owner = count_key[1..].to_vec();
        of(&mut self.before.lists, list.spec).push(ListGrowth {
            owner,
            base: list.base,
            added: list.added(),
        });
    }

    pub(super) fn done(self) -> UndoRecord {
        UndoRecord { left: self.left.finish(), ..self.before }
    }
}

/// The part of `parts` that is about the table `spec`.
fn of<'a, T>(parts: &'a mut Vec<(&'static TableSpec, Vec<T>)>, spec: &'static TableSpec) -> &'a mut Vec<T> {
    // Rows come table by table.
    if parts.last().is_none_or(|(last, _)| last.tag != spec.tag) {
        parts.push((spec, Vec::new()));
    }
    let last = parts.len() - 1;
    &mut parts[last].1
}

impl UndoRecord {
    /// Whether `snapshot` is, in all that the transaction wrote, the state that it left.
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

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.lists.is_empty()
    }

    /// Leaves the rows of `spec` as they are. Whether there are any.
    pub fn exclude_table(&mut self, spec: &TableSpec) -> bool {
        let all = self.rows.len();
        self.rows.retain(|(other, _)| other.tag != spec.tag);
        self.rows.len() < all
    }

    /// Adds to `batch` what takes the transaction back, if the state [fits](UndoRecord::matches).
    pub fn revert_into(self, batch: &mut Batch) {
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
                for ordinal in growth.base..growth.base.saturating_add(growth.added) {
                    batch.delete(spec, entry_key(&growth.owner, ordinal));
                }
                let count_key = count_key(spec, &growth);
                match growth.base {
                    0 => batch.delete(COUNT, count_key),
                    base => batch.put_with(COUNT, |out| out.extend(count_key), |out| base.encode(out)),
                }
            }
        }
    }

    /// The bytes to be stored.
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

    /// What was stored, of a database with `tables`; `None` if `bytes` are not that.
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

/// With lengths in front, so that bytes cannot move between a key and a value unnoticed.
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
