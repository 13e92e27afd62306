//! The block lane's source: block, results and receipts of a height, derived.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chain::Vm;
use node::EvmBlock;
use tokio::time::Instant;

use super::answers::{AnswerSource, EvmRaw, Raw};
use super::{Proposers, ReceiptFallback, Refresher, Tools};
use crate::Error;
use crate::derive::{self, Block, BlockOrigins, BlockResponses, Failure, Part, Rendered, Unrendered};
use crate::error::causes;
use crate::lane::Source;
use crate::meter::Event;
use crate::nft::plan::MetadataFetcher;
use crate::retry::{RetryBackoff, retry_until};
use crate::rich::transfer_cache::TransferCache;

/// Failures to decode a transaction, while the node's REST gives other replies, before it is stored opaque.
const DECODE_FAILURES: u32 = 5;

/// Fetches blocks.
pub(crate) struct BlockSource {
    pub(crate) tools: Tools,
    pub(crate) vm: Vm,
    pub(crate) chain_id: String,
    /// True if `/block` answers are kept to verify signatures.
    pub(crate) signed: bool,
    pub(crate) proposers: Arc<Proposers>,
    pub(crate) refresher: Refresher,
    pub(crate) fetcher: MetadataFetcher,
    /// Fallback for receipts that mismatch.
    pub(crate) receipt_fallback: ReceiptFallback,
    /// Receives the ERC-20 events, if there is a rich list.
    pub(crate) transfer_cache: Option<Arc<TransferCache>>,
}

