//! Assignment of work to threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use ingest::Config;
use schema::evm_tx::EvmTxs;
use store::{Batch, Bounds, Durability, MemStore, Order, Row, Snapshot, Store, Table as _, TableSpec};
use testkit::indexed;
use testkit::overridden_node::OverriddenNode;

use crate::malformed_answers::evm;

/// Counts reads of EVM transactions, and those of them on one thread.
struct Watched {
    store: MemStore,
    runtime: ThreadId,
    reads: AtomicU64,
    on_runtime: AtomicU64,
}

struct View<'a>(&'a Watched, Box<dyn Snapshot + 'a>);

impl Store for Watched {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        Ok(Box::new(View(self, self.store.snapshot()?)))
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        self.store.commit(batch, durability)
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.store.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.store.disk_bytes()
    }
}

impl View<'_> {
    fn count(&self, table: &TableSpec) {
        if table.tag == EvmTxs::SPEC.tag {
            self.0.reads.fetch_add(1, Ordering::Relaxed);
            if thread::current().id() == self.0.runtime {
                self.0.on_runtime.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Snapshot for View<'_> {
    fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, store::Error> {
        self.count(table);
        self.1.get(table, key)
    }

    fn scan(
        &self,
        table: &'static TableSpec,
        bounds: Bounds<'_>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Row>, store::Error> {
        self.count(table);
        self.1.scan(table, bounds, order, limit)
    }
}

/// The runtime has only this thread for all asynchronous tasks.
#[tokio::test(flavor = "current_thread")]
async fn the_records_of_traced_transactions_are_not_read_on_an_async_thread() {
    let chain = evm();
    let node = OverriddenNode::start(Arc::clone(&chain), |exchange| exchange.answer).await.unwrap();
    let store = Arc::new(Watched {
        store: MemStore::new(),
        runtime: thread::current().id(),
        reads: AtomicU64::new(0),
        on_runtime: AtomicU64::new(0),
    });
    let config = Config { rich_list: false, ..indexed::config(&chain).unwrap() };
    let shared = Arc::<Watched>::clone(&store);
    indexed::index_from(node.clients().unwrap(), config, shared, chain.last()).await.unwrap();
    let (reads, on_runtime) = (store.reads.load(Ordering::Relaxed), store.on_runtime.load(Ordering::Relaxed));
    assert!(reads > 50 && on_runtime == 0, "{on_runtime} of {reads}");
}
