//! Incremental backups of a database, by RocksDB's backup engine.
//!
//! # Invariants
//!
//! * An interrupted backup leaves the earlier ones intact. A restore gives the backed-up bytes or an error. The backup
//!   engine ensures both by a checksum of every file.
//! * A restore writes into a directory of its own inside the target, and moves the files when all are there: an
//!   interrupted one is not a database, and the next one begins anew.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use rocksdb::{
    DB, Env,
    backup::{BackupEngine, BackupEngineInfo, BackupEngineOptions, RestoreOptions},
};

use super::{RocksOptions, directory::CURRENT, errors::map_error, handle::Handle};
use crate::{error::Error, spec::TableSpec};

/// Concurrent file copies.
const AT_ONCE: i32 = 4;

const MIB: u64 = 1 << 20;

/// Lock file, locked while backups are made or removed.
const LOCK: &str = "lock";

/// The start of the name of the directory, inside the target, that a restore writes to; the backup's number follows.
const STAGING: &str = "unfinished-restore-";

/// A backup directory.
#[derive(Debug, Clone)]
pub struct Backups {
    path: PathBuf,
}

/// A backup in a [`Backups`] directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// Its number; later ones have larger numbers.
    pub number: u32,
    /// When it was made, seconds since 1970 UTC.
    pub made: i64,
    /// Bytes of its files, those that it shares with others included.
    pub bytes: u64,
    /// Number of its files.
    pub files: u32,
}

impl Backups {
    /// The backups in the directory `path`, which need not exist yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// All backups, oldest first.
    pub fn list(&self) -> Result<Vec<Backup>, Error> {
        if !self.path.is_dir() {
            return Ok(Vec::new());
        }
        Ok(listed(&self.engine()?))
    }

    /// Backs up the database in `checkpoint`, which no other handle may have open, and copies only files that no
    /// earlier backup has.
    pub fn add(&self, checkpoint: &Path, tables: &'static [&'static TableSpec]) -> Result<Backup, Error> {
        if self.path.join(CURRENT).exists() {
            return Err(Error::NoBackup {
                path: self.path.clone(),
                found: "it holds a database".to_owned(),
                remedy: "name an empty or new directory for the backups, or one with earlier ones",
            });
        }
        fs::create_dir_all(&self.path).map_err(|error| self.failed("making the directory", &error))?;
        let _lock = self.lock()?;
        let options = RocksOptions { cache_bytes: 8 << 20, ..RocksOptions::default() };
        let db =
            DB::open_cf_descriptors(&options.backup_source(), checkpoint, options.families_on_hold(tables))
                .map_err(|error| map_error(checkpoint, "opening", error))?;
        let handle = Handle(db);
        let mut engine = self.engine()?;
        engine
            .create_new_backup_flush(&handle, true)
            .map_err(|error| map_error(&self.path, "backing up", error))?;
        listed(&engine).pop().ok_or_else(|| self.none("it holds no backup after one was made"))
    }

    /// Removes all backups but the last `n`; at least one stays.
    pub fn keep(&self, n: usize) -> Result<(), Error> {
        let _lock = self.lock()?;
        let removed = self.engine()?.purge_old_backups(n.max(1));
        removed.map_err(|error| map_error(&self.path, "removing old backups", error))
    }

    /// Writes the files of a backup (the last one by default) to the directory `to`, which must be new or empty.
    pub fn restore(&self, number: Option<u32>, to: &Path) -> Result<Backup, Error> {
        let known = self.list()?;
        let chosen = match number {
            Some(number) => known.iter().find(|backup| backup.number == number),
            None => known.last(),
        };
        let Some(chosen) = chosen.copied() else {
            let numbers: Vec<_> = known.iter().map(|backup| backup.number.to_string()).collect();
            let found = match numbers.as_slice() {
                [] => "it has no backups".to_owned(),
                numbers => format!("it has no such backup; those that it has: {}", numbers.join(", ")),
            };
            return Err(self.none(&found));
        };
        let staging = to.join(format!("{STAGING}{}", chosen.number));
        match Target::new(to, &staging).map_err(|error| unwritten(to, &error))? {
            Target::Vacant => {}
            Target::Occupied => return Err(occupied(to)),
            Target::Restored => {
                fs::remove_dir(&staging).map_err(|error| unwritten(to, &error))?;
                return Ok(chosen);
            }
        }
        fs::create_dir_all(&staging).map_err(|error| unwritten(to, &error))?;
        let restored =
            self.engine()?.restore_from_backup(&staging, &staging, &RestoreOptions::default(), chosen.number);
        if let Err(error) = restored {
            // What is left of it is removed by the next restore.
            drop(fs::remove_dir_all(&staging));
            return Err(self.unrestored(to, chosen, error));
        }
        move_files(&staging, to).map_err(|error| unwritten(to, &error))?;
        Ok(chosen)
    }

    fn engine(&self) -> Result<BackupEngine, Error> {
        let fail = |error| map_error(&self.path, "opening backups", error);
        let mut options = BackupEngineOptions::new(&self.path).map_err(fail)?;
        options.set_max_background_operations(AT_ONCE);
        BackupEngine::open(&options, &Env::new().map_err(fail)?).map_err(fail)
    }

    /// Excludes other backups and removals in this directory until it is dropped.
    fn lock(&self) -> Result<fs::File, Error> {
        let file = fs::File::create(self.path.join(LOCK)).map_err(|error| self.failed("locking", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse { path: self.path.clone() }),
            Err(fs::TryLockError::Error(error)) => Err(self.failed("locking", &error)),
        }
    }

    /// Attributes a restore error: corruption to the backup, anything else to the target directory.
    fn unrestored(&self, to: &Path, backup: Backup, error: rocksdb::Error) -> Error {
        match map_error(to, "restoring", error) {
            Error::Damaged { table, file, message, path: _ } => {
                Error::Damaged { path: self.path.clone(), table, file, message }
            }
            Error::NoSpace { path, free, .. } => {
                let (needs, free) = (backup.bytes.div_ceil(MIB), free / MIB);
                let message = format!(
                    "the disk is full: the backup takes {needs} MiB, {free} MiB are free; empty the directory, make room \
                     and restore again"
                );
                Error::Engine { path, doing: "restoring", message }
            }
            other => other,
        }
    }

    fn none(&self, found: &str) -> Error {
        let remedy = "name the directory of the backups, and a number that `cairn db backup --list` prints";
        Error::NoBackup { path: self.path.clone(), found: found.to_owned(), remedy }
    }

    fn failed(&self, doing: &'static str, error: &std::io::Error) -> Error {
        Error::Engine { path: self.path.clone(), doing, message: error.to_string() }
    }
}