/// A derived block with the replies that it was derived from, or the reason why they cannot be used.
pub(super) type Derived = Result<(Raw, Block), Failure>;

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
        if block.unknown_types > 0 {
            tracing::error!(
                height,
                txs = block.unknown_types,
                "Ethereum transactions of an unknown type indexed without their recipients, values and prices: update cairn"
            );
        }
        if let Some(transfer_cache) = &self.transfer_cache {
            transfer_cache.keep(height, std::mem::take(&mut block.erc20));
        }
        Ok(block)
    }

    /// The block of `height` without NFT metadata.
    pub(crate) async fn block(&self, height: u64) -> Result<Block, Error> {
        let (mut retry, mut mismatch_since) = (RetryBackoff::new(height), None::<Instant>);
        loop {
            let raw = self.answers().raw(height).await?;
            let mismatching_for = mismatch_since.map(|since| since.elapsed()).unwrap_or_default();
            let failure = match self.attempt(height, raw, mismatching_for).await? {
                Ok((raw, mut block)) => {
                    let proposer = self.proposers.proposer(&self.tools.node, &block.proposer_address).await;
                    block.proposer_is_open = proposer.is_none();
                    block.proposer =
                        proposer.unwrap_or_else(|| self.proposers.unnamed(&block.proposer_address));
                    // A copy: a large reply must not be held until the block is committed.
                    block.answer = self.signed.then(|| Bytes::copy_from_slice(&raw.block.bytes));
                    block.origins =
                        Some(BlockOrigins { block: raw.block.origin, results: raw.results.origin });
                    return Ok(block);
                }
                Err(failure) => failure,
            };
            let mismatch =
                matches!(failure, Failure::ReceiptsMissing(_) | Failure::Invalid(Part::Receipts, _));
            mismatch_since = mismatch.then(|| mismatch_since.unwrap_or_else(Instant::now));
            retry.wait(&failure).await;
        }
    }

    pub(super) fn answers(&self) -> AnswerSource<'_> {
        let ethereum = self.tools.workers.rules().flavour.has_ethereum_messages();
        let asks_receipts = self.vm == Vm::Evm && !ethereum;
        AnswerSource { node: &self.tools.node, asks_receipts, room: &self.tools.room }
    }

    /// Derives `raw`, or the replies of other endpoints instead; its receipts have mismatched for `mismatching_for`.
    async fn attempt(&self, height: u64, mut raw: Raw, mismatching_for: Duration) -> Result<Derived, Error> {
        let mut outcome = self.render(height, &raw).await?;
        let has_txs = matches!(&outcome, Ok(block) if !block.txs.is_empty());
        if has_txs && raw.evm.is_none() && self.answers().has_receipts() {
            // By its text, the block seemed to have no transactions.
            raw.evm = self.answers().receipts(height).await?;
            outcome = self.render(height, &raw).await?;
        }
        let derived = match outcome {
            Ok(block) => {
                match &raw.evm {
                    Some(EvmRaw::Checked(EvmBlock::Hashes { reason, .. })) => {
                        report_derived(height, reason);
                    }
                    Some(_) => self.receipt_fallback.reset(),
                    None => {}
                }
                Ok((raw, block))
            }
            Err(failure) => self.resolve(height, raw, failure, mismatching_for).await?,
        };
        match derived {
            Ok((raw, block)) if block.chain_id != self.chain_id => {
                let (found, wanted) = (block.chain_id, self.chain_id.clone());
                let error = Error::WrongChain { height, found, wanted };
                if self.tools.node.comet.endpoints().len() <= 1 {
                    return Err(error);
                }
                self.distrust(Part::Block, &raw, &error.to_string());
                Ok(Err(Failure::Invalid(Part::Block, error.to_string())))
            }
            derived => Ok(derived),
        }
    }

    /// Resolves a failure by other endpoints' replies. Receipts that have been missing or have mismatched for their time
    /// are derived; if they cannot be, mismatching ones are accepted.
    async fn resolve(
        &self,
        height: u64,
        raw: Raw,
        failure: Failure,
        mismatching_for: Duration,
    ) -> Result<Derived, Error> {
        let other = match &failure {
            Failure::ReceiptsMissing(_) => self.with_other_receipts(height, &raw).await?,
            Failure::Invalid(Part::Receipts, reason) => self.resolve_mismatch(height, &raw, reason).await?,
            _ => None,
        };
        if let Some(other) = other {
            self.receipt_fallback.reset();
            return Ok(Ok(other));
        }
        match &failure {
            Failure::ReceiptsMissing(reason) | Failure::Invalid(Part::Receipts, reason) => {
                self.check_not_pruned(height).await?;
                if self.receipt_fallback.expired(mismatching_for) {
                    self.receipt_fallback.accepted();
                    if let Some(derived) = self.with_derived_receipts(height, &raw, reason).await? {
                        return Ok(Ok(derived));
                    }
                    if let Some(EvmRaw::Checked(EvmBlock::Receipts(receipts))) = &raw.evm {
                        let unchecked = Some(EvmRaw::Unchecked(receipts.clone()));
                        return self.accept(height, Raw { evm: unchecked, ..raw }, reason).await;
                    }
                }
            }
            Failure::Invalid(part, reason) => self.distrust(*part, &raw, reason),
            // Well-formed but inconsistent: parts of the node lag behind others.
            Failure::AskAgain(_) | Failure::Unrendered(_) | Failure::Untraced(_) => {}
        }
        Ok(Err(failure))
    }

    /// Derives `raw` with receipts that do not follow from their transactions.
    async fn accept(&self, height: u64, raw: Raw, reason: &str) -> Result<Derived, Error> {
        let outcome = self.render(height, &raw).await?;
        if outcome.is_ok() {
            Event::UnprovenReceipts.count();
            tracing::error!(height, reason, "receipts indexed that do not follow from their transactions");
        }
        Ok(outcome.map(|block| (raw, block)))
    }

    /// Distrusts the endpoint that gave `part`.
    pub(super) fn distrust(&self, part: Part, raw: &Raw, reason: &str) {
        let node = &self.tools.node;
        match (part, &raw.evm) {
            (Part::Block, _) => node.distrust(&raw.block.origin, reason),
            (Part::Results, _) => node.distrust(&raw.results.origin, reason),
            (Part::Receipts, Some(evm)) => node.distrust(evm.origin(), reason),
            (Part::Receipts, None) => {}
        }
    }

    /// Distrusts the endpoint of `block`, or of its results, which contradict its neighbours.
    pub(crate) fn distrust_block(&self, block: &Block, part: Part, reason: &str) {
        if let Some(origins) = &block.origins {
            let wrong = if part == Part::Results { &origins.results } else { &origins.block };
            self.tools.node.distrust(wrong, reason);
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
    pub(super) async fn render(&self, height: u64, raw: &Raw) -> Result<Result<Block, Failure>, Error> {
        let mut rendered = Rendered::new();
        loop {
            let used = self.tools.workers.rules().descriptors;
            match self.derive(height, raw.clone(), rendered.clone()).await? {
                Err(Failure::Unrendered(txs)) => {
                    if rendered.is_empty() && self.refresher.refresh(&self.tools, height, used, &txs).await {
                        continue;
                    }
                    for tx in txs {
                        let json = self.rendered_by_node(height, &tx).await;
                        rendered.insert(tx.index, json);
                    }
                }
                outcome => return Ok(outcome),
            }
        }
    }

    async fn derive(
        &self,
        height: u64,
        raw: Raw,
        rendered: Rendered,
    ) -> Result<Result<Block, Failure>, Error> {
        let work = move |worker: &mut derive::WorkerState, rules: &derive::Rules| {
            let (block, results) = (&*raw.block.bytes, &*raw.results.bytes);
            let evm = raw.evm.as_ref().map(EvmRaw::to_derive);
            let answers = BlockResponses { height, block, results, evm };
            derive::block(&answers, &rendered, rules, worker)
        };
        self.tools.derive(height, work).await
    }

    /// The node's own rendering of a transaction, or `None` if it has none.
    async fn rendered_by_node(&self, height: u64, tx: &Unrendered) -> Option<Bytes> {
        let Unrendered { index, reason, raw, .. } = tx;
        let Some(rest) = &self.tools.node.rest else {
            tracing::warn!(height, index, reason, "transaction stored opaque: no REST address");
            return None;
        };
        let failures = AtomicU32::new(0);
        let attempt = || async {
            match rest.decode_tx(raw).await {
                Ok(json) => Ok(Ok(json)),
                // One transaction may fail every time. Otherwise the node's fault may pass.
                Err(error)
                    if error.is_of_the_answer()
                        && failures.fetch_add(1, Ordering::Relaxed) >= DECODE_FAILURES
                        && rest.node_info().await.is_ok() =>
                {
                    Ok(Err(error.to_string()))
                }
                Err(error) => Err(error),
            }
        };
        let outcome = retry_until(height, "decoded transaction", attempt).await;
        match outcome.unwrap_or_else(|error| Err(causes(&error))) {
            Ok(json) => Some(json),
            Err(error) => {
                tracing::warn!(height, index, reason, error, "transaction stored opaque");
                None
            }
        }
    }

    /// An error if the node has pruned its EVM index below `height`: its receipts would never arrive.
    async fn check_not_pruned(&self, height: u64) -> Result<(), Error> {
        let Some(evm) = &self.tools.node.evm else { return Ok(()) };
        let tip = retry_until(height, "EVM height", || evm.block_number()).await?;
        // Endpoints alternate; one that still has the height will also be queried for the receipts.
        for _ in 0..evm.servers() {
            if tip < height || retry_until(height, "EVM block", || evm.block_exists(height)).await? {
                return Ok(());
            }
        }
        Err(Error::ReceiptsPruned { height, tip })
    }
}

/// Reports a block whose receipts were derived.
pub(super) fn report_derived(height: u64, reason: &str) {
    Event::DerivedReceipts.count();
    tracing::warn!(
        height,
        reason,
        "receipts derived from the results of the block: the node has none that can be used"
    );
}
