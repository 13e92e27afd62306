//! Counts of the requests to an object store.

use std::fmt::{self, Display};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use metrics::counter;
use slatedb::object_store::path::Path;
use slatedb::object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use tokio::runtime::Handle;

use crate::engine::Engine;
use crate::location::Location;

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
    /// Objects and parts of objects written, and their bytes.
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

    fn count_put(&self, bytes: usize) {
        self.count(&self.puts, "put");
        self.count_bytes(&self.put_bytes, "written", to_u64(bytes));
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
    /// Where reads run, with their bodies; `None` if `inner` sees to it.
    pub(crate) runtime: Option<Handle>,
}

impl Counted {
    /// The object store of `location` for a database of `engine`, and its counts, which are added to the metrics of the
    /// process.
    pub(crate) fn metered(location: &Location, engine: &Engine) -> (Arc<dyn ObjectStore>, Arc<Requests>) {
        let requests = Arc::new(Requests { is_metered: true, ..Requests::default() });
        let (inner, runtime) = (Arc::clone(&location.store), engine.runtime());
        (Arc::new(Self { inner, requests: Arc::clone(&requests), runtime }), requests)
    }
}

/// A read with its whole body, so that a body that is cut off is a failed request.
async fn get_whole(inner: Arc<dyn ObjectStore>, at: Path, options: GetOptions) -> Result<GetResult> {
    let mut found = inner.get_opts(&at, options).await?;
    let payload = mem::replace(&mut found.payload, GetResultPayload::Stream(stream::empty().boxed()));
    let (meta, range) = (found.meta.clone(), found.range.clone());
    let (attributes, extensions) = (Attributes::default(), Extensions::default());
    let body = GetResult { payload, meta, range, attributes, extensions }.bytes().await?;
    found.payload = GetResultPayload::Stream(stream::once(async { Ok(body) }).boxed());
    Ok(found)
}

impl Display for Counted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for Counted {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.requests.count_put(payload.content_length());
        self.requests.check(self.inner.put_opts(at, payload, options).await)
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.requests.check(self.inner.put_multipart_opts(at, options).await)?;
        Ok(Box::new(CountedUpload { inner: upload, requests: Arc::clone(&self.requests) }))
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.requests.count(&self.requests.gets, "get");
        let is_head = options.head;
        let found = match &self.runtime {
            Some(runtime) => {
                let read = get_whole(Arc::clone(&self.inner), at.clone(), options);
                runtime.spawn(read).await.map_err(|source| Error::JoinError { source }).flatten()
            }
            None => self.inner.get_opts(at, options).await,
        };
        let found = self.requests.check(found)?;
        if !is_head {
            let bytes = found.range.end - found.range.start;
            self.requests.count_bytes(&self.requests.got_bytes, "read", bytes);
        }
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

/// An upload in parts, each of which is a request. Its beginning and its end are left out: they carry no data.
#[derive(Debug)]
struct CountedUpload {
    inner: Box<dyn MultipartUpload>,
    requests: Arc<Requests>,
}

#[async_trait]
impl MultipartUpload for CountedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.requests.count_put(data.content_length());
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.requests.check(self.inner.complete().await)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
