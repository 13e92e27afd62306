//! RocksDB options, with reasons.
//!
//! # Invariants
//!
//! * The options of a table depend on its [`Access`] alone.
//! * A table has one compression type on all levels, because RocksDB moves a file down without rewriting it only
//!   between levels of equal compression (`db/compaction/compaction.cc`, `InputCompressionMatchesOutput`).
//! * Memory does not grow with the database, except in a follower, which keeps every file open.

use std::{collections::BTreeSet, thread};

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompactionStyle, DBCompressionType, DBRecoveryMode, MergeOperands, Options, SliceTransform,
    statistics::StatsLevel,
};

use crate::spec::{Access, TableSpec};

/// Limits of an open database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocksOptions {
    /// Memory for blocks of table files, their indexes and filters, shared by all tables.
    pub cache_bytes: usize,
    /// Memory for writes that are not in table files yet, shared by all tables. All are flushed when it is full, and
    /// commits wait when it is full again before the flush has ended. So twice as much bounds the memory of each of a
    /// follower's two states and of its temporary third one, and, as the length of the log, the duration of a start.
    pub write_buffer_bytes: usize,
    /// Table files held open at a time; -1 for all. Most files have up to 64 MiB, and systems commonly grant a
    /// process 1,024. A follower ignores this and holds all.
    pub open_files: i32,
    /// Bytes of the file system that commits leave free, so that flushes and compactions of committed data can finish
    /// and other programs can continue. Below it commits fail with [`Error::NoSpace`](crate::Error::NoSpace). A
    /// follower ignores this.
    pub reserve_bytes: u64,
    /// Whether table files are merged in the background. A process that deletes much and then ends is faster without;
    /// the next one merges them.
    pub compacts: bool,
}

impl Default for RocksOptions {
    /// Keeps the process, and a follower next to it, under 1 GiB each while it indexes at full speed. The reserve is four
    /// times the memory for writes.
    fn default() -> Self {
        Self {
            cache_bytes: 256 * MIB,
            write_buffer_bytes: 128 * MIB,
            open_files: 512,
            reserve_bytes: 512 << 20,
            compacts: true,
        }
    }
}

/// First bytes of a key that the filters of a scanned table know: a hash, or the beginning of the owner of a list.
pub(super) const FILTERED_PREFIX: usize = 8;

/// A file is compacted at once if [`DELETED`] of [`DELETED_OF`] consecutive rows are deletions.
const DELETED: usize = 1_024;
const DELETED_OF: usize = 4_096;

/// A table with keys in no order merges its files of similar size when it has so many files. With more than RocksDB's
/// four, a row is written fewer times as the table grows; a read asks the filters of more files.
const MERGED_FILES: i32 = 8;

/// The same of a ranked set, and of every such table once little is written. A page of a set seeks a dozen nodes and then
/// reads rows, in each file; merges of these small tables cost little.
const MERGED_EARLY_FILES: i32 = 2;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

impl RocksOptions {
    /// Options of the writing handle.
    pub(super) fn owner(self) -> Options {
        let mut options = base();
        count(&mut options);
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_open_files(self.open_files);

        // Without this limit, tables that are rarely written keep the log back to their last write: by
        // default up to four times all write buffers of all tables (`options.h`, `max_total_wal_size`).
        options.set_max_total_wal_size(to_u64(self.write_buffer_bytes.saturating_mul(2)));
        options.set_db_write_buffer_size(self.write_buffer_bytes);
        // All tables are flushed together, so a flush makes the log before it obsolete, and logs are few: a follower
        // reads each once, and holds the rows of one, and of a second one during a flush.
        options.set_atomic_flush(true);

        // Flushes and compactions on all cores: `increase_parallelism` creates the threads, the other option allows
        // their use. At least two, so that a long compaction never delays a flush.
        let jobs = thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 16));
        let jobs = i32::try_from(jobs).unwrap_or(2);
        options.increase_parallelism(jobs);
        options.set_max_background_jobs(jobs);

        // Spreads writeback over time instead of one stall at the end of a file.
        options.set_bytes_per_sync(to_u64(MIB));
        options.set_wal_bytes_per_sync(to_u64(MIB));

        // After a power failure: all commits up to the first incomplete one, none after it.
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        options
    }

    /// Like [`Self::owner`], without paranoid checks: for a database that does not open with them, because of corrupt
    /// index blocks.
    pub(super) fn owner_lenient(self) -> Options {
        let mut options = self.owner();
        options.create_if_missing(false);
        options.set_paranoid_checks(false);
        options
    }

    /// Options of the handle of a database to back up.
    pub(super) fn backup_source(self) -> Options {
        let mut options = self.owner();
        options.create_if_missing(false);
        options.create_missing_column_families(false);
        options
    }

    /// Options of a read-only handle that scans for corruption, with or without a concurrent owner.
    pub(super) fn read_only() -> Options {
        let mut options = Self::follower();
        // With paranoid checks, a database with corrupt index blocks does not open.
        options.set_paranoid_checks(false);
        options
    }

    /// Options of a follower (secondary instance).
    pub(super) fn follower() -> Options {
        let mut options = base();
        count(&mut options);
        // The owner deletes files that it has replaced; only a descriptor keeps them readable
        // (RocksDB's wiki, "Read-only and secondary instances").
        options.set_max_open_files(-1);
        // By default every catch-up starts sixteen threads for each column family, to open new table files
        // (`VersionBuilder::Rep::LoadTableHandlers`).
        options.set_max_file_opening_threads(1);
        options
    }

    /// Like [`Self::families`] with a small cache, and without compactions, which would fail on corrupt data.
    pub(super) fn families_on_hold(
        self,
        tables: &'static [&'static TableSpec],
    ) -> Vec<ColumnFamilyDescriptor> {
        let cache = Cache::new_lru_cache(self.cache_bytes.min(8 * MIB));
        let descriptor = |table: &&'static TableSpec| {
            let mut options = family(table.access, &cache);
            options.set_disable_auto_compactions(true);
            ColumnFamilyDescriptor::new(table.name, options)
        };
        tables.iter().map(descriptor).collect()
    }

    /// The block cache of all tables.
    pub(super) fn cache(self) -> Cache {
        // RocksDB's default since 10.7: no lock on the read path. 0 lets it size its table by itself.
        Cache::new_hyper_clock_cache(self.cache_bytes, 0)
    }

    /// The column families of `tables` over `cache`, without automatic compaction for those named in `on_hold`, or any.
    pub(super) fn families(
        self,
        tables: &'static [&'static TableSpec],
        on_hold: &BTreeSet<String>,
        cache: &Cache,
    ) -> Vec<ColumnFamilyDescriptor> {
        let family = |table: &&TableSpec| {
            let mut options = family(table.access, cache);
            options.set_disable_auto_compactions(!self.compacts || on_hold.contains(table.name));
            ColumnFamilyDescriptor::new(table.name, options)
        };
        tables.iter().map(family).collect()
    }
}

