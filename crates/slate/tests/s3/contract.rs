//! The contract's tests on S3, for the writer and for a reader.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use slate::{SlateReader, SlateStore};
use store::Store;

use crate::ENGINE;
use crate::demands::{Engine, engine_tests};
use crate::gateway::Gateway;

/// One gateway for all of these tests. Statics are not dropped: it ends with this process, by its own watch.
static GATEWAY: LazyLock<Gateway> = LazyLock::new(Gateway::start);

/// Each test has a chain of its own.
fn chain() -> String {
    static CHAINS: AtomicU32 = AtomicU32::new(0);
    format!("chain-{}", CHAINS.fetch_add(1, Ordering::Relaxed))
}

impl Engine for SlateStore {
    fn new() -> Self {
        SlateStore::open(&ENGINE, &GATEWAY.bucket(), &chain()).unwrap()
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
        let chain = chain();
        let writer = SlateStore::open(&ENGINE, &GATEWAY.bucket(), &chain).unwrap();
        Self { reader: SlateReader::open(&ENGINE, &GATEWAY.bucket(), &chain).unwrap(), writer }
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

engine_tests!(written SlateStore);
engine_tests!(read Read);
