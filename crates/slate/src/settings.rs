//! SlateDB's settings, with reasons.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, CompressionCodec, DbReaderOptions,
    GarbageCollectorDirectoryOptions, GarbageCollectorOptions, Settings,
};
use slatedb::object_store::ObjectStore;
use slatedb::object_store::path::Path;
use slatedb::{
    BloomFilterPolicy, FilterPolicy, GarbageCollectorBuilder, GcFilter, ObjectMetadata, PrefixExtractor,
    PrefixTarget,
};

/// Time that a file without use is kept: an old view of a reader may still need it. Views are replaced every second or
/// less; only a long export needs more. It is also the longest pause of a process that was overtaken after which its
/// late upload still cannot hide in a collected log.
const GRACE: Duration = Duration::from_mins(30);

/// First bytes of a stored key that the filters of table files know, in addition to whole keys: the tree, the tag of the table, and
/// a hash or a sequence. Scans of all rows with such a prefix skip the files that have none.
pub(crate) const FILTERED_PREFIX: usize = 10;

/// Bits of a filter for each key and each prefix: SlateDB's default, one false positive in a hundred.
const FILTER_BITS: u32 = 10;

/// Files of a tree that are not merged yet. With more of them no table file is written, and the log grows in the memory of
/// each reader, so that a lookup searches ever more tables there. Each tree has compactions of its own, and where other work
/// takes the processors they are late: with SlateDB's bound, 8, a query server under full load next to a writer at the head
/// gave half as many answers by hash.
const MAX_UNMERGED_FILES: usize = 32;

/// Files, or runs of files of similar size, from which on they are merged. SlateDB's default is 4: fewer uploads, and more files
/// for each lookup to ask.
const MIN_MERGED: usize = 2;

/// Settings of a writer that repeats a failed request `retries` times.
pub(crate) fn writer(retries: u32) -> Settings {
    Settings {
        // The head is flushed block by block, so this bounds only what a crash loses while catching up.
        flush_interval: Some(Duration::from_secs(1)),
        l0_sst_size_bytes: 64 << 20,
        l0_max_ssts: MAX_UNMERGED_FILES,
        l0_max_ssts_per_key: MAX_UNMERGED_FILES,
        // Four files in memory; the default is 1 GiB.
        max_unflushed_bytes: 256 << 20,
        compression_codec: Some(CompressionCodec::Lz4),
        compactor_options: Some(CompactorOptions {
            worker: Some(CompactionWorkerOptions {
                compression_codec: Some(CompressionCodec::Lz4),
                ..CompactionWorkerOptions::default()
            }),
            scheduler_options: HashMap::from([
                ("min_compaction_sources".to_owned(), MIN_MERGED.to_string()),
                ("max_compaction_sources".to_owned(), MAX_UNMERGED_FILES.to_string()),
            ]),
            ..CompactorOptions::default()
        }),
        garbage_collector_options: None,
        object_store_max_retries: Some(retries),
        ..Settings::default()
    }
}

/// The garbage collector of a writer.
pub(crate) fn collector(
    path: Path,
    store: Arc<dyn ObjectStore>,
    replaces: bool,
    retries: u32,
) -> GarbageCollectorBuilder<Path> {
    let defaults = GarbageCollectorOptions::default();
    let aged = Some(GarbageCollectorDirectoryOptions {
        min_age: GRACE,
        ..GarbageCollectorDirectoryOptions::default()
    });
    let options = GarbageCollectorOptions {
        // Files of the log that fence an old writer stay (the default): without one its late write would succeed.
        wal_options: aged,
        compacted_options: aged,
        boundary_files_enabled: replaces,
        object_store_max_retries: Some(retries),
        ..defaults
    };
    GarbageCollectorBuilder::new(path, store).with_options(options).with_gc_filter(Arc::new(Grace::default()))
}

/// Options of a reader. Failed requests are not repeated above the client, so that each failed poll is noticed.
pub(crate) fn reader() -> DbReaderOptions {
    DbReaderOptions { object_store_max_retries: Some(0), ..DbReaderOptions::default() }
}

/// The filters of table files, the same for writers and readers.
pub(crate) fn filters() -> Vec<Arc<dyn FilterPolicy>> {
    vec![Arc::new(
        BloomFilterPolicy::new(FILTER_BITS)
            .with_prefix_extractor(Arc::new(FirstBytes("first-10", FILTERED_PREFIX))),
    )]
}

/// The trees of files (SlateDB's segments): one for each first byte of a stored key.
pub(crate) fn trees() -> Arc<dyn PrefixExtractor> {
    Arc::new(FirstBytes("first-1", 1))
}

/// A prefix of a fixed length, and its name in the database.
struct FirstBytes(&'static str, usize);

impl PrefixExtractor for FirstBytes {
    fn name(&self) -> &'static str {
        self.0
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (PrefixTarget::Point(bytes) | PrefixTarget::Prefix(bytes)) = target;
        (bytes.len() >= self.1).then_some(self.1)
    }
}

/// Keeps a file for [`GRACE`] after its last use: the collector's own age counts from its creation.
#[derive(Default)]
struct Grace {
    unused_since: Mutex<HashMap<Path, Instant>>,
}

impl Grace {
    fn is_over(since: Instant) -> bool {
        since.elapsed() >= GRACE
    }
}

#[async_trait]
impl GcFilter for Grace {
    async fn filter(&self, mut candidates: HashSet<ObjectMetadata>) -> HashSet<ObjectMetadata> {
        let mut unused_since = self.unused_since.lock().unwrap_or_else(PoisonError::into_inner);
        // Deleted files are not named again. Each kind of file has a pass of its own, so none is forgotten early.
        unused_since.retain(|_, since| since.elapsed() < 3 * GRACE);
        let now = Instant::now();
        candidates.retain(|file| Self::is_over(*unused_since.entry(file.location.clone()).or_insert(now)));
        candidates
    }
}
