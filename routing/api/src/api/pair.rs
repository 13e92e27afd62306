//! Source and destination asset of a request, as spelled by the client and as found in the registry.

use registry::{AssetRef, Registry};
use web::http_error::HttpError;

use crate::body::Text;
use crate::errors;

/// Source and destination of a request.
pub(super) struct Pair {
    pub(super) source: Side,
    pub(super) dest: Side,
}

/// One end of a pair.
pub(super) struct Side {
    pub(super) denom: String,
    pub(super) chain_id: String,
    pub(super) asset: AssetRef,
}

impl Pair {
    /// Finds both assets, each by denomination and chain id.
    pub(super) fn find(registry: &Registry, source: [Text; 2], dest: [Text; 2]) -> Result<Self, HttpError> {
        Ok(Self {
            source: Side::find(registry, "source asset", source)?,
            dest: Side::find(registry, "destination asset", dest)?,
        })
    }
}

impl Side {
    fn find(registry: &Registry, which: &str, [denom, chain_id]: [Text; 2]) -> Result<Self, HttpError> {
        let (denom, chain_id) = (denom.0, chain_id.0);
        let asset = registry.chain(&chain_id).and_then(|chain| registry.asset(chain, &denom));
        let asset = asset.ok_or_else(|| errors::unknown_asset(which, &denom, &chain_id))?;
        Ok(Self { denom, chain_id, asset })
    }
}
