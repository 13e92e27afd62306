//! A process that reads a database which another one writes.
//!
//! A reader of SlateDB has no snapshots. Each view ([`DoubleBuffer`]) is therefore a reader of its own whose state is pinned
//! by its clock ([`crate::gate`]), except that it polls once to catch up. Views share their cached blocks; each holds the
//! rows of the log in memory.
//!
//! # Invariants
//!
//! * Views change only by a catch-up, and each is the state of all tables after one durable commit.
//! * A later view is never older.
//! * Nothing is written to the object store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::StreamExt as _;
use slatedb::bytes::Bytes;
use slatedb::config::{ReadOptions, ScanOptions};
use slatedb::db_cache::DbCache;
use slatedb::object_store::{ObjectStore, path};
use slatedb::{ByteRangeBounds, DbIterator, DbReadOps, DbReader, DbReaderMode, KeyValue};
use store::{Batch, DoubleBuffer, Durability, Error, Snapshot, Store};

use crate::append::Append;
use crate::engine::Engine;
use crate::failure::{self, OPENING, remote};
use crate::gate::{self, Gate};
use crate::location::Location;
use crate::requests::{Counted, Requests};
use crate::rows::Rows;
use crate::settings;
use crate::writer::bytes_of;

/// A database that this process reads.
pub struct SlateReader {
    source: Source,
    views: DoubleBuffer<View>,
}

/// Parameters to open a view.
struct Source {
    engine: Arc<Engine>,
    name: PathBuf,
    path: path::Path,
    objects: Arc<dyn ObjectStore>,
    requests: Arc<Requests>,
    cache: (Arc<dyn DbCache>, u64),
}

/// A reader whose state changes only while no snapshot uses it.
struct View {
    reader: Arc<DbReader>,
    gate: Gate,
    /// Of this view alone.
    requests: Arc<Requests>,
    engine: Arc<Engine>,
}

/// Attempts to open a view: the collector may remove a file of the log meanwhile.
const MAX_ATTEMPTS: u32 = 4;

const FOLLOWING: &str = "following";

impl SlateReader {
    /// Opens the database of `chain`. The view is fixed until [`SlateReader::catch_up`].
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if there is none yet.
    pub fn open(engine: &Arc<Engine>, location: &Location, chain: &str) -> Result<Self, Error> {
        let (name, path) = location.database(chain);
        let (objects, requests) = Counted::metered(location, engine);
        let source =
            Source { engine: Arc::clone(engine), name, path, objects, requests, cache: engine.cache() };
        source.check_exists()?;
        let views = DoubleBuffer::new(source.open()?);
        Ok(Self { source, views })
    }

    /// Makes the durable commits of the writer so far visible to new snapshots; false if there are none. Snapshots
    /// never wait for it; it waits for snapshots at most a second.
    ///
    /// # Errors
    /// If the object store fails. New snapshots keep the previous state; call it again.
    pub fn catch_up(&self) -> Result<bool, Error> {
        let name = &self.source.name;
        let mut standby = self.views.standby();
        let unused = standby.take_unused().map_err(|message| remote(name, FOLLOWING, message))?;
        let next = match unused {
            Some(mut next) => {
                // After a timeout its poll may still be under way, so the view is dropped.
                if let Some(error) = self.source.poll(&mut next)? {
                    standby.put_back(next);
                    return Err(error);
                }
                next
            }
            None => self.source.open()?,
        };
        let (before, after) = (self.views.current().commit(), next.commit());
        if after < before {
            let message = format!("a poll led from commit {before} back to {after}; try again");
            return Err(remote(name, FOLLOWING, &message));
        }
        self.views.exchange(standby, next);
        Ok(after > before)
    }

    /// The location and the chain, as in messages.
    pub fn name(&self) -> &Path {
        &self.source.name
    }

    /// Counts of its requests.
    pub fn requests(&self) -> &Requests {
        &self.source.requests
    }
}

impl Store for SlateReader {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, Error> {
        let view = self.views.current();
        Ok(Box::new(Rows { engine: &self.source.engine, name: &self.source.name, view }))
    }

    fn commit(&self, _: Batch, _: Durability) -> Result<(), Error> {
        Err(Error::ReadOnly { path: self.source.name.clone() })
    }

    fn sync(&self) -> Result<(), Error> {
        Err(Error::ReadOnly { path: self.source.name.clone() })
    }

