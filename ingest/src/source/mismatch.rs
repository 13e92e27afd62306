//! Resolution of a mismatch between receipts and results: one of the two is wrong, and different services return them.
//!
//! Other endpoints decide by their own answers; the header after the block decides about its results.
//!
//! # Invariants
//! * No endpoint is distrusted because of another endpoint's answer alone.

use super::BlockSource;
use super::answers::Raw;
use crate::Error;
use crate::derive::{self, Block, Part};

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
        let (Some(evm), Some(receipts)) = (&self.tools.node.evm, &raw.receipts) else { return Ok(None) };
        match evm.receipts_from_other(height, &receipts.origin).await {
            Ok(Some(others)) => self.derived(height, Raw { receipts: Some(others), ..raw.clone() }).await,
            _ => Ok(None),
        }
    }

    async fn derived(&self, height: u64, raw: Raw) -> Result<Option<(Raw, Block)>, Error> {
        let block = self.render(height, &raw, false).await?.ok();
        Ok(block.map(|block| (raw, block)))
    }
}
