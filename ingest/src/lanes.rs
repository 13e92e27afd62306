//! Construction and supervision of the lanes.
//!
//! The lanes of internal transactions and of the rich list may fail (a node that does not trace, or has pruned its
//! state): they are restarted, and the others continue.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chain::Vm;
use node::{Limits, Rest};
use schema::bridge::BRIDGE;
use schema::call_errors::{self, CALL_ERRORS};
use schema::evm_block::BLOCKS;
use schema::meta::{self, BlockLane, CallLane};
use schema::packets::PACKETS;
use schema::tokens::TOKENS;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::Error;
use crate::bridge::BridgeSource;
use crate::bridge::settings::SettingsSource;
use crate::chain_linker::{ChainLinker, LastBlock};
use crate::channels::ChannelSource;
use crate::confirmation::Immediate;
use crate::error::causes;
use crate::finality::Finality;
use crate::headers::HeaderSource;
use crate::index::IndexContext;
use crate::ingest::{Ingest, wait_for_room};
use crate::lane::Lane;
use crate::meter::{self, LaneState};
use crate::nft::LateReply;
use crate::nft::backfill::Backfill;
use crate::nft::client::MetadataClient;
use crate::nft::plan::MetadataFetcher;
use crate::optional::{Fetched, OptionalIndexes};
use crate::progress::next_height;
use crate::pruned::pruned_height;
use crate::rich::RichList;
use crate::rich::native_coin::Coins;
use crate::sink::{BlockSink, CallSink};
use crate::source::{BlockSource, CallSource, Pace, Proposers, ReceiptFallback, Refresher, Room, Tools};
use crate::tokens::TokenSource;

/// NFT metadata answers between the backfill and the lane.
const ANSWERS_IN_FLIGHT: usize = 16;

/// Polls of the node's height for each request for the version of its application.
const UPGRADE_POLLS: u32 = 60;

/// Pause before a failed optional lane is restarted.
const RETRY_LANE: Duration = Duration::from_secs(30);

/// Poll interval while no height can be traced.
const RETRY_PRUNED: Duration = Duration::from_secs(5);

impl Ingest {
    /// Runs the block lane and the backfill of NFT metadata until `halt`. A backfill error sets `halt`.
    pub(crate) async fn run_blocks(&self, halt: &watch::Sender<bool>) -> Result<(), Error> {
        let client = Arc::new(MetadataClient::new(self.finality(), self.config.vm));
        let (answers, late) = mpsc::channel(ANSWERS_IN_FLIGHT);
        let (found, fetched) = mpsc::channel(1);
        let proposers = Arc::new(Proposers::new(self.identity.prefix.clone()));
        let backfill = Backfill {
            client: Arc::clone(&client),
            node: Arc::clone(&self.node),
            proposers: Arc::clone(&proposers),
            store: Arc::clone(&self.store),
            blocks: self.progress.blocks.subscribe(),
            answers,
        };
        let (descriptors, tools) = (Refresher::new(Arc::clone(&self.store)), self.tools(&self.cores.blocks));
        let next = || self.progress.blocks.borrow().height + 1;
        let upgrades = descriptors.follow_upgrades(&tools, self.config.poll * UPGRADE_POLLS, next);
        let lane = self.block_lane(client, proposers, (late, fetched), halt.subscribe())?;
        // Begins after the lane's indexes are begun, whose heights it reads.
        let (tokens, l1) = (self.token_metadata(found.clone()), self.l1_replies(found.clone()));
        let (bridges, channels) = (self.bridge_settings(found.clone()), self.old_channels(found.clone()));
        let headers = self.headers(found);
        let mut lane = std::pin::pin!(lane.run());
        let error = tokio::select! {
            outcome = &mut lane => return outcome,
            never = upgrades => match never {},
            never = headers => match never {},
            never = tokens => match never {},
            never = l1 => match never {},
            never = bridges => match never {},
            never = channels => match never {},
            never = self.learn_evm_chain() => match never {},
            // The backfill only ends with the lane.
            Err(error) = backfill.run() => error,
        };
        halt.send_replace(true);
        lane.await.and(Err(error))
    }

    /// Fetches the headers of EVM blocks, if they are indexed.
    async fn headers(&self, found: mpsc::Sender<Fetched>) -> Infallible {
        if !self.config.indexes.contains(&&BLOCKS) {
            return std::future::pending().await;
        }
        let source = HeaderSource {
            node: Arc::clone(&self.node),
            store: Arc::clone(&self.store),
            codec: self.workers.codec(),
            of_comet: self.workers.rules().flavour.has_ethereum_messages(),
            blocks: self.progress.blocks.subscribe(),
            found,
        };
        source.run().await
    }

    /// Asks for the metadata of tokens, if they are indexed.
    async fn token_metadata(&self, found: mpsc::Sender<Fetched>) -> Infallible {
        if !self.config.indexes.contains(&&TOKENS) {
            return std::future::pending().await;
        }
        let source = TokenSource {
            finality: self.finality(),
            vm: self.config.vm,
            chain: self.progress.chain.subscribe(),
            blocks: self.progress.blocks.subscribe(),
            found,
            renew_every: self.config.reconcile_every,
        };
        source.run().await
    }

