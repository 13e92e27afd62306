//! The replies about one height: block, results and receipts.

use std::time::Duration;

use node::retry::Backoff;
use node::{EndpointStatus, EvmBlock, Node, Origin, ReceiptFailures, Reply};

use super::room::{Reservation, Room};
use crate::Error;
use crate::derive::EvmResponse;
use crate::retry::{retry_until, retry_with};

/// The replies of one height with the endpoints that gave them.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) block: Reply,
    pub(super) results: Reply,
    pub(super) evm: Option<EvmRaw>,
    /// Held as long as the replies.
    pub(super) _room: Option<Reservation>,
}

/// A reply about the EVM transactions of a height.
#[derive(Clone)]
pub(super) enum EvmRaw {
    /// Receipts that are checked, or the block that they are derived from.
    Checked(EvmBlock),
    /// Receipts that are accepted although they mismatch.
    Unchecked(Reply),
}

impl EvmRaw {
    pub(super) fn origin(&self) -> &Origin {
        match self {
            Self::Checked(evm) => evm.origin(),
            Self::Unchecked(receipts) => &receipts.origin,
        }
    }

    pub(super) fn to_derive(&self) -> EvmResponse<'_> {
        match self {
            Self::Checked(EvmBlock::Receipts(receipts)) => EvmResponse::Receipts(&receipts.bytes),
            Self::Checked(EvmBlock::Hashes { block, .. }) => EvmResponse::Block(&block.bytes),
            Self::Unchecked(receipts) => EvmResponse::Unchecked(&receipts.bytes),
        }
    }
}

/// A height is at the head if fewer heights than this are above it.
const HEAD: u64 = 2;

/// Backoff at the head, where a part may be missing for some milliseconds only.
const SOON: Backoff =
    Backoff { initial: Duration::from_millis(10), max: Duration::from_secs(5), jitter: true };

/// Requests answers from the endpoints of one chain.
pub(super) struct AnswerSource<'a> {
    pub(super) node: &'a Node,
    /// True if the EVM's receipts are asked for: where they follow from the block and its results, they are not.
    pub(super) asks_receipts: bool,
    pub(super) room: &'a Room,
}

impl AnswerSource<'_> {
    /// The replies about `height`.
    ///
    /// At the head latency counts, so the three are requested concurrently. Below it the number of requests counts, and
    /// a block without transactions has no receipts to request.
    pub(super) async fn raw(&self, height: u64) -> Result<Raw, Error> {
        match self.announced_by(height) {
            // Boxed: three requests at once would make every future around them large.
            Some(origin) => Box::pin(self.concurrently(height, &origin)).await,
            None => self.in_sequence(height).await,
        }
    }

    async fn in_sequence(&self, height: u64) -> Result<Raw, Error> {
        let comet = &self.node.comet;
        let block = retry_until(height, "block", || comet.block(height)).await?;
        let room = self.room.for_block(block.bytes.len()).await;
        // From the same endpoint if possible: results of another history do not match the block.
        let request = || comet.block_results_expecting(height, &block.origin, room.bytes);
        let results = retry_until(height, "block results", request).await?;
        let evm = if has_txs(&block.bytes) {
            self.receipts_with(Backoff::default(), height, room.bytes).await?
        } else {
            None
        };
        Ok(Raw { block, results, evm, _room: Some(room) })
    }

    /// Each part is retried by itself, so a failure of one does not repeat the others.
    async fn concurrently(&self, height: u64, origin: &Origin) -> Result<Raw, Error> {
        let comet = &self.node.comet;
        let block = retry_with(SOON, height, "block", || comet.block_by(height, origin));
        let results = retry_with(SOON, height, "block results", || comet.block_results_by(height, origin));
        let mut receipts = std::pin::pin!(self.receipts_with(SOON, height, 0));
        let mut block_and_results = std::pin::pin!(async { tokio::join!(block, results) });
        let (block_and_results, early) = tokio::select! {
            both = &mut block_and_results => (both, None),
            receipts = &mut receipts => (block_and_results.await, Some(receipts)),
        };
        let (block, results) = (block_and_results.0?, block_and_results.1);
        let results = match results {
            Ok(results) if results.origin == block.origin => results,
            // An error may only mean that the request was early: meanwhile the tip has moved on.
            _ => {
                retry_until(height, "block results", || comet.block_results_by(height, &block.origin)).await?
            }
        };
        // Without transactions neither the receipts nor an error matter.
        let evm = match early {
            _ if !has_txs(&block.bytes) => None,
            Some(early) => early?,
            None => receipts.await?,
        };
        Ok(Raw { block, results, evm, _room: None })
    }

    /// An endpoint that has announced the height, if that is at the head; endpoints alternate from height to height.
    fn announced_by(&self, height: u64) -> Option<Origin> {
        let endpoints = self.node.comet.endpoints();
        let trusted = |status| matches!(status, EndpointStatus::Healthy | EndpointStatus::NeverSeen);
        let mut announcing = Vec::new();
        for endpoint in endpoints.iter().filter(|endpoint| trusted(endpoint.status)) {
            let Some(tip) = endpoint.height.filter(|tip| *tip >= height) else { continue };
            if tip - height >= HEAD {
                return None;
            }
            announcing.push(&endpoint.origin);
        }
        let turn = usize::try_from(height % (announcing.len().max(1) as u64)).unwrap_or_default();
        announcing.get(turn).map(|origin| Origin::clone(origin))
    }

    pub(super) fn has_receipts(&self) -> bool {
        self.asks_receipts && self.node.evm.is_some()
    }

    /// The receipts of `height`, if the chain has any.
    pub(super) async fn receipts(&self, height: u64) -> Result<Option<EvmRaw>, Error> {
        self.receipts_with(Backoff::default(), height, 0).await
    }

    async fn receipts_with(
        &self,
        backoff: Backoff,
        height: u64,
        expects: usize,
    ) -> Result<Option<EvmRaw>, Error> {
        match &self.node.evm {
            Some(evm) if self.asks_receipts => {
                let failures = ReceiptFailures::default();
                let request = || evm.receipts_or_block(height, expects, &failures);
                let answer = retry_with(backoff, height, "receipts", request).await?;
                Ok(Some(EvmRaw::Checked(answer)))
            }
            _ => Ok(None),
        }
    }
}

/// Whether the block seems to have transactions: a node writes `"txs":[]` for none. Judged by the text, because the
/// block is parsed later and on another thread. A wrong guess costs time only.
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
