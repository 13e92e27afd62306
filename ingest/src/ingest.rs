//! The state that all lanes of an ingest share, and changes of the database between their runs.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use chain::Vm;
use node::{EndpointState, Node};
use schema::balances::BALANCES;
use schema::meta::Identity;
use store::Store;
use tokio::sync::watch;

use crate::commit_verifier::CommitVerifier;
use crate::config::{Config, Verify};
use crate::derive::WorkerPool;
use crate::fork::damping::Damping;
use crate::progress::{ProgressReceivers, ProgressSenders};
use crate::rich::transfer_cache::TransferCache;
use crate::source::Cores;
use crate::{Error, advice};

/// Poll interval while the disk is full.
const DISK_POLL: Duration = Duration::from_millis(500);

/// An ingest that is ready to run.
pub struct Ingest {
    pub(crate) config: Config,
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) workers: Arc<WorkerPool>,
    pub(crate) cores: Cores,
    pub(crate) identity: Identity,
    pub(crate) progress: ProgressSenders,
    pub(crate) transfer_cache: Arc<TransferCache>,
    pub(crate) damping: Mutex<Damping>,
}

impl Ingest {
    /// Progress of the lanes.
    pub fn progress(&self) -> ProgressReceivers {
        ProgressReceivers {
            chain: self.progress.chain.subscribe(),
            blocks: self.progress.blocks.subscribe(),
            calls: self.progress.calls.subscribe(),
            rich: self.progress.rich.subscribe(),
            stops: self.progress.stops.subscribe(),
            has_calls: self.has_calls(),
            has_rich_list: self.has_rich_list(),
        }
    }

    /// True if there is a lane of balances: its baseline needs those of all accounts from REST.
    pub fn has_rich_list(&self) -> bool {
        match self.config.vm {
            Vm::Evm => advice::no_rich_list(&self.config, &self.node).is_none(),
            Vm::Move | Vm::Wasm | Vm::None => {
                self.config.indexes.contains(&&BALANCES) && self.node.rest.is_some()
            }
        }
    }

    /// True if there is a lane of internal transactions.
    pub fn has_calls(&self) -> bool {
        self.config.vm == Vm::Evm && self.config.internal_txs && self.node.evm.is_some()
    }

    /// State of the node's endpoints.
    pub fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.node.comet.heads()
    }

    /// The light client, if signatures are verified.
    pub(crate) fn commit_verifier(&self) -> Option<CommitVerifier> {
        match &self.config.verify {
            Verify::Signatures { trusted } => {
                Some(CommitVerifier::new(Arc::clone(&self.node), self.config.chain_id.clone(), *trusted))
            }
            Verify::Off | Verify::Hashes => None,
        }
    }
}

/// Runs an idempotent change on the blocking pool; on a full disk, waits for free space and retries it.
pub(crate) async fn change<T: Send + 'static>(
    store: &Arc<dyn Store>,
    name: &'static str,
    make: impl Fn(&dyn Store) -> Result<T, Error> + Clone + Send + 'static,
) -> Result<T, Error> {
    loop {
        let (shared, make) = (Arc::clone(store), make.clone());
        let (running, ended) = mpsc::channel();
        let _waiting = Ended(ended);
        let made = tokio::task::spawn_blocking(move || {
            let made = make(&*shared);
            drop((shared, running));
            made
        });
        match made.await.map_err(|error| Error::crashed(name, error))? {
            Err(error) if error.is_full() => wait_for_room(&**store, &error).await,
            made => return made,
        }
    }
}

/// Its drop blocks until the thread with the sender has ended: a shutdown that drops a change must not close the store
/// during a write.
struct Ended(mpsc::Receiver<Infallible>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Nothing is sent: this returns an error when the sender is dropped.
        let _ended = self.0.recv();
    }
}

/// Waits until the full disk of `error` has free space.
pub(crate) async fn wait_for_room(store: &dyn Store, error: &Error) {
    tracing::error!(%error, "disk full, waiting for free space");
    while let Err(store::Error::NoSpace { .. }) = store.room() {
        tokio::time::sleep(DISK_POLL).await;
    }
    tracing::info!("disk has free space again");
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::FutureExt as _;
    use store::MemStore;

    use super::*;

    #[tokio::test]
    async fn a_change_that_is_dropped_has_ended_when_that_returns() {
        let store: Arc<dyn Store> = Arc::new(MemStore::new());
        let [dropping, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
        let flags = (Arc::clone(&dropping), Arc::clone(&ended));
        let mut changing = Box::pin(change(&store, "test", move |_| {
            let _begun = begun.try_send(());
            while !flags.0.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            // Longer than a drop that does not wait.
            (0..10_000).for_each(|_| std::thread::yield_now());
            flags.1.store(true, Ordering::SeqCst);
            Ok(())
        }));
        assert!((&mut changing).now_or_never().is_none());
        assert_eq!(has_begun.recv().await, Some(()));
        dropping.store(true, Ordering::SeqCst);
        drop(changing);
        assert!(ended.load(Ordering::SeqCst));
        assert_eq!(Arc::strong_count(&store), 1);
    }
}
