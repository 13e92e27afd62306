//! The block lane's source: block, results and receipts of a height, derived.

use std::sync::Arc;

use bytes::Bytes;
use chain::Vm;
use tokio::time::Instant;

use super::answers::Raw;
use super::{Doubt, Patience, Proposers, Refresher, Tools, insist};
use crate::Error;
use crate::derive::{self, AskAgain, Block, BlockAnswers, Failure, Part, Rendered, Tellers, Unrendered};
use crate::lane::Source;
use crate::meter::Event;
use crate::nft::wanted::Inquiry;
use crate::rich::handover::Handover;

/// Fetches blocks.
pub(crate) struct BlockSource {
    pub(crate) tools: Tools,
    pub(crate) vm: Vm,
    pub(crate) chain_id: String,
    /// Whether the answers are kept for their signatures to be verified.
    pub(crate) signed: bool,
    pub(crate) proposers: Proposers,
    pub(crate) refresher: Refresher,
    pub(crate) inquiry: Inquiry,
    /// About receipts.
    pub(crate) doubt: Doubt,
    /// Takes what the rich list needs, where there is one.
    pub(crate) handover: Option<Arc<Handover>>,
}

/// Why answers do not become a block.
pub(super) enum Unusable {
    /// Not right, or not yet.
    AskAgain(AskAgain),
    /// There are fewer receipts than transactions.
    WithoutReceipts(String),
    /// This one contradicts what binds it.
    Untrue(Part, String),
}

impl Source for BlockSource {
    type Item = Block;

    async fn fetch(self: Arc<Self>, height: u64) -> Result<Block, Error> {
        self.whole(height).await
    }
}

impl BlockSource {
    /// The block of `height` with everything that is indexed of it.
    pub(crate) async fn whole(&self, height: u64) -> Result<Block, Error> {
        let mut block = self.block(height).await?;
        block.answers = self.inquiry.ask(height, block.probe.as_ref(), &block.nfts).await?;
        if let Some(handover) = &self.handover {
            handover.keep(height, std::mem::take(&mut block.erc20));
        }
        Ok(block)
    }

    /// The block of `height` without what the node says about its NFTs.
    pub(crate) async fn block(&self, height: u64) -> Result<Block, Error> {
        let mut patience = Patience::new(height);
        let (mut doubted_since, mut believed) = (None, false);
        let mut settled = None;
        loop {
            let raw = if let Some(raw) = settled.take() {
                raw
            } else {
                believed = false;
                self.raw(height).await?
            };
            match self.render(height, &raw, believed).await? {
                Ok(block) if raw.receipts.is_none() && !block.txs.is_empty() && self.has_receipts() => {
                    // The text looked like that of a block without transactions.
                    let receipts = self.receipts(height).await?;
                    settled = Some(Raw { receipts, ..raw });
                }
                Ok(mut block) => {
                    if raw.receipts.is_some() && !believed {
                        self.doubt.dispelled();
                    }
                    if let Some(error) = self.of_another_chain(&block) {
                        if self.tools.node.comet.endpoints().len() <= 1 {
                            return Err(error);
                        }
                        let reason = error.to_string();
                        self.tools.node.distrust(&raw.block.origin, &reason);
                        patience.wait(&reason).await;
                        continue;
                    }
                    block.proposer = self.proposers.of(&self.tools.node, &block.proposer_address).await;
                    block.answer = self.signed.then(|| raw.block.bytes.clone());
                    block.told_by = Some(Tellers { block: raw.block.origin, results: raw.results.origin });
                    return Ok(block);
                }
                Err(Unusable::WithoutReceipts(reason)) => {
                    doubted_since = None;
                    settled = self.receipts_of_another(height, &raw).await?;
                    if settled.is_none() {
                        self.not_pruned(height).await?;
                        patience.wait(&reason).await;
                    }
                }
                // An answer that is whole JSON and cannot be true: the node has not caught up with itself.
                Err(Unusable::AskAgain(reason)) => {
                    doubted_since = None;
                    patience.wait(&reason).await;
                }
                Err(Unusable::Untrue(Part::Receipts, reason)) => {
                    settled = self.settle(height, &raw, &reason).await?;
                    if settled.is_some() {
                        continue;
                    }
                    if self.doubt.is_over(doubted_since.get_or_insert_with(Instant::now).elapsed()) {
                        self.doubt.believed();
                        (believed, settled) = (true, Some(raw));
                        Event::UnprovenReceipts.count();
                        tracing::error!(
                            height,
                            reason,
                            "receipts are indexed that do not follow from their transactions: nobody gives others"
                        );
                    } else {
                        patience.wait(&reason).await;
                    }
                }
                Err(Unusable::Untrue(part, reason)) => {
                    doubted_since = None;
                    self.distrust(part, &raw, &reason);
                    patience.wait(&reason).await;
                }
            }
        }
    }

