//! Truncation of lists to the values below a cutoff, for an offline rollback.
//!
//! # Invariants
//!
//! Entries and length of every list agree after each commit, so an interrupted run can be repeated. Memory does not
//! grow with the number of owners or the length of their lists.

use crate::{
    batch::Batch,
    engine::{Bounds, Durability, Order, Snapshot, Store, prefix_end},
    error::Error,
    key::successor,
    list::{COUNT, MISSING, decode_number, entry_below_len, entry_key, raw_position},
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

/// Bytes of deletions in one commit: a few tens of thousands of entries.
const BATCH_BYTES: usize = 1 << 20;

/// Entries of one list from which on they are deleted as a range. Each range is a commit of its own and, in RocksDB, a
/// flush, which cost as much as some thousands of deletions.
pub const LONG: u64 = 1 << 14;

/// Entries of a range at most: an engine without range deletions deletes them one by one in a commit.
const MAX_RANGE: u64 = 1 << 18;

struct Truncation<'a> {
    store: &'a dyn Store,
    snapshot: &'a dyn Snapshot,
    spec: &'static TableSpec,
    batch: Batch,
}

impl Truncation<'_> {
    /// Truncates lists: the keys of their lengths, with these. Returns the number of dropped entries.
    fn owners(&mut self, lens: impl IntoIterator<Item = (Vec<u8>, u64)>, cutoff: u64) -> Result<u64, Error> {
        let lens: Vec<_> = lens.into_iter().filter(|(_, len)| *len > 0).collect();
        // Most lists end below the cutoff: for them this read suffices, and for neighbours it is one.
        let ends: Vec<_> = lens.iter().map(|(count_key, len)| entry_key(&count_key[1..], len - 1)).collect();
        let values = self.snapshot.multi_get(self.spec, &ends)?;
        let mut dropped = 0;
        for (((count_key, len), end), value) in lens.iter().zip(&ends).zip(values) {
            let value = value.ok_or_else(|| corrupt(self.spec, end, MISSING))?;
            if decode_number(self.spec, end, &value)? >= cutoff {
                dropped += self.owner(count_key, *len, cutoff)?;
            }
        }
        Ok(dropped)
    }

    /// Truncates the list whose length is stored under `count_key`, and whose last entry is dropped.
    fn owner(&mut self, count_key: &[u8], len: u64, cutoff: u64) -> Result<u64, Error> {
        let owner = &count_key[1..];
        let keep = self.first_dropped(owner, len - 1, cutoff)?;
        // From the end, so that the list stays dense after each commit.
        let mut end = len;
        while end - keep >= LONG {
            let start = end.saturating_sub(MAX_RANGE).max(keep);
            self.batch.delete_range(self.spec, entry_key(owner, start), entry_key(owner, end));
            self.set_len(count_key, start);
            self.commit()?;
            end = start;
        }
        for ordinal in (keep..end).rev() {
            self.batch.delete(self.spec, entry_key(owner, ordinal));
            if self.batch.bytes() >= BATCH_BYTES {
                self.set_len(count_key, ordinal);
                self.commit()?;
            }
        }
        self.set_len(count_key, keep);
        Ok(len - keep)
    }

    /// The first ordinal whose entry is `cutoff` or more, which that of `last` is. Searches from the end with growing
    /// steps: most lists lose a few entries.
    fn first_dropped(&self, owner: &[u8], last: u64, cutoff: u64) -> Result<u64, Error> {
        let (mut dropped, mut step) = (last, 1);
        while let Some(ordinal) = dropped.checked_sub(step) {
            if entry_below_len(self.snapshot, self.spec, &entry_key(owner, ordinal))? < cutoff {
                return raw_position(self.snapshot, self.spec, owner, ordinal + 1..dropped, cutoff);
            }
            (dropped, step) = (ordinal, step.saturating_mul(2));
        }
        raw_position(self.snapshot, self.spec, owner, 0..dropped, cutoff)
    }

    fn set_len(&mut self, count_key: &[u8], len: u64) {
        if len == 0 {
            self.batch.delete(COUNT, count_key.to_vec());
        } else {
            self.batch.put_with(COUNT, |out| out.extend_from_slice(count_key), |out| len.encode(out));
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
