//! RocksDB engine: one column family per table, one write batch with the WAL enabled per commit.
//!
//! A database has one owner ([`RocksStore::open`]) and any number of followers ([`RocksStore::follow`]), in this or in
//! other processes on the same machine.
//!
//! # Invariants
//!
//! * No RocksDB type leaves this module; every RocksDB error is mapped to an [`Error`].
//! * The WAL is never disabled: it makes commits atomic across column families, and followers read it.

mod backup;
mod compaction_hold;
mod corruption;
mod directory;
mod disk;
mod disk_guard;
mod errors;
mod follower;
mod handle;
mod missing_files;
mod open_stores;
mod options;
mod secondary;
mod sizes;
mod snapshot;
mod statistics;

use std::path::{Path, PathBuf};

use rocksdb::{DB, FlushOptions, Options, WriteBatch, WriteOptions, checkpoint::Checkpoint, properties};

pub use self::{
    backup::{Backup, Backups},
    corruption::CorruptFile,
    open_stores::wait_until_closed,
    options::RocksOptions,
    sizes::TableSize,
    statistics::Statistics,
};
use self::{
    compaction_hold::CompactionHold,
    disk_guard::DiskGuard,
    errors::map_error,
    follower::Follower,
    handle::{Handle, family},
    open_stores::OpenStore,
    snapshot::RocksSnapshot,
};
use crate::{
    batch::{Batch, Change},
    engine::{Durability, Snapshot, Store},
    error::Error,
    spec::{Access, TableSpec},
};

/// A RocksDB store in a directory.
pub struct RocksStore {
    path: PathBuf,
    tables: &'static [&'static TableSpec],
    /// The options that it was opened with; they own its counters.
    options: Options,
    role: Role,
    _open: OpenStore,
}

enum Role {
    Owner { handle: Handle, disk: DiskGuard, hold: CompactionHold },
    Follower(Follower),
}

impl RocksStore {
    /// Opens or creates the database in `path` and creates missing tables. Fails if another handle owns it, or if the
    /// directory holds other files or undeclared tables.
    pub fn open(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        Self::open_with(path, tables, options, options.owner())
    }

    /// Opens the database in `path` even if table files are corrupt, to empty its tables
    /// ([`RocksStore::recreate_tables`]). Commits in a corrupt log may be missing.
    pub fn open_damaged(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        directory::check_exists(path)?;
        Self::open_with(path, tables, options, options.owner_lenient())
    }

    fn open_with(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
        rocks: Options,
    ) -> Result<Self, Error> {
        directory::check_owned(path, tables)?;
        let hold = CompactionHold::load(path)?;
        let families = options.families(tables, &hold.tables(), &options.cache());
        let handle = DB::open_cf_descriptors(&rocks, path, families)
            .map(Handle)
            .map_err(|error| map_error(path, "opening", error))?;
        // Only after the lock is held: until then another owner may use these files.
        directory::remove_unfinished_checkpoints(path)?;
        let disk = DiskGuard::new(path.to_owned(), options.reserve_bytes);
        let role = Role::Owner { handle, disk, hold };
        Ok(Self { path: path.to_owned(), tables, options: rocks, role, _open: OpenStore::new() })
    }

    /// Checks without opening it that `path` holds a database with all of `tables`. Its owner would create missing ones.
    pub fn check_tables(path: &Path, tables: &[&TableSpec]) -> Result<(), Error> {
        directory::check_followed(path, tables)
    }