    /// Says who told something untrue.
    pub(super) fn distrust(&self, part: Part, raw: &Raw, reason: &str) {
        let node = &self.tools.node;
        match (part, &raw.receipts) {
            (Part::Block, _) => node.distrust(&raw.block.origin, reason),
            (Part::Results, _) => node.distrust(&raw.results.origin, reason),
            (Part::Receipts, Some(receipts)) => node.distrust(&receipts.origin, reason),
            (Part::Receipts, None) => {}
        }
    }

    /// Whoever told `block` contradicts the blocks next to it.
    pub(crate) fn distrust_block(&self, block: &Block, reason: &str) {
        if let Some(told_by) = &block.told_by {
            self.tools.node.distrust(&told_by.block, reason);
        }
    }

    /// Whoever told the results of `block` contradicts the header after it.
    pub(crate) fn distrust_results(&self, block: &Block, reason: &str) {
        if let Some(told_by) = &block.told_by {
            self.tools.node.distrust(&told_by.results, reason);
        }
    }

    /// The `/block` answers about the height of `block` of those endpoints that did not tell it.
    pub(crate) async fn other_opinions(&self, block: &Block) -> Vec<Bytes> {
        let told_by = block.told_by.as_ref().map(|told_by| &told_by.block);
        let all = self.tools.node.comet.block_from_all(block.height).await;
        all.into_iter()
            .filter(|(who, _)| Some(who) != told_by)
            .filter_map(|(_, answer)| answer.ok())
            .collect()
    }

    /// Derives the block; transactions that our descriptors do not cover are rendered by the node, and if it cannot
    /// either, stored opaque: one transaction never stops the chain.
    ///
    /// Where receipts are `believed`, they are not held against the transactions.
    pub(super) async fn render(
        &self,
        height: u64,
        raw: &Raw,
        believed: bool,
    ) -> Result<Result<Block, Unusable>, Error> {
        let mut rendered = Rendered::new();
        loop {
            let used = self.tools.workshops.rules().descriptors;
            match self.derive(height, raw.clone(), rendered.clone(), believed).await? {
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
                Err(Failure::Untrue(part, reason)) => return Ok(Err(Unusable::Untrue(part, reason))),
                Err(other) => return Ok(Err(Unusable::AskAgain(AskAgain::because(other)))),
            }
        }
    }

    async fn derive(
        &self,
        height: u64,
        raw: Raw,
        rendered: Rendered,
        believed: bool,
    ) -> Result<Result<Block, Failure>, Error> {
        let work = move |workshop: &mut derive::Workshop, rules: &derive::Rules| {
            let (block, results) = (&*raw.block.bytes, &*raw.results.bytes);
            let receipts = raw.receipts.as_ref().map(|receipts| &*receipts.bytes);
            let answers = BlockAnswers { height, block, results, receipts, believed };
            derive::block(&answers, &rendered, rules, workshop)
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
        match insist(height, "decoded transaction", || rest.decode_tx(raw)).await {
            Ok(json) => Some(json),
            Err(error) => {
                tracing::warn!(height, index, reason, %error, "transaction stored opaque");
                None
            }
        }
    }

    /// An error if the node has pruned its EVM index below `height`: waiting for the receipts would be for ever.
    async fn not_pruned(&self, height: u64) -> Result<(), Error> {
        let Some(evm) = &self.tools.node.evm else { return Ok(()) };
        let tip = insist(height, "EVM height", || evm.block_number()).await?;
        // They take turns; one that still has it will have its turn too when the receipts are asked for again.
        for _ in 0..evm.servers() {
            if tip < height || insist(height, "EVM block", || evm.block_exists(height)).await? {
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
