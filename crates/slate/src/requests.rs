//! Counts of the requests to an object store.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt as _};
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Requests since a database was opened. The client's own repetitions are not counted.
#[derive(Debug, Default)]
pub struct Requests {
    puts: AtomicU64,
    put_bytes: AtomicU64,
    gets: AtomicU64,
    got_bytes: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    failures: AtomicU64,
    last_failure: Mutex<String>,
}

impl Requests {
    /// Objects written, and their bytes.
    pub fn puts(&self) -> (u64, u64) {
        (self.puts.load(Ordering::Relaxed), self.put_bytes.load(Ordering::Relaxed))
    }

    /// Reads of objects or parts of them, and their bytes.
    pub fn gets(&self) -> (u64, u64) {
        (self.gets.load(Ordering::Relaxed), self.got_bytes.load(Ordering::Relaxed))
    }

    /// Lists of objects.
    pub fn lists(&self) -> u64 {
        self.lists.load(Ordering::Relaxed)
    }

    /// Deleted objects.
    pub fn deletes(&self) -> u64 {
        self.deletes.load(Ordering::Relaxed)
    }

    /// Requests that failed for another reason than the state of the object.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The error of the last such request.
    pub fn last_failure(&self) -> String {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn check<T>(&self, outcome: Result<T>) -> Result<T> {
        match &outcome {
            Ok(_)
            | Err(
                Error::NotFound { .. }
                | Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. },
            ) => {}
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                let text = crate::failure::describe(error);
                *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
        }
        outcome
    }
}

/// An object store whose requests are counted.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) inner: Arc<dyn ObjectStore>,
    pub(crate) requests: Arc<Requests>,
}

impl Display for Counted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.requests.puts.fetch_add(1, Ordering::Relaxed);
        self.requests.put_bytes.fetch_add(to_u64(payload.content_length()), Ordering::Relaxed);
        self.requests.check(self.inner.put_opts(at, payload, options).await)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.requests.puts.fetch_add(1, Ordering::Relaxed);
        self.requests.check(self.inner.put_multipart_opts(at, options).await)
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.requests.gets.fetch_add(1, Ordering::Relaxed);
        let found = self.requests.check(self.inner.get_opts(at, options).await)?;
        self.requests.got_bytes.fetch_add(found.range.end - found.range.start, Ordering::Relaxed);
        Ok(found)
    }

    fn delete_stream(&self, at: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let requests = Arc::clone(&self.requests);
        let deleted = self.inner.delete_stream(at);
        deleted
            .map(move |outcome| {
                requests.deletes.fetch_add(1, Ordering::Relaxed);
                requests.check(outcome)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.lists.fetch_add(1, Ordering::Relaxed);
        let requests = Arc::clone(&self.requests);
        self.inner.list(prefix).map(move |found| requests.check(found)).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.lists.fetch_add(1, Ordering::Relaxed);
        let requests = Arc::clone(&self.requests);
        self.inner.list_with_offset(prefix, offset).map(move |found| requests.check(found)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.requests.lists.fetch_add(1, Ordering::Relaxed);
        self.requests.check(self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.requests.puts.fetch_add(1, Ordering::Relaxed);
        self.requests.check(self.inner.copy_opts(from, to, options).await)
    }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
