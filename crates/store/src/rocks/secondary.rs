//! Secondary instance of RocksDB: a view of a database that another process writes, advanced by catch-ups.
//!
//! Alone, a catch-up of RocksDB does not give a consistent view (11.8, `db/db_impl/db_impl_secondary.cc`):
//!
//! * It reads the manifest, then the logs. If the owner flushed the rest of a log of which the secondary had read a
//!   part, it skips the rest, and the part in its memory hides newer rows of the table file (issues 14444 and 15051).
//! * It skips a table file or all logs, silently, if one was deleted meanwhile. Some tables are then behind the others.
//!
//! So the files are listed before and after a catch-up. In the first case the new table file has a higher number than
//! the log after the one that was read in part: the secondary is outdated, and a new one is opened. The second case
//! needs a change of the manifest, or of the logs, during the catch-up: the next catch-up adds what was skipped. Usually
//! neither happens, and the secondary follows the owner through any number of logs. RocksDB frees the contents of a log
//! when all of them are in table files.
//!
//! # Invariants
//!
//! Between two catch-ups a secondary that is not outdated is the state of all tables after one commit of the owner.

use std::{collections::BTreeSet, path::PathBuf, thread, time::Duration};

use rocksdb::{Cache, DB, Options};

use super::{
    directory::{self, Listing},
    errors::map_error,
    handle::Handle,
    missing_files,
    options::RocksOptions,
};
use crate::{error::Error, spec::TableSpec};

/// Parameters to open a secondary.
pub(super) struct Source {
    pub(super) primary: PathBuf,
    /// A private directory for RocksDB's text log.
    pub(super) own: PathBuf,
    pub(super) tables: &'static [&'static TableSpec],
    pub(super) options: RocksOptions,
    /// Shared by all secondaries, with their counters.
    pub(super) rocks: Options,
    pub(super) cache: Cache,
}

/// A secondary, which changes only by [`Source::advance`].
pub(super) struct Secondary {
    handle: Handle,
    /// The files just before the last complete catch-up: all that they held is visible.
    seen: Listing,
    /// Number of the log that may have been read in part; all earlier ones were read to their ends. 0 if none was read.
    log: u64,
    /// The table files that were on disk when the newest log was started: those it shows, those of the database that it should
    /// show, those still being written, and obsolete ones.
    files: BTreeSet<String>,
}

impl Secondary {
    pub(super) fn db(&self) -> &DB {
        &self.handle
    }

    pub(super) fn seen(&self) -> &Listing {
        &self.seen
    }

    pub(super) fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    /// Judges a catch-up by the files before and after it.
    fn judge(&mut self, before: Listing, after: &Listing, source: &Source) -> Result<Outcome, Error> {
        if after.manifest != self.seen.manifest || self.log > 0 && !before.logs.contains_key(&self.log) {
            return Ok(Outcome::Outdated);
        }
        let next = after.logs.range(self.log + 1..).next().map(|(number, _)| *number);
        if let Some(next) = next
            && after.manifest_len != self.seen.manifest_len
            && self.has_table_after(next, source)?
        {
            return Ok(Outcome::Outdated);
        }
        if !before.has_all_logs_in(after) {
            // With a later log, the one that was read in part may have been deleted, too.
            return Ok(if next.is_some() { Outcome::Outdated } else { Outcome::Incomplete });
        }
        self.log = self.log.max(before.newest_written_log().unwrap_or(0));
        if before.manifest_len != after.manifest_len {
            return Ok(Outcome::Incomplete);
        }
        self.seen = before;
        Ok(Outcome::Complete)
    }

    /// True if it shows a table file with a number above `log`.
    fn has_table_after(&self, log: u64, source: &Source) -> Result<bool, Error> {
        let live = self.live_files(source)?;
        Ok(live.iter().filter_map(|name| directory::table_number(name)).any(|table| table > log))
    }

