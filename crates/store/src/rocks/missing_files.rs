//! Whether a secondary instance shows every file of the database.
//!
//! What must hold: a file that cannot be opened is an error, never an absence. A secondary instance passes over the state
//! that such a file belongs to (RocksDB 11.8, `db/version_edit_handler.cc`, "cannot be recovered; skip it"), and shows the
//! table as it was before, which may be empty.

use std::{collections::BTreeSet, path::Path};

use rocksdb::{DB, LiveFile, ReadOptions};

use super::{
    RocksOptions,
    corruption::{self, file_name},
    errors::{map_error, with_table},
    family,
};
use crate::{error::Error, spec::TableSpec};

/// Names of the table files that `db` shows.
pub(super) fn live_files(db: &DB, path: &Path) -> Result<BTreeSet<String>, Error> {
    Ok(files(db, path)?.iter().map(|file| file_name(file).to_owned()).collect())
}

/// Fails if one of `unlisted`, which are there and not shown, belongs to the database and cannot be read. Files that are
/// being written or deleted do not belong to it. Opens the database once more, unless there are no unlisted.
pub(super) fn check(
    path: &Path,
    tables: &'static [&'static TableSpec],
    options: RocksOptions,
    unlisted: &BTreeSet<String>,
) -> Result<(), Error> {
    if unlisted.is_empty() {
        return Ok(());
    }
    let handle = corruption::open(path, tables, options)?;
    for file in files(&handle.db, path)?.iter().filter(|file| unlisted.contains(file_name(file))) {
        let Some(table) = tables.iter().find(|table| table.name == file.column_family_name) else { continue };
        let mut iterator = handle.db.raw_iterator_cf_opt(family(&handle.db, table)?, ReadOptions::default());
        iterator.seek(file.start_key.as_deref().unwrap_or_default());
        let read = iterator.status().map_err(|error| with_table(table, map_error(path, "following", error)));
        // The owner may have replaced it since it was listed.
        if read.is_err() && path.join(file_name(file)).exists() {
            read?;
        }
    }
    Ok(())
}

fn files(db: &DB, path: &Path) -> Result<Vec<LiveFile>, Error> {
    db.live_files().map_err(|error| map_error(path, "listing files", error))
}