fn base() -> Options {
    let mut options = Options::default();
    options.set_paranoid_checks(true);
    // Deleting a replaced file can take long; its last reader should not wait for that.
    options.set_avoid_unnecessary_blocking_io(true);
    // RocksDB's own text log: a few files of bounded size, without statistics every ten minutes.
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(16 * MIB);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options
}

/// Enables the counters of [`super::Statistics`] and nothing else of RocksDB's statistics: a counter costs an addition to
/// a variable of the core, a timer costs two readings of the clock.
fn count(options: &mut Options) {
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
}

fn family(access: Access, cache: &Cache) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    // In the cache, indexes and filters are under its limit instead of growing with the database.
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);

    let mut options = Options::default();
    match access {
        Access::Point | Access::Hash => {
            // Keys do not compress, but the rest of small rows does: a hash with its posting takes 14 bytes for 22, a
            // list's length 10 for 26. Blocks of 4 KiB, because a lookup needs one row of each.
            options.set_compression_type(DBCompressionType::Zstd);
            filter(&mut blocks);
            blocks.set_whole_key_filtering(true);
            // A lookup compares on average half of the rows between two restart points (RocksDB: 16).
            blocks.set_block_restart_interval(4);
        }
        Access::Append => {
            options.set_compression_type(DBCompressionType::None);
            blocks.set_block_size(16 * KIB);
            // A row of records has a kilobyte or more, so each row that a lookup passes is a miss of the core's cache.
            blocks.set_block_restart_interval(2);
        }
        Access::Scan | Access::Ranked => {
            // A row of a list (owner of 20 bytes, ordinal, value) takes 6.4 bytes of disk this way. Blocks of
            // 16 KiB compress better than those of 4 KiB: 6.9 against 5.1 times on real transactions.
            options.set_compression_type(DBCompressionType::Zstd);
            blocks.set_block_size(16 * KIB);
            // A table is in several files of the same range of keys; the rows of an owner are rarely in all of them.
            options.set_prefix_extractor(SliceTransform::create_fixed_prefix(FILTERED_PREFIX));
            filter(&mut blocks);
            blocks.set_whole_key_filtering(false);
        }
    }
    options.set_block_based_table_factory(&blocks);
    // Most keys are in the oldest file, which then has no filter: a lookup does not ask it, and an absent key costs a block.
    options.set_optimize_filters_for_hits(matches!(access, Access::Hash | Access::Ranked));
    // Its name is stored in table files, and RocksDB refuses another one.
    options.set_merge_operator_associative("append", append);
    if access != Access::Append {
        // Keys arrive in no order, so in levels each merge of new files rewrites a level, whatever its size. Universal
        // compaction merges files of similar age and size, and so writes a row fewer times. Its price, old versions that
        // take up to twice the space, is small here: most rows are written once.
        options.set_compaction_style(DBCompactionStyle::Universal);
        let merged = if access == Access::Ranked { MERGED_EARLY_FILES } else { MERGED_FILES };
        options.set_level_zero_file_num_compaction_trigger(merged);
        // A ranked set moves an item by deleting a row. Scans step over each deleted row until a compaction removes it, so a
        // file with many of them is compacted at once with the level below.
        options.add_compact_on_deletion_collector_factory(DELETED_OF, DELETED, 0.0);
    }
    options
}

/// Changes a table with keys in no order so that its files are merged early from now on.
pub(super) fn merge_early(db: &DB, family: &ColumnFamily) -> Result<(), rocksdb::Error> {
    db.set_options_cf(family, &[("level0_file_num_compaction_trigger", &MERGED_EARLY_FILES.to_string())])
}

/// The value of a row with its appended bytes, or several of these as one.
#[expect(clippy::unnecessary_wraps, reason = "RocksDB's merge operators may fail")]
fn append(_: &[u8], before: Option<&[u8]>, appended: &MergeOperands) -> Option<Vec<u8>> {
    Some(before.into_iter().chain(appended).collect::<Vec<_>>().concat())
}

/// 10 bits for each key or prefix: one search in a hundred for an absent one reads a block.
fn filter(blocks: &mut BlockBasedOptions) {
    blocks.set_bloom_filter(10.0, false);
    // A file of 64 MiB has a filter of over 1 MiB; partitioned, a cold read needs 32 KiB of it. With RocksDB's parts of
    // 4 KiB, a lookup that asks many files spends more time on finding the part than on the filter.
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_metadata_block_size(32 << 10);
    blocks.set_pin_top_level_index_and_filter(true);
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