    /// Asks the layer one for outputs and claims of the rollup's bridge, if they are indexed.
    async fn l1_replies(&self, found: mpsc::Sender<Fetched>) -> Infallible {
        let bridge = self.config.bridge.as_ref().filter(|_| self.config.indexes.contains(&&BRIDGE));
        let Some(bridge) = bridge else { return std::future::pending().await };
        let source = match Rest::new(bridge.l1.clone(), Limits::default()) {
            Ok(l1) => BridgeSource {
                l1,
                node: Arc::clone(&self.node),
                store: Arc::clone(&self.store),
                poll: bridge.poll,
                found,
            },
            Err(error) => {
                tracing::error!(%error, "layer one not asked: its addresses are invalid");
                return std::future::pending().await;
            }
        };
        source.run().await
    }

    /// Asks the node for the settings of the bridges of a layer one, if they are indexed.
    async fn bridge_settings(&self, found: mpsc::Sender<Fetched>) -> Infallible {
        if !self.config.indexes.contains(&&BRIDGE) {
            return std::future::pending().await;
        }
        SettingsSource { node: Arc::clone(&self.node), store: Arc::clone(&self.store), found }.run().await
    }

    /// Asks the node for channels of IBC of which events do not say all.
    async fn old_channels(&self, found: mpsc::Sender<Fetched>) -> Infallible {
        if !self.config.indexes.contains(&&PACKETS) {
            return std::future::pending().await;
        }
        ChannelSource { node: Arc::clone(&self.node), store: Arc::clone(&self.store), found }.run().await
    }

    fn block_lane(
        &self,
        client: Arc<MetadataClient>,
        proposers: Arc<Proposers>,
        (late, fetched): (mpsc::Receiver<LateReply>, mpsc::Receiver<Fetched>),
        stop: watch::Receiver<bool>,
    ) -> Result<Lane<BlockSource, ChainLinker, BlockSink>, Error> {
        let snapshot = self.store.snapshot()?;
        let at: BlockLane = meta::read(&*snapshot)?.unwrap_or_default();
        let mid_chain = self.identity.start_height > 1;
        let next = next_height(&at, self.identity.start_height);
        let context = IndexContext {
            vm: self.config.vm,
            prefix: self.identity.prefix.clone(),
            mid_chain,
            codec: self.workers.codec(),
        };
        let commit_verifier = self.commit_verifier();
        let source = Arc::new(BlockSource {
            tools: self.tools(&self.cores.blocks),
            vm: self.config.vm,
            chain_id: self.config.chain_id.clone(),
            signed: commit_verifier.is_some(),
            proposers,
            refresher: Refresher::new(Arc::clone(&self.store)),
            receipt_fallback: ReceiptFallback::new(self.config.believe_after),
            fetcher: MetadataFetcher::new(client, Arc::clone(&self.store), mid_chain, next),
            transfer_cache: (self.config.vm == Vm::Evm && self.has_rich_list())
                .then(|| Arc::clone(&self.transfer_cache)),
        });
        let last = LastBlock::read(&*snapshot, &at)?;
        Ok(Lane {
            name: "blocks",
            confirmation: ChainLinker::new(Arc::clone(&source), commit_verifier, last),
            source,
            next,
            sink: BlockSink::new(at, context, &*snapshot)?,
            indexes: OptionalIndexes::new(&*self.store, &self.config.indexes, self.config.undo)?,
            store: Arc::clone(&self.store),
            target: self.progress.chain.subscribe(),
            progress: self.progress.blocks.clone(),
            undo: self.config.undo,
            look_ahead: self.config.look_ahead,
            late,
            fetched,
            stop,
        })
    }

    /// Runs the internal-transaction lane, and restarts it after errors, until `halt`.
    pub(crate) async fn run_calls(&self, mut halt: watch::Receiver<bool>) {
        while self.has_calls() && !*halt.borrow() {
            meter::lane_stopped("internal_txs", false);
            LaneState::Running.set("internal_txs");
            let ended = match self.run_call_lane(halt.clone()).await {
                Ok(Some(to)) => self.rewind_calls(to).await,
                Ok(None) => {
                    LaneState::Waiting.set("internal_txs");
                    return;
                }
                Err(error) => Err(error),
            };
            if let Err(error) = ended
                && let Err(error) = self.past_pruned(error, &mut halt).await
            {
                self.after_failure("internal_txs", &error, &mut halt).await;
            }
        }
    }

    /// Runs the internal-transaction lane until `halt`, an error, or until the node traces a block that it could not trace
    /// before: then the result is the height before it.
    async fn run_call_lane(&self, mut halt: watch::Receiver<bool>) -> Result<Option<u64>, Error> {
        let (stop, stopped) = watch::channel(false);
        let lane = self.call_lane(stopped)?;
        let source = Arc::clone(&lane.source);
        let mut lane = std::pin::pin!(lane.run());
        let again = tokio::select! {
            outcome = &mut lane => return outcome.map(|()| None),
            to = self.traces_again(&source) => Some(to),
            _ = halt.wait_for(|halt| *halt) => None,
        };
        stop.send_replace(true);
        lane.await.map(|()| again)
    }

