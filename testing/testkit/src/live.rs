//! An ingest that runs while a test does something to its node.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use ingest::{Config, Ingest, Marks};
use node::Node;
use replay::Recording;
use schema::block::hash_at;
use store::Store;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing that a test waits for takes longer in a debug build on two busy cores.
const PATIENCE: Duration = Duration::from_mins(3);

/// A running ingest. Ends with its handle.
pub struct Live {
    /// How far it has come.
    pub marks: Marks,
    store: Arc<dyn Store>,
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<(), ingest::Error>>,
}

impl Live {
    /// Begins to index what `node` has.
    pub async fn start(node: Arc<Node>, config: Config, store: Arc<dyn Store>) -> Result<Self> {
        let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await?;
        let (stop, stopped) = watch::channel(false);
        let marks = ingest.marks();
        let task = tokio::spawn(async move { ingest.run(stopped).await });
        Ok(Self { marks, store, stop, task })
    }

    /// Waits until every lane has `height` of the history that `chain` records.
    pub async fn reach(&mut self, chain: &Recording, height: u64) -> Result<()> {
        let hash = hash_of(chain, height)?;
        let reached = async {
            while !self.is_at(height, hash)? {
                tokio::select! {
                    () = self.marks.moved() => {}
                    ended = &mut self.task => bail!("the ingest ended: {:?}", ended?),
                }
            }
            Ok(())
        };
        let waited = timeout(PATIENCE, reached).await;
        let (blocks, done) = (self.marks.blocks.borrow().height, self.marks.done());
        waited.with_context(|| format!("{height} is not reached: blocks {blocks}, all lanes {done}"))?
    }

    fn is_at(&self, height: u64, hash: [u8; 32]) -> Result<bool> {
        if self.marks.done() < height {
            return Ok(false);
        }
        Ok(hash_at(&*self.store.snapshot()?, height)? == Some(hash))
    }

    /// Waits until it ends by itself, and says why.
    pub async fn failure(self) -> Result<ingest::Error> {
        match timeout(PATIENCE, self.task).await.context("the ingest goes on and on")?? {
            Ok(()) => bail!("the ingest ended without an error"),
            Err(error) => Ok(error),
        }
    }

    /// Waits until nothing of it is left after its store has ended.
    pub async fn ended(self) -> Result<()> {
        self.stop.send_replace(true);
        match timeout(PATIENCE, self.task).await.context("the ingest does not end")?? {
            Ok(()) => Ok(()),
            Err(error) if error.to_string().contains("the end") => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Stops it, and waits until nothing of it is left.
    pub async fn stop(self) -> Result<()> {
        self.stop.send_replace(true);
        Ok(timeout(PATIENCE, self.task).await.context("the ingest does not stop")???)
    }
}

/// The hash of a recorded block.
pub fn hash_of(chain: &Recording, height: u64) -> Result<[u8; 32]> {
    let block = chain.height(height).with_context(|| format!("height {height} is not recorded"))?;
    Ok(chain::comet::parse_block(&block.block)?.hash)
}
