//! Resolution of a mismatch between receipts and results: one of the two is wrong, and different services return them.
//!
//! Other endpoints decide by their own answers; the header after the block decides about its results.
//!
//! # Invariants
//! * No endpoint is distrusted because of another endpoint's answer alone.

use super::BlockSource;
use super::answers::Raw;
use crate::Error;
use crate::derive::{self, Part};

impl BlockSource {
    /// The answers of `height` with receipts, or else results, of another endpoint that match; `None` if there are
    /// none.
    pub(super) async fn resolve_mismatch(
        &self,
        height: u64,
        raw: &Raw,
        reason: &str,
    ) -> Result<Option<Raw>, Error> {
        let node = &self.tools.node;
        if let Some(tried) = self.receipts_of_another(height, raw).await? {
            self.distrust(Part::Receipts, raw, reason);
            return Ok(Some(tried));
        }
        if let Ok(Some(results)) = node.comet.results_from_other(height, &raw.results.origin).await {
            let tried = Raw { results, ..raw.clone() };
            if self.render(height, &tried, false).await?.is_ok() {
                self.distrust(Part::Results, raw, reason);
                return Ok(Some(tried));
            }
        }
        // There is no next block at the head.
        if let Ok(next) = node.comet.block(height.saturating_add(1)).await
            && let Some(confirmed) = derive::confirms(&next.bytes, &raw.block.bytes, &raw.results.bytes)
        {
            self.distrust(if confirmed { Part::Receipts } else { Part::Results }, raw, reason);
        }
        Ok(None)
    }

    /// The answers of `height` with the receipts of another endpoint, if they match.
    pub(super) async fn receipts_of_another(&self, height: u64, raw: &Raw) -> Result<Option<Raw>, Error> {
        let (Some(evm), Some(receipts)) = (&self.tools.node.evm, &raw.receipts) else { return Ok(None) };
        let Ok(Some(others)) = evm.receipts_from_other(height, &receipts.origin).await else {
            return Ok(None);
        };
        let tried = Raw { receipts: Some(others), ..raw.clone() };
        Ok(self.render(height, &tried, false).await?.is_ok().then_some(tried))
    }
}
