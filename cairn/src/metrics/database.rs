//! Samples of the database: sizes, free space, the time of the last block, and the work of RocksDB.
//!
//! # Invariants
//!
//! * One list has the name, unit, help text and value of each sample.
//! * The only labels are the names of a table and of an optional index in our schema.

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use schema::index;
use schema::meta::{self, BlockLane};
use store::rocks::{Statistics, TableSize};
use store::{RocksStore, Store as _};

const DATABASE_BYTES: &str = "cairn_database_bytes";
const DISK_FREE_BYTES: &str = "cairn_disk_free_bytes";
const LAST_BLOCK: &str = "cairn_last_block_time_seconds";
const INDEX_HEIGHT: &str = "cairn_index_height";

/// A number of `T`: metric, unit, help text, value.
type Sample<T> = (&'static str, Unit, &'static str, fn(&T) -> u64);

/// Counters since the database was opened.
const COUNTERS: [Sample<Statistics>; 8] = [
    (
        "cairn_rocksdb_cache_hits_total",
        Unit::Count,
        "blocks that reads found in RocksDB's cache",
        |statistics| statistics.cache_hits,
    ),
    (
        "cairn_rocksdb_cache_misses_total",
        Unit::Count,
        "blocks that reads took from files, because RocksDB's cache lacked them",
        |statistics| statistics.cache_misses,
    ),
    (
        "cairn_rocksdb_committed_bytes_total",
        Unit::Bytes,
        "bytes of keys and values that commits wrote",
        |statistics| statistics.committed_bytes,
    ),
    (
        "cairn_rocksdb_log_bytes_total",
        Unit::Bytes,
        "bytes that commits wrote to the write-ahead log",
        |statistics| statistics.log_bytes,
    ),
    (
        "cairn_rocksdb_flushed_bytes_total",
        Unit::Bytes,
        "bytes of table files that flushes wrote",
        |statistics| statistics.flushed_bytes,
    ),
    (
        "cairn_rocksdb_compaction_read_bytes_total",
        Unit::Bytes,
        "bytes of table files that compactions read",
        |statistics| statistics.compaction_read_bytes,
    ),
    (
        "cairn_rocksdb_compaction_written_bytes_total",
        Unit::Bytes,
        "bytes of table files that compactions wrote",
        |statistics| statistics.compaction_written_bytes,
    ),
    (
        "cairn_rocksdb_stall_microseconds_total",
        Unit::Microseconds,
        "time that commits waited for flushes and compactions",
        |statistics| statistics.stall_micros,
    ),
];

/// Values at the moment.
const GAUGES: [Sample<Statistics>; 6] = [
    ("cairn_rocksdb_cache_bytes", Unit::Bytes, "bytes of the blocks in RocksDB's cache", |statistics| {
        statistics.cache_bytes
    }),
    (
        "cairn_rocksdb_write_stopped",
        Unit::Count,
        "1 while commits wait until flushes or compactions have caught up",
        |statistics| u64::from(statistics.is_write_stopped),
    ),
    (
        "cairn_rocksdb_delayed_write_bytes_per_second",
        Unit::Bytes,
        "rate to which RocksDB slows commits down, 0 while it does not",
        |statistics| statistics.delayed_write_rate,
    ),
    ("cairn_rocksdb_running_flushes", Unit::Count, "flushes in progress", |statistics| {
        statistics.running_flushes
    }),
    ("cairn_rocksdb_running_compactions", Unit::Count, "compactions in progress", |statistics| {
        statistics.running_compactions
    }),
    (
        "cairn_rocksdb_background_errors",
        Unit::Count,
        "flushes and compactions that failed since the start",
        |statistics| statistics.background_errors,
    ),
];

/// Values of each table.
const OF_TABLES: [Sample<TableSize>; 3] = [
    ("cairn_rocksdb_table_file_bytes", Unit::Bytes, "bytes of the files of a table", |size| size.file_bytes),
    (
        "cairn_rocksdb_table_memory_bytes",
        Unit::Bytes,
        "bytes of a table's rows that are not in files yet (memtables)",
        |size| size.memory_bytes,
    ),
    (
        "cairn_rocksdb_pending_compaction_bytes",
        Unit::Bytes,
        "bytes of a table's files that compactions are still to rewrite, estimated",
        |size| size.pending_compaction_bytes,
    ),
];

/// Registers the descriptions.
pub(super) fn describe() {
    describe_gauge!(LAST_BLOCK, Unit::Seconds, "time of the last indexed block, since 1970");
    describe_gauge!(INDEX_HEIGHT, "last block that an optional index has");
    describe_gauge!(DATABASE_BYTES, Unit::Bytes, "size of the database on disk, logs included");
    describe_gauge!(DISK_FREE_BYTES, Unit::Bytes, "bytes that are free on the file system of the database");
    for (name, unit, help, _) in COUNTERS {
        describe_counter!(name, unit, help);
    }
    for (name, unit, help, _) in GAUGES {
        describe_gauge!(name, unit, help);
    }
    for (name, unit, help, _) in OF_TABLES {
        describe_gauge!(name, unit, help);
    }
}

/// Samples the database. It blocks on the disk only. A number that cannot be read keeps its last value.
pub(super) fn sample(store: &RocksStore) {
    if let Ok(snapshot) = store.snapshot() {
        if let Ok(Some(last)) = meta::read::<BlockLane>(&*snapshot) {
            gauge!(LAST_BLOCK).set(float(u64::try_from(last.time / 1_000_000_000).unwrap_or(0)));
        }
        for (index, state) in index::stored(&*snapshot).into_iter().flatten() {
            gauge!(INDEX_HEIGHT, "index" => index.name).set(float(state.height));
        }
    }
    for (name, bytes) in [(DATABASE_BYTES, store.disk_bytes()), (DISK_FREE_BYTES, store.free_bytes())] {
        if let Ok(bytes) = bytes {
            gauge!(name).set(float(bytes));
        }
    }
    if let Ok(statistics) = store.statistics() {
        for (name, .., value) in COUNTERS {
            counter!(name).absolute(value(&statistics));
        }
        for (name, .., value) in GAUGES {
            gauge!(name).set(float(value(&statistics)));
        }
    }
    for size in store.table_sizes().into_iter().flatten() {
        for (name, .., value) in OF_TABLES {
            gauge!(name, "table" => size.name).set(float(value(&size)));
        }
    }
}

/// Seconds and sizes of disks are below 2^53.
#[expect(clippy::cast_precision_loss)]
fn float(value: u64) -> f64 {
    value as f64
}
