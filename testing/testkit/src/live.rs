//! A running ingest, for tests that change its node.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ingest::{Config, Ingest, ProgressReceivers};
use node::Node;
use replay::Recording;
use schema::block::hash_at;
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Timeout of every wait: enough for a debug build on two busy cores.
const TIMEOUT: Duration = Duration::from_mins(3);

/// A running ingest.
pub struct Live {
    /// Its progress.
    pub progress: ProgressReceivers,
    store: Arc<dyn Store>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), ingest::Error>>,
}

impl Live {
    /// Starts to index the chain of `node`.
    pub async fn start(node: Arc<Node>, config: Config, store: Arc<dyn Store>) -> Result<Self> {
        let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await?;
        let (stop, stopped) = watch::channel(false);
        let progress = ingest.progress();
        let task = tokio::spawn(async move { ingest.run(stopped).await });
        Ok(Self { progress, store, stop, task })
    }

    /// Waits until every lane is at `height` of the recorded history `chain`.
    pub async fn reach(&mut self, chain: &Recording, height: u64) -> Result<()> {
        let hash = hash_of(chain, height)?;
        let reached = async {
            while !self.is_at(height, hash)? {
                tokio::select! {
                    () = self.progress.moved() => {}
                    ended = &mut self.task => bail!("the ingest ended: {:?}", ended?),
                }
            }
            Ok(())
        };
        let waited = timeout(TIMEOUT, reached).await;
        let (blocks, done) = (self.progress.blocks.borrow().height, self.progress.done());
        waited.with_context(|| format!("{height} is not reached: blocks {blocks}, all lanes {done}"))?
    }

    fn is_at(&self, height: u64, hash: [u8; 32]) -> Result<bool> {
        if self.progress.done() < height {
            return Ok(false);
        }
        Ok(hash_at(&*self.store.snapshot()?, height)? == Some(hash))
    }

    /// Waits until it ends with an error; returns the error.
    pub async fn failure(self) -> Result<ingest::Error> {
        match timeout(TIMEOUT, self.task).await.context("the ingest does not stop with an error")?? {
            Ok(()) => bail!("the ingest ended without an error"),
            Err(error) => Ok(error),
        }
    }

    /// Waits for its end after its store has failed.
    pub async fn ended(self) -> Result<()> {
        self.stop.send_replace(true);
        match timeout(TIMEOUT, self.task).await.context("the ingest does not end")?? {
            Ok(()) => Ok(()),
            Err(error) if error.to_string().contains("the end") => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops it, and waits for its end.
    pub async fn stop(self) -> Result<()> {
        self.stop.send_replace(true);
        Ok(timeout(TIMEOUT, self.task).await.context("the ingest does not stop")???)
    }
}

/// The hash of a recorded block.
pub fn hash_of(chain: &Recording, height: u64) -> Result<[u8; 32]> {
    let block = chain.height(height).with_context(|| format!("height {height} is not recorded"))?;
    Ok(chain::comet::parse_block(&block.block)?.hash)
}
