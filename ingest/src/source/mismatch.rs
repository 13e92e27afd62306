//! Resolution of a mismatch between receipts and results: one of the two is wrong, and different services return them.
//!
//! Other endpoints decide by their own replies; the header after the block decides about its results.
//!
//! # Invariants
//! * No endpoint is distrusted because of another endpoint's reply alone.

use node::EvmBlock;

use super::BlockSource;
use super::answers::{EvmRaw, Raw};
use super::blocks::report_derived;
use crate::Error;
use crate::derive::{self, Block, Part};
use crate::retry::retry_until;

impl BlockSource {
    /// The block of `height` with receipts, or else results, of another endpoint that match; `None` if there are none.
    pub(super) async fn resolve_mismatch(
        &self,
        height: u64,
        raw: &Raw,
        reason: &str,
    ) -> Result<Option<(Raw, Block)>, Error> {
        let comet = &self.tools.node.comet;
        if let Some(derived) = self.with_other_receipts(height, raw).await? {
            self.distrust(Part::Receipts, raw, reason);
            return Ok(Some(derived));
        }
        if let Ok(Some(results)) = comet.results_from_other(height, &raw.results.origin).await
            && let Some(derived) = self.derived(height, Raw { results, ..raw.clone() }).await?
        {
            self.distrust(Part::Results, raw, reason);
            return Ok(Some(derived));
        }
        // There is no next block at the head.
        if let Ok(next) = comet.block(height.saturating_add(1)).await
            && let Some(confirmed) = derive::confirms(&next.bytes, &raw.block.bytes, &raw.results.bytes)
        {
            self.distrust(if confirmed { Part::Receipts } else { Part::Results }, raw, reason);
        }
        Ok(None)
    }

    /// The block of `height` with the receipts of another endpoint, if they match.
    pub(super) async fn with_other_receipts(
        &self,
        height: u64,
        raw: &Raw,
    ) -> Result<Option<(Raw, Block)>, Error> {
        let (Some(evm), Some(receipts)) = (&self.tools.node.evm, &raw.evm) else { return Ok(None) };
        match evm.receipts_from_other(height, receipts.origin()).await {
            Ok(Some(others)) => {
                let receipts = EvmRaw::Checked(EvmBlock::Receipts(others));
                self.derived(height, Raw { evm: Some(receipts), ..raw.clone() }).await
            }
            _ => Ok(None),
        }
    }

    /// The block of `height` with receipts that are derived from its results, if they can be, for the given reason.
    pub(super) async fn with_derived_receipts(
        &self,
        height: u64,
        raw: &Raw,
        reason: &str,
    ) -> Result<Option<(Raw, Block)>, Error> {
        let Some(evm) = &self.tools.node.evm else { return Ok(None) };
        let Some(block) = retry_until(height, "EVM block", || evm.block(height)).await? else {
            return Ok(None);
        };
        let hashes = EvmBlock::Hashes { block, reason: reason.to_owned() };
        let raw = Raw { evm: Some(EvmRaw::Checked(hashes)), ..raw.clone() };
        let derived = self.derived(height, raw).await?;
        if derived.is_some() {
            report_derived(height, reason);
        }
        Ok(derived)
    }

    async fn derived(&self, height: u64, raw: Raw) -> Result<Option<(Raw, Block)>, Error> {
        let block = self.render(height, &raw).await?.ok();
        Ok(block.map(|block| (raw, block)))
    }
}