/// A directory to restore to.
enum Target {
    /// New, empty, or emptied of an interrupted restore.
    Vacant,
    /// The restore into `staging` was interrupted after its last file had been moved.
    Restored,
    Occupied,
}

impl Target {
    fn new(to: &Path, staging: &Path) -> io::Result<Self> {
        let entries = match fs::read_dir(to) {
            Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Vacant),
            Err(error) => return Err(error),
        };
        if entries.is_empty() {
            return Ok(Self::Vacant);
        }
        let is_staging = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(STAGING);
        if entries.iter().any(|entry| entry.file_name() == CURRENT) {
            let is_whole = fs::read_dir(staging).is_ok_and(|mut files| files.next().is_none());
            return Ok(if is_whole { Self::Restored } else { Self::Occupied });
        }
        // The files next to the directory of an interrupted restore were moved out of it.
        if !entries.iter().any(is_staging) {
            return Ok(Self::Occupied);
        }
        for entry in entries {
            if is_staging(&entry) {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self::Vacant)
    }
}

/// Moves the files of a database, and last the one that makes them one.
fn move_files(from: &Path, to: &Path) -> io::Result<()> {
    let mut names =
        fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| name == CURRENT);
    let sync = || fs::File::open(to)?.sync_all();
    for name in names {
        if name == CURRENT {
            sync()?;
        }
        fs::rename(from.join(&name), to.join(&name))?;
    }
    fs::remove_dir(from)?;
    sync()
}

fn unwritten(to: &Path, error: &io::Error) -> Error {
    Error::Engine {
        path: to.to_owned(),
        doing: "preparing the directory to restore to",
        message: error.to_string(),
    }
}

fn occupied(to: &Path) -> Error {
    let found = "it is not empty, and a backup is restored to an empty or new directory".to_owned();
    Error::NoBackup { path: to.to_owned(), found, remedy: "name another one, or empty it" }
}

fn listed(engine: &BackupEngine) -> Vec<Backup> {
    let backup = |info: BackupEngineInfo| Backup {
        number: info.backup_id,
        made: info.timestamp,
        bytes: info.size,
        files: info.num_files,
    };
    let mut backups: Vec<_> = engine.get_backup_info().into_iter().map(backup).collect();
    backups.sort_by_key(|backup| backup.number);
    backups
}
