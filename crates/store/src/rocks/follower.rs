//! Follower: consistent read-only views of a database that another process writes ([`DoubleBuffer`]).
//!
//! Each secondary holds in memory what the owner holds there, the rows that are in no table file yet; they share the block
//! cache.
//!
//! # Invariants
//!
//! Views change only by a catch-up, and each is the state of all tables after one commit of the owner.

use std::{path::PathBuf, sync::Arc};

use rocksdb::Options;

use super::{
    directory::Listing,
    options::RocksOptions,
    secondary::{Secondary, Source},
};
use crate::{double_buffer::DoubleBuffer, error::Error, spec::TableSpec};

pub(super) struct Follower {
    source: Source,
    secondaries: DoubleBuffer<Secondary>,
}

impl Follower {
    pub(super) fn new(
        primary: PathBuf,
        own: PathBuf,
        tables: &'static [&'static TableSpec],
        options: RocksOptions,
        rocks: Options,
    ) -> Result<Self, Error> {
        let source = Source { primary, own, tables, options, rocks, cache: options.cache() };
        let secondaries = DoubleBuffer::new(source.open(None)?);
        Ok(Self { source, secondaries })
    }

    /// The secondary of the last catch-up, which does not change while it is held.
    pub(super) fn current(&self) -> Arc<Secondary> {
        self.secondaries.current()
    }

    /// See [`crate::Store::version`].
    pub(super) fn version(&self) -> u64 {
        self.secondaries.version()
    }

    pub(super) fn catch_up(&self) -> Result<(), Error> {
        let mut standby = self.secondaries.standby();
        let path = &self.source.primary;
        let previous = self.current();
        if Listing::read(path)? == *previous.seen() {
            return Ok(());
        }
        let known = Some(previous.files());
        let unused = standby.take_unused().map_err(|message| Error::Engine {
            path: path.clone(),
            doing: "following",
            message: message.to_owned(),
        })?;
        let next = match unused {
            // An outdated one is closed before its replacement is opened: it uses as much memory.
            Some(next) => self.source.advance(next, known)?,
            None => None,
        };
        let next = match next {
            Some(next) => next,
            None => self.source.open(known)?,
        };
        self.secondaries.exchange(standby, next);
        Ok(())
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