    /// If `error` means that the node has pruned the next height's state, waits until the lane can continue after it;
    /// otherwise returns the error.
    async fn past_pruned(&self, error: Error, halt: &mut watch::Receiver<bool>) -> Result<(), Error> {
        let Some(pruned) = pruned_height(&error) else { return Err(error) };
        LaneState::Waiting.set("internal_txs");
        let skipping = async {
            let mut logged = false;
            while !self.skip_pruned(pruned, &error).await? {
                if !std::mem::replace(&mut logged, true) {
                    tracing::warn!(height = pruned, error = %causes(&error), "no traceable height yet");
                }
                tokio::time::sleep(RETRY_PRUNED).await;
            }
            Ok(())
        };
        tokio::select! {
            skipped = skipping => skipped,
            _ = halt.wait_for(|halt| *halt) => Ok(()),
        }
    }

    /// Runs the rich list's lane, and restarts it after errors, until `halt`.
    pub(crate) async fn run_rich_list(&self, mut halt: watch::Receiver<bool>) {
        while self.has_rich_list() && !*halt.borrow() {
            meter::lane_stopped("rich_list", false);
            LaneState::Running.set("rich_list");
            let lane = RichList {
                node: Arc::clone(&self.node),
                store: Arc::clone(&self.store),
                finality: self.finality(),
                vm: self.config.vm,
                prefix: self.identity.prefix.clone(),
                start_height: self.identity.start_height,
                transfer_cache: Arc::clone(&self.transfer_cache),
                chain: self.progress.chain.subscribe(),
                blocks: self.progress.blocks.subscribe(),
                progress: self.progress.rich.clone(),
                workers: Arc::clone(&self.workers),
                coins: self.coins(),
                reconcile_every: self.config.reconcile_every,
                stop: halt.clone(),
            };
            let Err(error) = lane.run().await else {
                LaneState::Waiting.set("rich_list");
                return;
            };
            self.after_failure("rich_list", &error, &mut halt).await;
        }
    }

    /// The coins of the rich list, on a chain whose bank keeps balances itself: what transactions send is in their calls.
    fn coins(&self) -> Option<Coins> {
        let is_bank = self.config.vm == Vm::Evm && !self.workers.rules().flavour.denoms_are_contracts();
        (is_bank && self.has_calls()).then(|| Coins::new(self.progress.calls.subscribe()))
    }

    /// Waits before a failed optional lane is restarted, or until `halt`.
    async fn after_failure(&self, lane: &'static str, error: &Error, halt: &mut watch::Receiver<bool>) {
        let waiting = async {
            if error.is_full() {
                wait_for_room(&*self.store, error).await;
            } else {
                let progress = if lane == "rich_list" { &self.progress.rich } else { &self.progress.calls };
                let height = progress.borrow().height;
                if self.progress.stop(lane, height, error) {
                    tracing::error!(lane, height, error = %causes(error), "lane stopped, retrying");
                }
                tokio::time::sleep(RETRY_LANE).await;
            }
        };
        meter::lane_stopped(lane, true);
        if error.is_full() { LaneState::Waiting } else { LaneState::Stopped }.set(lane);
        tokio::select! {
            () = waiting => {}
            _ = halt.wait_for(|halt| *halt) => {}
        }
    }

    fn call_lane(&self, stop: watch::Receiver<bool>) -> Result<Lane<CallSource, Immediate, CallSink>, Error> {
        let at: CallLane = meta::read(&*self.store.snapshot()?)?.unwrap_or_default();
        let next = at.height.saturating_add(1).max(self.identity.start_height);
        let errors = self.config.indexes.contains(&&CALL_ERRORS);
        let errors = errors.then(|| call_errors::Writer::new(&*self.store, next)).transpose()?;
        Ok(Lane {
            name: "internal_txs",
            source: Arc::new(CallSource {
                tools: self.tools(&self.cores.calls),
                store: Arc::clone(&self.store),
                pace: Some(Pace::new(self.progress.chain.subscribe(), self.progress.blocks.subscribe())),
            }),
            confirmation: Immediate,
            next,
            sink: CallSink::new(at, errors),
            indexes: OptionalIndexes::default(),
            store: Arc::clone(&self.store),
            target: self.progress.blocks.subscribe(),
            progress: self.progress.calls.clone(),
            undo: self.config.undo,
            look_ahead: self.config.look_ahead,
            late: mpsc::channel(1).1,
            fetched: mpsc::channel(1).1,
            stop,
        })
    }

    fn finality(&self) -> Finality {
        Finality {
            node: Arc::clone(&self.node),
            store: Arc::clone(&self.store),
            codec: self.workers.codec(),
            prefix: self.identity.prefix.clone(),
            seen: Arc::default(),
        }
    }

    fn tools(&self, cores: &Arc<Semaphore>) -> Tools {
        let (node, workers, cores) = (Arc::clone(&self.node), Arc::clone(&self.workers), Arc::clone(cores));
        Tools { node, workers, cores, room: Room::default() }
    }
}
