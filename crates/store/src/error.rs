//! Store errors, each with its remedy for the operator.
//!
//! # Invariants
//!
//! An absent row is `Ok(None)`. A row that cannot be read or decoded is an error, never an absence.

use std::path::PathBuf;

/// A failed read, write or open. Every message contains the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is locked by another process, or by another handle in this one.
    #[error("database {} is in use: stop the process that writes it, or follow it read-only", path.display())]
    InUse {
        /// The database directory.
        path: PathBuf,
    },

    /// The directory does not hold a database of this program.
    #[error("{} is not a database of this program: {found}; {remedy}", path.display())]
    NotADatabase {
        /// The directory.
        path: PathBuf,
        /// Description of its contents.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },

    /// There is no backup to restore, or no place to restore it or to make it.
    #[error("{}: {found}; {remedy}", path.display())]
    NoBackup {
        /// The directory.
        path: PathBuf,
        /// Description of its contents.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },

    /// The database has tables that this version does not declare.
    #[error(
        "database {} has unknown tables ({}): it was written by another program or a newer version; use that \
         one, or name another directory", path.display(), tables.join(", ")
    )]
    UnknownTables {
        /// The database directory.
        path: PathBuf,
        /// Names of the undeclared tables.
        tables: Vec<String>,
    },

    /// A follower needs tables that the owner of the database has not created.
    #[error(
        "database {} lacks tables ({}): let the process that writes it open it with this version first",
        path.display(), tables.join(", ")
    )]
    MissingTables {
        /// The database directory.
        path: PathBuf,
        /// Names of the missing tables.
        tables: Vec<String>,
    },

    /// Read or write of a table that the database was not opened with.
    #[error("table `{table}` is not open: add it to the list of tables that the database is opened with")]
    UnopenedTable {
        /// Name of the table.
        table: &'static str,
    },

    /// A row passed its checksum but does not decode or breaks an invariant of its table.
    #[error(
        "table `{table}`, key {}: {reason}; restore a backup, or roll back below it and index again",
        hex::encode(key)
    )]
    Corrupt {
        /// Name of the table.
        table: &'static str,
        /// The whole key of the row.
        key: Vec<u8>,
        /// The broken expectation.
        reason: &'static str,
    },

    /// The engine found corrupt bytes in a file. Rows elsewhere remain readable.
    #[error(
        "{}file {} of database {} is damaged: {message}; index it again or restore a backup",
        table.map(|table| format!("table `{table}`: ")).unwrap_or_default(),
        file.as_deref().unwrap_or("of an unknown name"),
        path.display()
    )]
    Damaged {
        /// The database directory.
        path: PathBuf,
        /// The table that was read or written, if known.
        table: Option<&'static str>,
        /// Name of the corrupt file, if the engine reports it.
        file: Option<String>,
        /// The engine's message: file, offset, checksum.
        message: String,
    },

    /// The engine failed: a failing device, missing permissions.
    #[error("database {}: {doing} failed: {message}; check disk space, permissions and the device", path.display())]
    Engine {
        /// The database directory.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The engine's message.
        message: String,
    },

    /// The disk has less free space than the reserve. Nothing was written. Reads continue; writes resume once there is
    /// space.
    #[error(
        "database {}: the disk is full: {} MiB are free and {} MiB are kept in reserve; delete something, or \
         enlarge the file system: writing then continues within seconds, without a restart",
        path.display(), free >> 20, reserve >> 20
    )]
    NoSpace {
        /// The database directory.
        path: PathBuf,
        /// Free bytes of the file system.
        free: u64,
        /// Bytes that must stay free ([`RocksOptions::reserve_bytes`](crate::RocksOptions::reserve_bytes)).
        reserve: u64,
    },

    /// Another process opened the database for writing, and this one may not write any more. Nothing of the failed
    /// commit was written. Stop the process; opening the database again would fence the other one.
    #[error(
        "another process writes database {} now: this one stops, and must not be started again while the other one \
         runs", path.display()
    )]
    Fenced {
        /// The database.
        path: PathBuf,
    },

    /// The object store lets several processes create one object, so that two writers could both own the database.
    #[error(
        "the object store of {} cannot keep two writers apart: {found}; use a store with conditional writes",
        path.display()
    )]
    NotExclusive {
        /// The database.
        path: PathBuf,
        /// The outcome of the test.
        found: String,
    },

    /// An object store, or the way to it, failed.
    #[error(
        "database {}: {doing} failed: {message}; check that the object store can be reached and that the credentials \
         are valid and suffice", path.display()
    )]
    Remote {
        /// The database.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The engine's message.
        message: String,
    },

    /// A write through a follower.
    #[error("database {} is open to follow, not to write: write in the process that owns it", path.display())]
    ReadOnly {
        /// The database directory.
        path: PathBuf,
    },

    /// A pushed value that is not larger than the last one of its list.
    #[error(
        "list `{table}` of owner {}: {value} cannot follow {last}; each value must be larger than the one before, \
         so push each once and in order",
        hex::encode(owner)
    )]
    NotIncreasing {
        /// Name of the list's table.
        table: &'static str,
        /// Encoded key of the owner.
        owner: Vec<u8>,
        /// The last value of the list.
        last: u64,
        /// The value that was pushed.
        value: u64,
    },
}
