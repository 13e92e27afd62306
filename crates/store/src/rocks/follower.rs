//! Follower: consistent read-only views of a database that another process writes, by double buffering.
//!
//! No snapshot waits for a catch-up: new snapshots use the current secondary, while the standby, which no snapshot uses,
//! catches up and then becomes the current one. Each holds in memory what the owner holds there, the rows that are in no
//! table file yet; they share the block cache. If snapshots hold the standby for too long, a third secondary is opened,
//! and never more.
//!
//! # Invariants
//!
//! Views change only by a catch-up, and each is the state of all tables after one commit of the owner.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use rocksdb::Options;

use super::{
    directory::Listing,
    options::RocksOptions,
    secondary::{Secondary, Source},
};
use crate::{error::Error, spec::TableSpec};

pub(super) struct Follower {
    source: Source,
    /// The secondary of new snapshots, with the number of catch-ups that changed it.
    current: Mutex<(Arc<Secondary>, u64)>,
    /// Locked during a catch-up, so catch-ups are serial.
    standby: Mutex<Standby>,
}

/// The secondaries that are not used by new snapshots.
#[derive(Default)]
struct Standby {
    /// The previous current secondary: the next one to catch up. `None` at first, and after an error.
    next: Option<Arc<Secondary>>,
    /// A former standby that snapshots held for too long. It closes with the last of these snapshots.
    retired: Weak<Secondary>,
}

/// Time that a catch-up waits for the snapshots of the next secondary. Most requests take less, and another secondary
/// costs as much memory as the owner has for writes.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Poll interval for whether snapshots still hold a secondary.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

impl Follower {
    pub(super) fn new(
        primary: PathBuf,
        own: PathBuf,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
        rocks: Options,
    ) -> Result<Self, Error> {
        let source = Source { primary, own, tables, options, rocks, cache: options.cache() };
        let current = Mutex::new((Arc::new(source.open(None)?), 0));
        Ok(Self { source, current, standby: Mutex::default() })
    }

    /// The secondary of the last catch-up, which does not change while it is held.
    pub(super) fn current(&self) -> Arc<Secondary> {
        Arc::clone(&self.lock_current().0)
    }

    /// See [`crate::Store::version`].
    pub(super) fn version(&self) -> u64 {
        self.lock_current().1
    }

    pub(super) fn catch_up(&self) -> Result<(), Error> {
        let mut standby = self.standby.lock().unwrap_or_else(PoisonError::into_inner);
        let primary = &self.source.primary;
        let previous = self.current();
        if Listing::of(primary)? == *previous.seen() {
            return Ok(());
        }
        let known = Some(previous.files());
        let next = match standby.take_unused(primary)? {
            // An outdated one is closed before its replacement is opened: it uses as much memory.
            Some(next) => self.source.advance(next, known)?,
            None => None,
        };
        let next = match next {
            Some(next) => next,
            None => self.source.open(known)?,
        };
        let mut current = self.lock_current();
        current.1 += 1;
        standby.next = Some(std::mem::replace(&mut current.0, Arc::new(next)));
        Ok(())
    }

    // The lock is held for an assignment only, which does not panic.
    fn lock_current(&self) -> MutexGuard<'_, (Arc<Secondary>, u64)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standby {
    /// The next secondary, if there is one and no snapshot uses it; one that is held for too long is retired.
    fn take_unused(&mut self, primary: &Path) -> Result<Option<Secondary>, Error> {
        let Some(mut next) = self.next.take() else { return Ok(None) };
        let since = Instant::now();
        loop {
            // New snapshots do not use it, so its reference count only falls.
            next = match Arc::try_unwrap(next) {
                Ok(unused) => return Ok(Some(unused)),
                Err(used) => used,
            };
            if since.elapsed() >= MAX_WAIT {
                if self.retired.strong_count() > 0 {
                    self.next = Some(next);
                    let message = "snapshots hold each of three states for too long; try again".to_owned();
                    return Err(Error::Engine { path: primary.to_owned(), doing: "following", message });
                }
                self.retired = Arc::downgrade(&next);
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use rocksdb::properties;

    use super::*;
    use crate::{Access, Batch, Durability, RocksStore, Store as _, rocks::handle::family};

    const DENSE: &TableSpec = &TableSpec { name: "dense", tag: 0x70, access: Access::Scan };
    const RARE: &TableSpec = &TableSpec { name: "rare", tag: 0x71, access: Access::Point };
    const TABLES: &[&TableSpec] = &[DENSE, RARE];

    /// Bytes of the rows of `secondary` that are in no table file, with their index.
    fn memory(secondary: &Secondary) -> u64 {
        let of_table = |table: &&'static TableSpec| {
            let family = family(secondary.db(), table).unwrap();
            secondary.db().property_int_value_cf(family, properties::SIZE_ALL_MEM_TABLES).unwrap().unwrap()
        };
        TABLES.iter().map(of_table).sum()
    }

    #[test]
    fn each_state_holds_at_most_twice_the_memory_that_the_owner_has_for_writes() {
        const FOR_WRITES: usize = 8 << 20;
        // Memory is allocated in blocks, for each table.
        const BLOCKS: u64 = 2 << 20;
        let (primary, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = RocksOptions { write_buffer_bytes: FOR_WRITES, ..RocksOptions::default() };
        let owner = RocksStore::open(primary.path(), TABLES, options).unwrap();
        let commit = |n: u32| {
            let mut batch = Batch::new();
            for part in 0..64_u8 {
                batch.put(DENSE, [&n.to_be_bytes()[..], &[part]].concat(), vec![part; 2_000]);
            }
            if n.is_multiple_of(50) {
                batch.put(RARE, n.to_be_bytes().to_vec(), vec![0; 100]);
            }
            owner.commit(batch, Durability::Buffered).unwrap();
        };
        commit(0);
        let (primary, own) = (primary.path().to_owned(), own.path().to_owned());
        let follower = Follower::new(primary, own, TABLES, options, RocksOptions::follower()).unwrap();
        let mut most = 0;
        // 60 MB.
        for n in 1..480 {
            commit(n);
            follower.catch_up().unwrap();
            most = most.max(memory(&follower.current()));
            let newest = follower.current().db().get_cf(
                family(follower.current().db(), DENSE).unwrap(),
                [&n.to_be_bytes()[..], &[63]].concat(),
            );
            assert_eq!(newest.unwrap().unwrap().len(), 2_000, "row {n}");
        }
        assert!(most > 0 && most <= 2 * FOR_WRITES as u64 + BLOCKS, "{most} bytes");
    }
}
