//! The block lane's source: block, results and receipts of a height, derived.

use std::sync::Arc;

use bytes::Bytes;
use chain::Vm;
use tokio::time::Instant;

use super::answers::Raw;
use super::{Proposers, ReceiptFallback, Refresher, RetryBackoff, Tools, retry_until};
use crate::Error;
use crate::derive::{self, AskAgain, Block, BlockAnswers, BlockOrigins, Failure, Part, Rendered, Unrendered};
use crate::lane::Source;
use crate::meter::Event;
use crate::nft::plan::MetadataFetcher;
use crate::rich::transfer_cache::TransferCache;

/// Fetches blocks.
pub(crate) struct BlockSource {
    pub(crate) tools: Tools,
    pub(crate) vm: Vm,
    pub(crate) chain_id: String,
    /// Whether `/block` answers are kept to verify signatures.
    pub(crate) signed: bool,
    pub(crate) proposers: Proposers,
    pub(crate) refresher: Refresher,
    pub(crate) fetcher: MetadataFetcher,
    /// Fallback for receipts that mismatch.
    pub(crate) receipt_fallback: ReceiptFallback,
    /// Receives the ERC-20 events, if there is a rich list.
    pub(crate) transfer_cache: Option<Arc<TransferCache>>,
}

/// The reason why answers do not make a block.
pub(super) enum Unusable {
    /// Wrong or premature.
    AskAgain(AskAgain),
    /// There are fewer receipts than transactions.
    WithoutReceipts(String),
    /// This answer contradicts the hashes that commit to it.
    Invalid(Part, String),
}

impl Source for BlockSource {
    type Item = Block;

    async fn fetch(self: Arc<Self>, height: u64) -> Result<Block, Error> {
        self.whole(height).await
    }
}

impl BlockSource {
    /// The block of `height` with its NFT metadata.
    pub(crate) async fn whole(&self, height: u64) -> Result<Block, Error> {
        let mut block = self.block(height).await?;
        block.answers = self.fetcher.ask(height, block.probe.as_ref(), &block.nfts).await?;
        if let Some(transfer_cache) = &self.transfer_cache {
            transfer_cache.keep(height, std::mem::take(&mut block.erc20));
        }
        Ok(block)
    }

    /// The block of `height` without NFT metadata.
    pub(crate) async fn block(&self, height: u64) -> Result<Block, Error> {
        let mut retry = RetryBackoff::new(height);
        let (mut doubted_since, mut trust_receipts) = (None, false);
        let mut settled = None;
        loop {
            let raw = if let Some(raw) = settled.take() {
                raw
            } else {
                trust_receipts = false;
                self.raw(height).await?
            };
            match self.render(height, &raw, trust_receipts).await? {
                Ok(block) if raw.receipts.is_none() && !block.txs.is_empty() && self.has_receipts() => {
                    // The text looked like a block without transactions.
                    let receipts = self.receipts(height).await?;
                    settled = Some(Raw { receipts, ..raw });
                }
                Ok(mut block) => {
                    if raw.receipts.is_some() && !trust_receipts {
                        self.receipt_fallback.reset();
                    }
                    if let Some(error) = self.of_another_chain(&block) {
                        if self.tools.node.comet.endpoints().len() <= 1 {
                            return Err(error);
                        }
                        let reason = error.to_string();
                        self.tools.node.distrust(&raw.block.origin, &reason);
                        retry.wait(&reason).await;
                        continue;
                    }
                    block.proposer = self.proposers.of(&self.tools.node, &block.proposer_address).await;
                    block.answer = self.signed.then(|| raw.block.bytes.clone());
                    block.origins =
                        Some(BlockOrigins { block: raw.block.origin, results: raw.results.origin });
                    return Ok(block);
                }
                Err(Unusable::WithoutReceipts(reason)) => {
                    doubted_since = None;
                    settled = self.receipts_of_another(height, &raw).await?;
                    if settled.is_none() {
                        self.not_pruned(height).await?;
                        retry.wait(&reason).await;
                    }
                }
                // Well-formed but impossible: the node has not caught up with itself.
                Err(Unusable::AskAgain(reason)) => {
                    doubted_since = None;
                    retry.wait(&reason).await;
                }
                Err(Unusable::Invalid(Part::Receipts, reason)) => {
                    settled = self.resolve_mismatch(height, &raw, &reason).await?;
                    if settled.is_some() {
                        continue;
                    }
                    if self.receipt_fallback.expired(doubted_since.get_or_insert_with(Instant::now).elapsed())
                    {
                        self.receipt_fallback.accepted();
                        (trust_receipts, settled) = (true, Some(raw));
                        Event::UnprovenReceipts.count();
                        tracing::error!(
                            height,
                            reason,
                            "receipts are indexed that do not follow from their transactions: no endpoint has others"
                        );
                    } else {
                        retry.wait(&reason).await;
                    }
                }
                Err(Unusable::Invalid(part, reason)) => {
                    doubted_since = None;
                    self.distrust(part, &raw, &reason);
                    retry.wait(&reason).await;
                }
            }
        }
    }

