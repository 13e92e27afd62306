//! Truncation of lists to the values below a cutoff, for an offline rollback.
//!
//! # Invariants
//!
//! Entries and length of every list agree after each commit, so an interrupted run can be repeated. Memory does not
//! grow with the number of owners or the length of their lists.

use crate::{
    batch::{Batch, Kind},
    engine::{Bounds, Durability, Order, Snapshot, Store, prefix_end},
    error::Error,
    key::successor,
    list::{COUNT, ListRow, MISSING, ROW, cut, decode_number, entry_key, row_key},
    spec::TableSpec,
    table::corrupt,
    value::Value,
};

/// Drops the entries of the list `spec` whose value is `cutoff` or more, for all owners, and returns their number.
/// Nothing else may write the list meanwhile. The result is on the device.
///
/// Time grows with the number of owners: the last entry of each is read.
pub fn truncate(store: &dyn Store, spec: &'static TableSpec, cutoff: u64) -> Result<u64, Error> {
    truncate_from(store, spec, 1, cutoff)
}

/// Like [`truncate`], for lists of at least `min_len` entries.
fn truncate_from(
    store: &dyn Store,
    spec: &'static TableSpec,
    min_len: u64,
    cutoff: u64,
) -> Result<u64, Error> {
    let prefix = [spec.tag];
    let end = prefix_end(&prefix);
    let mut start = prefix.to_vec();
    let mut dropped = 0;
    loop {
        let snapshot = store.snapshot()?;
        let bounds = Bounds { start: &start, end: end.as_deref() };
        let counts = snapshot.scan(COUNT, bounds, Order::Asc, OWNERS_PER_SNAPSHOT)?;
        let Some((last, _)) = counts.last() else { break };
        start = successor(last);
        let lens = counts.into_iter().map(|(key, value)| {
            let len = decode_number(COUNT, &key, &value)?;
            Ok((key, len))
        });
        let lens: Vec<_> = lens.collect::<Result<_, Error>>()?;
        let mut cut = Truncation { store, snapshot: &*snapshot, spec, batch: Batch::new() };
        dropped += cut.owners(lens.into_iter().filter(|(_, len)| *len >= min_len), cutoff)?;
        cut.commit()?;
    }
    store.sync()?;
    Ok(dropped)
}

/// Like [`truncate`], for lists of at least [`LONG`] entries only.
///
/// Time grows with the number of owners: the length of each is read.
pub fn truncate_long(store: &dyn Store, spec: &'static TableSpec, cutoff: u64) -> Result<u64, Error> {
    truncate_from(store, spec, LONG, cutoff)
}

/// Like [`truncate`], for `owners` (their keys) only, without waiting for the device.
pub fn truncate_owners<'a>(
    store: &dyn Store,
    spec: &'static TableSpec,
    owners: impl IntoIterator<Item = &'a Vec<u8>>,
    cutoff: u64,
) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    let mut cut = Truncation { store, snapshot: &*snapshot, spec, batch: Batch::new() };
    let count_keys: Vec<_> =
        owners.into_iter().map(|owner| [&[spec.tag], owner.as_slice()].concat()).collect();
    for count_keys in count_keys.chunks(OWNERS_PER_SNAPSHOT) {
        let lens = snapshot.multi_get(COUNT, count_keys)?;
        let lens = count_keys.iter().zip(lens).map(|(key, len)| {
            let len = len.map_or(Ok(0), |len| decode_number(COUNT, key, &len))?;
            Ok((key.clone(), len))
        });
        cut.owners(lens.collect::<Result<Vec<_>, Error>>()?, cutoff)?;
    }
    cut.commit()
}

/// Owners per snapshot: few enough to hold in memory and to keep the snapshot short-lived.
const OWNERS_PER_SNAPSHOT: usize = 1024;

/// Bytes of deletions in one commit: a few tens of thousands of rows.
const BATCH_BYTES: usize = 1 << 20;

/// Entries of one list from which on their rows are deleted as a range. Each range is a commit of its own and, in RocksDB,
/// a flush, which cost as much as some thousands of deletions.
pub const LONG: u64 = ROW << 14;

/// Entries of a range at most: an engine without range deletions deletes their rows one by one in a commit.
const MAX_RANGE: u64 = ROW << 18;

struct Truncation<'a> {
    store: &'a dyn Store,
    snapshot: &'a dyn Snapshot,
    spec: &'static TableSpec,
    batch: Batch,
}

