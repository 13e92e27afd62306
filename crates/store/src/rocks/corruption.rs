//! Detection of unreadable key ranges: a full scan that continues after corrupt blocks and files.
//!
//! # Invariants
//!
//! * Every row outside the reported ranges was read, with a correct checksum.
//! * Memory does not grow with the table.
//!
//! Corrupt filter blocks are not detected, because RocksDB then reads the rows instead.

use std::{fmt, iter, path::Path};

use rocksdb::{DB, DBRawIterator, LiveFile, ReadOptions};

use super::{Handle, RocksOptions, RocksStore, Role, directory, errors::map_error, family};
use crate::{error::Error, spec::TableSpec};

/// A key range of a table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptRange {
    /// Name of the table.
    pub table: &'static str,
    /// Name of the corrupt file, if RocksDB reports it.
    pub file: Option<String>,
    /// The last readable key before the range; `None` if there is none.
    pub after: Option<Vec<u8>>,
    /// The first readable key after the range; `None` if there is none.
    pub before: Option<Vec<u8>>,
    /// RocksDB's message.
    pub reason: String,
}

impl fmt::Display for CorruptRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key =
            |key: &Option<Vec<u8>>, none: &str| key.as_ref().map_or_else(|| none.to_owned(), hex::encode);
        let file = self.file.as_deref().unwrap_or("of an unknown name");
        let (after, before) = (key(&self.after, "the first"), key(&self.before, "the last"));
        write!(
            f,
            "unreadable rows: table {}, file {file}, keys between {after} and {before}: {}",
            self.table, self.reason
        )
    }
}

/// After so many ranges in one table, the rest of the table counts as unreadable: the whole device fails.
const MAX_RANGES: usize = 1000;

