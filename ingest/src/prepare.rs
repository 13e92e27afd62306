//! Preparation: node, database and configuration must agree on the chain before an ingest runs.

use std::sync::Arc;

use chain::Vm;
use node::Node;
use node::retry::{self, Backoff};
use schema::block::hash_at;
use schema::call_errors::CALL_ERRORS;
use schema::meta::{self, BlockLane, Disabled, Identity};
use schema::payload::Codec;
use store::Store;

use crate::config::{Config, Verify};
use crate::derive::{Rules, WorkerPool};
use crate::ingest::Ingest;
use crate::progress::{Progress, ProgressSenders, next_height};
use crate::source::{Bootstrap, Cores};
use crate::{Error, advice, agreement, evm_chain, optional};

/// Heights by which a node's EVM index may lag the chain for a moment.
const EVM_LAG: u64 = 5;

/// Whether there is a database. Rejects one of another chain, VM, prefix or start height than configured; unset fields
/// match anything.
pub fn is_there(config: &Config, store: &dyn Store) -> Result<bool, Error> {
    let Some(stored) = schema::open::identity(store)? else { return Ok(false) };
    let wanted = Identity {
        format: schema::FORMAT,
        chain_id: config.chain_id.clone(),
        vm: config.vm.to_string(),
        prefix: config.prefix.clone().unwrap_or_else(|| stored.prefix.clone()),
        start_height: config.start_height.map_or(stored.start_height, |start| start.max(1)),
    };
    // The database exists, so this only compares.
    schema::open::or_create(store, &wanted)?;
    Ok(true)
}

impl Ingest {
    /// Checks that node, database and configuration agree on the chain, and fetches its fixed properties. Waits for a
    /// node that is down.
    pub async fn prepare(mut config: Config, node: Arc<Node>, store: Arc<dyn Store>) -> Result<Self, Error> {
        is_there(&config, &*store)?;
        let verify = || node.verify_chain(&config.chain_id);
        let status =
            optional::build_until(&config, &store, retry::until(Backoff::default(), "status", verify))
                .await?
                .map_err(|source| Error::start("status", source))?;
        let stored = schema::open::identity(&*store)?;
        let known = config.prefix.as_deref().or(stored.as_ref().map(|identity| &*identity.prefix));
        let prefix = agreement::prefix(&node, known, stored.is_some()).await?;
        let first = status.earliest_height.max(1);
        let start_height = match (config.start_height, &stored) {
            (Some(start), _) => start.max(1),
            (None, Some(identity)) => identity.start_height,
            (None, None) => {
                if first > 1 {
                    tracing::warn!(first, "index starts at the node's first block");
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
        // Before the first write: the identity of a database never changes.
        let unfinished = meta::read::<BlockLane>(&*store.snapshot()?)?.unwrap_or_default();
        let unfinished = refuse_gap(&unfinished, start_height, first)?;
        let descriptors = Bootstrap::request(&node, &*store, unfinished).await?;
        let flavour = agreement::vm(&config, &descriptors.registry)?;
        schema::open::or_create(&*store, &identity)?;

        let snapshot = store.snapshot()?;
        let progress = ProgressSenders::default();
        progress.chain.send_replace(Progress { height: status.latest_height, records: 0 });
        progress.read(&*snapshot)?;
        let blocks: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        let codec = Arc::new(Codec::load(&*snapshot)?);
        if let Verify::Signatures { trusted: Some((height, hash)) } = config.verify
            && hash_at(&*snapshot, height)?.is_some_and(|indexed| indexed != hash)
        {
            return Err(Error::Setup(
                "the block that `trusted` names is indexed with another hash: correct `trusted`, or index anew",
            ));
        }
        drop(snapshot);
        let next = refuse_gap(&blocks, start_height, first)?;
        descriptors.keep(&*store, next)?;
        let Bootstrap { registry, sha256: descriptors, .. } = descriptors;
        advice::log(&config, &node);
        // The EVM index follows the chain: the last blocks may come in a moment.
        if let Some(height) = status.latest_height.checked_sub(EVM_LAG).filter(|height| *height >= first)
            && !flavour.has_ethereum_messages()
        {
            advice::probe_receipts(&node, height).await;
        }
        if config.vm == Vm::Evm && flavour.has_ethereum_messages() {
            evm_chain::note_flavour(flavour, &*store)?;
        }
        if config.vm == Vm::Evm
            && !flavour.denoms_are_contracts()
            && advice::no_rich_list(&config, &node).is_none()
        {
            if !config.internal_txs {
                tracing::warn!(
                    "the rich list has no native coin: what transactions send is in their calls, and `internal_txs` is false"
                );
            } else if !config.indexes.contains(&&CALL_ERRORS) {
                // A call that failed has sent nothing.
                config.indexes.push(&CALL_ERRORS);
            }
        }
        note_disabled(&config, &node, &*store)?;
        optional::begin_indexes(&config, &*store)?;
        let verified = config.verify != Verify::Off;
        let rules =
            Rules { vm: config.vm, flavour, prefix, registry: Arc::new(registry), descriptors, verified };
        Ok(Self {
            workers: Arc::new(WorkerPool::new(codec, rules)),
            cores: Cores::of_this_machine(),
            progress,
            transfer_cache: Arc::default(),
            damping: std::sync::Mutex::default(),
            config,
            node,
            store,
            identity,
        })
    }
}

/// Stores which features are off, for the processes that serve the database.
fn note_disabled(config: &Config, node: &Node, store: &dyn Store) -> Result<(), Error> {
    let off = advice::no_rich_list(config, node).filter(|_| config.vm == Vm::Evm);
    let disabled = Disabled { rich_list: off.unwrap_or_default().to_owned() };
    if meta::read::<Disabled>(&*store.snapshot()?)?.unwrap_or_default() == disabled {
        return Ok(());
    }
    store::commit_rows::<Error>(store, store::Durability::Synced, |txn| {
        meta::put(txn, &disabled);
        Ok(())
    })
}

/// The first height that is not indexed, if the node, whose first block is `first`, has it.
fn refuse_gap(lane: &BlockLane, start_height: u64, first: u64) -> Result<u64, Error> {
    let next = next_height(lane, start_height);
    if next < first { Err(Error::Gap { next, earliest: first }) } else { Ok(next) }
}
