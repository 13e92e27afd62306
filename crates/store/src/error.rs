//! What can go wrong with a store, and what the operator can do about it.
//!
//! Absence is never an error and an error is never absence: a row that is not there is `Ok(None)`, a row
//! that cannot be read or decoded is one of these.

use std::path::PathBuf;

/// A failed read, write or open. Every message names the place and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is locked by another process, or by another handle in this one.
    #[error("database {} is in use: stop the process that writes it, or follow it read-only", path.display())]
    InUse {
        /// The database directory.
        path: PathBuf,
    },

    /// The directory holds something that is not one of our databases.
    #[error("{} is not a database of this program: {found}; {remedy}", path.display())]
    NotADatabase {
        /// The directory that was to be opened.
        path: PathBuf,
        /// What was found there.
        found: String,
        /// What to do instead.
        remedy: &'static str,
    },

    /// The database has tables that this program does not know.
    #[error(
        "database {} has unknown tables ({}): it was written by another program or a newer version; use that \
         one, or name another directory", path.display(), tables.join(", ")
    )]
    UnknownTables {
        /// The database directory.
        path: PathBuf,
        /// Names of the tables that nobody declared.
        tables: Vec<String>,
    },

    /// A follower asks for tables that the owner of the database has not made.
    #[error(
        "database {} lacks tables ({}): let the process that writes it open it with this version first",
        path.display(), tables.join(", ")
    )]
    MissingTables {
        /// The database directory.
        path: PathBuf,
        /// Names of the tables that are not there.
        tables: Vec<String>,
    },

    /// A read or write of a table that the database was not opened with.
    #[error("table `{table}` is not open: add it to the list of tables that the database is opened with")]
    UnopenedTable {
        /// Name of the table.
        table: &'static str,
    },

    /// A row was read whole, but is not what its table promises.
    #[error(
        "table `{table}`, key {}: {reason}; restore a backup, or roll back below it and index again",
        hex::encode(key)
    )]
    Corrupt {
        /// Name of the table.
        table: &'static str,
        /// The whole key of the row.
        key: Vec<u8>,
        /// What was expected of the row.
        reason: &'static str,
    },

    /// The engine found damaged bytes in its files. Rows elsewhere can be read.
    #[error(
        "{}file {} of database {} is damaged: {message}; repair the database or restore a backup",
        table.map(|table| format!("table `{table}`: ")).unwrap_or_default(),
        file.as_deref().unwrap_or("of an unknown name"),
        path.display()
    )]
    Damaged {
        /// The database directory.
        path: PathBuf,
        /// The table that was read or written, where one was.
        table: Option<&'static str>,
        /// Name of the damaged file, where the engine tells it.
        file: Option<String>,
        /// The engine's own words: file, offset, checksum.
        message: String,
    },

    /// A damaged file keeps rows from being read that are not in its part of the table, so that a salvage would lose them.
    #[error(
        "table `{table}` of database {}: file {} is damaged in such a way that file {hidden} cannot be read either, and \
         a salvage would lose its rows, so nothing was changed; restore a backup, or index again from the start",
        path.display(), file.as_deref().unwrap_or("of an unknown name")
    )]
    OutOfReach {
        /// The database directory.
        path: PathBuf,
        /// Name of the table.
        table: &'static str,
        /// Name of the damaged file, where the engine tells it.
        file: Option<String>,
        /// Name of a file that may be sound.
        hidden: String,
    },

    /// The engine could not do its work: a full disk, a failing device, missing permissions.
    #[error("database {}: {doing} failed: {message}; check disk space, permissions and the device", path.display())]
    Engine {
        /// The database directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// The engine's own words.
        message: String,
    },

    /// The device has less room than is kept in reserve, or none at all. Nothing was written, reads go on, and
    /// writes do as soon as there is room.
    #[error(
        "database {}: the disk is full: {} MiB are free and {} MiB are kept in reserve; delete something, or \
         enlarge the file system: writing then goes on within seconds, without a restart",
        path.display(), free >> 20, reserve >> 20
    )]
    NoSpace {
        /// The database directory.
        path: PathBuf,
        /// Bytes that the file system still gives us.
        free: u64,
        /// Bytes that have to stay free ([`RocksOptions::reserve_bytes`](crate::RocksOptions::reserve_bytes)).
        reserve: u64,
    },

    /// A write through a handle that only follows.
    #[error("database {} is open to follow, not to write: write in the process that owns it", path.display())]
    ReadOnly {
        /// The database directory.
        path: PathBuf,
    },

    /// A value that would break the order of a list.
    #[error(
        "list `{table}` of owner {}: {value} cannot follow {last}; each value must be larger than the one before, \
         so push each once and in order",
        hex::encode(owner)
    )]
    NotIncreasing {
        /// Name of the list's table.
        table: &'static str,
        /// Key bytes of the owner.
        owner: Vec<u8>,
        /// The last value of the list.
        last: u64,
        /// The value that was pushed.
        value: u64,
    },
}
