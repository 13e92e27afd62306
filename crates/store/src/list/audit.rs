//! Audit and rebuild of lists in a database with possibly corrupt rows.
//!
//! # Invariants
//!
//! Neither lengths nor the order of values are trusted; every row is read once; memory is bounded. The audit joins lists
//! and lengths, which have the same order (merge join): it reads by key only where they differ.

use std::iter::Peekable;

use crate::{
    bulk::BulkWriter,
    engine::{Bounds, Durability, Order, Row, RowCursor, Snapshot, Store, for_each_row, prefix_end},
    error::Error,
    list::{COUNT, entry_key},
    spec::TableSpec,
    value::Value,
};

/// A row of a list or of its lengths that breaks an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The list, or [`COUNT`].
    pub table: &'static TableSpec,
    /// The key of the row.
    pub key: Vec<u8>,
    /// The stored value, if any.
    pub found: Option<Vec<u8>>,
    /// Description of the expected value.
    pub expected: String,
}

/// Compares the rows of the list `spec` with its lengths: ordinals without gaps, values that increase and are not above
/// `last`, and the length of each owner. Each difference is given to `on_inconsistency`.
pub fn audit(
    snapshot: &dyn Snapshot,
    spec: &'static TableSpec,
    last: u64,
    mut on_inconsistency: impl FnMut(Inconsistency),
) -> Result<(), Error> {
    let (start, end) = ([spec.tag], prefix_end(&[spec.tag]));
    let of_list = Bounds { start: &start, end: end.as_deref() };
    let mut lengths = RowCursor::new(snapshot, COUNT, of_list, Order::Asc).peekable();
    let mut current: Option<Owner> = None;
    for_each_row(snapshot, spec, Bounds::all(), |key, value| {
        let Some((owner, ordinal)) = split(key) else {
            on_inconsistency(Inconsistency::row(spec, key, value, "an owner and an ordinal as its key"));
            return Ok(());
        };
        if current.as_ref().is_none_or(|current| current.key != owner)
            && let Some(done) = current.replace(Owner::new(owner))
        {
            done.check_length(snapshot, spec, &mut lengths, &mut on_inconsistency)?;
        }
        if let Some(current) = &mut current {
            current.row(spec, (key, value), ordinal, last, &mut on_inconsistency);
        }
        Ok::<(), Error>(())
    })?;
    if let Some(done) = current {
        done.check_length(snapshot, spec, &mut lengths, &mut on_inconsistency)?;
    }
    for length in lengths {
        check_list_of(snapshot, spec, &length?, &mut on_inconsistency)?;
    }
    Ok(())
}

/// Checks that the list of a length, which is not the next one by its owner, has rows.
fn check_list_of(
    snapshot: &dyn Snapshot,
    spec: &'static TableSpec,
    (key, value): &Row,
    on_inconsistency: &mut impl FnMut(Inconsistency),
) -> Result<(), Error> {
    if !has_rows(snapshot, spec, &key[1..])? {
        on_inconsistency(Inconsistency::row(COUNT, key, value, "nothing: the list has no rows"));
    }
    Ok(())
}

/// Rebuilds the list `spec` from its entries below `cutoff`: drops entries that do not decode or are out of order,
/// renumbers the rest from 0, and recomputes the lengths. Idempotent after an interruption. Nothing else may write the
/// list meanwhile. The result is on the device.
pub fn rebuild(store: &dyn Store, spec: &'static TableSpec, cutoff: u64) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut rebuilder =
        ListRebuilder { writer: BulkWriter::new(store), spec, owner: Vec::new(), len: 0, last: 0 };
    for_each_row(&*snapshot, spec, Bounds::all(), |key, value| {
        rebuilder.row(&*snapshot, key, value, cutoff)
    })?;
    rebuilder.close(&*snapshot)?;
    rebuilder.writer.finish(Durability::Buffered)?;
    drop(snapshot);
    let (start, end) = ([spec.tag], prefix_end(&[spec.tag]));
    let (snapshot, mut writer) = (store.snapshot()?, BulkWriter::new(store));
    for_each_row(&*snapshot, COUNT, Bounds { start: &start, end: end.as_deref() }, |key, _| {
        if has_rows(&*snapshot, spec, &key[1..])? { Ok(()) } else { writer.delete(COUNT, key.to_vec()) }
    })?;
    writer.finish(Durability::Synced)
}

impl Inconsistency {
    fn row(table: &'static TableSpec, key: &[u8], value: &[u8], expected: &str) -> Self {
        let (key, found) = (key.to_vec(), Some(value.to_vec()));
        Self { table, key, found, expected: expected.to_owned() }
    }
}

