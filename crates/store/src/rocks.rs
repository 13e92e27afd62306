//! The RocksDB engine: a column family per table, a write batch with the log on per commit.
//!
//! What must hold: no name of RocksDB leaves this module; the log is never off, because followers read it
//! and a commit is atomic across tables only through it; every error of RocksDB becomes an error of ours.
//!
//! A directory has one owner ([`RocksStore::open`]) and any number of followers ([`RocksStore::follow`]),
//! in this or in other processes on the same machine.

mod backup;
mod compaction_hold;
mod corruption;
mod directory;
mod disk;
mod disk_guard;
mod errors;
mod follower;
mod missing_files;
mod options;
mod salvage;
mod sizes;
mod snapshot;

use std::path::{Path, PathBuf};

use rocksdb::{ColumnFamily, DB, FlushOptions, WriteBatch, WriteOptions, checkpoint::Checkpoint};

pub use self::{
    backup::{Backup, Backups},
    corruption::CorruptRange,
    options::RocksOptions,
    sizes::TableSize,
};
use self::{
    compaction_hold::CompactionHold, disk_guard::DiskGuard, errors::map_error, follower::Follower,
    snapshot::RocksSnapshot,
};
use crate::{
    batch::Batch,
    engine::{Durability, Snapshot, Store},
    error::Error,
    spec::TableSpec,
};

/// A store in a directory.
pub struct RocksStore {
    path: PathBuf,
    tables: &'static [&'static TableSpec],
    role: Role,
}

enum Role {
    Owner { handle: Handle, disk: DiskGuard, hold: CompactionHold },
    Follower(Follower),
}

/// An open database; dropping it waits for flushes and compactions to stop, which would otherwise run into
/// the end of the process.
struct Handle {
    db: DB,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.db.cancel_all_background_work(true);
    }
}

impl RocksStore {
    /// Opens the database in `path`, or makes one; tables that are new are added. Fails if another handle
    /// owns it, and on anything that is not a database with these tables or fewer.
    pub fn open(
        path: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        directory::check_owned(path, tables)?;
        salvage::resume(path, tables, options)?;
        let hold = CompactionHold::load(path)?;
        let families = RocksOptions::families(tables, &hold.tables(), &options.cache());
        let db = DB::open_cf_descriptors(&options.owner(), path, families)
            .map_err(|error| map_error(path, "opening", error))?;
        let handle = Handle { db };
        // Somebody else had the database in between, and left a salvage that is finished before it is opened.
        if !salvage::finished_copies(path)?.is_empty() {
            return Err(Error::InUse { path: path.to_owned() });
        }
        // Not before the database is ours: until then these may be somebody else's, and in use.
        salvage::remove_leftovers(path)?;
        directory::remove_unfinished_checkpoints(path)?;
        let disk = DiskGuard::new(path.to_owned(), options.reserve_bytes);
        Ok(Self { path: path.to_owned(), tables, role: Role::Owner { handle, disk, hold } })
    }

    /// Opens the database in `primary` to read along while another process owns it. `own` is a directory
    /// for this follower's log and for nobody else.
    ///
    /// The view is that of opening until [`RocksStore::catch_up`]. A follower keeps all files of the
    /// database open and holds what is in the owner's log in memory, twice once it has caught up, and three times while a
    /// snapshot is held for longer than a second. Only on a local file system.
    pub fn follow(
        primary: &Path,
        own: &Path,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
    ) -> Result<Self, Error> {
        directory::check_followed(primary, tables)?;
        let follower = Follower::new(primary.to_owned(), own.to_owned(), tables, options)?;
        Ok(Self { path: primary.to_owned(), tables, role: Role::Follower(follower) })
    }

    /// Makes all commits that the owner has made so far visible to new snapshots. No snapshot waits for it, and it waits for
    /// snapshots a second at most; when the owner has flushed, the database is opened anew, which takes as long as reading
    /// the owner's log.
    ///
    /// Nothing to do for an owner. After an error, try again; new snapshots are of the state before until then.
    pub fn catch_up(&self) -> Result<(), Error> {
        match &self.role {
            Role::Owner { .. } => Ok(()),
            Role::Follower(follower) => follower.catch_up(),
        }
    }