    /// Distrusts the endpoint that gave `part`.
    pub(super) fn distrust(&self, part: Part, raw: &Raw, reason: &str) {
        let node = &self.tools.node;
        match (part, &raw.receipts) {
            (Part::Block, _) => node.distrust(&raw.block.origin, reason),
            (Part::Results, _) => node.distrust(&raw.results.origin, reason),
            (Part::Receipts, Some(receipts)) => node.distrust(&receipts.origin, reason),
            (Part::Receipts, None) => {}
        }
    }

    /// Distrusts the endpoint of `block`, which contradicts its neighbours.
    pub(crate) fn distrust_block(&self, block: &Block, reason: &str) {
        if let Some(origins) = &block.origins {
            self.tools.node.distrust(&origins.block, reason);
        }
    }

    /// Distrusts the endpoint of the results of `block`, which contradict the next header.
    pub(crate) fn distrust_results(&self, block: &Block, reason: &str) {
        if let Some(origins) = &block.origins {
            self.tools.node.distrust(&origins.results, reason);
        }
    }

    /// The `/block` answers for the height of `block` from the other endpoints.
    pub(crate) async fn blocks_of_others(&self, block: &Block) -> Vec<Bytes> {
        let origin = block.origins.as_ref().map(|origins| &origins.block);
        let all = self.tools.node.comet.block_from_all(block.height).await;
        all.into_iter()
            .filter(|(endpoint, _)| Some(endpoint) != origin)
            .filter_map(|(_, answer)| answer.ok())
            .collect()
    }

    /// Derives the block. Transactions that the descriptors do not cover are rendered by the node, or stored opaque if
    /// it cannot render them: one transaction never stops the chain.
    ///
    /// With `trust_receipts`, receipts are not checked against the transactions.
    pub(super) async fn render(
        &self,
        height: u64,
        raw: &Raw,
        trust_receipts: bool,
    ) -> Result<Result<Block, Unusable>, Error> {
        let mut rendered = Rendered::new();
        loop {
            let used = self.tools.workers.rules().descriptors;
            match self.derive(height, raw.clone(), rendered.clone(), trust_receipts).await? {
                Ok(block) => return Ok(Ok(block)),
                Err(Failure::Unrendered(txs)) => {
                    if rendered.is_empty() && self.refresher.refresh(&self.tools, height, used, &txs).await {
                        continue;
                    }
                    for tx in txs {
                        let json = self.by_node(height, &tx).await;
                        rendered.insert(tx.index, json);
                    }
                }
                Err(Failure::ReceiptsMissing(reason)) => return Ok(Err(Unusable::WithoutReceipts(reason))),
                Err(Failure::Invalid(part, reason)) => return Ok(Err(Unusable::Invalid(part, reason))),
                Err(other) => return Ok(Err(Unusable::AskAgain(AskAgain::because(other)))),
            }
        }
    }

    async fn derive(
        &self,
        height: u64,
        raw: Raw,
        rendered: Rendered,
        trust_receipts: bool,
    ) -> Result<Result<Block, Failure>, Error> {
        let work = move |worker: &mut derive::WorkerState, rules: &derive::Rules| {
            let (block, results) = (&*raw.block.bytes, &*raw.results.bytes);
            let receipts = raw.receipts.as_ref().map(|receipts| &*receipts.bytes);
            let answers = BlockAnswers { height, block, results, receipts, trust_receipts };
            derive::block(&answers, &rendered, rules, worker)
        };
        self.tools.derive(height, work).await
    }

    /// The node's own rendering of a transaction, or `None` if it has none.
    async fn by_node(&self, height: u64, tx: &Unrendered) -> Option<Bytes> {
        let Unrendered { index, reason, raw, .. } = tx;
        let Some(rest) = &self.tools.node.rest else {
            tracing::warn!(
                height,
                index,
                reason,
                "transaction stored opaque: there is no REST address to ask"
            );
            return None;
        };
        match retry_until(height, "decoded transaction", || rest.decode_tx(raw)).await {
            Ok(json) => Some(json),
            Err(error) => {
                tracing::warn!(height, index, reason, %error, "transaction stored opaque");
                None
            }
        }
    }

    /// An error if the node has pruned its EVM index below `height`: its receipts would never arrive.
    async fn not_pruned(&self, height: u64) -> Result<(), Error> {
        let Some(evm) = &self.tools.node.evm else { return Ok(()) };
        let tip = retry_until(height, "EVM height", || evm.block_number()).await?;
        // Endpoints alternate; one that still has the height is asked for the receipts too.
        for _ in 0..evm.servers() {
            if tip < height || retry_until(height, "EVM block", || evm.block_exists(height)).await? {
                return Ok(());
            }
        }
        Err(Error::ReceiptsPruned { height, tip })
    }

    fn of_another_chain(&self, block: &Block) -> Option<Error> {
        let (height, found, wanted) = (block.height, &block.chain_id, &self.chain_id);
        (found != wanted).then(|| Error::WrongChain { height, found: found.clone(), wanted: wanted.clone() })
    }
}
