//! The process that writes a database.
//!
//! # Invariants
//!
//! * [`SlateStore`]'s own snapshots show every commit, durable or not: the indexer reads its own writes.
//! * [`Announced`]'s snapshots show durable commits only. What clients see cannot disappear with the process.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::stream::TryStreamExt as _;
use slatedb::bytes::Bytes;
use slatedb::config::{CloseOptions, FlushOptions, FlushType};
use slatedb::object_store::{ObjectStore, path};
use slatedb::{Db, DbSnapshot, DbStatus, WriteBatch};
use store::batch::{Change, SortedWrites};
use store::{Batch, Bounds, Durability, Error, Snapshot, Store};
use tokio::sync::watch;

use crate::append::Append;
use crate::engine::Engine;
use crate::exclusive;
use crate::failure::{self, OPENING, remote};
use crate::location::Location;
use crate::requests::{Counted, Requests};
use crate::rows::{Rows, stored_key, stored_range};
use crate::settings;

/// Durable commits after which the log is written into a table file. Each is a file of the log, which the next writer
/// and every reader that opens the database fetch; and each poll of a reader makes a table in memory of the new ones, which
/// all reads search. With 256 a query server at the head gave a seventh of RocksDB's answers by hash, with 32 a fifth.
const FLUSHES_PER_FILE: u64 = 32;

/// Snapshots of commits that wait to be durable. While catching up there are some tens a second, and they are durable
/// within a second; beyond this number, some commits are announced together.
const MAX_PENDING: usize = 1024;

/// Time that closing may take: the last commits are written into a table file.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

/// A database that this process writes.
pub struct SlateStore {
    engine: Arc<Engine>,
    name: PathBuf,
    path: path::Path,
    objects: Arc<dyn ObjectStore>,
    requests: Arc<Requests>,
    db: Db,
    status: watch::Receiver<DbStatus>,
    /// Held exclusively while the rows of a deleted range are read and deleted.
    commits: RwLock<()>,
    flushes: AtomicU64,
    durable: Mutex<Durable>,
}

/// The newest durable snapshot, and those of newer commits.
struct Durable {
    newest: Arc<DbSnapshot>,
    pending: VecDeque<Arc<DbSnapshot>>,
}

