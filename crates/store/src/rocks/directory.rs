//! Checks of a database directory before RocksDB opens it, and its size.
//!
//! # Invariants
//!
//! A directory that is not a database of this program is refused before RocksDB touches it, because RocksDB opens and
//! upgrades everything that resembles one of its databases (LevelDB's included).

use std::{
    collections::BTreeSet,
    fs,
    io::{Error as IoError, ErrorKind},
    path::Path,
};

use rocksdb::{DB, Options};

use super::errors::map_error;
use crate::{error::Error, spec::TableSpec};

/// Refuses to own anything but a new or empty directory, or a database with `tables` or fewer.
pub(super) fn check_owned(path: &Path, tables: &[&TableSpec]) -> Result<(), Error> {
    const REMEDY: &str = "name its data directory, or an empty or new one";
    match names(path)? {
        None => return Ok(()),
        Some(names) if !names.iter().any(|name| name == CURRENT) => {
            return match names.into_iter().find(|name| !may_precede_database(name)) {
                None => Ok(()),
                Some(name) => {
                    let found = format!("it holds `{name}` and no database");
                    Err(Error::NotADatabase { path: path.to_owned(), found, remedy: REMEDY })
                }
            };
        }
        Some(_) => {}
    }
    let found = tables_in(path)?;
    if !tables.is_empty() && !tables.iter().any(|table| found.iter().any(|name| name == table.name)) {
        let found = "it holds a database without any of our tables".to_owned();
        return Err(Error::NotADatabase { path: path.to_owned(), found, remedy: REMEDY });
    }
    let unknown: Vec<_> =
        found.into_iter().filter(|name| !tables.iter().any(|table| table.name == name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Error::UnknownTables { path: path.to_owned(), tables: unknown })
}

/// Refuses a directory without a database.
pub(super) fn check_exists(path: &Path) -> Result<(), Error> {
    let exists = names(path)?.is_some_and(|names| names.iter().any(|name| name == CURRENT));
    if !exists {
        let found = "it holds no database yet".to_owned();
        let remedy = "start the process that writes it first, or name the directory that it writes";
        return Err(Error::NotADatabase { path: path.to_owned(), found, remedy });
    }
    Ok(())
}

/// Refuses to follow anything but a database that has all of `tables`.
pub(super) fn check_followed(path: &Path, tables: &[&TableSpec]) -> Result<(), Error> {
    check_exists(path)?;
    let found = tables_in(path)?;
    let missing =
        tables.iter().map(|table| table.name).filter(|&table| !found.iter().any(|name| name == table));
    let missing: Vec<_> = missing.map(str::to_owned).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::MissingTables { path: path.to_owned(), tables: missing })
}

/// Bytes of all files in the database directory. Subdirectories are checkpoints, which share its files, and are not
/// counted.
pub(super) fn bytes(path: &Path) -> Result<u64, Error> {
    let entries = fs::read_dir(path).map_err(|error| unreadable(path, &error))?;
    let mut bytes = 0;
    for entry in entries {
        match entry.and_then(|entry| entry.metadata()) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) => bytes += metadata.len(),
            // Compactions delete files during the listing.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(path, &error)),
        }
    }
    Ok(bytes)
}

/// Removes interrupted checkpoints inside the database directory: their hard links keep deleted table files on the
/// disk. To be called by the owner.
pub(super) fn remove_unfinished_checkpoints(path: &Path) -> Result<(), Error> {
    for name in names(path)?.unwrap_or_default().iter().filter(|name| name.ends_with(UNFINISHED)) {
        let unfinished = path.join(name);
        if unfinished.is_dir() {
            fs::remove_dir_all(&unfinished).map_err(|error| unreadable(path, &error))?;
        }
    }
    Ok(())
}

/// Suffix of the directory of a checkpoint while RocksDB makes it (`CheckpointImpl::CreateCheckpoint`).
const UNFINISHED: &str = ".tmp";

/// The logs and table files of a database at one moment.
pub(super) struct Listing {
    names: BTreeSet<String>,
    /// Number of the newest log (`000042.log` is 42); 0 if there is none.
    pub(super) newest_log: u64,
}

impl Listing {
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let mut names: BTreeSet<_> = names(path)?.unwrap_or_default().into_iter().collect();
        names.retain(|name| name.ends_with(LOG) || name.ends_with(TABLE));
        // RocksDB does not write other names that end in `.log`.
        let log = |name: &String| name.strip_suffix(LOG).and_then(|number| number.parse().ok());
        let newest_log = names.iter().filter_map(log).max().unwrap_or(0);
        Ok(Self { names, newest_log })
    }

    /// The names of the table files.
    pub(super) fn table_files(&self) -> BTreeSet<String> {
        self.names.iter().filter(|name| name.ends_with(TABLE)).cloned().collect()
    }

    /// True if no log was started and no file deleted since the listing.
    pub(super) fn is_current(&self, path: &Path) -> Result<bool, Error> {
        let now = Self::of(path)?;
        Ok(now.newest_log == self.newest_log && self.names.is_subset(&now.names))
    }
}

const LOG: &str = ".log";
const TABLE: &str = ".sst";

/// RocksDB's pointer to the newest manifest: a directory with it holds a database.
const CURRENT: &str = "CURRENT";

/// Files of an interrupted creation of a database, before `CURRENT`, and files of a new file system.
fn may_precede_database(name: &str) -> bool {
    matches!(name, "LOCK" | "IDENTITY" | "lost+found")
        || name.starts_with("LOG")
        || name.starts_with("MANIFEST-")
        || Path::new(name).extension().is_some_and(|extension| extension == "dbtmp")
}

/// Names of the entries of `path`; `None` if it does not exist.
fn names(path: &Path) -> Result<Option<Vec<String>>, Error> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(path, &error)),
    };
    let name = |entry: Result<fs::DirEntry, IoError>| Ok(entry?.file_name().to_string_lossy().into_owned());
    entries.map(name).collect::<Result<_, _>>().map(Some).map_err(|error: IoError| unreadable(path, &error))
}

fn tables_in(path: &Path) -> Result<Vec<String>, Error> {
    let names =
        DB::list_cf(&Options::default(), path).map_err(|error| map_error(path, "listing tables", error))?;
    Ok(names.into_iter().filter(|name| name != rocksdb::DEFAULT_COLUMN_FAMILY_NAME).collect())
}

fn unreadable(path: &Path, error: &IoError) -> Error {
    Error::Engine { path: path.to_owned(), doing: "reading the directory", message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_holds_until_a_log_is_started_or_a_file_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let file = |name: &str| fs::write(path.join(name), "").unwrap();
        for name in ["000009.log", "000010.log", "000007.sst", "LOG"] {
            file(name);
        }
        let before = Listing::of(path).unwrap();
        assert_eq!(before.newest_log, 10);
        file("000011.sst");
        assert!(before.is_current(path).unwrap());
        fs::remove_file(path.join("000007.sst")).unwrap();
        assert!(!before.is_current(path).unwrap());

        let before = Listing::of(path).unwrap();
        file("000012.log");
        assert!(!before.is_current(path).unwrap());

        let before = Listing::of(path).unwrap();
        fs::remove_file(path.join("000009.log")).unwrap();
        assert!(!before.is_current(path).unwrap());
    }
}
