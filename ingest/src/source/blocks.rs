//! The block lane's source: block, results and receipts of a height, derived.

use std::sync::Arc;

use bytes::Bytes;
use chain::Vm;
use node::Evm;

use super::{Patience, Proposers, Refresher, Tools, insist};
use crate::Error;
use crate::derive::{self, AskAgain, Block, BlockAnswers, Failure, Rendered, Unrendered};
use crate::lane::Source;
use crate::nft::wanted::Inquiry;
use crate::rich::handover::Handover;

/// Fetches blocks.
pub(crate) struct BlockSource {
    pub(crate) tools: Tools,
    pub(crate) vm: Vm,
    pub(crate) chain_id: String,
    pub(crate) proposers: Proposers,
    pub(crate) refresher: Refresher,
    pub(crate) inquiry: Inquiry,
    /// Takes what the rich list needs, where there is one.
    pub(crate) handover: Option<Arc<Handover>>,
}

/// The answers of one height, as the node gave them.
#[derive(Clone)]
struct Raw {
    block: Bytes,
    results: Bytes,
    receipts: Option<Bytes>,
}

impl Source for BlockSource {
    type Item = Block;

    async fn fetch(self: Arc<Self>, height: u64) -> Result<Block, Error> {
        let mut block = self.block(height).await?;
        block.answers = self.inquiry.ask(height, &block.nfts).await?;
        if let Some(handover) = &self.handover {
            handover.keep(height, std::mem::take(&mut block.erc20));
        }
        Ok(block)
    }
}

impl BlockSource {
    /// The block of `height` without what the node says about its NFTs.
    pub(crate) async fn block(&self, height: u64) -> Result<Block, Error> {
        let mut patience = Patience::new(height);
        loop {
            let raw = self.raw(height).await?;
            // An answer that is whole JSON and cannot be true: the node has not caught up with itself.
            match self.render(height, raw).await? {
                Ok(mut block) => {
                    self.check(&block)?;
                    block.proposer = self.proposers.of(&self.tools, &block.proposer_address).await;
                    return Ok(block);
                }
                Err(reason) => patience.wait(&reason).await,
            }
        }
    }

    async fn raw(&self, height: u64) -> Result<Raw, Error> {
        let node = &self.tools.node;
        let (block, results) = tokio::try_join!(
            insist(height, "block", || node.comet.block(height)),
            insist(height, "block results", || node.comet.block_results(height)),
        )?;
        let receipts = match &node.evm {
            Some(evm) if self.vm == Vm::Evm && has_txs(&block.bytes) => {
                Some(insist(height, "receipts", || evm.block_receipts(height)).await?.bytes)
            }
            _ => None,
        };
        Ok(Raw { block: block.bytes, results: results.bytes, receipts })
    }

    /// Derives the block; transactions that our descriptors do not cover are rendered by the node, and if it cannot
    /// either, stored opaque: one transaction never stops the chain.
    async fn render(&self, height: u64, raw: Raw) -> Result<Result<Block, AskAgain>, Error> {
        let mut rendered = Rendered::new();
        loop {
            let used = self.tools.workshops.rules().descriptors;
            match self.derive(height, raw.clone(), rendered.clone()).await? {
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
                Err(Failure::ReceiptsMissing(reason)) => {
                    if let Some(evm) = &self.tools.node.evm {
                        not_pruned(evm, height).await?;
                    }
                    return Ok(Err(AskAgain::because(reason)));
                }
                Err(other) => return Ok(Err(AskAgain::because(other))),
            }
        }
    }

    async fn derive(
        &self,
        height: u64,
        raw: Raw,
        rendered: Rendered,
    ) -> Result<Result<Block, Failure>, Error> {
        let work = move |workshop: &mut derive::Workshop, rules: &derive::Rules| {
            let (block, results) = (&*raw.block, &*raw.results);
            let answers = BlockAnswers { height, block, results, receipts: raw.receipts.as_deref() };
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

    fn check(&self, block: &Block) -> Result<(), Error> {
        if block.chain_id == self.chain_id {
            return Ok(());
        }
        let (height, found, wanted) = (block.height, block.chain_id.clone(), self.chain_id.clone());
        Err(Error::WrongChain { height, found, wanted })
    }
}

/// An error if the node has pruned its EVM index below `height`: waiting for the receipts would be for ever.
async fn not_pruned(evm: &Evm, height: u64) -> Result<(), Error> {
    let tip = insist(height, "EVM height", || evm.block_number()).await?;
    if tip < height || insist(height, "EVM block", || evm.block_exists(height)).await? {
        return Ok(());
    }
    Err(Error::ReceiptsPruned { height, tip })
}

/// Whether the block has transactions. Its text is looked at, since it is parsed later and on another thread: a wrong
/// yes costs one request, and `"txs":[]` is what a node writes of a block without.
fn has_txs(block: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(block, br#""txs""#) else { return false };
    let rest = block[at + br#""txs""#.len()..].iter().filter(|byte| !byte.is_ascii_whitespace());
    !rest.take(3).eq(b":[]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_transactions_is_seen_however_it_is_written() {
        for empty in [&br#"{"data":{"txs":[]}}"#[..], b"{\n \"txs\" : [ ] }", b"{}"] {
            assert!(!has_txs(empty));
        }
        for full in [&br#"{"data":{"txs":["CoYC"]}}"#[..], b"{\"txs\": [\n\"AA\"]}"] {
            assert!(has_txs(full));
        }
    }
}