    /// Reads all rows of the database in `path`, which another process may own and write, and returns the files that
    /// cannot be read. Takes as long as reading the whole database.
    pub fn find_corruption(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Vec<CorruptFile>, Error> {
        corruption::find(path, tables, options)
    }

    /// Empties all tables but those of `kept`, without reading a row, and opens the database again. An interrupted run
    /// leaves some tables missing, which the next owner creates.
    pub fn recreate_tables(mut self, kept: &[&TableSpec], options: RocksOptions) -> Result<Self, Error> {
        let Role::Owner { handle: Handle(db), hold, .. } = &mut self.role else {
            return Err(Error::ReadOnly { path: self.path.clone() });
        };
        let fail = |error| map_error(&self.path, "emptying a table", error);
        for table in self.tables.iter().filter(|table| !kept.contains(table)) {
            db.drop_cf(table.name).map_err(fail)?;
        }
        hold.release(db)?;
        let (path, tables) = (self.path.clone(), self.tables);
        drop(self);
        // Creates them together. One by one, RocksDB writes and reads the options of all tables for each of them.
        Self::open(&path, tables, options)
    }

    /// Re-enables compaction of tables that were found corrupt and have become readable.
    pub fn resume_compaction(&self) -> Result<(), Error> {
        match &self.role {
            Role::Owner { handle, hold, .. } => hold.release(handle),
            Role::Follower(_) => Err(Error::ReadOnly { path: self.path.clone() }),
        }
    }

    /// Opens the database in `primary` read-only while another process owns it. `own` is a private directory for this
    /// follower's log.
    ///
    /// The view is fixed until [`RocksStore::catch_up`]. A follower keeps all table files open and holds in memory the
    /// rows that the owner has in no table file yet, at most twice [`RocksOptions::write_buffer_bytes`] of the owner:
    /// once at first, twice after the first catch-up, three times while a snapshot is held for longer than a second.
    /// Works on a local file system only.
    pub fn follow(
        primary: &Path,
        own: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        directory::check_followed(primary, tables)?;
        let rocks = RocksOptions::follower();
        let follower = Follower::new(primary.to_owned(), own.to_owned(), tables, options, rocks.clone())?;
        let (path, role) = (primary.to_owned(), Role::Follower(follower));
        Ok(Self { path, tables, options: rocks, role, _open: OpenStore::new() })
    }

    /// Makes all commits of the owner so far visible to new snapshots. Snapshots never wait for it; it waits for
    /// snapshots at most a second. If the owner flushed a log before the follower had read all of it, it reopens the
    /// database, which takes as long as reading the rest of the owner's logs.
    ///
    /// A no-op for an owner. After an error, new snapshots keep the previous state; call it again.
    pub fn catch_up(&self) -> Result<(), Error> {
        match &self.role {
            Role::Owner { .. } => Ok(()),
            Role::Follower(follower) => follower.catch_up(),
        }
    }

    /// Flushes the memtables. The WAL makes this unnecessary for safety; it serves tests, measurements and a fast next
    /// start.
    pub fn flush(&self) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        let families = self.tables.iter().map(|table| family(db, table)).collect::<Result<Vec<_>, _>>()?;
        let families: Vec<_> = families.iter().collect();
        db.flush_cfs_opt(&families, &FlushOptions::default())
            .map_err(|error| self.record_corruption(disk.map_error("flushing", error)))
    }

