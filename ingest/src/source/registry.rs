//! The chain's protobuf descriptors: fetched from the node, stored, and fetched again if a message type is missing or the
//! version of the application changes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use node::Node;
use proto::json::Registry;
use schema::descriptors::{DescriptorSet, Descriptors};
use store::{Message, Order, Store};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Tools;
use crate::Error;
use crate::derive::Unrendered;
use crate::retry::retry_until;

/// zstd level for a stored set: 150 kB once in a chain's life.
const LEVEL: i32 = 9;

/// Bound of stored descriptor sets; a chain gets a new one with an upgrade.
const MAX_SETS: usize = 256;

/// Minimum time between two requests while a type is missing.
const REQUEST_INTERVAL: Duration = Duration::from_mins(1);

/// A compiled descriptor set and its SHA-256.
pub(crate) type Compiled = (Registry, [u8; 32]);

/// The descriptors to start with.
pub(crate) struct Bootstrap {
    /// Compiled.
    pub(crate) registry: Registry,
    /// Of the descriptors.
    pub(crate) sha256: [u8; 32],
    /// The node's, to be stored.
    set: Option<node::Descriptors>,
}

impl Bootstrap {
    /// The node's descriptors; if the node has none, the newest stored ones. Writes nothing.
    pub(crate) async fn request(node: &Node, store: &dyn Store, height: u64) -> Result<Self, Error> {
        match retry_until(height, "descriptors", || node.descriptors()).await {
            Ok(set) => {
                let registry = Registry::from_descriptors(&set.bytes).map_err(Error::descriptors)?;
                Ok(Self { registry, sha256: set.sha256, set: Some(set) })
            }
            Err(error) => {
                let Some((sha256, bytes)) = newest(store)? else { return Err(error) };
                tracing::warn!(%error, "no descriptors from the node, using the stored ones");
                let registry = Registry::from_descriptors(&bytes).map_err(Error::descriptors)?;
                Ok(Self { registry, sha256, set: None })
            }
        }
    }

    /// Stores the node's descriptors for the heights from `height` on.
    pub(crate) fn keep(&self, store: &dyn Store, height: u64) -> Result<(), Error> {
        self.set.as_ref().map_or(Ok(()), |set| keep(store, set.sha256, &set.bytes, height))
    }
}

/// Fetches newer descriptors, rate-limited.
pub(crate) struct Refresher {
    store: Arc<dyn Store>,
    requested: Mutex<Option<Instant>>,
}

impl Refresher {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store, requested: Mutex::new(None) }
    }

    /// Fetches newer descriptors for `txs`, which the descriptors `used` did not cover. True if the current ones differ
    /// from `used`. A failure is only logged, because the node's own rendering is the fallback.
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
        let mut requested = self.requested.lock().await;
        // Another height may have refreshed them meanwhile.
        if tools.workers.rules().descriptors != used {
            return true;
        }
        if requested.is_some_and(|at| at.elapsed() < REQUEST_INTERVAL) {
            return false;
        }
        *requested = Some(Instant::now());
        match self.request(tools, height).await {
            Ok((registry, sha256)) => {
                let newer = sha256 != used;
                tracing::info!(height, newer, "descriptors requested for an unknown message type");
                if newer {
                    tools.workers.set_registry(Arc::new(registry), sha256);
                }
                newer
            }
            Err(error) => {
                tracing::warn!(height, %error, "request for newer descriptors failed");
                false
            }
        }
    }

    /// Replaces the descriptors whenever the node's application has another version: after an upgrade it may print known
    /// types with more members, which no error shows. `every` is the time between two requests for the version, `next` the
    /// height from which on blocks are derived with new descriptors.
    pub(crate) async fn follow_upgrades(
        &self,
        tools: &Tools,
        every: Duration,
        next: impl Fn() -> u64,
    ) -> Infallible {
        let mut known = None;
        loop {
            if let Ok(version) = tools.node.comet.app_version().await
                && known.as_ref() != Some(&version)
                && self.replace(tools, next(), &version).await
            {
                known = Some(version);
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Fetches the descriptors of an upgraded application. True unless they must be requested again.
    async fn replace(&self, tools: &Tools, height: u64, version: &str) -> bool {
        match self.unknown(tools, height).await {
            Ok(Some((registry, sha256))) => {
                tracing::info!(height, version, "the application was upgraded, its descriptors are replaced");
                tools.workers.set_registry(Arc::new(registry), sha256);
                true
            }
            // Endpoints of two versions alternate: descriptors are never replaced by earlier ones.
            Ok(None) => true,
            Err(error) => {
                tracing::warn!(height, %error, "request for newer descriptors failed");
                false
            }
        }
    }

    /// The node's descriptors, if they were never stored.
    async fn unknown(&self, tools: &Tools, height: u64) -> Result<Option<Compiled>, Error> {
        let set = tools.node.descriptors().await;
        let set = set.map_err(|source| Error::node(height, "descriptors", source))?;
        if store::table::read::<Descriptors>(&*self.store.snapshot()?, &set.sha256)?.is_some() {
            return Ok(None);
        }
        compile_and_store(&set, &*self.store, height).map(Some)
    }

    async fn request(&self, tools: &Tools, height: u64) -> Result<Compiled, Error> {
        let set = tools.node.descriptors().await;
        let set = set.map_err(|source| Error::node(height, "descriptors", source))?;
        compile_and_store(&set, &*self.store, height)
    }
}

fn compile_and_store(set: &node::Descriptors, store: &dyn Store, height: u64) -> Result<Compiled, Error> {
    let registry = Registry::from_descriptors(&set.bytes).map_err(Error::descriptors)?;
    keep(store, set.sha256, &set.bytes, height)?;
    Ok((registry, set.sha256))
}

/// The SHA-256 of a stored descriptor set, and the set.
type Stored = ([u8; 32], Vec<u8>);

fn keep(store: &dyn Store, sha256: [u8; 32], bytes: &[u8], height: u64) -> Result<(), Error> {
    if store::table::read::<Descriptors>(&*store.snapshot()?, &sha256)?.is_some() {
        return Ok(());
    }
    let compressed = zstd::bulk::compress(bytes, LEVEL).map_err(Error::descriptors)?;
    store::commit_rows::<Error>(store, store::Durability::Synced, |txn| {
        txn.put::<Descriptors>(&sha256, &Message(DescriptorSet { first_height: height, compressed }));
        Ok(())
    })
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
