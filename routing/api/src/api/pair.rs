//! Source and destination asset of a request, as spelled by the client and as found in the registry.

use registry::{AssetRef, Registry};
use web::refusal::Refusal;

use crate::body::Body;
use crate::errors;

/// From what to what.
pub(super) struct Pair {
    pub(super) source: Side,
    pub(super) dest: Side,
}

/// One of the two.
pub(super) struct Side {
    /// Requested amount.
    pub(super) denom: String,
    /// Requested amount.
    pub(super) chain_id: String,
    pub(super) asset: AssetRef,
}

impl Pair {
    /// Reads `source_asset_denom`, `source_asset_chain_id` and the same of `dest`. What is missing is told before what
    /// is not known.
    pub(super) fn read(body: &Body, registry: &Registry) -> Result<Self, Refusal> {
        let named = |side: &str| -> Result<(String, String), Refusal> {
            let denom = body.required(&format!("{side}_asset_denom"))?.to_owned();
            Ok((denom, body.required(&format!("{side}_asset_chain_id"))?.to_owned()))
        };
        let (source, dest) = (named("source")?, named("dest")?);
        Ok(Self {
            source: Side::find(registry, "source asset", source)?,
            dest: Side::find(registry, "destination asset", dest)?,
        })
    }
}

impl Side {
    fn find(registry: &Registry, which: &str, (denom, chain_id): (String, String)) -> Result<Self, Refusal> {
        let asset = registry.chain(&chain_id).and_then(|chain| registry.asset(chain, &denom));
        let asset = asset.ok_or_else(|| errors::unknown_asset(which, &denom, &chain_id))?;
        Ok(Self { denom, chain_id, asset })
    }
}
