//! Bulk writer: any number of writes, in commits of bounded size.

use crate::{
    batch::Batch,
    engine::{Durability, Store},
    error::Error,
    spec::TableSpec,
};

/// Bytes of one commit: about ten thousand rows, which an engine applies in milliseconds.
const COMMIT_BYTES: usize = 1 << 20;

/// Buffers writes and commits them at 1 MiB. Only [`BulkWriter::finish`] commits the rest; dropping discards
/// it.
pub struct BulkWriter<'a> {
    store: &'a dyn Store,
    batch: Batch,
}

impl<'a> BulkWriter<'a> {
    /// A writer to `store`.
    pub fn new(store: &'a dyn Store) -> Self {
        Self { store, batch: Batch::new() }
    }

    /// Sets the value of `key`.
    pub fn put(&mut self, table: &'static TableSpec, key: Vec<u8>, value: Vec<u8>) -> Result<(), Error> {
        self.batch.put(table, key, value);
        self.commit_if_large()
    }

    /// Adds `bytes` to the end of the value of `key`; see [`Batch::append`].
    pub fn append(&mut self, table: &'static TableSpec, key: Vec<u8>, bytes: Vec<u8>) -> Result<(), Error> {
        self.batch.append(table, key, bytes);
        self.commit_if_large()
    }

    /// Deletes `key`. An absent key is not an error.
    pub fn delete(&mut self, table: &'static TableSpec, key: Vec<u8>) -> Result<(), Error> {
        self.batch.delete(table, key);
        self.commit_if_large()
    }

    /// Commits the rest.
    pub fn finish(self, durability: Durability) -> Result<(), Error> {
        if self.batch.is_empty() && durability == Durability::Buffered {
            return Ok(());
        }
        self.store.commit(self.batch, durability)
    }

    fn commit_if_large(&mut self) -> Result<(), Error> {
        if self.batch.bytes() < COMMIT_BYTES {
            return Ok(());
        }
        self.store.commit(std::mem::take(&mut self.batch), Durability::Buffered)
    }
}
