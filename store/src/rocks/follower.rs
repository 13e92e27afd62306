//! Reading along with the owner of a database, one state at a time.
//!
//! What must hold: between two catch-ups nothing changes, and what a catch-up shows is what the owner had
//! committed at one moment, in all tables. RocksDB's secondary instances alone do not give that, and they
//! have no snapshots either:
//!
//! * What a secondary has read of a log stays in its memory and hides newer rows of table files, if the owner
//!   flushed the rest of that log before it was read (RocksDB 11.8, issues 14444 and 15051).
//! * A log or table file that is deleted while the secondary looks for it is passed over in silence, which
//!   leaves some tables behind the others (`DBImplSecondary::TryCatchUpWithPrimary`).
//!
//! The first takes a new log, which RocksDB starts before it flushes the last writes of the one before. The
//! second takes a deletion. So a state counts only if neither happened while it was made, and as soon as
//! there is a new log, we open another secondary beside the old one and let new snapshots go there.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rocksdb::DB;

use super::{
    Handle, RocksOptions,
    directory::Listing,
    fault::fault,
    gate::{Gate, Pass},
    skipped,
};
use crate::{engine::TableSpec, error::Error};

pub(super) struct Follower {
    primary: PathBuf,
    own: PathBuf,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    current: Mutex<Arc<Instance>>,
    /// Held through a catch-up, of which there is one at a time.
    advancing: Mutex<()>,
}

/// A secondary instance of RocksDB, good until the owner starts another log.
pub(super) struct Instance {
    handle: Handle,
    gate: Arc<Gate>,
    /// Number of the newest log when it was opened.
    log: u64,
    /// Whether it shows the state of one moment; not if a catch-up failed half-way.
    settled: AtomicBool,
    /// The table files that it shows, and those that were there besides: files of the database that it should show, files
    /// that were still being written, and files that were not needed any more.
    files: BTreeSet<String>,
}

impl Instance {
    pub(super) fn db(&self) -> &DB {
        &self.handle.db
    }
}

impl Follower {
    pub(super) fn new(
        primary: PathBuf,
        own: PathBuf,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        let first = Arc::new(open(&primary, &own, tables, options, None)?);
        Ok(Self { primary, own, tables, options, current: Mutex::new(first), advancing: Mutex::new(()) })
    }

    /// The state of the last catch-up, which the pass keeps as it is.
    pub(super) fn enter(&self) -> Result<(Arc<Instance>, Pass), Error> {
        loop {
            let instance = self.current();
            let pass = instance.gate.enter();
            // While we waited at the gate, the instance may have been given up.
            if Arc::ptr_eq(&instance, &self.current()) {
                return if instance.settled.load(Ordering::Acquire) {
                    Ok((instance, pass))
                } else {
                    let message = "the last catch-up failed: catch up again".to_owned();
                    Err(Error::Engine { path: self.primary.clone(), doing: "following", message })
                };
            }
        }
    }

    pub(super) fn catch_up(&self) -> Result<(), Error> {
        let _one_at_a_time = self.advancing.lock().unwrap_or_else(PoisonError::into_inner);
        let instance = self.current();
        let files = Listing::of(&self.primary)?;
        if files.newest_log != instance.log {
            return self.replace(); // Readers go on with the old one meanwhile.
        }
        instance.gate.alone(|| {
            instance.settled.store(false, Ordering::Release);
            let caught_up = instance.db().try_catch_up_with_primary();
            if caught_up.is_err() || !files.still_holds(&self.primary)? {
                return self.replace();
            }
            instance.settled.store(true, Ordering::Release);
            Ok(())
        })
    }

    fn replace(&self) -> Result<(), Error> {
        let before = self.current();
        let fresh = open(&self.primary, &self.own, self.tables, self.options, Some(&before.files))?;
        let fresh = Arc::new(fresh);
        *self.lock_current() = fresh;
        Ok(())
    }

    fn current(&self) -> Arc<Instance> {
        Arc::clone(&self.lock_current())
    }

    // The lock is held for an assignment only, which does not panic.
    fn lock_current(&self) -> MutexGuard<'_, Arc<Instance>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With the pauses between them about a second, which outlasts a burst of flushes; more would only hide an owner that is
/// always faster.
const MAX_ATTEMPTS: u32 = 64;

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(20);

fn open(
    primary: &Path,
    own: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    before: Option<&BTreeSet<String>>,
) -> Result<Instance, Error> {
    let mut attempts = 0_u32;
    loop {
        attempts += 1;
        let files = Listing::of(primary)?;
        let families = options.families(tables, &BTreeSet::new());
        let opened = DB::open_cf_descriptors_as_secondary(&RocksOptions::follower(), primary, own, families);
        let undisturbed = files.still_holds(primary)?;
        match opened {
            Ok(db) if undisturbed => {
                let (handle, gate, settled) = (Handle { db }, Arc::default(), AtomicBool::new(true));
                let shown = skipped::shown(&handle.db, primary)?;
                let there = Listing::of(primary)?.table_files();
                // At full speed there are always files that are still being written. Those that came since the instance
                // before are suspect when the next one does not show them either; at the start all are.
                let listed = files.table_files();
                let known = before.unwrap_or(&listed);
                let suspects = known.iter().filter(|&name| there.contains(name) && !shown.contains(name));
                match skipped::check(primary, tables, options, &suspects.cloned().collect()) {
                    // An owner may have deleted a file between the moment that it was listed and that it was opened.
                    Err(Error::Engine { .. }) if attempts < MAX_ATTEMPTS => {}
                    checked => {
                        checked?;
                        let (log, files) = (files.newest_log, there.union(&shown).cloned().collect());
                        return Ok(Instance { handle, gate, log, settled, files });
                    }
                }
            }
            Err(error) if undisturbed || attempts == MAX_ATTEMPTS => {
                return Err(fault(primary, "following", error));
            }
            Ok(db) if attempts == MAX_ATTEMPTS => {
                drop(Handle { db });
                let message = format!("its files changed during each of {MAX_ATTEMPTS} attempts; try again");
                return Err(Error::Engine { path: primary.to_owned(), doing: "following", message });
            }
            Ok(db) => drop(Handle { db }),
            Err(_) => {} // It may have been caught between a deletion and the news of it.
        }
        // A reader at the gate waits meanwhile, rather than being refused.
        thread::sleep(Duration::from_millis(attempts.into()).min(MAX_PAUSE));
    }
}
