//! Damaged tables are not compacted: a compaction that runs into damage makes RocksDB refuse every write, of all tables,
//! until the database is opened again, and there it happens again.
//!
//! What must hold: what is known to be damaged stays known over a restart, until it is salvaged or was read whole by its
//! owner. Where a compaction finds the damage first, this process writes no more; the next one does.

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rocksdb::DB;

use super::errors::map_error;
use crate::{error::Error, spec::TableSpec};

/// Names of the damaged tables, one a line. Beside RocksDB's files, which have other names.
const MARKER: &str = "DAMAGED";

/// Its name while it is written.
const NEW_MARKER: &str = "DAMAGED.new";

pub(super) struct CompactionHold {
    path: PathBuf,
    tables: Mutex<BTreeSet<String>>,
}

impl CompactionHold {
    /// The damaged tables of the database in `path` that are known.
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let text = match fs::read_to_string(path.join(MARKER)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(path, &error)),
        };
        let tables = text.lines().map(str::to_owned).collect();
        Ok(Self { path: path.to_owned(), tables: Mutex::new(tables) })
    }

    /// Their names.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves the table alone that `error` says to be damaged. It is reported already, so nothing of this can fail.
    pub(super) fn record(&self, db: &DB, error: &Error) {
        let Error::Damaged { table, file, .. } = error else { return };
        let Some(table) = table.map(str::to_owned).or_else(|| table_of(db, file.as_deref()?)) else { return };
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if !tables.insert(table.clone()) {
            return;
        }
        tracing::warn!(
            database = %self.path.display(), table,
            "a damaged table is not compacted any more and grows: stop the process and repair the database"
        );
        // If it cannot be set now, the marker does it at the next start.
        drop(compact(db, &table, false));
        // On a full disk or a failing device; then it is found again after the next start.
        drop(write(&self.path, &tables));
    }

    /// Compacts the table again, of which every row was read.
    pub(super) fn resume(&self, db: &DB, table: &'static TableSpec) -> Result<(), Error> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.remove(table.name) {
            write(&self.path, &tables)?;
            compact(db, table.name, true)
                .map_err(|error| map_error(&self.path, "compacting again", error))?;
        }
        Ok(())
    }

    /// Forgets one of them, whoever opens the database next.
    pub(super) fn clear_table(path: &Path, table: &'static TableSpec) -> Result<(), Error> {
        let mut tables = Self::load(path)?.tables();
        if tables.remove(table.name) { write(path, &tables) } else { Ok(()) }
    }

    /// Forgets all of them.
    pub(super) fn clear(path: &Path) -> Result<(), Error> {
        write(path, &BTreeSet::new())
    }
}

/// Whether RocksDB is to compact the table by itself.
fn compact(db: &DB, table: &str, automatic: bool) -> Result<(), rocksdb::Error> {
    let disabled = if automatic { "false" } else { "true" };
    let Some(family) = db.cf_handle(table) else { return Ok(()) };
    db.set_options_cf(family, &[("disable_auto_compactions", disabled)])
}

/// Writes the marker anew. It is never there in part: a full disk leaves the one before.
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

/// The table that a file is of.
fn table_of(db: &DB, file: &str) -> Option<String> {
    // A list that cannot be had names no table.
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
