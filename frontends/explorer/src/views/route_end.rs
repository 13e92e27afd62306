//! The ends of a route: chains and assets, as the routing API lists them.

#![expect(clippy::struct_field_names, reason = "the names of the API")]

use serde::Deserialize;

/// Characters of a name in a list of options.
pub(super) const NAME: usize = 60;

/// A chain that routes can begin or end on.
#[derive(Deserialize)]
pub(super) struct Chain {
    pub(super) chain_id: String,
    pub(super) chain_name: String,
    pub(super) pretty_name: String,
    #[serde(default)]
    pub(super) fee_assets: Vec<FeeAsset>,
    #[serde(default)]
    pub(super) hidden: bool,
}

/// An asset that pays fees.
#[derive(Deserialize)]
pub(super) struct FeeAsset {
    pub(super) denom: String,
}

/// An asset on a chain.
#[derive(Clone, Deserialize)]
pub(super) struct Asset {
    pub(super) denom: String,
    pub(super) symbol: Option<String>,
    pub(super) decimals: Option<u8>,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) origin_denom: String,
    #[serde(default)]
    pub(super) origin_chain_id: String,
    #[serde(default)]
    pub(super) hidden: bool,
}

impl Chain {
    /// Its name for people.
    pub(super) fn display(&self) -> &str {
        if self.pretty_name.is_empty() { &self.chain_id } else { &self.pretty_name }
    }
}

/// The symbol of an asset, or its denom.
pub(super) fn symbol(asset: &Asset) -> String {
    chain::truncated(asset.symbol.as_deref().unwrap_or(&asset.denom), NAME)
}
