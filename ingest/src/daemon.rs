//! Starts the lanes, watches over them, and stops them.
//!
//! The block lane's end is the ingest's end. The lanes of internal transactions and of the rich list may fail by
//! themselves (a node that does not trace, or has forgotten its state): they are tried again, and everything else goes
//! on.

use std::sync::Arc;
use std::time::Duration;

use chain::Vm;
use node::Node;
use node::retry::{self, Backoff};
use schema::meta::{self, BlockLane, CallLane, Identity, RichLane};
use schema::payload::Codec;
use schema::rollback;
use store::Store;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::Error;
use crate::config::Config;
use crate::derive::{Rules, Workshops};
use crate::index::Ground;
use crate::lane::{Lane, Mark};
use crate::nft::Late;
use crate::nft::asker::Asker;
use crate::nft::completer::Completer;
use crate::nft::wanted::Inquiry;
use crate::rich::RichList;
use crate::rich::handover::Handover;
use crate::sink::{BlockSink, CallSink};
use crate::source::{self, BlockSource, CallSource, Proposers, Refresher, Tools};

/// While far behind, the node's height is asked for this often.
const POLL_BEHIND: Duration = Duration::from_secs(1);

/// Answers between the one who asks and the lane.
const ANSWERS_ON_THE_WAY: usize = 16;

/// A lane that the others can do without is tried again after this long.
const RETRY_LANE: Duration = Duration::from_secs(30);

/// How far the lanes have come, for those who watch.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The chain's height as the node tells it; `records` is not used.
    pub chain: watch::Receiver<Mark>,
    /// The block lane.
    pub blocks: watch::Receiver<Mark>,
    /// The internal-transaction lane; stays at 0 on a chain without it.
    pub calls: watch::Receiver<Mark>,
    /// The rich list; stays at 0 on a chain without it. `records` is not used.
    pub rich: watch::Receiver<Mark>,
    /// Whether there is a lane of internal transactions.
    pub has_calls: bool,
    /// Whether there is a rich list.
    pub has_rich_list: bool,
}

impl Marks {
    /// The height that every lane has.
    pub fn done(&self) -> u64 {
        let calls = self.has_calls.then(|| self.calls.borrow().height);
        let rich = self.has_rich_list.then(|| self.rich.borrow().height);
        let others = calls.into_iter().chain(rich);
        others.fold(self.blocks.borrow().height, u64::min)
    }

    /// Waits until a lane has moved; never ends once the ingest is gone.
    pub async fn moved(&mut self) {
        let moved = tokio::select! {
            moved = self.blocks.changed() => moved,
            moved = self.calls.changed() => moved,
            moved = self.rich.changed() => moved,
        };
        if moved.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// An ingest that is ready to run.
pub struct Ingest {
    config: Config,
    node: Arc<Node>,
    store: Arc<dyn Store>,
    workshops: Arc<Workshops>,
    cores: Arc<Semaphore>,
    identity: Identity,
    chain: watch::Sender<Mark>,
    blocks: watch::Sender<Mark>,
    calls: watch::Sender<Mark>,
    rich: watch::Sender<Mark>,
    handover: Arc<Handover>,
}

impl Ingest {
    /// Makes sure that node, database and configuration speak of the same chain, and asks the node for what is fixed.
    /// Waits for a node that is not there yet.
    pub async fn prepare(config: Config, node: Arc<Node>, store: Arc<dyn Store>) -> Result<Self, Error> {
        let verify = || node.comet.verify_chain(&config.chain_id);
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
        rollback::finish_pending(&*store)?;

        let snapshot = store.snapshot()?;
        let blocks: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        let calls: CallLane = meta::read(&*snapshot)?.unwrap_or_default();
        let rich: RichLane = meta::read(&*snapshot)?.unwrap_or_default();
        let codec = Arc::new(Codec::load(&*snapshot)?);
        drop(snapshot);
        let next = refuse_gap(&blocks, start_height, first)?;
        let (registry, descriptors) = source::bootstrap(&node, &*store, next).await?;
        let rules = Rules { vm: config.vm, prefix, registry: Arc::new(registry), descriptors };
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            workshops: Arc::new(Workshops::new(codec, rules)),
            cores: Arc::new(Semaphore::new(cores)),
            chain: watch::Sender::new(Mark { height: status.latest_height, records: 0 }),
            blocks: watch::Sender::new(Mark { height: blocks.height, records: blocks.txs }),
            calls: watch::Sender::new(Mark { height: calls.height, records: calls.calls }),
            rich: watch::Sender::new(Mark { height: rich.height, records: 0 }),
            handover: Arc::default(),
            config,
            node,
            store,
            identity,
        })
    }

