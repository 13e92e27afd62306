//! The receipts of a block, or the block itself where the node can never give its receipts.
//!
//! One transaction can spoil the receipts of its block for ever: minievm stores a log without topics, and cannot read it
//! again. The block still answers, and receipts follow from it and from the block's results.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Kind};
use crate::evm::Evm;
use crate::pool::origin::{Origin, Reply};

/// Failures to give the receipts of a block, which the node has, before the block counts as spoiled: some seconds.
const FAILURES: u32 = 6;

/// The same while the node says that its EVM index has not got there: an index that lags behind is usual.
const ABSENCES: u32 = 40;

/// A reply about the EVM transactions of a block.
#[derive(Debug, Clone)]
pub enum EvmBlock {
    /// Their receipts: the `result` of `eth_getBlockReceipts`.
    Receipts(Reply),
    /// The block with their hashes: the `result` of `eth_getBlockByNumber`.
    Hashes {
        /// The block.
        block: Reply,
        /// The reason why the node gives no receipts.
        reason: String,
    },
}

impl EvmBlock {
    /// The endpoint that gave the reply.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::Receipts(answer) | Self::Hashes { block: answer, .. } => &answer.origin,
        }
    }
}

/// Number of failures about one height.
#[derive(Debug, Default)]
pub struct ReceiptFailures(AtomicU32);

impl Evm {
    /// The receipts of a block; or the block, if `failures` shows that its receipts cannot be had from a node that has it.
    /// One call is one attempt: an error that can be cured by another attempt is returned.
    /// A reply of up to `expects` bytes is of usual size.
    pub async fn receipts_or_block(
        &self,
        height: u64,
        expects: usize,
        failures: &ReceiptFailures,
    ) -> Result<EvmBlock, Error> {
        let error = match self.block_receipts_expecting(height, expects).await {
            Ok(receipts) => return Ok(EvmBlock::Receipts(receipts)),
            Err(error) => error,
        };
        if !error.is_of_the_answer() {
            return Err(error);
        }
        let failed = failures.0.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let is_lasting = match error.kind() {
            Kind::Permanent => true,
            Kind::Transient => failed >= FAILURES,
            Kind::NotYet => failed >= ABSENCES,
        };
        if is_lasting && let Ok(Some(block)) = self.block(height).await {
            return Ok(EvmBlock::Hashes { block, reason: error.to_string() });
        }
        Err(error)
    }
}
