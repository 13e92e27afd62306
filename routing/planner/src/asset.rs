//! JSON form of an asset (`router-api.md` §4.1).

use chain::U256;
use registry::{AssetRef, ChainKind, ChainRef, NativeCoin, Registry};
use serde::{Deserialize, Serialize};

use crate::usd;

/// The `Asset` of the wire. `symbol` and `decimals` are always told: clients sort by the one and refuse to go on
/// without the other. Read leniently, because clients echo what they kept of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names of the wire")]
pub struct WireAsset {
    pub denom: String,
    pub chain_id: String,
    pub origin_denom: String,
    pub origin_chain_id: String,
    /// The hops of its path, the latest first; empty if it did not come over a channel.
    pub trace: String,
    pub is_cw20: bool,
    /// Whether it is on an EVM chain; those of a rollup with an EVM are not.
    pub is_evm: bool,
    pub is_svm: bool,
    pub symbol: String,
    pub name: Option<String>,
    pub logo_uri: Option<String>,
    pub decimals: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_contract: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coingecko_id: Option<String>,
    /// The symbol once more: one client prints it in errors.
    pub recommended_symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Told only if it is.
    #[serde(skip_serializing_if = "is_false")]
    pub hidden: bool,
}

impl WireAsset {
    /// An asset of a registry.
    pub fn of(registry: &Registry, asset: AssetRef) -> Self {
        let (about, root) = (&registry[asset], &registry[registry.root(asset)]);
        let chain = &registry[about.chain];
        Self {
            denom: about.denom.clone(),
            chain_id: chain.id.clone(),
            origin_denom: root.denom.clone(),
            origin_chain_id: registry[root.chain].id.clone(),
            trace: registry.trace(asset),
            is_cw20: about.denom.starts_with("cw20:"),
            is_evm: chain.kind == ChainKind::Evm,
            is_svm: false,
            symbol: about.symbol.clone(),
            name: about.name.clone(),
            logo_uri: about.logo_uri.clone(),
            decimals: about.decimals,
            token_contract: about.contract.clone().or_else(|| contract_in(&about.denom)),
            coingecko_id: about.coingecko_id.clone(),
            recommended_symbol: Some(about.symbol.clone()),
            description: about.description.clone(),
            hidden: about.hidden,
        }
    }

    /// What a chain's messaging fees are paid in: the coin of an EVM chain, the first fee asset of any other. `None` if
    /// the registry does not know it.
    pub fn coin(registry: &Registry, chain: ChainRef) -> Option<Self> {
        Some(FeeCoin::of(registry, chain)?.wire(registry, chain))
    }
}

/// Coin that pays a chain's messaging fees.
pub(crate) enum FeeCoin<'a> {
    Listed(AssetRef),
    Native(&'a NativeCoin),
}

impl<'a> FeeCoin<'a> {
    pub(crate) fn of(registry: &'a Registry, chain: ChainRef) -> Option<Self> {
        let about = &registry[chain];
        let Some(native) = &about.native else {
            let denom = &about.fee_assets.first()?.denom;
            return registry.asset(chain, denom).map(Self::Listed);
        };
        Some(registry.native_asset(chain).map_or(Self::Native(native), Self::Listed))
    }

    pub(crate) fn wire(&self, registry: &Registry, chain: ChainRef) -> WireAsset {
        let native = match self {
            Self::Listed(asset) => return WireAsset::of(registry, *asset),
            Self::Native(native) => native,
        };
        let chain_id = registry[chain].id.clone();
        WireAsset {
            denom: native.denom.clone(),
            chain_id: chain_id.clone(),
            origin_denom: native.denom.clone(),
            origin_chain_id: chain_id,
            is_evm: true,
            symbol: native.symbol.clone(),
            name: Some(native.name.clone()),
            decimals: native.decimals,
            recommended_symbol: Some(native.symbol.clone()),
            ..WireAsset::default()
        }
    }

    /// Value of an amount.
    pub(crate) fn usd(&self, registry: &Registry, amount: U256) -> Option<String> {
        match self {
            Self::Listed(asset) => usd::of(registry, *asset, amount),
            Self::Native(_) => None,
        }
    }
}

/// The ERC-20 that a denomination names.
fn contract_in(denom: &str) -> Option<String> {
    match denom.strip_prefix("evm/") {
        Some(address) => Some(format!("0x{address}")),
        None => denom.starts_with("0x").then(|| denom.to_owned()),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
