//! Table sizes, for `db info` and the metrics.

use rocksdb::properties;

use super::{RocksStore, errors::map_error, handle::family};
use crate::{error::Error, spec::TableSpec};

/// Size of one table. Rows and bytes that were deleted or replaced count until a compaction drops them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSize {
    /// Name of the table.
    pub name: &'static str,
    /// Bytes of its table files in use.
    pub file_bytes: u64,
    /// Bytes of writes that are not in table files yet.
    pub memory_bytes: u64,
    /// Bytes of table files that compactions are still to rewrite, as RocksDB estimates it.
    pub pending_compaction_bytes: u64,
    /// Number of rows, as RocksDB estimates it.
    pub estimated_rows: u64,
}

impl RocksStore {
    /// Sizes of all tables, in the order they were declared.
    pub fn table_sizes(&self) -> Result<Vec<TableSize>, Error> {
        let snapshot = self.rocks_snapshot();
        let db = snapshot.db();
        let size = |table: &&'static TableSpec| {
            let family = family(db, table)?;
            let property = |name| match db.property_int_value_cf(family, name) {
                Ok(value) => Ok(value.unwrap_or(0)),
                Err(error) => Err(map_error(&self.path, "measuring", error)),
            };
            Ok(TableSize {
                name: table.name,
                file_bytes: property(properties::LIVE_SST_FILES_SIZE)?,
                memory_bytes: property(properties::CUR_SIZE_ALL_MEM_TABLES)?,
                pending_compaction_bytes: property(properties::ESTIMATE_PENDING_COMPACTION_BYTES)?,
                estimated_rows: property(properties::ESTIMATE_NUM_KEYS)?,
            })
        };
        self.tables.iter().map(size).collect()
    }
}