    fn live_files(&self, source: &Source) -> Result<BTreeSet<String>, Error> {
        missing_files::live_files(&self.handle, &source.primary)
    }
}

/// The outcome of a catch-up.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Complete,
    /// Some tables may be behind the others.
    Incomplete,
    /// Rows in memory may hide newer ones.
    Outdated,
}

/// Attempts to open a secondary, or to complete a catch-up. The pauses between them outlast a burst of flushes; more
/// attempts would only hide an owner that always flushes faster.
const MAX_ATTEMPTS: u32 = 32;

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(20);

fn pause(attempts: u32) {
    thread::sleep(Duration::from_millis(attempts.into()).min(MAX_PAUSE));
}

impl Source {
    /// Makes all commits so far visible in `secondary`; `None` if it cannot follow the owner any more. `known` as in
    /// [`Source::open`].
    pub(super) fn advance(
        &self,
        mut secondary: Secondary,
        known: Option<&BTreeSet<String>>,
    ) -> Result<Option<Secondary>, Error> {
        let newest_log = secondary.seen.newest_log();
        for attempt in 1..=MAX_ATTEMPTS {
            let before = Listing::read(&self.primary)?;
            // After a catch-up that failed half-way, a secondary has no consistent state.
            if secondary.db().try_catch_up_with_primary().is_err() {
                return Ok(None);
            }
            match secondary.judge(before, &Listing::read(&self.primary)?, self)? {
                Outcome::Complete if secondary.seen.newest_log() == newest_log => return Ok(Some(secondary)),
                Outcome::Complete => return self.checked(secondary, known),
                Outcome::Incomplete => pause(attempt),
                Outcome::Outdated => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Opens a secondary of the current state of the database. `known` are the files of the previous secondary.
    pub(super) fn open(&self, known: Option<&BTreeSet<String>>) -> Result<Secondary, Error> {
        for attempt in 1..=MAX_ATTEMPTS {
            if let Some(secondary) = self.open_once(known)? {
                return Ok(secondary);
            }
            pause(attempt);
        }
        let message = format!("its files changed during each of {MAX_ATTEMPTS} attempts; try again");
        Err(Error::Engine { path: self.primary.clone(), doing: "following", message })
    }

    /// One attempt to open a secondary; `None` if the owner changed the files too fast.
    fn open_once(&self, known: Option<&BTreeSet<String>>) -> Result<Option<Secondary>, Error> {
        let Self { primary, own, tables, rocks, cache, .. } = self;
        let before = Listing::read(primary)?;
        let families = RocksOptions::default().families(tables, &BTreeSet::new(), cache);
        let opened = DB::open_cf_descriptors_as_secondary(rocks, primary, own, families).map(Handle);
        let after = Listing::read(primary)?;
        let has_all_logs = before.has_all_logs_in(&after);
        let is_undisturbed =
            has_all_logs && (&before.manifest, before.manifest_len) == (&after.manifest, after.manifest_len);
        let handle = match opened {
            Ok(handle) => handle,
            Err(error) if is_undisturbed => return Err(map_error(primary, "following", error)),
            // A file was deleted before its deletion was in the manifest.
            Err(_) => return Ok(None),
        };
        // If a log was deleted, the others may not have been read.
        let log = before.newest_written_log().filter(|_| has_all_logs).unwrap_or(0);
        let secondary = Secondary { handle, seen: before, log, files: BTreeSet::new() };
        let complete = if is_undisturbed { Some(secondary) } else { self.advance(secondary, known)? };
        complete.map_or(Ok(None), |secondary| self.checked(secondary, known))
    }

    /// `secondary`, unless it lacks a table file of the database: an error if that file cannot be read, else `None`,
    /// because the owner made a table anew, or changed the files meanwhile. At full speed some files are always still
    /// being written, so only those of `known` are suspect; without it, every file.
    fn checked(
        &self,
        mut secondary: Secondary,
        known: Option<&BTreeSet<String>>,
    ) -> Result<Option<Secondary>, Error> {
        let live = secondary.live_files(self)?;
        let there = directory::table_files(&self.primary)?;
        let is_suspect =
            |name: &&String| !live.contains(*name) && known.is_none_or(|known| known.contains(*name));
        let suspects = there.iter().filter(is_suspect).cloned().collect();
        match missing_files::check(&self.primary, self.tables, self.options, &suspects, &self.own) {
            Ok(false) => {
                secondary.files = there.union(&live).cloned().collect();
                Ok(Some(secondary))
            }
            // Of a file that was deleted after it was listed and before it was opened, too.
            Ok(true) | Err(Error::Engine { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{Access, Batch, Durability, RocksStore, Store as _};

    const NUMBERS: &TableSpec = &TableSpec { name: "numbers", tag: 0x70, access: Access::Scan };
    const TABLES: &[&TableSpec] = &[NUMBERS];

    /// An owner with the row 0, and the parameters to follow it.
    fn owned() -> (RocksStore, Source, [TempDir; 2]) {
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [primary, own] = directories.each_ref().map(|directory| directory.path().to_owned());
        let options = RocksOptions::default();
        let owner = RocksStore::open(&primary, TABLES, options).unwrap();
        put(&owner, 0);
        let (rocks, cache) = (RocksOptions::follower(), options.cache());
        (owner, Source { primary, own, tables: TABLES, options, rocks, cache }, directories)
    }

    fn put(owner: &RocksStore, n: u8) {
        let mut batch = Batch::new();
        batch.put(NUMBERS, vec![n], vec![n]);
        owner.commit(batch, Durability::Buffered).unwrap();
    }

    #[test]
    fn a_catch_up_is_complete_if_the_manifest_and_the_logs_are_unchanged() {
        let (_owner, source, _directories) = owned();
        let mut secondary = source.open(None).unwrap();
        let before = Listing::read(&source.primary).unwrap();
        let mut judge = |after: &Listing| secondary.judge(before.clone(), after, &source).unwrap();

        let mut longer = before.clone();
        longer.manifest_len += 1;
        assert_eq!(judge(&longer), Outcome::Incomplete);
        let mut without_logs = before.clone();
        without_logs.logs.clear();
        assert_eq!(judge(&without_logs), Outcome::Incomplete);
        without_logs.logs.insert(1000, 1);
        assert_eq!(judge(&without_logs), Outcome::Outdated);
        let mut restarted = before.clone();
        restarted.manifest.push('0');
        assert_eq!(judge(&restarted), Outcome::Outdated);
        assert_eq!(judge(&before), Outcome::Complete);
    }

    #[test]
    fn a_secondary_follows_into_a_new_log_until_a_flush_hides_the_end_of_the_log_that_it_read_in_part() {
        let (owner, source, _directories) = owned();
        let mut secondary = source.open(None).unwrap();
        let read_in_part = secondary.log;
        let before = Listing::read(&source.primary).unwrap();
        // A log that the owner has started; no table file has a higher number.
        let mut started = before.clone();
        started.logs.insert(read_in_part + 1, 0);
        assert_eq!(secondary.judge(started.clone(), &started, &source).unwrap(), Outcome::Complete);
        assert_eq!(secondary.log, read_in_part, "the new log is empty");
        started.logs.insert(read_in_part + 1, 1);
        assert_eq!(secondary.judge(started.clone(), &started, &source).unwrap(), Outcome::Complete);
        assert_eq!(secondary.log, read_in_part + 1);

        let mut secondary = source.open(None).unwrap();
        put(&owner, 1);
        owner.flush().unwrap();
        secondary.db().try_catch_up_with_primary().unwrap();
        let mut after = Listing::read(&source.primary).unwrap();
        after.logs.insert(read_in_part, before.logs[&read_in_part]);
        assert_eq!(secondary.judge(before, &after, &source).unwrap(), Outcome::Outdated);
    }
}
