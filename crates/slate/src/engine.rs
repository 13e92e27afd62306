//! What all databases of a process share: a runtime, a block cache and time limits.
//!
//! The store contract is synchronous and SlateDB is not. A call polls its future on the calling thread: a read whose
//! blocks are cached is ready at once and costs no switch of threads. Otherwise the thread waits, outside of the worker
//! threads of its own runtime if it is one of them ([`tokio::task::block_in_place`]), so that other requests proceed.
//!
//! # Invariants
//!
//! * Every call ends within a time limit.
//! * At most [`MAX_WAITING`] calls wait; further ones fail.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use slatedb::db_cache::DbCache;
use slatedb::db_cache::foyer::{FoyerCache, FoyerCacheOptions};
use store::Error;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, unconstrained};
use tokio::time::timeout;

use crate::failure::{self, remote};

/// Calls that wait for the object store at a time. Each holds a thread.
const MAX_WAITING: usize = 256;

/// Threads of the runtime: for the uploads, compactions and polls of SlateDB.
const WORKERS: usize = 2;

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
            commit_timeout: Duration::from_secs(120),
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
        // The HTTP client takes the process's provider of cryptography, which another component may have set.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime =
            Builder::new_multi_thread().worker_threads(WORKERS).thread_name("slate").enable_all().build()?;
        let max_capacity = u64::try_from(options.cache_bytes).unwrap_or(u64::MAX);
        let cache = FoyerCache::new_with_opts(FoyerCacheOptions { max_capacity, ..Default::default() });
        Ok(Arc::new(Self {
            runtime: Some(runtime),
            cache: Arc::new(cache),
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

    /// Waits for a read of the database `name`.
    pub(crate) fn read<T>(
        &self,
        name: &Path,
        doing: &'static str,
        work: impl Future<Output = Result<T, slatedb::Error>>,
    ) -> Result<T, Error> {
        self.wait(name, doing, self.options.read_timeout, async {
            work.await.map_err(|error| failure::map(name, doing, &error))
        })
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
        // A task's budget is renewed when it is polled again, which a thread that waits here never is.
        let mut work = pin!(unconstrained(async {
            match timeout(limit, work).await {
                Ok(outcome) => outcome,
                Err(_) => Err(remote(name, doing, &format!("no answer within {limit:?}"))),
            }
        }));
        let mut poll = |waker: &Waker| {
            let _inside = runtime.enter();
            work.as_mut().poll(&mut Context::from_waker(waker))
        };
        if let Poll::Ready(outcome) = poll(Waker::noop()) {
            return outcome;
        }
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(remote(name, doing, &format!("{MAX_WAITING} other calls wait for it")));
        };
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
