//! Before an ingest can run: node, database and configuration must speak of the same chain.

use std::sync::Arc;

use node::Node;
use node::retry::{self, Backoff};
use schema::block::hash_at;
use schema::meta::{self, BlockLane, Identity};
use schema::payload::Codec;
use schema::rollback;
use store::Store;

use crate::config::{Config, Verify};
use crate::daemon::{Ingest, change};
use crate::derive::{Rules, Workshops};
use crate::lanes::Cores;
use crate::marks::{Mark, Published};
use crate::{Error, source};

impl Ingest {
    /// Makes sure that node, database and configuration speak of the same chain, and asks the node for what is fixed.
    /// Waits for a node that is not there yet.
    pub async fn prepare(config: Config, node: Arc<Node>, store: Arc<dyn Store>) -> Result<Self, Error> {
        let verify = || node.verify_chain(&config.chain_id);
        let status = retry::until(Backoff::default(), "status", verify)
            .await
            .map_err(|source| Error::start("status", source))?;
        let stored = schema::open::identity(&*store)?;
        let prefix = match (&config.prefix, &stored) {
            (Some(prefix), _) => prefix.clone(),
            (None, Some(identity)) => identity.prefix.clone(),
            (None, None) => ask_prefix(&node).await?,
        };
        let first = status.earliest_height.max(1);
        let start_height = match (config.start_height, &stored) {
            (Some(start), _) => start.max(1),
            (None, Some(identity)) => identity.start_height,
            (None, None) => {
                if first > 1 {
                    tracing::warn!(first, "the node's blocks begin here, and so does the index");
                }
                first
            }
        };
        if let Verify::Signatures { trusted: Some((height, _)) } = config.verify
            && height < start_height
        {
            return Err(Error::Setup(
                "`trusted` names a height below the first that is indexed: name a block from `start_height` on",
            ));
        }
        let identity = Identity {
            format: schema::FORMAT,
            chain_id: config.chain_id.clone(),
            vm: config.vm.to_string(),
            prefix: prefix.clone(),
            start_height,
        };
        // Before anything is written: a database that is made stays of what it was made for.
        let unfinished = meta::read::<BlockLane>(&*store.snapshot()?)?.unwrap_or_default();
        refuse_gap(&unfinished, start_height, first)?;
        schema::open::or_create(&*store, &identity)?;
        change(&store, "rollback", |store| Ok(rollback::finish_pending(store)?)).await?;

        let snapshot = store.snapshot()?;
        let published = Published::default();
        published.chain.send_replace(Mark { height: status.latest_height, records: 0 });
        published.read(&*snapshot)?;
        let blocks: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        let codec = Arc::new(Codec::load(&*snapshot)?);
        if let Verify::Signatures { trusted: Some((height, known)) } = config.verify
            && hash_at(&*snapshot, height)?.is_some_and(|indexed| indexed != known)
        {
            return Err(Error::Setup(
                "the block that `trusted` names is indexed with another hash: correct `trusted`, or index anew",
            ));
        }
        drop(snapshot);
        let next = refuse_gap(&blocks, start_height, first)?;
        let (registry, descriptors) = source::bootstrap(&node, &*store, next).await?;
        let verified = config.verify != Verify::Off;
        let rules = Rules { vm: config.vm, prefix, registry: Arc::new(registry), descriptors, verified };
        Ok(Self {
            workshops: Arc::new(Workshops::new(codec, rules)),
            cores: Cores::of_this_machine(),
            published,
            handover: Arc::default(),
            damping: std::sync::Mutex::default(),
            config,
            node,
            store,
            identity,
        })
    }
}

/// The first height that is not indexed.
pub(crate) fn next_height(lane: &BlockLane, start_height: u64) -> u64 {
    lane.height.saturating_add(1).max(start_height)
}

/// The first height that is not indexed, if the node, whose first block is `first`, has it.
fn refuse_gap(lane: &BlockLane, start_height: u64, first: u64) -> Result<u64, Error> {
    let next = next_height(lane, start_height);
    if next < first { Err(Error::Gap { next, earliest: first }) } else { Ok(next) }
}

async fn ask_prefix(node: &Node) -> Result<String, Error> {
    let Some(rest) = &node.rest else {
        return Err(Error::Setup(
            "the prefix of account addresses is not known: give `prefix`, or a REST address that tells it",
        ));
    };
    retry::until(Backoff::default(), "bech32 prefix", || rest.bech32_prefix())
        .await
        .map_err(|source| Error::start("bech32 prefix", source))
}
