//! The assets, by chain.

use std::collections::BTreeMap;

use planner::WireAsset;
use registry::{AssetRef, ChainKind, Registry};
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema;

use super::{CATALOGUE, CHAIN_IDS, OLD_CHAIN_IDS, ONLY_TESTNETS, Selection, flag, json};
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Get,
    path: "/v2/fungible/assets",
    tag: "Fungible",
    summary: "The assets that routes can begin or end with.",
    params: &[
        CHAIN_IDS,
        OLD_CHAIN_IDS,
        Param::query_or("native_only", Type::Flag, "false", "Only assets that originate on their chain."),
        Param::query_or("include_evm_assets", Type::Flag, "true", "Whether assets of EVM chains are listed."),
        Param::query_or("include_cw20_assets", Type::Flag, "true", "Without effect: there are none."),
        Param::query_or("include_svm_assets", Type::Flag, "true", "Without effect: there are none."),
        Param::query_or(
            "include_no_metadata_assets",
            Type::Flag,
            "false",
            "Whether vouchers that no list has are listed: those of tokens that originate on a neighbouring chain.",
        ),
        ONLY_TESTNETS,
    ],
    response: schema::of::<AssetsResponse<'_>>(),
    handler: Handler::Sync(assets),
    cache: CATALOGUE,
}];

/// Assets by chain id; a chain that is not known is absent.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.AssetsResponse")]
struct AssetsResponse<'a> {
    #[schemars(with = "BTreeMap<String, ChainAssets>")]
    chain_to_assets_map: ByChain<'a>,
}

/// Assets of a chain.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ChainAssets {
    assets: Vec<WireAsset>,
}

/// Assets by chain id, in registry order; hidden ones are last, because clients fall back to the first.
pub(crate) struct ByChain<'a> {
    registry: &'a Registry,
    assets: Vec<AssetRef>,
}

impl<'a> ByChain<'a> {
    pub(crate) fn new(registry: &'a Registry, assets: impl IntoIterator<Item = AssetRef>) -> Self {
        Self { registry, assets: assets.into_iter().collect() }
    }
}

impl Serialize for ByChain<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (chain, about) in self.registry.chains() {
            let here = self.assets.iter().filter(|asset| self.registry.chain_of(**asset) == chain);
            let mut assets: Vec<_> = here.map(|asset| WireAsset::of(self.registry, *asset)).collect();
            assets.sort_by_key(|asset| asset.hidden);
            if !assets.is_empty() {
                map.serialize_entry(&about.id, &ChainAssets { assets })?;
            }
        }
        map.end()
    }
}

fn assets(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let selection = Selection::of(call)?;
    let (native, evm) = (flag(call, "native_only", false)?, flag(call, "include_evm_assets", true)?);
    for ignored in ["include_cw20_assets", "include_svm_assets"] {
        flag(call, ignored, true)?;
    }
    let derived = flag(call, "include_no_metadata_assets", false)?;
    let world = service.world();
    let registry = &*world.registry;
    let listed = registry.assets().filter(|(_, asset)| {
        let chain = &registry[asset.chain];
        selection.has(chain)
            && (evm || chain.kind == ChainKind::Cosmos)
            && (!native || asset.origin.parent().is_none())
    });
    // A derived voucher has a parent, and is on a Cosmos chain.
    let chains = registry.chains().filter(|(_, chain)| derived && !native && selection.has(chain));
    let derived = chains.flat_map(|(chain, _)| registry.derived_on(chain));
    let shown = listed.map(|(reference, _)| reference).chain(derived);
    json(&AssetsResponse { chain_to_assets_map: ByChain::new(registry, shown) })
}
