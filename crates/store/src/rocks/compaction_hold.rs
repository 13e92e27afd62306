//! Compaction hold: automatic compaction is off for corrupt tables. A compaction that reads corrupt data makes RocksDB
//! refuse every write to all tables until the database is reopened, and then fails again.
//!
//! # Invariants
//!
//! A marker file keeps the names of corrupt tables over restarts, until they are emptied or were read completely. If a
//! compaction is the first to find the corruption, this process cannot write any more, but the next one can.

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rocksdb::DB;

use super::errors::map_error;
use crate::error::Error;

/// Marker file with the names of the corrupt tables, one per line. Its name differs from all RocksDB file names.
const MARKER: &str = "DAMAGED";

/// Temporary name of the marker while it is written.
const NEW_MARKER: &str = "DAMAGED.new";

pub(super) struct CompactionHold {
    path: PathBuf,
    tables: Mutex<BTreeSet<String>>,
}

impl CompactionHold {
    /// Reads the marker of the database in `path`.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let text = match fs::read_to_string(path.join(MARKER)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(path, &error)),
        };
        let tables = text.lines().map(str::to_owned).collect();
        Ok(Self { path: path.to_owned(), tables: Mutex::new(tables) })
    }

    /// Names of the tables on hold.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the table that `error` reports as corrupt on hold. Best effort, because the caller reports `error` already.
    pub(super) fn record(&self, db: &DB, error: &Error) {
        let Error::Damaged { table, file, .. } = error else { return };
        let Some(table) = table.map(str::to_owned).or_else(|| table_of(db, file.as_deref()?)) else { return };
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if !tables.insert(table.clone()) {
            return;
        }
        tracing::warn!(
            database = %self.path.display(), table,
            "corrupt table is not compacted any more and grows: run `cairn db verify`"
        );
        // On failure, the marker applies at the next start.
        drop(set_compaction(db, &table, false));
        // Fails on a full disk or a failing device; the next process then finds the corruption again.
        drop(write(&self.path, &tables));
    }

    /// Re-enables compaction of all tables on hold.
    pub(super) fn release(&self, db: &DB) -> Result<(), Error> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        for table in std::mem::take(&mut *tables) {
            set_compaction(db, &table, true)
                .map_err(|error| map_error(&self.path, "compacting again", error))?;
        }
        write(&self.path, &tables)
    }
}

/// Turns automatic compaction of a table on or off.
fn set_compaction(db: &DB, table: &str, automatic: bool) -> Result<(), rocksdb::Error> {
    let disabled = if automatic { "false" } else { "true" };
    let Some(family) = db.cf_handle(table) else { return Ok(()) };
    db.set_options_cf(family, &[("disable_auto_compactions", disabled)])
}

/// Replaces the marker atomically: a full disk leaves the previous one.
fn write(path: &Path, tables: &BTreeSet<String>) -> Result<(), Error> {
    let (marker, new) = (path.join(MARKER), path.join(NEW_MARKER));
    let written = if tables.is_empty() {
        match fs::remove_file(marker) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    } else {
        let names = tables.iter().fold(String::new(), |names, name| names + name + "\n");
        fs::write(&new, names).and_then(|()| fs::rename(new, marker))
    };
    written.map_err(|error| failed(path, &error))
}

/// The table of a table file.
fn table_of(db: &DB, file: &str) -> Option<String> {
    // Without a file list there is no answer.
    let files = db.live_files().unwrap_or_default();
    let found = files.into_iter().find(|live| live.name.trim_start_matches('/') == file);
    found.map(|live| live.column_family_name)
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Engine {
        path: path.to_owned(),
        doing: "keeping which tables are damaged",
        message: error.to_string(),
    }
}
