//! The contract's tests and the random model, on the writer, on a reader, and on what the writer announces.

use std::sync::Arc;

use proptest::prelude::*;
use slate::{Announced, SlateReader, SlateStore};
use store::Store;

use crate::demands::{Engine, engine_tests};
use crate::play::{Model, Step, play, sessions};
use crate::{CHAIN, ENGINE, bucket};

impl Engine for SlateStore {
    fn new() -> Self {
        SlateStore::open(&ENGINE, &bucket(), CHAIN).unwrap()
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
        let bucket = bucket();
        let writer = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
        Self { reader: SlateReader::open(&ENGINE, &bucket, CHAIN).unwrap(), writer }
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
        let writer = Arc::new(SlateStore::open(&ENGINE, &bucket(), CHAIN).unwrap());
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_engine_on_object_storage_is_a_map_with_snapshots(sessions in sessions()) {
        let bucket = bucket();
        let mut model = Model::new();
        for steps in sessions {
            let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
            play(&store, &mut model, &steps, |step| match step {
                Step::Flush => store.flush().unwrap(),
                _ => store.sync().unwrap(),
            })?;
        }
    }
}
