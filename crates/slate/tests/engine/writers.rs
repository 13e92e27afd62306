//! One writer, whose clients see durable commits only.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use slate::object_store::memory::InMemory;
use slate::object_store::path::Path;
use slate::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use slate::{Announced, Location, SlateReader, SlateStore};
use store::{Batch, Durability, Error, Store};

use crate::heights::{block, head, request};
use crate::{CHAIN, ENGINE, bucket};

#[test]
fn a_second_writer_fences_the_first() {
    let bucket = bucket();
    let first = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    first.commit(block(1), Durability::Synced).unwrap();
    let second = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    let refused = first.commit(block(2), Durability::Synced).unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
    let refused = first.commit(block(2), Durability::Buffered).unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
    // Nothing of it was written, and the second one continues.
    assert_eq!(head(&*second.snapshot().unwrap()), 1);
    second.commit(block(3), Durability::Synced).unwrap();
    drop(first);
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    assert!(request(&*reader.snapshot().unwrap()).iter().all(|height| *height == 3));
}

#[test]
fn clients_see_durable_commits_only() {
    let bucket = bucket();
    let store = Arc::new(SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap());
    let announced = Announced(Arc::clone(&store));
    store.commit(block(1), Durability::Synced).unwrap();
    assert_eq!(head(&*announced.snapshot().unwrap()), 1);
    store.commit(block(2), Durability::Buffered).unwrap();
    assert_eq!(head(&*store.snapshot().unwrap()), 2);
    // The log may have been flushed by its interval, but then the commit is durable.
    let seen = head(&*announced.snapshot().unwrap());
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    let durable = head(&*reader.snapshot().unwrap());
    assert!(seen <= durable, "announced {seen}, durable {durable}");
    store.sync().unwrap();
    assert!(request(&*announced.snapshot().unwrap()).iter().all(|height| *height == 2));
}

#[test]
fn a_reader_writes_nothing_and_needs_a_database() {
    let bucket = bucket();
    let missing = SlateReader::open(&ENGINE, &bucket, CHAIN).err().unwrap();
    assert!(matches!(missing, Error::NotADatabase { .. }), "{missing}");
    let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap();
    store.commit(block(2), Durability::Synced).unwrap();
    reader.catch_up().unwrap();
    request(&*reader.snapshot().unwrap());
    let refused = reader.commit(Batch::new(), Durability::Synced).unwrap_err();
    assert!(matches!(refused, Error::ReadOnly { .. }), "{refused}");
    assert_eq!((reader.requests().puts().0, reader.requests().deletes()), (0, 0));
}

/// Checks that an object is absent, and then writes it: creators that check at the same time all win.
#[derive(Debug)]
struct ChecksThenWrites(InMemory);

impl fmt::Display for ChecksThenWrites {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[async_trait]
impl ObjectStore for ChecksThenWrites {
    async fn put_opts(&self, at: &Path, payload: PutPayload, mut options: PutOptions) -> Result<PutResult> {
        if options.mode == PutMode::Create {
            let found = self.0.get_opts(at, GetOptions::default()).await;
            if found.is_ok() {
                return self.0.put_opts(at, payload, options).await;
            }
            tokio::task::yield_now().await;
            options.mode = PutMode::Overwrite;
        }
        self.0.put_opts(at, payload, options).await
    }
    async fn put_multipart_opts(
        &self,
        at: &Path,
        o: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, o).await
    }
    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(at, options).await
    }
    fn delete_stream(&self, at: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(at)
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[test]
fn a_store_where_two_creators_win_is_refused() {
    let bucket = Location::in_store("memory://not-exclusive", Arc::new(ChecksThenWrites(InMemory::new())));
    let refused = SlateStore::open(&ENGINE, &bucket, CHAIN).err().unwrap();
    assert!(matches!(refused, Error::NotExclusive { .. }), "{refused}");
    assert!(refused.to_string().contains("8 of 8 objects"), "{refused}");
    // Nothing is left behind.
    let reader = SlateReader::open(&ENGINE, &bucket, CHAIN).err().unwrap();
    assert!(matches!(reader, Error::NotADatabase { .. }), "{reader}");
}