impl RocksStore {
    /// Reads all rows of the database in `path`, which another process may own and write, and returns the unreadable
    /// ranges. Takes as long as reading the whole database.
    pub fn find_corruption(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Vec<CorruptRange>, Error> {
        directory::check_followed(path, tables)?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match find(path, tables, options) {
                // The owner may have deleted a file after it was listed and before it was opened.
                Err(Error::Engine { .. }) if attempts < MAX_ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    /// Reads all rows of the tables on compaction hold and returns the unreadable ranges. Re-enables compaction of the
    /// tables without any, because the device may have failed only temporarily.
    pub fn recheck(&self) -> Result<Vec<CorruptRange>, Error> {
        let Role::Owner { handle, hold, .. } = &self.role else {
            return Err(Error::ReadOnly { path: self.path.clone() });
        };
        let (damaged, mut found) = (hold.tables(), Vec::new());
        for table in self.tables.iter().filter(|table| damaged.contains(table.name)) {
            let damage = SalvageScan::lossy(&handle.db, &self.path, table).rows(|_, _| Ok(()))?;
            if damage.is_empty() {
                hold.resume(&handle.db, table)?;
            }
            found.extend(damage);
        }
        Ok(found)
    }
}

/// Deletions do not interfere with so many consecutive opens.
const MAX_ATTEMPTS: u32 = 4;

/// Uses a read-only instance: a secondary would show the version before a file that it cannot open.
fn find(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<Vec<CorruptRange>, Error> {
    let handle = open(path, tables, options)?;
    let mut found = Vec::new();
    for table in tables {
        let scan = SalvageScan::lossy(&handle.db, path, table);
        found.extend(scan.rows(|_, _| Ok(()))?);
    }
    Ok(found)
}

/// Opens the current state read-only, even if some files cannot be opened.
pub(super) fn open(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<Handle, Error> {
    DB::open_cf_descriptors_read_only(
        &RocksOptions::read_only(),
        path,
        options.families_on_hold(tables),
        false,
    )
    .map(|db| Handle { db })
    .map_err(|error| map_error(path, "looking for damage", error))
}

/// A scan of a table that skips corrupt ranges.
pub(super) struct SalvageScan<'a> {
    db: &'a DB,
    store: &'a Path,
    table: &'static TableSpec,
    /// Fail if healthy files hold rows that the scan cannot reach.
    lossless: bool,
}

impl<'a> SalvageScan<'a> {
    /// Reports every row that it cannot reach as unreadable.
    pub(super) fn lossy(db: &'a DB, store: &'a Path, table: &'static TableSpec) -> Self {
        Self { db, store, table, lossless: false }
    }

    /// Fails if it cannot reach rows of healthy files: for a caller that deletes the reported ranges.
    pub(super) fn lossless(db: &'a DB, store: &'a Path, table: &'static TableSpec) -> Self {
        Self { db, store, table, lossless: true }
    }

    /// Calls `visit` for every readable row, in order, and returns the unreadable ranges.
    pub(super) fn rows(
        &self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Error>,
    ) -> Result<Vec<CorruptRange>, Error> {
        let mut iterator = self.iterator()?;
        iterator.seek_to_first();
        let (mut found, mut last) = (Vec::new(), None);
        loop {
            while let Some((key, value)) = iterator.item() {
                visit(key, value)?;
                let last = last.get_or_insert_with(Vec::new);
                last.clear();
                last.extend_from_slice(key);
                iterator.next();
            }
            let Err(error) = iterator.status() else { return Ok(found) };
            let (file, reason) = match map_error(self.store, "reading", error) {
                Error::Damaged { file, message, .. } => (file, message),
                other => return Err(other),
            };
            let given_up = found.len() + 1 == MAX_RANGES;
            let next = if given_up { None } else { self.next_readable(last.as_deref(), file.as_deref())? };
            let before = next.as_ref().and_then(|next| next.key().map(<[u8]>::to_vec));
            found.push(CorruptRange { table: self.table.name, file, after: last.clone(), before, reason });
            match next {
                Some(next) if next.valid() => iterator = next,
                Some(_) | None => return Ok(found),
            }
        }
    }

    /// An iterator at the first readable row after the corrupt range that follows `last`.
    fn next_readable(
        &self,
        last: Option<&[u8]>,
        damaged: Option<&str>,
    ) -> Result<Option<DBRawIterator<'_>>, Error> {
        let mut files =
            self.db.live_files().map_err(|error| map_error(self.store, "listing files", error))?;
        files.retain(|file| file.column_family_name == self.table.name);
        let mut bad = last.unwrap_or_default().to_vec();
        let mut good = None;
        for end in ends(&files, &bad, damaged) {
            if self.is_readable(&end)? {
                good = Some(end);
                break;
            }
        }
        let Some(mut good) = good else {
            return self.unreachable_rows(&files, last, damaged).map(|()| None);
        };
        // A binary search over the whole gap could jump over rows between two corrupt blocks. So an exponential search
        // from `last` finds the first readable step, and the binary search covers only that step.
        let steps: Vec<_> = iter::successors(between(&bad, &good), |far| between(&bad, far)).collect();
        for step in steps.into_iter().rev() {
            if self.is_readable(&step)? {
                good = step;
                break;
            }
            bad = step;
        }
        while let Some(middle) = between(&bad, &good) {
            if self.is_readable(&middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        let mut iterator = self.iterator()?;
        iterator.seek(&good);
        // This key was readable a moment ago, so a failure now is not persistent corruption.
        iterator.status().map_err(|error| map_error(self.store, "reading again", error))?;
        Ok(Some(iterator))
    }

    /// True if the first row at or after `key` can be read, or if there is none.
    ///
    /// Uses a new iterator, because a RocksDB iterator does not recover from an unreadable block: on return to the
    /// block before it, `BlockBasedTableIterator::InitDataBlock` compares `prev_block_offset_` and reuses the corrupt
    /// block.
    fn is_readable(&self, key: &[u8]) -> Result<bool, Error> {
        let mut iterator = self.iterator()?;
        iterator.seek(key);
        Ok(iterator.status().is_ok())
    }

    fn iterator(&self) -> Result<DBRawIterator<'_>, Error> {
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        Ok(self.db.raw_iterator_cf_opt(family(self.db, self.table)?, options))
    }

    /// An unreadable L0 file makes every key after `last` unreadable, because each read consults all L0 files. A
    /// lossless scan fails here if healthy files hold rows that it can no longer reach.
    fn unreachable_rows(
        &self,
        files: &[LiveFile],
        last: Option<&[u8]>,
        damaged: Option<&str>,
    ) -> Result<(), Error> {
        let is_damaged =
            |file: &LiveFile| damaged.map_or(files.len() == 1, |damaged| damaged == file_name(file));
        let part = files.iter().find(|file| is_damaged(file)).map(|file| (&file.start_key, &file.end_key));
        let hidden = files.iter().filter(|file| !is_damaged(file)).find(|file| {
            let behind = file.end_key.as_deref() > last;
            let inside = part.is_some_and(|(start, end)| *start <= file.start_key && file.end_key <= *end);
            behind && !inside
        });
        match hidden {
            Some(hidden) if self.lossless => Err(Error::UnreachableRows {
                path: self.store.to_owned(),
                table: self.table.name,
                file: damaged.map(str::to_owned),
                hidden: file_name(hidden).to_owned(),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// The name of a table file without the leading slash.
pub(super) fn file_name(file: &LiveFile) -> &str {
    file.name.trim_start_matches('/')
}

/// The smallest key after each file that ends after `last`: that of the corrupt file first, then in order.
fn ends(files: &[LiveFile], last: &[u8], damaged: Option<&str>) -> Vec<Vec<u8>> {
    let mut ends: Vec<(bool, Vec<u8>)> = files
        .iter()
        .filter_map(|file| {
            let mut end = file.end_key.clone().filter(|end| end.as_slice() >= last)?;
            end.push(0); // The smallest key after it.
            let other = damaged != Some(file_name(file));
            Some((other, end))
        })
        .collect();
    ends.sort();
    ends.into_iter().map(|(_, end)| end).collect()
}

/// The midpoint of two keys, with the longer one's length; `None` if no key lies between them.
fn between(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let width = low.len().max(high.len());
    let digit = |key: &[u8], at: usize| u16::from(key.get(at).copied().unwrap_or(0));
    let mut sum = vec![0; width];
    let mut carry = 0;
    for at in (0..width).rev() {
        let digits = digit(low, at) + digit(high, at) + carry;
        sum[at] = digits % 256;
        carry = digits / 256;
    }
    let mut middle = Vec::with_capacity(width);
    for digits in sum {
        let digits = carry * 256 + digits;
        // The quotient is below 256, because `digits` is below 512.
        middle.push(u8::try_from(digits / 2).unwrap_or(u8::MAX));
        carry = digits % 2;
    }
    let low_at_width = (0..width).map(|at| digit(low, at));
    if middle.iter().map(|&byte| u16::from(byte)).eq(low_at_width) { None } else { Some(middle) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_between_two_keys_ends_at_the_upper_one() {
        assert_eq!(between(&[1], &[3]), Some(vec![2]));
        assert_eq!(between(&[], &[0, 2]), Some(vec![0, 1]));
        assert_eq!(between(&[0xff, 0], &[0xff, 0xff]), Some(vec![0xff, 0x7f]));
        assert_eq!(between(&[1], &[2]), None);
        assert_eq!(between(&[], &[]), None);
        let (mut low, mut high) = (b"abc".to_vec(), b"abcdefgh".to_vec());
        let mut steps = 0;
        while let Some(middle) = between(&low, &high) {
            assert!(low < middle && middle < high);
            if middle.as_slice() < b"abcd01".as_slice() {
                low = middle;
            } else {
                high = middle;
            }
            steps += 1;
        }
        assert_eq!(high, b"abcd01\0\0");
        assert!(steps <= 64, "{steps}");
    }
}