impl SlateStore {
    /// Opens or creates the database of `chain` and fences the process that wrote it so far.
    ///
    /// # Errors
    /// [`Error::NotExclusive`] if the object store does not keep the promise that fencing needs.
    pub fn open(engine: &Arc<Engine>, location: &Location, chain: &str) -> Result<Self, Error> {
        let (name, path) = location.database(chain);
        let (objects, requests) = Counted::metered(location, engine);
        let Engine { options, .. } = &**engine;
        let raced = async {
            match exclusive::check(&objects, &path).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(Error::NotExclusive { path: name.clone(), found }),
                Err(error) => Err(remote(&name, OPENING, &failure::describe(&error))),
            }
        };
        engine.wait(&name, OPENING, options.commit_timeout, raced)?;
        let (cache, id) = engine.cache();
        let opened = async {
            let collector =
                settings::collector(path.clone(), Arc::clone(&objects), location.replaces, options.retries);
            let builder = Db::builder(path.clone(), Arc::clone(&objects));
            let builder = builder.with_settings(settings::writer(options.retries)).with_gc_builder(collector);
            let builder = builder.with_filter_policies(settings::filters());
            let builder = builder.with_segment_extractor(settings::trees());
            let builder = builder.with_merge_operator(Arc::new(Append));
            builder.with_db_cache(cache, id).build().await
        };
        let db = engine.write(&name, OPENING, opened)?;
        let newest = db.snapshot().map_err(|error| failure::map(&name, OPENING, &error))?;
        let (engine, status) = (Arc::clone(engine), db.subscribe());
        let durable = Mutex::new(Durable { newest, pending: VecDeque::new() });
        let (commits, flushes) = (RwLock::new(()), AtomicU64::new(0));
        Ok(Self { engine, name, path, objects, requests, db, status, commits, flushes, durable })
    }

    /// The location and the chain, as in messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Counts of its requests.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Writes all commits into table files, so that the next opening has no log to read.
    ///
    /// # Errors
    /// If the object store fails.
    pub fn flush(&self) -> Result<(), Error> {
        let options = FlushOptions { flush_type: FlushType::MemTable };
        self.engine.write(&self.name, "flushing", self.db.flush_with_options(options))
    }

    /// The newest durable snapshot.
    fn announced(&self) -> Arc<DbSnapshot> {
        let durable_seq = self.status.borrow().durable_seq;
        // Nothing that holds the lock panics.
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        while durable.pending.front().is_some_and(|snapshot| snapshot.seq() <= durable_seq)
            && let Some(next) = durable.pending.pop_front()
        {
            durable.newest = next;
        }
        Arc::clone(&durable.newest)
    }

    /// Notes the snapshot of the commit that was just made, to announce it when it is durable.
    fn note_commit(&self) -> Result<(), Error> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = self.db.snapshot().map_err(|error| failure::map(&self.name, COMMITTING, &error))?;
        if durable.pending.len() >= MAX_PENDING {
            durable.pending.pop_back();
        }
        durable.pending.push_back(snapshot);
        Ok(())
    }

    /// Adds deletions of all rows of the ranges of `writes`: SlateDB deletes no ranges.
    fn delete_ranges(&self, writes: &SortedWrites, batch: &mut WriteBatch) -> Result<(), Error> {
        for (start, end) in writes.ranges() {
            let range = stored_range(writes.table(), Bounds { start, end: Some(end) });
            self.engine.write(&self.name, COMMITTING, async {
                let mut rows = self.db.scan(range).await?;
                while let Some(row) = rows.next().await? {
                    batch.delete(row.key);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn write(&self, tables: &[SortedWrites]) -> Result<(), Error> {
        let mut batch = WriteBatch::new();
        for writes in tables {
            self.delete_ranges(writes, &mut batch)?;
            for (key, change) in writes.iter() {
                let key = Bytes::from(stored_key(writes.table(), key));
                match change {
                    Change::Put(value) => batch.put_bytes(key, Bytes::copy_from_slice(value)),
                    Change::Append(bytes) => batch.merge(key, bytes),
                    Change::Delete => batch.delete(key),
                }
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.engine.write(&self.name, COMMITTING, self.db.write(batch))?;
        self.note_commit()
    }
}

impl Store for SlateStore {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        let view = self.db.snapshot().map_err(|error| failure::map(&self.name, READING, &error))?;
        Ok(Box::new(Rows { engine: &self.engine, name: &self.name, view }))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        let tables: Vec<_> = batch.into_sorted().collect();
        if tables.iter().any(|writes| !writes.ranges().is_empty()) {
            let _alone = self.commits.write().unwrap_or_else(PoisonError::into_inner);
            self.write(&tables)?;
        } else {
            let _beside_others = self.commits.read().unwrap_or_else(PoisonError::into_inner);
            self.write(&tables)?;
        }
        if durability == Durability::Buffered { Ok(()) } else { self.sync() }
    }

    fn sync(&self) -> Result<(), Error> {
        self.engine.write(&self.name, COMMITTING, self.db.flush())?;
        if self.flushes.fetch_add(1, Ordering::Relaxed) % FLUSHES_PER_FILE == FLUSHES_PER_FILE - 1 {
            let (db, options) = (self.db.clone(), FlushOptions { flush_type: FlushType::MemTable });
            // In the background: the commits are durable in the log. A failure shows in the next commit.
            self.engine.spawn(async move { drop(db.flush_with_options(options).await) });
        }
        Ok(())
    }

    /// Bytes of its objects, those to be collected included. Lists them all.
    fn disk_bytes(&self) -> Result<u64, Error> {
        bytes_of(&self.engine, &self.name, &*self.objects, &self.path)
    }
}

impl Drop for SlateStore {
    fn drop(&mut self) {
        let closed = async {
            let options = CloseOptions::default().with_flush_type(Some(FlushType::MemTable));
            let outcome = self.db.close_with_options(options).await;
            outcome.map_err(|error| failure::map(&self.name, "closing", &error))
        };
        if let Err(error) = self.engine.wait(&self.name, "closing", CLOSE_TIMEOUT, closed) {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }
}

/// The durable commits of a [`SlateStore`], for clients.
pub struct Announced(pub Arc<SlateStore>);

impl Store for Announced {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        let view = self.0.announced();
        Ok(Box::new(Rows { engine: &self.0.engine, name: &self.0.name, view }))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        self.0.commit(batch, durability)
    }

    fn sync(&self) -> Result<(), Error> {
        self.0.sync()
    }

    fn disk_bytes(&self) -> Result<u64, Error> {
        self.0.disk_bytes()
    }
}

/// Sum of the sizes of the objects under `path`.
pub(crate) fn bytes_of(
    engine: &Engine,
    name: &Path,
    objects: &dyn ObjectStore,
    path: &path::Path,
) -> Result<u64, Error> {
    engine.wait(name, "listing", engine.options.commit_timeout, async {
        let sizes =
            objects.list(Some(path)).try_fold(0_u64, |sum, object| async move { Ok(sum + object.size) });
        sizes.await.map_err(|error| remote(name, "listing", &failure::describe(&error)))
    })
}

const COMMITTING: &str = "committing";
const READING: &str = "reading";