/// A list while its rows are read.
struct Owner {
    key: Vec<u8>,
    /// The next ordinal.
    next: u64,
    /// The last value.
    last: u64,
}

impl Owner {
    fn new(key: &[u8]) -> Self {
        Self { key: key.to_vec(), next: 0, last: 0 }
    }

    fn row(
        &mut self,
        spec: &'static TableSpec,
        (key, value): (&[u8], &[u8]),
        ordinal: u64,
        greatest: u64,
        on_inconsistency: &mut impl FnMut(Inconsistency),
    ) {
        if ordinal != self.next {
            let key = entry_key(&self.key, self.next);
            let expected = format!("an entry: the next one has ordinal {ordinal}");
            on_inconsistency(Inconsistency { table: spec, key, found: None, expected });
        }
        self.next = ordinal.saturating_add(1);
        let expected = match u64::decode(value) {
            None => "a number".to_owned(),
            Some(number) if number > greatest => format!("at most {greatest}, the last of its lane"),
            Some(number) if number <= self.last => format!("more than {}, the entry before", self.last),
            Some(number) => {
                self.last = number;
                return;
            }
        };
        on_inconsistency(Inconsistency::row(spec, key, value, &expected));
    }

    fn check_length(
        self,
        snapshot: &dyn Snapshot,
        spec: &'static TableSpec,
        lengths: &mut Peekable<RowCursor<'_>>,
        on_inconsistency: &mut impl FnMut(Inconsistency),
    ) -> Result<(), Error> {
        let key = [&[spec.tag][..], &self.key].concat();
        let precedes = |length: &Result<Row, Error>| length.as_ref().is_ok_and(|(other, _)| *other < key);
        while let Some(length) = lengths.next_if(precedes) {
            check_list_of(snapshot, spec, &length?, on_inconsistency)?;
        }
        let is_own = |length: &Result<Row, Error>| length.as_ref().map_or(true, |(other, _)| *other == key);
        let found = match lengths.next_if(is_own).transpose()? {
            Some((_, value)) => Some(value),
            // Keys that do not decode may be in another order.
            None => snapshot.get(COUNT, &key)?,
        };
        if found.as_deref().and_then(u64::decode) != Some(self.next) {
            let expected = self.next.to_string();
            on_inconsistency(Inconsistency { table: COUNT, key, found, expected });
        }
        Ok(())
    }
}

struct ListRebuilder<'a> {
    writer: BulkWriter<'a>,
    spec: &'static TableSpec,
    owner: Vec<u8>,
    /// Entries of the owner that stay, so far.
    len: u64,
    last: u64,
}

impl ListRebuilder<'_> {
    fn row(&mut self, snapshot: &dyn Snapshot, key: &[u8], value: &[u8], cutoff: u64) -> Result<(), Error> {
        let Some((owner, ordinal)) = split(key) else {
            return self.writer.delete(self.spec, key.to_vec());
        };
        if owner != self.owner {
            self.close(snapshot)?;
            self.owner = owner.to_vec();
        }
        match u64::decode(value).filter(|number| *number < cutoff && *number > self.last) {
            None => self.writer.delete(self.spec, key.to_vec()),
            Some(number) => {
                let place = self.len;
                self.len += 1;
                self.last = number;
                if ordinal == place {
                    return Ok(());
                }
                // After a crash between the two writes, the entry exists twice, and the next run drops one.
                self.writer.put(self.spec, entry_key(owner, place), value.to_vec())?;
                self.writer.delete(self.spec, key.to_vec())
            }
        }
    }

    /// Writes the length of the current owner.
    fn close(&mut self, snapshot: &dyn Snapshot) -> Result<(), Error> {
        let key = [&[self.spec.tag][..], &self.owner].concat();
        if self.len > 0 && snapshot.get(COUNT, &key)?.as_deref().and_then(u64::decode) != Some(self.len) {
            let mut value = Vec::new();
            self.len.encode(&mut value);
            self.writer.put(COUNT, key, value)?;
        }
        (self.len, self.last) = (0, 0);
        Ok(())
    }
}

/// Owner and ordinal in the key of an entry.
fn split(key: &[u8]) -> Option<(&[u8], u64)> {
    let (owner, ordinal) = key.split_last_chunk()?;
    Some((owner, u64::from_be_bytes(*ordinal)))
}

fn has_rows(snapshot: &dyn Snapshot, spec: &'static TableSpec, owner: &[u8]) -> Result<bool, Error> {
    let (start, end) = (entry_key(owner, 0), entry_key(owner, u64::MAX));
    Ok(!snapshot.scan(spec, Bounds { start: &start, end: Some(&end) }, Order::Asc, 1)?.is_empty())
}