    /// Where to see how far it has come.
    pub fn marks(&self) -> Marks {
        Marks {
            chain: self.chain.subscribe(),
            blocks: self.blocks.subscribe(),
            calls: self.calls.subscribe(),
            rich: self.rich.subscribe(),
            has_calls: self.has_calls(),
            has_rich_list: self.has_rich_list(),
        }
    }

    /// Whether there is a rich list: it begins with what REST tells of all accounts.
    pub fn has_rich_list(&self) -> bool {
        let services = self.node.evm.is_some() && self.node.rest.is_some();
        self.config.vm == Vm::Evm && self.config.rich_list && services
    }

    /// Whether there is a lane of internal transactions.
    pub fn has_calls(&self) -> bool {
        self.config.vm == Vm::Evm && self.config.internal_txs && self.node.evm.is_some()
    }

    /// Indexes until `stop` becomes true, or until it cannot go on. What is committed then is whole.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) -> Result<(), Error> {
        let halt = watch::Sender::new(false);
        let blocks = async {
            let outcome = self.run_blocks(halt.subscribe()).await;
            halt.send_replace(true);
            outcome
        };
        let all = async {
            // Boxed, or whoever polls this moves 16 KiB about.
            let (outcome, (), (), ()) = tokio::join!(
                Box::pin(blocks),
                Box::pin(self.run_calls(halt.subscribe())),
                Box::pin(self.run_rich_list(halt.subscribe())),
                self.watch_chain(halt.subscribe())
            );
            outcome
        };
        let stopping = async {
            // Whoever could stop us is gone: that is a stop too.
            drop(stop.wait_for(|stop| *stop).await);
            halt.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            outcome = all => outcome,
            () = stopping => Ok(()),
        }
    }

    async fn run_blocks(&self, halt: watch::Receiver<bool>) -> Result<(), Error> {
        let outcome = self.run_block_lane(halt.clone()).await;
        let Err(fork @ Error::Fork { .. }) = outcome else { return outcome };
        // One endpoint may be on a fork of its own: another is asked before it is believed.
        tracing::warn!(%fork, "asking again");
        self.run_block_lane(halt).await
    }

    /// Runs the block lane, with somebody beside it who asks what its blocks could not wait for.
    async fn run_block_lane(&self, halt: watch::Receiver<bool>) -> Result<(), Error> {
        let asker = Asker::new(Arc::clone(&self.node), self.config.vm, self.identity.prefix.clone());
        let asker = Arc::new(asker);
        let (answers, late) = mpsc::channel(ANSWERS_ON_THE_WAY);
        let completer = Completer {
            asker: Arc::clone(&asker),
            store: Arc::clone(&self.store),
            blocks: self.blocks.subscribe(),
            answers,
        };
        let lane = self.block_lane(asker, late, halt)?.run();
        let completing = async {
            match completer.run().await {
                Err(error) => Err(error),
                // It only ends with the lane.
                Ok(()) => std::future::pending().await,
            }
        };
        tokio::select! {
            outcome = lane => outcome,
            outcome = completing => outcome,
        }
    }

    fn block_lane(
        &self,
        asker: Arc<Asker>,
        late: mpsc::Receiver<Late>,
        stop: watch::Receiver<bool>,
    ) -> Result<Lane<BlockSource, BlockSink>, Error> {
        let snapshot = self.store.snapshot()?;
        let at: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        let mid_chain = self.identity.start_height > 1;
        let next = next_height(&at, self.identity.start_height);
        let ground = Ground {
            vm: self.config.vm,
            prefix: self.identity.prefix.clone(),
            mid_chain,
            codec: self.workshops.codec(),
        };
        let source = BlockSource {
            tools: self.tools(),
            vm: self.config.vm,
            chain_id: self.config.chain_id.clone(),
            proposers: Proposers::new(self.identity.prefix.clone()),
            refresher: Refresher::new(Arc::clone(&self.store)),
            inquiry: Inquiry::new(asker, Arc::clone(&self.store), mid_chain, next),
            handover: self.has_rich_list().then(|| Arc::clone(&self.handover)),
        };
        Ok(Lane {
            name: "blocks",
            source: Arc::new(source),
            next,
            sink: BlockSink::new(at, ground, &*snapshot)?,
            store: Arc::clone(&self.store),
            target: self.chain.subscribe(),
            mark: self.blocks.clone(),
            look_ahead: self.config.look_ahead,
            late,
            stop,
        })
    }

    /// Runs the internal-transaction lane, again and again if it fails, until it is told to stop.
    async fn run_calls(&self, mut halt: watch::Receiver<bool>) {
        while self.has_calls() && !*halt.borrow() {
            let outcome = match self.call_lane(halt.clone()) {
                Ok(lane) => lane.run().await,
                Err(error) => Err(error),
            };
            let Err(error) = outcome else { return };
            let causes = causes(&error);
            tracing::error!(lane = "internal_txs", error = %causes, retry_in = ?RETRY_LANE, "the lane has stopped");
            // Either way the loop's condition is looked at again.
            drop(tokio::time::timeout(RETRY_LANE, halt.wait_for(|halt| *halt)).await);
        }
    }

    /// Runs the rich list's lane, again and again if it fails, until it is told to stop.
    async fn run_rich_list(&self, mut halt: watch::Receiver<bool>) {
        while self.has_rich_list() && !*halt.borrow() {
            let lane = RichList {
                node: Arc::clone(&self.node),
                store: Arc::clone(&self.store),
                prefix: self.identity.prefix.clone(),
                start_height: self.identity.start_height,
                handover: Arc::clone(&self.handover),
                blocks: self.blocks.subscribe(),
                mark: self.rich.clone(),
                reconcile_every: self.config.reconcile_every,
                stop: halt.clone(),
            };
            let Err(error) = lane.run().await else { return };
            let causes = causes(&error);
            tracing::error!(lane = "rich_list", error = %causes, retry_in = ?RETRY_LANE, "the lane has stopped");
            // Either way the loop's condition is looked at again.
            drop(tokio::time::timeout(RETRY_LANE, halt.wait_for(|halt| *halt)).await);
        }
    }

    fn call_lane(&self, stop: watch::Receiver<bool>) -> Result<Lane<CallSource, CallSink>, Error> {
        let at: CallLane = meta::read(&*self.store.snapshot()?)?.unwrap_or_default();
        Ok(Lane {
            name: "internal_txs",
            source: Arc::new(CallSource { tools: self.tools(), store: Arc::clone(&self.store) }),
            next: at.height.saturating_add(1).max(self.identity.start_height),
            sink: CallSink::new(at),
            store: Arc::clone(&self.store),
            target: self.blocks.subscribe(),
            mark: self.calls.clone(),
            look_ahead: self.config.look_ahead,
            late: mpsc::channel(1).1,
            stop,
        })
    }

    fn tools(&self) -> Tools {
        Tools {
            node: Arc::clone(&self.node),
            workshops: Arc::clone(&self.workshops),
            cores: Arc::clone(&self.cores),
        }
    }

    /// Keeps the chain's height up to date.
    async fn watch_chain(&self, mut halt: watch::Receiver<bool>) {
        loop {
            let behind = self.blocks.borrow().height < self.chain.borrow().height;
            let pause = if behind { POLL_BEHIND } else { self.config.poll };
            let asked = async {
                tokio::time::sleep(pause).await;
                let backoff = Backoff::default();
                retry::past_failures(backoff, "status", || self.node.comet.status()).await
            };
            let status = tokio::select! {
                status = asked => status,
                _ = halt.wait_for(|halt| *halt) => return,
            };
            match status {
                Ok(status) => {
                    self.chain.send_if_modified(|mark| {
                        let grown = status.latest_height > mark.height;
                        mark.height = mark.height.max(status.latest_height);
                        grown
                    });
                }
                // The lanes meet the same node and say what is wrong with it.
                Err(error) => tracing::warn!(%error, "the node does not tell its height"),
            }
        }
    }
}

/// The first height that is not indexed.
fn next_height(lane: &BlockLane, start_height: u64) -> u64 {
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

/// The error with everything that caused it, in one line.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
