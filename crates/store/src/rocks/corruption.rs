//! Detection of files that cannot be read: a scan of every table that verifies checksums and continues after a corrupt
//! file.
//!
//! # Invariants
//!
//! * If no file is reported, every row was read, with a correct checksum.
//! * Memory does not grow with the database.
//!
//! Corrupt filter blocks are not detected, because RocksDB then reads the rows instead.

use std::{fmt, path::Path};

use rocksdb::{DB, LiveFile, Options, ReadOptions};

use super::{
    directory,
    errors::map_error,
    handle::{Handle, family},
    options::RocksOptions,
};
use crate::{error::Error, spec::TableSpec};

/// A file of a table that cannot be read, or not completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CorruptFile {
    /// Name of the table.
    pub table: &'static str,
    /// Name of the file, if RocksDB reports it.
    pub file: Option<String>,
    /// RocksDB's message.
    pub reason: String,
}

impl fmt::Display for CorruptFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().unwrap_or("of an unknown name");
        write!(f, "unreadable rows: table {}, file {file}: {}", self.table, self.reason)
    }
}

/// So many consecutive opens do not all fail because of concurrent deletions.
const MAX_ATTEMPTS: u32 = 4;

/// Reads all rows of the database in `path`, and returns the files that cannot be read.
pub(super) fn find(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<Vec<CorruptFile>, Error> {
    directory::check_followed(path, tables)?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match find_once(path, tables, options) {
            // The owner may have deleted a file after it was listed and before it was opened.
            Err(Error::Engine { .. }) if attempts < MAX_ATTEMPTS => {}
            outcome => return outcome,
        }
    }
}

/// Uses a read-only instance: a secondary would show the version before a file that it cannot open.
fn find_once(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
) -> Result<Vec<CorruptFile>, Error> {
    let db = open(path, tables, options, &RocksOptions::read_only())?;
    let mut found = Vec::new();
    for table in tables {
        scan(&db, path, table, &mut found)?;
    }
    Ok(found)
}

/// Opens the current state read-only with the options `rocks`, even if some files cannot be opened.
pub(super) fn open(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    rocks: &Options,
) -> Result<Handle, Error> {
    DB::open_cf_descriptors_read_only(rocks, path, options.families_on_hold(tables), false)
        .map(Handle)
        .map_err(|error| map_error(path, "looking for damage", error))
}

/// Reads the table from its start, and again from the first key of each file, because an iterator ends at an error.
fn scan(db: &DB, path: &Path, table: &'static TableSpec, found: &mut Vec<CorruptFile>) -> Result<(), Error> {
    let mut starts: Vec<_> = files(db, path)?
        .into_iter()
        .filter(|file| file.column_family_name == table.name)
        .map(|file| file.start_key.unwrap_or_default())
        .collect();
    starts.push(Vec::new());
    starts.sort();
    // The first key that has not been read yet; `None` after the end of the table.
    let mut next = Some(Vec::new());
    for start in starts {
        if next.as_ref().is_none_or(|next| start < *next) {
            continue;
        }
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_total_order_seek(true);
        let mut rows = db.raw_iterator_cf_opt(family(db, table)?, options);
        rows.seek(&start);
        let mut last = start;
        while let Some(key) = rows.key() {
            key.clone_into(&mut last);
            rows.next();
        }
        match rows.status().map_err(|error| map_error(path, "reading", error)) {
            Ok(()) => next = None,
            Err(Error::Damaged { file, message, .. }) => {
                next = Some(crate::key::successor(&last));
                if !found.iter().any(|known| known.table == table.name && known.file == file) {
                    found.push(CorruptFile { table: table.name, file, reason: message });
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The live table files of all tables.
pub(super) fn files(db: &DB, path: &Path) -> Result<Vec<LiveFile>, Error> {
    db.live_files().map_err(|error| map_error(path, "listing files", error))
}

/// The name of a table file without the leading slash.
pub(super) fn file_name(file: &LiveFile) -> &str {
    file.name.trim_start_matches('/')
}
