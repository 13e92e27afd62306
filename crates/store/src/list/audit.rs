//! Audit of lists in a database with possibly corrupt rows.
//!
//! # Invariants
//!
//! Neither lengths nor the order of values are trusted; every row is read once; memory is bounded. Lists and lengths, which
//! have the same order, are joined (merge join): the audit reads by key only where they differ.

use std::iter::Peekable;

use crate::{
    engine::{Bounds, Order, Row, RowCursor, Snapshot, for_each_row, prefix_end},
    error::Error,
    list::{COUNT, ROW, entry_key, values},
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
/// `last`, and the length of each owner. Each row that differs is given to `on_inconsistency`.
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
    /// False if the last row does not decode: then `next` is the ordinal after as many entries as it can have.
    is_exact: bool,
    /// The last value.
    last: u64,
}

impl Owner {
    fn new(key: &[u8]) -> Self {
        Self { key: key.to_vec(), next: 0, is_exact: true, last: 0 }
    }

    fn row(
        &mut self,
        spec: &'static TableSpec,
        (key, value): (&[u8], &[u8]),
        ordinal: u64,
        greatest: u64,
        on_inconsistency: &mut impl FnMut(Inconsistency),
    ) {
        if !ordinal.is_multiple_of(ROW) {
            let expected = format!("a row that begins at a multiple of {ROW}");
            on_inconsistency(Inconsistency::row(spec, key, value, &expected));
        } else if ordinal != self.next {
            let key = entry_key(&self.key, self.next);
            let expected = format!("an entry: the next row begins with ordinal {ordinal}");
            on_inconsistency(Inconsistency { table: spec, key, found: None, expected });
        }
        let row = values(value);
        self.is_exact = row.is_some();
        self.next = ordinal.saturating_add(row.as_ref().map_or(ROW, |row| row.len() as u64));
        let Some(row) = row else {
            on_inconsistency(Inconsistency::row(spec, key, value, &format!("1 to {ROW} numbers")));
            return;
        };
        let first = row.first().copied().unwrap_or_default();
        let expected = if first <= self.last {
            format!("more than {}, the entry before", self.last)
        } else if row.last().is_some_and(|last| *last > greatest) {
            format!("at most {greatest}, the last of its lane")
        } else if !row.is_sorted_by(|a, b| a < b) {
            "numbers that increase".to_owned()
        } else {
            self.last = row.last().copied().unwrap_or(self.last);
            return;
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
        let least = if self.is_exact { self.next } else { self.next.saturating_sub(ROW - 1) };
        if !found.as_deref().and_then(u64::decode).is_some_and(|len| (least..=self.next).contains(&len)) {
            let expected =
                if self.is_exact { least.to_string() } else { format!("{least} to {}", self.next) };
            on_inconsistency(Inconsistency { table: COUNT, key, found, expected });
        }
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