    /// Merges table files early from now on, so that reads ask few of them. For a process that has caught up with its
    /// chain: it writes little, so merges cost little. Tables without files, and those that are left once `is_wanted` says
    /// false, stay as they are: for each change RocksDB writes the options of all tables, which takes a tenth of a second.
    pub fn merge_early(&self, is_wanted: impl Fn() -> bool) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        for table in self.tables.iter().filter(|table| table.access != Access::Append) {
            if !is_wanted() {
                break;
            }
            let family = family(db, table)?;
            let failed = |error| disk.map_error("merging files", error);
            let bytes = db.property_int_value_cf(family, properties::LIVE_SST_FILES_SIZE).map_err(failed)?;
            if bytes.is_some_and(|bytes| bytes > 0) {
                options::merge_early(db, family).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Flushes the memtables of the tables with range deletions in `batch`. Reads skip a range tombstone's rows at once
    /// in older table files, but one by one in the memtable of the tombstone.
    fn flush_ranges(&self, batch: &Batch) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        let families = batch.ranged().map(|table| family(db, table)).collect::<Result<Vec<_>, _>>()?;
        if families.is_empty() {
            return Ok(());
        }
        db.flush_cfs_opt(&families.iter().collect::<Vec<_>>(), &FlushOptions::default())
            .map_err(|error| self.record_corruption(disk.map_error("flushing", error)))
    }

    /// Compacts every table fully. Slow: it rewrites most of the database.
    pub fn compact(&self) -> Result<(), Error> {
        self.flush()?;
        let db = self.primary_db()?;
        for table in self.tables {
            db.compact_range_cf(family(db, table)?, None::<&[u8]>, None::<&[u8]>);
        }
        Ok(())
    }

    /// Creates a checkpoint of the database in the new directory `to`. On the same file system it hard-links the table
    /// files and takes moments. An interrupted checkpoint leaves `<to>.tmp`, which the next checkpoint removes, as does
    /// the next [`RocksStore::open`] inside the database directory.
    pub fn checkpoint(&self, to: &Path) -> Result<(), Error> {
        Checkpoint::new(self.primary_db()?)
            .and_then(|checkpoint| checkpoint.create_checkpoint(to))
            .map_err(|error| map_error(&self.path, "copying", error))
    }

    /// The directory that was opened or is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Free bytes of its file system.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        disk::free_bytes(&self.path)
    }

    fn rocks_snapshot(&self) -> RocksSnapshot<'_> {
        match &self.role {
            Role::Owner { handle, hold, .. } => RocksSnapshot::of_owner(&self.path, handle, hold),
            Role::Follower(follower) => RocksSnapshot::of_follower(&self.path, follower.current()),
        }
    }

    fn primary_db(&self) -> Result<&DB, Error> {
        self.owner().map(|(db, _)| db)
    }

    /// Records the corruption that `error` reports, if any, and returns `error`.
    fn record_corruption(&self, error: Error) -> Error {
        if let Role::Owner { handle, hold, .. } = &self.role {
            hold.record(handle, &error);
        }
        error
    }

    fn owner(&self) -> Result<(&DB, &DiskGuard), Error> {
        match &self.role {
            Role::Owner { handle, disk, .. } => Ok((handle, disk)),
            Role::Follower(_) => Err(Error::ReadOnly { path: self.path.clone() }),
        }
    }
}

impl Store for RocksStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        Ok(Box::new(self.rocks_snapshot()))
    }

    fn version(&self) -> Option<u64> {
        Some(match &self.role {
            Role::Owner { handle, .. } => handle.latest_sequence_number(),
            Role::Follower(follower) => follower.version(),
        })
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        disk.reserve(batch.bytes())?;
        self.flush_ranges(&batch)?;
        let mut writes = WriteBatch::with_capacity_bytes(capacity(&batch));
        for table in batch.into_sorted() {
            let family = family(db, table.table())?;
            for (start, end) in table.ranges() {
                writes.delete_range_cf(family, start, end);
            }
            for (key, change) in table.iter() {
                match change {
                    Change::Put(value) => writes.put_cf(family, key, value),
                    Change::Append(bytes) => writes.merge_cf(family, key, bytes),
                    Change::Delete => writes.delete_cf(family, key),
                }
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        db.write_opt(writes, &options)
            .map_err(|error| self.record_corruption(disk.map_error("committing", error)))
    }

    fn room(&self) -> Result<(), Error> {
        match &self.role {
            Role::Owner { disk, .. } => disk.check(),
            Role::Follower(_) => Ok(()),
        }
    }

    fn sync(&self) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        db.flush_wal(true).map_err(|error| disk.map_error("syncing", error))
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        directory::bytes(&self.path)
    }
}

/// Size of the batch in RocksDB's encoding: each write adds a type, a column family and two lengths.
fn capacity(batch: &Batch) -> usize {
    const BYTES_PER_WRITE: usize = 1 + 2 + 2 + 2;
    batch.bytes() + BYTES_PER_WRITE * batch.len()
}
