//! The chain's protobuf descriptors: fetched from the node, stored, and fetched again if a message type is missing.

use std::sync::Arc;
use std::time::Duration;

use node::Node;
use proto::json::Registry;
use schema::descriptors::{DescriptorSet, Descriptors};
use store::{Counts, Durability, Message, Order, Store, Txn};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Tools, retry_until};
use crate::Error;
use crate::derive::Unrendered;

/// zstd level for a stored set: 150 kB once in a chain's life.
const LEVEL: i32 = 9;

/// Bound of stored descriptor sets; a chain gets a new one with an upgrade.
const MAX_SETS: usize = 256;

/// Minimum time between two requests while a type is missing.
const ASK_AGAIN_AFTER: Duration = Duration::from_mins(1);

/// A compiled descriptor set and its SHA-256.
pub(crate) type Compiled = (Registry, [u8; 32]);

/// The descriptors to start with at `height`: the node's, which are stored; if the node has none, the newest stored
/// ones.
pub(crate) async fn bootstrap(node: &Node, store: &dyn Store, height: u64) -> Result<Compiled, Error> {
    match retry_until(height, "descriptors", || node.descriptors()).await {
        Ok(set) => {
            let registry = Registry::from_descriptors(&set.bytes).map_err(Error::descriptors)?;
            keep(store, set.sha256, &set.bytes, height)?;
            Ok((registry, set.sha256))
        }
        Err(error) => {
            let Some((sha256, bytes)) = newest(store)? else { return Err(error) };
            tracing::warn!(%error, "the node gives no descriptors: the stored ones are used");
            Ok((Registry::from_descriptors(&bytes).map_err(Error::descriptors)?, sha256))
        }
    }
}

/// Fetches newer descriptors, rate-limited.
pub(crate) struct Refresher {
    store: Arc<dyn Store>,
    asked: Mutex<Option<Instant>>,
}

impl Refresher {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, asked: Mutex::new(None) }
    }

    /// Fetches newer descriptors for `txs`, which the descriptors `used` did not cover. True if there are others than
    /// `used`. A failure is only logged: the node's own rendering comes next.
    pub(crate) async fn refresh(
        &self,
        tools: &Tools,
        height: u64,
        used: [u8; 32],
        txs: &[Unrendered],
    ) -> bool {
        if !txs.iter().any(|tx| tx.curable) {
            return false;
        }
        let mut asked = self.asked.lock().await;
        // Another height may have refreshed them meanwhile.
        if tools.workers.rules().descriptors != used {
            return true;
        }
        if asked.is_some_and(|asked| asked.elapsed() < ASK_AGAIN_AFTER) {
            return false;
        }
        *asked = Some(Instant::now());
        match self.fresh(tools, height).await {
            Ok((registry, sha256)) => {
                let newer = sha256 != used;
                tracing::info!(
                    height,
                    newer,
                    "descriptors asked for again: a transaction is not covered by them"
                );
                if newer {
                    tools.workers.set_registry(Arc::new(registry), sha256);
                }
                newer
            }
            Err(error) => {
                tracing::warn!(height, %error, "no newer descriptors");
                false
            }
        }
    }

    async fn fresh(&self, tools: &Tools, height: u64) -> Result<Compiled, Error> {
        let asked = tools.node.descriptors().await;
        let set = asked.map_err(|source| Error::node(height, "descriptors", source))?;
        let registry = Registry::from_descriptors(&set.bytes).map_err(Error::descriptors)?;
        keep(&*self.store, set.sha256, &set.bytes, height)?;
        Ok((registry, set.sha256))
    }
}

/// The SHA-256 of a stored descriptor set, and the set.
type Stored = ([u8; 32], Vec<u8>);

fn keep(store: &dyn Store, sha256: [u8; 32], bytes: &[u8], height: u64) -> Result<(), Error> {
    let snapshot = store.snapshot()?;
    if store::table::read::<Descriptors>(&*snapshot, &sha256)?.is_some() {
        return Ok(());
    }
    let compressed = zstd::bulk::compress(bytes, LEVEL).map_err(Error::descriptors)?;
    let mut counts = Counts::new(1);
    let mut txn = Txn::new(&*snapshot, &mut counts);
    txn.put::<Descriptors>(&sha256, &Message(DescriptorSet { first_height: height, compressed }));
    let (batch, _) = txn.finish();
    Ok(store.commit(batch, Durability::Synced)?)
}

fn newest(store: &dyn Store) -> Result<Option<Stored>, Error> {
    let snapshot = store.snapshot()?;
    let sets = store::table::rows::<Descriptors>(&*snapshot, &store::key::All, Order::Asc, MAX_SETS)?;
    let Some((sha256, Message(newest))) = sets.into_iter().max_by_key(|(_, Message(set))| set.first_height)
    else {
        return Ok(None);
    };
    let bytes = zstd::stream::decode_all(newest.compressed.as_slice()).map_err(Error::descriptors)?;
    Ok(Some((sha256, bytes)))
}