    /// Bytes of its objects, those to be collected included. Lists them all.
    fn disk_bytes(&self) -> Result<u64, Error> {
        let Source { engine, name, objects, path, .. } = &self.source;
        bytes_of(engine, name, &**objects, path)
    }
}

impl Source {
    fn check_exists(&self) -> Result<(), Error> {
        let manifests = self.path.clone().join("manifest");
        let found = self.engine.wait(&self.name, OPENING, self.engine.options.read_timeout, async {
            let first = self.objects.list(Some(&manifests)).next().await.transpose();
            first.map_err(|error| remote(&self.name, OPENING, &failure::describe(&error)))
        })?;
        match found {
            Some(_) => Ok(()),
            None => Err(Error::NotADatabase {
                path: self.name.clone(),
                found: "there are no objects of one".to_owned(),
                remedy: "name another location or chain, or start the process that writes it",
            }),
        }
    }

    /// Opens a view. The error is that of the last attempt: those before it, which are logged, may be of files that were
    /// collected since.
    fn open(&self) -> Result<View, Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let (clock, gate) = gate::gated();
            let (cache, id) = &self.cache;
            let requests = Arc::new(Requests::default());
            let objects = Arc::new(Counted {
                inner: Arc::clone(&self.objects),
                requests: Arc::clone(&requests),
                runtime: None,
            });
            let opened = async {
                let builder = DbReader::builder(self.path.clone(), objects);
                let builder = builder.with_reader_mode(DbReaderMode::FollowLatest);
                let builder = builder.with_options(settings::reader()).with_system_clock(clock);
                let builder = builder.with_filter_policies(settings::filters());
                let builder = builder.with_segment_extractor(settings::trees());
                let builder = builder.with_merge_operator(Arc::new(Append));
                builder.with_db_cache(Arc::clone(cache), *id).build().await
            };
            match self.engine.write(&self.name, OPENING, opened) {
                Ok(reader) => {
                    let (reader, engine) = (Arc::new(reader), Arc::clone(&self.engine));
                    return Ok(View { reader, gate, requests, engine });
                }
                Err(error) if attempts == MAX_ATTEMPTS => return Err(error),
                Err(error) => {
                    tracing::debug!(attempts, %error, "a view was not opened, trying again");
                    thread::sleep(attempts * Duration::from_millis(50));
                }
            }
        }
    }

    /// Lets `view`, which nothing else uses, poll once, and returns why it failed.
    fn poll(&self, view: &mut View) -> Result<Option<Error>, Error> {
        let before = view.requests.failures();
        self.engine.wait(&self.name, FOLLOWING, self.engine.options.read_timeout, async {
            view.gate.poll().await;
            Ok(())
        })?;
        // The reader itself reports no failure of a poll.
        let failed = view.requests.failures() > before;
        Ok(failed.then(|| remote(&self.name, FOLLOWING, &view.requests.last_failure())))
    }
}

impl View {
    /// The number of the last commit that it shows.
    fn commit(&self) -> u64 {
        self.reader.subscribe().borrow().durable_seq
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let reader = Arc::clone(&self.reader);
        // Ends its task, which waits for the gate. It holds nothing that could be lost.
        self.engine.spawn(async move { drop(reader.close().await) });
    }
}

#[async_trait]
impl DbReadOps for View {
    async fn get_with_options<K: AsRef<[u8]> + Send>(
        &self,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<Bytes>, slatedb::Error> {
        self.reader.get_with_options(key, options).await
    }

    async fn get_key_value_with_options<K: AsRef<[u8]> + Send>(
        &self,
        key: K,
        options: &ReadOptions,
    ) -> Result<Option<KeyValue>, slatedb::Error> {
        self.reader.get_key_value_with_options(key, options).await
    }

    async fn scan_with_options<T: ByteRangeBounds + Send>(
        &self,
        range: T,
        options: &ScanOptions,
    ) -> Result<DbIterator, slatedb::Error> {
        self.reader.scan_with_options(range, options).await
    }

    async fn scan_prefix_with_options<P: AsRef<[u8]> + Send, T: ByteRangeBounds + Send>(
        &self,
        prefix: P,
        subrange: T,
        options: &ScanOptions,
    ) -> Result<DbIterator, slatedb::Error> {
        self.reader.scan_prefix_with_options(prefix, subrange, options).await
    }
}
