//! The contract's tests on the writer, on a reader, and on what the writer announces; in memory and on S3.

use std::sync::Arc;

use slate::{Announced, SlateReader, SlateStore};
use store::Store;

use crate::demands::{Engine, engine_tests};
use crate::{ENGINE, new_place};

impl Engine for SlateStore {
    fn new() -> Self {
        let (bucket, chain) = new_place();
        SlateStore::open(&ENGINE, &bucket, &chain).unwrap()
    }
    fn writer(&self) -> &dyn Store {
        self
    }
    fn reader(&self) -> &dyn Store {
        self
    }
}

struct Read {
    reader: SlateReader,
    writer: SlateStore,
}

impl Engine for Read {
    fn new() -> Self {
        let (bucket, chain) = new_place();
        let writer = SlateStore::open(&ENGINE, &bucket, &chain).unwrap();
        Self { reader: SlateReader::open(&ENGINE, &bucket, &chain).unwrap(), writer }
    }
    fn writer(&self) -> &dyn Store {
        &self.writer
    }
    fn reader(&self) -> &dyn Store {
        &self.reader
    }
    fn publish(&self) {
        self.writer.sync().unwrap();
        self.reader.catch_up().unwrap();
    }
}

struct AnnouncedStore {
    announced: Announced,
    writer: Arc<SlateStore>,
}

impl Engine for AnnouncedStore {
    fn new() -> Self {
        let writer = Arc::new(SlateStore::new());
        Self { announced: Announced(Arc::clone(&writer)), writer }
    }
    fn writer(&self) -> &dyn Store {
        &*self.writer
    }
    fn reader(&self) -> &dyn Store {
        &self.announced
    }
    fn publish(&self) {
        self.writer.sync().unwrap();
    }
}

engine_tests!(written SlateStore);
engine_tests!(read Read);
engine_tests!(announced AnnouncedStore);
