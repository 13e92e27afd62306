//! Receipts that do not follow from the results of their transactions: one of the two is untrue, and they are told by
//! different services.
//!
//! Whoever else there is decides by what he says himself; the header after the block decides about its results. What must
//! hold: nobody is distrusted because of what another one said alone.

use super::BlockSource;
use super::answers::Raw;
use crate::Error;
use crate::derive::{self, Part};

impl BlockSource {
    /// The answers of `height` with other receipts, or else other results, that fit; `None` if there are none.
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
        // There is none at the head of the chain.
        if let Ok(next) = node.comet.block(height.saturating_add(1)).await
            && let Some(confirmed) = derive::confirms(&next.bytes, &raw.block.bytes, &raw.results.bytes)
        {
            self.distrust(if confirmed { Part::Receipts } else { Part::Results }, raw, reason);
        }
        Ok(None)
    }

    /// The answers of `height` with the receipts of another endpoint, if these fit.
    pub(super) async fn receipts_of_another(&self, height: u64, raw: &Raw) -> Result<Option<Raw>, Error> {
        let (Some(evm), Some(receipts)) = (&self.tools.node.evm, &raw.receipts) else { return Ok(None) };
        let Ok(Some(others)) = evm.receipts_from_other(height, &receipts.origin).await else {
            return Ok(None);
        };
        let tried = Raw { receipts: Some(others), ..raw.clone() };
        Ok(self.render(height, &tried, false).await?.is_ok().then_some(tried))
    }
}
