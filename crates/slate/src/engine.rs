//! What all databases of a process share: a runtime, a block cache and time limits.
//!
//! The store contract is synchronous and SlateDB is not. A call polls its future on the calling thread: a point read whose
//! block is cached is ready at once. Otherwise the thread waits, outside of the worker threads of its own runtime if it is
//! one of them ([`tokio::task::block_in_place`]), so that other requests proceed.
//!
//! SlateDB spawns a task for each fetch of a scan, cached or not. Each reading thread has a small runtime of its own that
//! runs the tasks of its reads, so that a cached scan costs no switch of threads either. Requests to the object store run
//! on the shared runtime, because a connection belongs to the runtime that opened it.
//!
//! # Invariants
//!
//! * Every call ends within a time limit.
//! * A read leaves no task behind on the runtime of its thread: another thread could wait for the same fetch.
//! * At most [`MAX_WAITING`] calls wait; further ones fail.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use foyer::{Cache, CacheBuilder, SieveConfig};
use slatedb::db_cache::foyer::FoyerCache;
use slatedb::db_cache::{CachedEntry, CachedKey, DbCache};
use store::Error;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{block_in_place, unconstrained};
use tokio::time::{sleep, timeout};

use crate::failure::{self, remote};

/// Calls that wait for the object store at a time. Each holds a thread.
const MAX_WAITING: usize = 256;

/// Threads of the runtime: for the uploads, compactions and polls of SlateDB.
const WORKERS: usize = 2;

/// Interval of looks at the tasks that a read has left behind: fetches ahead of where it ended.
const DRAIN_EVERY: Duration = Duration::from_millis(1);

thread_local! {
    /// Runs the tasks of the reads of this thread, while it reads. A thread for which the system grants no runtime reads
    /// with the shared one, more slowly, so the error is not needed.
    static READS: Option<Runtime> = Builder::new_current_thread().enable_time().build().ok();
}

/// Limits of an [`Engine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Memory for blocks, indexes and filters of all databases.
    pub cache_bytes: usize,
    /// Longest duration of a read.
    pub read_timeout: Duration,
    /// Longest duration of a commit, and of opening a database.
    pub commit_timeout: Duration,
    /// How often the writer repeats a failed request, with pauses of at most a second.
    pub retries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
            read_timeout: Duration::from_secs(30),
            commit_timeout: Duration::from_mins(2),
            retries: 60,
        }
    }
}

/// The runtime and the cache of a process.
pub struct Engine {
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
    cache: Arc<dyn DbCache>,
    databases: AtomicU64,
    waiting: Semaphore,
    pub(crate) options: Options,
}

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system grants no more threads.
    pub fn start(options: Options) -> std::io::Result<Arc<Self>> {
        install_crypto();
        let runtime =
            Builder::new_multi_thread().worker_threads(WORKERS).thread_name("slate").enable_all().build()?;
        let cache: Cache<CachedKey, CachedEntry> = CacheBuilder::new(options.cache_bytes)
            .with_weighter(|_, entry: &CachedEntry| entry.size())
            .with_shards(thread::available_parallelism().map_or(1, usize::from))
            // A hit takes a shared lock; of the default, LRU, two exclusive ones.
            .with_eviction_config(SieveConfig)
            .build();
        Ok(Arc::new(Self {
            runtime: Some(runtime),
            cache: Arc::new(FoyerCache::new_with_cache(cache)),
            databases: AtomicU64::new(0),
            waiting: Semaphore::new(MAX_WAITING),
            options,
        }))
    }

    /// The cache, with the number of one more database in it.
    pub(crate) fn cache(&self) -> (Arc<dyn DbCache>, u64) {
        (Arc::clone(&self.cache), self.databases.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `work` in the background.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            drop(runtime.spawn(work));
        }
    }

    /// The shared runtime; `None` when it is closed.
    pub(crate) fn runtime(&self) -> Option<Handle> {
        self.runtime.as_ref().map(|runtime| runtime.handle().clone())
    }

    /// Waits for a read of rows of the database `name`.
    pub(crate) fn read<T>(
        &self,
        name: &Path,
        doing: &'static str,
        work: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, Error> {
        let limit = self.options.read_timeout;
        let work = async { work.await.map_err(|error| failure::map(name, doing, &error)) };
        let flavor = Handle::try_current().ok().map(|outer| outer.runtime_flavor());
        READS.with(|reads| {
            let Some(reads) = reads.as_ref().filter(|_| flavor != Some(RuntimeFlavor::CurrentThread)) else {
                // A thread that cannot run another runtime: the tasks run on the shared one.
                return self.wait(name, doing, limit, work);
            };
            let mut work = pin!(bounded(name, doing, limit, work));
            let first = {
                let _inside = reads.enter();
                work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            };
            if let Poll::Ready(outcome) = first {
                return outcome;
            }
            let _place = self.place(name, doing)?;
            let drive = || {
                reads.block_on(async {
                    let outcome = work.await;
                    let drained = async {
                        while reads.metrics().num_alive_tasks() > 0 {
                            sleep(DRAIN_EVERY).await;
                        }
                    };
                    // Requests have time limits of their own.
                    drop(timeout(limit, drained).await);
                    outcome
                })
            };
            if flavor.is_some() { block_in_place(drive) } else { drive() }
        })
    }

    /// A place among the calls that wait.
    fn place(&self, name: &Path, doing: &'static str) -> Result<SemaphorePermit<'_>, Error> {
        let place = self.waiting.try_acquire();
        place.map_err(|_| remote(name, doing, &format!("{MAX_WAITING} other calls wait for it")))
    }

    /// Waits for a write to the database `name`.
    pub(crate) fn write<T>(
        &self,
        name: &Path,
        doing: &'static str,
        work: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, Error> {
        self.wait(name, doing, self.options.commit_timeout, async {
            work.await.map_err(|error| failure::map(name, doing, &error))
        })
    }

    /// Waits for `work` on the database `name`, at most `limit`.
    pub(crate) fn wait<T>(
        &self,
        name: &Path,
        doing: &'static str,
        limit: Duration,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(runtime) = &self.runtime else { return Err(remote(name, doing, "it is closed")) };
        let outer = Handle::try_current().ok();
        let mut work = pin!(bounded(name, doing, limit, work));
        let mut poll = |waker: &Waker| {
            let _inside = runtime.enter();
            work.as_mut().poll(&mut Context::from_waker(waker))
        };
        if let Poll::Ready(outcome) = poll(Waker::noop()) {
            return outcome;
        }
        let _place = self.place(name, doing)?;
        let mut park = || {
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            loop {
                if let Poll::Ready(outcome) = poll(&waker) {
                    return outcome;
                }
                thread::park();
            }
        };
        match outer {
            Some(outer) if outer.runtime_flavor() == RuntimeFlavor::MultiThread => block_in_place(park),
            _ => park(),
        }
    }
}

/// Sets the process's provider of cryptography, which clients of object stores take, unless there is one. An [`Engine`] and
/// [`crate::Location::parse`] do it.
pub fn install_crypto() {
    // An error says that another component has set one.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// `work`, which fails after `limit`.
fn bounded<T>(
    name: &Path,
    doing: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    // A task's budget is renewed when it is polled again, which a thread that waits never is.
    unconstrained(async move {
        match timeout(limit, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(remote(name, doing, &format!("no answer within {limit:?}"))),
        }
    })
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Waiting for its threads is not allowed in a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
