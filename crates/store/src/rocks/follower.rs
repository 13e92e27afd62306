//! Follower: consistent read-only views of a database that another process writes, by RocksDB secondary instances.
//!
//! Secondary instances have no snapshots, and alone do not give consistent views:
//!
//! * The part of a WAL that a secondary has read stays in its memory and hides newer rows of table files, if the owner
//!   flushed the rest of that WAL before the secondary read it (RocksDB 11.8, issues 14444 and 15051).
//! * A secondary silently skips a WAL or table file that is deleted during its catch-up, which leaves some tables
//!   behind the others (`DBImplSecondary::TryCatchUpWithPrimary`).
//!
//! The first case needs a new WAL, which RocksDB starts before it flushes the last writes of the previous one; the
//! second needs a deletion. So a catch-up counts only if neither happened meanwhile, and a new WAL requires a new
//! secondary.
//!
//! No snapshot waits for a catch-up (double buffering): new snapshots use the current secondary, while the standby,
//! which no snapshot uses, catches up and then becomes the current one. Each holds the contents of the owner's WAL in
//! memory; they share the block cache. If snapshots hold the standby for too long, a third secondary is opened, and
//! never more.
//!
//! # Invariants
//!
//! Views change only by a catch-up, and each is the state of all tables after one commit of the owner.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use rocksdb::{Cache, DB, Options};

use super::{directory::Listing, errors::map_error, handle::Handle, missing_files, options::RocksOptions};
use crate::{error::Error, spec::TableSpec};

pub(super) struct Follower {
    source: Source,
    /// The secondary of new snapshots.
    current: Mutex<Arc<Secondary>>,
    /// Locked during a catch-up, so catch-ups are serial.
    standby: Mutex<Standby>,
}

/// Parameters to open a secondary.
struct Source {
    primary: PathBuf,
    own: PathBuf,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    /// Shared by all secondaries, with their counters.
    rocks: Options,
    cache: Cache,
}

/// A secondary instance of RocksDB, usable until the owner starts another log. It changes only while no snapshot uses
/// it.
pub(super) struct Secondary {
    handle: Handle,
    /// Number of the newest log when it was opened.
    log: u64,
    /// The table files that were on disk when it was opened: those it shows, those of the database that it should show,
    /// those still being written, and obsolete ones.
    files: BTreeSet<String>,
}

impl Secondary {
    pub(super) fn db(&self) -> &DB {
        &self.handle
    }
}

/// The secondaries that are not used by new snapshots.
#[derive(Default)]
struct Standby {
    /// The previous current secondary: the next one to catch up. `None` at first, and after an error.
    next: Option<Arc<Secondary>>,
    /// A former standby that snapshots held for too long. It closes with the last of these snapshots.
    retired: Weak<Secondary>,
}

/// Time that a catch-up waits for the snapshots of the next secondary. Most requests take less, and another secondary
/// costs as much memory as the owner's log.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Poll interval for whether snapshots still hold a secondary.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

impl Follower {
    pub(super) fn new(
        primary: PathBuf,
        own: PathBuf,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
        rocks: Options,
    ) -> Result<Self, Error> {
        let source = Source { primary, own, tables, options, rocks, cache: options.cache() };
        let current = Mutex::new(Arc::new(source.open(None)?));
        Ok(Self { source, current, standby: Mutex::default() })
    }

    /// The secondary of the last catch-up, which does not change while it is held.
    pub(super) fn current(&self) -> Arc<Secondary> {
        Arc::clone(&self.lock_current())
    }

    pub(super) fn catch_up(&self) -> Result<(), Error> {
        let mut standby = self.standby.lock().unwrap_or_else(PoisonError::into_inner);
        let next = standby.take_unused(&self.source.primary)?;
        let files = Listing::of(&self.source.primary)?;
        let next = match next {
            // After a catch-up that failed half-way, a secondary has no consistent state.
            Some(next)
                if next.log == files.newest_log
                    && next.db().try_catch_up_with_primary().is_ok()
                    && files.is_current(&self.source.primary)? =>
            {
                next
            }
            outdated => {
                // Closed first: it uses as much memory as its replacement.
                drop(outdated);
                Arc::new(self.source.open(Some(&self.current().files))?)
            }
        };
        standby.next = Some(std::mem::replace(&mut *self.lock_current(), next));
        Ok(())
    }

    // The lock is held for an assignment only, which does not panic.
    fn lock_current(&self) -> MutexGuard<'_, Arc<Secondary>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standby {
    /// The next secondary, if there is one and no snapshot uses it; one that is held for too long is retired.
    fn take_unused(&mut self, primary: &Path) -> Result<Option<Arc<Secondary>>, Error> {
        let Some(mut next) = self.next.take() else { return Ok(None) };
        let since = Instant::now();
        // New snapshots do not use it, so its reference count only falls.
        while Arc::get_mut(&mut next).is_none() {
            if since.elapsed() >= MAX_WAIT {
                if self.retired.strong_count() > 0 {
                    self.next = Some(next);
                    let message = "snapshots hold each of three states for too long; try again".to_owned();
                    return Err(Error::Engine { path: primary.to_owned(), doing: "following", message });
                }
                self.retired = Arc::downgrade(&next);
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(Some(next))
    }
}

/// With the pauses between them about a second, which outlasts a burst of flushes; more attempts would only hide an
/// owner that always flushes faster.
const MAX_ATTEMPTS: u32 = 64;

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(20);

impl Source {
    /// Opens a secondary of the current state of the database. `before` are the files of the previous secondary.
    fn open(&self, before: Option<&BTreeSet<String>>) -> Result<Secondary, Error> {
        let Self { primary, own, tables, options, rocks, cache } = self;
        let mut attempts = 0_u32;
        loop {
            attempts += 1;
            let files = Listing::of(primary)?;
            let families = RocksOptions::families(tables, &BTreeSet::new(), cache);
            let opened = DB::open_cf_descriptors_as_secondary(rocks, primary, own, families);
            let undisturbed = files.is_current(primary)?;
            match opened {
                Ok(db) if undisturbed => {
                    let handle = Handle(db);
                    let live = missing_files::live_files(&handle, primary)?;
                    let there = Listing::of(primary)?.table_files();
                    // At full speed some files are always still being written. A file of the previous instance that
                    // this one does not show either is suspect; at the start every such file is.
                    let listed = files.table_files();
                    let known = before.unwrap_or(&listed);
                    let unlisted = known.iter().filter(|&name| there.contains(name) && !live.contains(name));
                    match missing_files::check(primary, tables, *options, &unlisted.cloned().collect()) {
                        // The owner may have deleted a file after it was listed and before it was opened.
                        Err(Error::Engine { .. }) if attempts < MAX_ATTEMPTS => {}
                        checked => {
                            checked?;
                            let (log, files) = (files.newest_log, there.union(&live).cloned().collect());
                            return Ok(Secondary { handle, log, files });
                        }
                    }
                }
                Err(error) if undisturbed || attempts == MAX_ATTEMPTS => {
                    return Err(map_error(primary, "following", error));
                }
                Ok(db) if attempts == MAX_ATTEMPTS => {
                    drop(Handle(db));
                    let message =
                        format!("its files changed during each of {MAX_ATTEMPTS} attempts; try again");
                    return Err(Error::Engine { path: primary.clone(), doing: "following", message });
                }
                Ok(db) => drop(Handle(db)),
                Err(_) => {} // The open may have failed between a deletion and its record in the manifest.
            }
            thread::sleep(Duration::from_millis(attempts.into()).min(MAX_PAUSE));
        }
    }
}
