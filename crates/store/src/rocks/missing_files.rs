//! Detection of table files that a secondary instance dropped silently.
//!
//! A RocksDB secondary skips a version whose files it cannot open (11.8, `db/version_edit_handler.cc`, "cannot be
//! recovered; skip it") and shows an older version of the table, which may be empty.
//!
//! # Invariants
//!
//! A table file that cannot be opened is an error, never an absence of rows.

use std::{collections::BTreeSet, path::Path};

use rocksdb::{DB, ReadOptions};

use super::{
    corruption::{self, file_name, files},
    errors::{map_error, with_table},
    handle::family,
    options::RocksOptions,
};
use crate::{error::Error, spec::TableSpec};

/// Names of the live table files of `db`.
pub(super) fn live_files(db: &DB, path: &Path) -> Result<BTreeSet<String>, Error> {
    Ok(files(db, path)?.iter().map(|file| file_name(file).to_owned()).collect())
}

/// True if one of the files `unlisted` (on disk, but not live in the secondary) belongs to the database; an error if it
/// cannot be read. Files that are being written or deleted do not belong to it. Opens the table files of the database
/// once more, without its logs, unless `unlisted` is empty; `empty` is a directory without a log.
pub(super) fn check(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    unlisted: &BTreeSet<String>,
    empty: &Path,
) -> Result<bool, Error> {
    if unlisted.is_empty() {
        return Ok(false);
    }
    let mut rocks = RocksOptions::read_only();
    // The contents of the logs would take as much memory as another secondary.
    rocks.set_wal_dir(empty);
    let db = corruption::open(path, tables, options, &rocks)?;
    let mut belongs = false;
    for file in files(&db, path)?.iter().filter(|file| unlisted.contains(file_name(file))) {
        let Some(table) = tables.iter().find(|table| table.name == file.column_family_name) else { continue };
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        let mut iterator = db.raw_iterator_cf_opt(family(&db, table)?, options);
        iterator.seek(file.start_key.as_deref().unwrap_or_default());
        let read = iterator.status().map_err(|error| with_table(table, map_error(path, "following", error)));
        // The owner may have deleted the file since.
        if read.is_err() && path.join(file_name(file)).exists() {
            read?;
        }
        belongs = true;
    }
    Ok(belongs)
}
