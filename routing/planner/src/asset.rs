//! JSON form of an asset.

use registry::{AssetRef, ChainKind, ChainRef, Registry, denom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token on a chain.
// Symbol and decimals are always written: clients sort by the one and require the other. Missing members
// are read as empty, because clients send back only some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "fungible.Asset")]
pub struct WireAsset {
    /// Its denomination there.
    pub denom: String,
    /// The chain.
    pub chain_id: String,
    /// Its denomination on the chain of its origin.
    pub origin_denom: String,
    /// The chain of its origin.
    pub origin_chain_id: String,
    /// The channels that it came over: `port/channel/…`, the latest first.
    pub trace: String,
    /// Whether it is a token of a CW20 contract, which sends it.
    pub is_cw20: bool,
    /// Whether its chain is an EVM chain.
    pub is_evm: bool,
    /// Always false.
    pub is_svm: bool,
    /// Short name.
    pub symbol: String,
    /// Long name.
    pub name: Option<String>,
    /// Address of an image.
    pub logo_uri: Option<String>,
    /// Decimal places of the display unit.
    pub decimals: u8,
    /// The ERC-20 behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_contract: Option<String>,
    /// Its name at CoinGecko.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coingecko_id: Option<String>,
    /// The symbol again.
    #[schemars(with = "String")]
    pub recommended_symbol: Option<String>,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Clients omit it from their pickers.
    #[serde(skip_serializing_if = "is_false")]
    pub hidden: bool,
}

impl WireAsset {
    /// An asset of a registry.
    pub fn of(registry: &Registry, asset: AssetRef) -> Self {
        let ((about, _), root) = (registry.passing(asset), &registry[registry.root(asset)]);
        let chain = &registry[about.chain];
        Self {
            denom: about.denom.clone(),
            chain_id: chain.id.clone(),
            origin_denom: root.denom.clone(),
            origin_chain_id: registry[root.chain].id.clone(),
            trace: registry.trace(asset),
            is_cw20: denom::cw20(&about.denom).is_some(),
            is_evm: chain.kind == ChainKind::Evm,
            is_svm: false,
            symbol: about.symbol.clone(),
            name: about.name.clone(),
            logo_uri: about.logo_uri.clone(),
            decimals: about.decimals,
            token_contract: about.contract.clone(),
            coingecko_id: about.coingecko_id.clone(),
            recommended_symbol: Some(about.symbol.clone()),
            description: about.description.clone(),
            hidden: about.hidden,
        }
    }

    /// The coin that pays a chain's messaging fees; `None` if the registry does not have it.
    pub fn coin(registry: &Registry, chain: ChainRef) -> Option<Self> {
        Some(Self::of(registry, fee_coin(registry, chain)?))
    }
}

/// The coin that pays a chain's messaging fees: the native coin of an EVM chain, the first fee asset of any other.
pub(crate) fn fee_coin(registry: &Registry, chain: ChainRef) -> Option<AssetRef> {
    match registry[chain].native {
        Some(_) => registry.native_asset(chain),
        None => registry.asset(chain, &registry[chain].fee_assets.first()?.denom),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
