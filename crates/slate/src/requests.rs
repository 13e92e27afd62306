//! Counts of the requests to an object store.

use std::fmt::{self, Display};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt as _};
use metrics::counter;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Requests since a database was opened. The client's own repetitions are not counted.
#[derive(Debug, Default)]
pub struct Requests {
    /// Whether they are counted in the metrics of the process too, which the program describes.
    is_metered: bool,
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
    /// Counts that are added to the metrics of the process.
    pub(crate) fn metered() -> Self {
        Self { is_metered: true, ..Self::default() }
    }

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

    /// Counts a request of `kind`.
    fn count(&self, counted: &AtomicU64, kind: &'static str) {
        counted.fetch_add(1, Ordering::Relaxed);
        if self.is_metered {
            counter!("cairn_object_store_requests_total", "request" => kind).increment(1);
        }
    }

    /// Counts bytes that were `direction`.
    fn count_bytes(&self, counted: &AtomicU64, direction: &'static str, bytes: u64) {
        counted.fetch_add(bytes, Ordering::Relaxed);
        if self.is_metered {
            counter!("cairn_object_store_bytes_total", "direction" => direction).increment(bytes);
        }
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
                if self.is_metered {
                    counter!("cairn_object_store_failures_total").increment(1);
                }
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
        self.requests.count(&self.requests.puts, "put");
        self.requests.count_bytes(&self.requests.put_bytes, "written", to_u64(payload.content_length()));
        self.requests.check(self.inner.put_opts(at, payload, options).await)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.requests.count(&self.requests.puts, "put");
        self.requests.check(self.inner.put_multipart_opts(at, options).await)
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.requests.count(&self.requests.gets, "get");
        let found = self.requests.check(self.inner.get_opts(at, options).await)?;
        self.requests.count_bytes(&self.requests.got_bytes, "read", found.range.end - found.range.start);
        Ok(found)
    }

    fn delete_stream(&self, at: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let requests = Arc::clone(&self.requests);
        let deleted = self.inner.delete_stream(at);
        deleted
            .map(move |outcome| {
                requests.count(&requests.deletes, "delete");
                requests.check(outcome)
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.count(&self.requests.lists, "list");
        let requests = Arc::clone(&self.requests);
        self.inner.list(prefix).map(move |found| requests.check(found)).boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests.count(&self.requests.lists, "list");
        let requests = Arc::clone(&self.requests);
        self.inner.list_with_offset(prefix, offset).map(move |found| requests.check(found)).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.requests.count(&self.requests.lists, "list");
        self.requests.check(self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.requests.count(&self.requests.puts, "put");
        self.requests.check(self.inner.copy_opts(from, to, options).await)
    }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