    /// Writes what is in memory to table files. The log makes this needless for safety; it is for tests,
    /// measurements and a short start after it.
    pub fn flush(&self) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        let families = self.tables.iter().map(|table| family(db, table)).collect::<Result<Vec<_>, _>>()?;
        let families: Vec<_> = families.iter().collect();
        db.flush_cfs_opt(&families, &FlushOptions::default())
            .map_err(|error| self.record_corruption(disk.map_error("flushing", error)))
    }

    /// Writes to table files what is in memory of the tables of which `batch` removes ranges. Reads jump over removed ranges in
    /// older table files, but step over each of their rows that is in memory with them.
    fn flush_ranges(&self, batch: &Batch) -> Result<(), Error> {
        let (db, disk) = self.owner()?;
        let families = batch.ranged().map(|table| family(db, table)).collect::<Result<Vec<_>, _>>()?;
        if families.is_empty() {
            return Ok(());
        }
        db.flush_cfs_opt(&families.iter().collect::<Vec<_>>(), &FlushOptions::default())
            .map_err(|error| self.record_corruption(disk.map_error("flushing", error)))
    }

    /// Brings every table to its final shape and size. Takes long: it rewrites most of the database.
    pub fn compact(&self) -> Result<(), Error> {
        self.flush()?;
        let db = self.primary_db()?;
        for table in self.tables {
            db.compact_range_cf(family(db, table)?, None::<&[u8]>, None::<&[u8]>);
        }
        Ok(())
    }

    /// Writes a copy of the database, as of now, to the new directory `to`. On the same file system it
    /// shares the table files (hard links) and takes moments. One that is cut short leaves `<to>.tmp`, which the next one
    /// removes, and the next opening if it is in the database's directory.
    pub fn checkpoint(&self, to: &Path) -> Result<(), Error> {
        Checkpoint::new(self.primary_db()?)
            .and_then(|checkpoint| checkpoint.create_checkpoint(to))
            .map_err(|error| map_error(&self.path, "copying", error))
    }

    /// The directory that was opened or is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are free on its file system.
    pub fn free_bytes(&self) -> Result<u64, Error> {
        disk::free_bytes(&self.path)
    }

    fn rocks_snapshot(&self) -> RocksSnapshot<'_> {
        match &self.role {
            Role::Owner { handle, .. } => RocksSnapshot::of_owner(self, &handle.db),
            Role::Follower(follower) => RocksSnapshot::of_follower(self, follower.current()),
        }
    }

    fn primary_db(&self) -> Result<&DB, Error> {
        self.owner().map(|(db, _)| db)
    }

    /// The same error, after what it says of damage has been noted.
    fn record_corruption(&self, error: Error) -> Error {
        if let Role::Owner { handle, hold, .. } = &self.role {
            hold.record(&handle.db, &error);
        }
        error
    }

    fn owner(&self) -> Result<(&DB, &DiskGuard), Error> {
        match &self.role {
            Role::Owner { handle, disk, .. } => Ok((&handle.db, disk)),
            Role::Follower(_) => Err(Error::ReadOnly { path: self.path.clone() }),
        }
    }
}

fn family<'a>(db: &'a DB, table: &'static TableSpec) -> Result<&'a ColumnFamily, Error> {
    db.cf_handle(table.name).ok_or(Error::UnopenedTable { table: table.name })
}

impl Store for RocksStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        Ok(Box::new(self.rocks_snapshot()))
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
            for (key, value) in table.iter() {
                match value {
                    Some(value) => writes.put_cf(family, key, value),
                    None => writes.delete_cf(family, key),
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

/// Room for the batch in RocksDB's form: for each write a type, a column family and two lengths.
fn capacity(batch: &Batch) -> usize {
    const BYTES_PER_WRITE: usize = 1 + 2 + 2 + 2;
    batch.bytes() + BYTES_PER_WRITE * batch.len()
}
