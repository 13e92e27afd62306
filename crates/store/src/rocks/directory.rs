//! Checks of a database directory before RocksDB opens it, and its size.
//!
//! # Invariants
//!
//! A directory that is not a database of this program is refused before RocksDB touches it, because RocksDB opens and
//! upgrades everything that resembles one of its databases (LevelDB's included).

use std::{
    collections::{BTreeMap, BTreeSet},
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
    if found.is_empty() && is_without_rows(path)? {
        return Ok(());
    }
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

/// The progress of a database at one moment, as its files show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// Name of the manifest, the log of the table files.
    pub(super) manifest: String,
    /// Length of the manifest. While it is unchanged, no table file was added to the database or removed from it.
    pub(super) manifest_len: u64,
    /// The write-ahead logs: numbers (`000042.log` is 42) with lengths.
    pub(super) logs: BTreeMap<u64, u64>,
}

impl Listing {
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let current = fs::read_to_string(path.join(CURRENT)).map_err(|error| unreadable(path, &error))?;
        let manifest = current.trim_end().to_owned();
        // An owner that starts replaces the manifest and then deletes the old one.
        let manifest_len = len(&path.join(&manifest)).map_err(|error| unreadable(path, &error))?.unwrap_or(0);
        let mut logs = BTreeMap::new();
        for name in names(path)?.unwrap_or_default() {
            // RocksDB does not write other names that end in `.log`.
            let Some(number) = name.strip_suffix(LOG).and_then(|number| number.parse().ok()) else {
                continue;
            };
            if let Some(len) = len(&path.join(&name)).map_err(|error| unreadable(path, &error))? {
                logs.insert(number, len);
            }
        }
        Ok(Self { manifest, manifest_len, logs })
    }

    /// The number of the newest log.
    pub(super) fn newest_log(&self) -> Option<u64> {
        self.logs.keys().next_back().copied()
    }

    /// The number of the newest log with records. Earlier logs get no more records: the owner may start a log before
    /// it writes the last records of the previous one, but not write to both.
    pub(super) fn newest_written_log(&self) -> Option<u64> {
        self.logs.iter().rev().find(|(_, len)| **len > 0).map(|(number, _)| *number)
    }

    /// True if every log of this listing is in `later`.
    pub(super) fn has_all_logs_in(&self, later: &Self) -> bool {
        self.logs.keys().all(|number| later.logs.contains_key(number))
    }
}

/// Length of a file; `None` if it does not exist.
fn len(path: &Path) -> Result<Option<u64>, IoError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Names of the table files in `path`: those of the database, those still being written, and obsolete ones.
pub(super) fn table_files(path: &Path) -> Result<BTreeSet<String>, Error> {
    let names = names(path)?.unwrap_or_default();
    Ok(names.into_iter().filter(|name| name.ends_with(TABLE)).collect())
}

/// The number of the table file `name` (`000042.sst` is 42). Table files and logs are numbered by one counter.
pub(super) fn table_number(name: &str) -> Option<u64> {
    name.strip_suffix(TABLE)?.parse().ok()
}

const LOG: &str = ".log";
const TABLE: &str = ".sst";

/// RocksDB's pointer to the newest manifest: a directory with it holds a database.
pub(super) const CURRENT: &str = "CURRENT";

/// Files of an interrupted creation of a database, before `CURRENT`, and files of a new file system.
fn may_precede_database(name: &str) -> bool {
    matches!(name, "LOCK" | "IDENTITY" | "lost+found")
        || name.starts_with("LOG")
        || name.starts_with("MANIFEST-")
        || Path::new(name).extension().is_some_and(|extension| extension == "dbtmp")
}

/// True if no table file and no record of a log is in a database: its creation was interrupted between `CURRENT` and the
/// first table, or nothing was ever written to it.
fn is_without_rows(path: &Path) -> Result<bool, Error> {
    for name in names(path)?.unwrap_or_default() {
        let extension = Path::new(&name).extension().and_then(|extension| extension.to_str());
        let may_hold_rows = matches!(extension, Some("log" | "sst" | "ldb" | "blob"));
        let len = len(&path.join(&name)).map_err(|error| unreadable(path, &error))?;
        if may_hold_rows && len.is_some_and(|len| len > 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Names of the entries of `path`; `None` if it does not exist.
fn names(path: &Path) -> Result<Option<Vec<String>>, Error> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            let found = "it is a file, or below one".to_owned();
            return Err(Error::NotADatabase { path: path.to_owned(), found, remedy: "name a directory" });
        }
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
    fn a_listing_shows_the_manifest_and_the_logs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let file = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        for (name, text) in [("CURRENT", "MANIFEST-000005\n"), ("000009.log", "record"), ("000010.log", "")] {
            file(name, text);
        }
        file("LOG", "text");
        let before = Listing::read(path).unwrap();
        assert_eq!((before.manifest.as_str(), before.manifest_len), ("MANIFEST-000005", 0));
        assert_eq!(before.newest_written_log(), Some(9));
        file("000010.log", "record");
        file("MANIFEST-000005", "edits");
        let after = Listing::read(path).unwrap();
        assert_eq!((after.manifest_len, after.newest_written_log()), (5, Some(10)));
        assert!(before.has_all_logs_in(&after));
        fs::remove_file(path.join("000009.log")).unwrap();
        assert!(!before.has_all_logs_in(&Listing::read(path).unwrap()));
    }

    #[test]
    fn table_files_are_numbered() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["000009.log", "000010.sst", "LOG"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let files = table_files(directory.path()).unwrap();
        assert_eq!(files.iter().map(|name| table_number(name)).collect::<Vec<_>>(), [Some(10)]);
        assert_eq!(table_number("000010.log"), None);
    }
}