impl Truncation<'_> {
    /// Truncates lists: the keys of their lengths, with these. Returns the number of dropped entries.
    fn owners(&mut self, lens: impl IntoIterator<Item = (Vec<u8>, u64)>, cutoff: u64) -> Result<u64, Error> {
        let lens: Vec<_> = lens.into_iter().collect();
        let mut searches: Vec<_> = lens.iter().map(|(_, len)| Search::new(*len)).collect();
        // The lists are searched in step: one read of many neighbours costs a fraction of as many reads.
        loop {
            let next = |(at, search): (usize, &Search)| Some((at, search.next()?));
            let places: Vec<_> = searches.iter().enumerate().filter_map(next).collect();
            if places.is_empty() {
                break;
            }
            let keys: Vec<_> =
                places.iter().map(|(at, ordinal)| row_key(&lens[*at].0[1..], *ordinal)).collect();
            let values = self.snapshot.multi_get(self.spec, &keys)?;
            for (((at, ordinal), key), value) in places.into_iter().zip(&keys).zip(values) {
                let row = value.map(|row| ListRow::decode(self.spec, key, ordinal, &row)).transpose()?;
                let entry = row.and_then(|row| row.get(ordinal));
                let entry = entry.ok_or_else(|| corrupt(self.spec, key, MISSING))?;
                searches[at].record(ordinal, entry >= cutoff);
            }
        }
        let mut dropped = 0;
        for ((count_key, len), search) in lens.iter().zip(searches) {
            if search.high < *len {
                self.owner(count_key, *len, search.high)?;
                dropped += len - search.high;
            }
        }
        Ok(dropped)
    }

    /// Removes the entries from `keep` on of the list whose length is stored under `count_key`.
    fn owner(&mut self, count_key: &[u8], len: u64, keep: u64) -> Result<(), Error> {
        let owner = &count_key[1..];
        // From the end, so that the list stays dense after each commit.
        let mut end = len;
        while end - keep >= LONG {
            let start = end.saturating_sub(MAX_RANGE).max(keep).next_multiple_of(ROW);
            self.batch.delete_range(self.spec, entry_key(owner, start), entry_key(owner, end));
            self.set_len(count_key, start);
            self.commit()?;
            end = start;
        }
        cut(self.snapshot, self.spec, owner, (keep, end), &mut self.batch)?;
        self.set_len(count_key, keep);
        if self.batch.bytes() >= BATCH_BYTES { self.commit() } else { Ok(()) }
    }

    fn set_len(&mut self, count_key: &[u8], len: u64) {
        if len == 0 {
            self.batch.delete(COUNT, count_key.to_vec());
        } else {
            self.batch.write(COUNT, Kind::Put, |out| out.extend(count_key), |out| len.encode(out));
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        // Most lists do not change.
        if self.batch.is_empty() {
            return Ok(());
        }
        self.store.commit(std::mem::take(&mut self.batch), Durability::Buffered)
    }
}

/// Search for the first dropped entry of a list: from the end with growing steps, because most lists lose a few entries
/// or none, then by bisection.
struct Search {
    /// All entries before this ordinal are kept.
    low: u64,
    /// All entries from this ordinal on are dropped.
    high: u64,
    /// Distance of the next read from `high`; 0, or more than `high`, during bisection.
    step: u64,
}

impl Search {
    fn new(len: u64) -> Self {
        Self { low: 0, high: len, step: 1 }
    }

    /// The ordinal to read next; `None` when `high` is the first dropped one.
    fn next(&self) -> Option<u64> {
        let grows = (1..=self.high).contains(&self.step);
        (self.low < self.high)
            .then(|| if grows { self.high - self.step } else { self.low.midpoint(self.high) })
    }

    /// Records whether the entry at `ordinal` is dropped.
    fn record(&mut self, ordinal: u64, dropped: bool) {
        if dropped {
            (self.high, self.step) = (ordinal, self.step.saturating_mul(2));
        } else {
            (self.low, self.step) = (ordinal + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_every_border_in_few_reads() {
        for len in 1..=300 {
            for first in 0..=len {
                let mut search = Search::new(len);
                let mut reads = 0;
                while let Some(ordinal) = search.next() {
                    assert!(ordinal < len, "{ordinal} of {len}");
                    search.record(ordinal, ordinal >= first);
                    reads += 1;
                }
                assert_eq!(search.high, first, "of {len}");
                assert!(reads <= 1 + 2 * (len - first + 1).ilog2(), "{reads} reads for {first} of {len}");
            }
        }
    }
}
