//! Statistics of an open database for monitoring: RocksDB's tickers and properties.

use rocksdb::{properties, statistics::Ticker};

use super::{RocksStore, errors::map_error};
use crate::error::Error;

/// Statistics of a database. Counters start at 0 when it is opened; those of a follower count its own work, which is
/// reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Blocks that reads found in the cache.
    pub cache_hits: u64,
    /// Blocks that reads took from files.
    pub cache_misses: u64,
    /// Bytes of the blocks in the cache.
    pub cache_bytes: u64,
    /// Bytes of keys and values that commits wrote.
    pub committed_bytes: u64,
    /// Bytes that commits wrote to the write-ahead log.
    pub log_bytes: u64,
    /// Bytes of table files that flushes wrote.
    pub flushed_bytes: u64,
    /// Bytes of table files that compactions read.
    pub compaction_read_bytes: u64,
    /// Bytes of table files that compactions wrote.
    pub compaction_written_bytes: u64,
    /// Microseconds that commits waited for flushes and compactions.
    pub stall_micros: u64,
    /// Whether commits wait until flushes or compactions have caught up.
    pub is_write_stopped: bool,
    /// Bytes a second to which commits are slowed down; 0 if they are not.
    pub delayed_write_rate: u64,
    /// Flushes in progress.
    pub running_flushes: u64,
    /// Compactions in progress.
    pub running_compactions: u64,
    /// Flushes and compactions that failed.
    pub background_errors: u64,
}

impl RocksStore {
    /// Statistics of the database now.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let snapshot = self.rocks_snapshot();
        let property = |name| match snapshot.db().property_int_value(name) {
            Ok(value) => Ok(value.unwrap_or(0)),
            Err(error) => Err(map_error(&self.path, "measuring", error)),
        };
        let count = |ticker| self.options.get_ticker_count(ticker);
        Ok(Statistics {
            cache_hits: count(Ticker::BlockCacheHit),
            cache_misses: count(Ticker::BlockCacheMiss),
            cache_bytes: property(properties::BLOCK_CACHE_USAGE)?,
            committed_bytes: count(Ticker::BytesWritten),
            log_bytes: count(Ticker::WalFileBytes),
            flushed_bytes: count(Ticker::FlushWriteBytes),
            compaction_read_bytes: count(Ticker::CompactReadBytes),
            compaction_written_bytes: count(Ticker::CompactWriteBytes),
            stall_micros: count(Ticker::StallMicros),
            is_write_stopped: property(properties::IS_WRITE_STOPPED)? != 0,
            delayed_write_rate: property(properties::ACTUAL_DELAYED_WRITE_RATE)?,
            running_flushes: property(properties::NUM_RUNNING_FLUSHES)?,
            running_compactions: property(properties::NUM_RUNNING_COMPACTIONS)?,
            background_errors: property(properties::BACKGROUND_ERRORS)?,
        })
    }
}
