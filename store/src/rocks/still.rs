//! Damaged tables are not compacted: a compaction that runs into damage makes RocksDB refuse every write, of all tables,
//! until the database is opened again, and there it happens again.
//!
//! What must hold: what is known to be damaged stays known over a restart, until it is salvaged. Where a compaction finds the
//! damage first, this process writes no more; the next one does.

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rocksdb::DB;

use crate::error::Error;

/// Names of the damaged tables, one a line. Beside RocksDB's files, which have other names.
const MARKER: &str = "DAMAGED";

pub(super) struct Still {
    path: PathBuf,
    tables: Mutex<BTreeSet<String>>,
}

impl Still {
    /// The damaged tables of the database in `path` that are known.
    pub(super) fn known(path: &Path) -> Result<Self, Error> {
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
    pub(super) fn note(&self, db: &DB, error: &Error) {
        let Error::Damaged { table, file, .. } = error else { return };
        let Some(table) = table.map(str::to_owned).or_else(|| table_of(db, file.as_deref()?)) else { return };
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if !tables.insert(table.clone()) {
            return;
        }
        if let Some(family) = db.cf_handle(&table) {
            // If it cannot be set now, the marker does it at the next start.
            drop(db.set_options_cf(family, &[("disable_auto_compactions", "true")]));
        }
        let names = tables.iter().fold(String::new(), |names, name| names + name + "\n");
        // On a full disk or a failing device; then it is found again after the next start.
        drop(fs::write(self.path.join(MARKER), names));
    }

    /// Forgets all of them.
    pub(super) fn forget(path: &Path) -> Result<(), Error> {
        match fs::remove_file(path.join(MARKER)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(path, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
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
        doing: "reading which tables are damaged",
        message: error.to_string(),
    }
}
