//! The assets, by chain.

use planner::WireAsset;
use registry::{AssetRef, ChainKind, Registry};
use serde::Serialize;
use serde::ser::SerializeMap as _;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param, Type};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::{CATALOGUE, CHAIN_IDS, ONLY_TESTNETS, Selection, flag, json};
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Get,
    path: "/v2/fungible/assets",
    tag: "Fungible",
    summary: "The assets that routes can begin or end with.",
    params: &[
        CHAIN_IDS,
        Param::query_or("native_only", Type::Boolean, "false", "Only what was made on its own chain."),
        Param::query_or(
            "include_evm_assets",
            Type::Boolean,
            "true",
            "Whether assets of EVM chains are listed.",
        ),
        Param::query_or("include_cw20_assets", Type::Boolean, "true", "Without effect: there are none."),
        Param::query_or("include_svm_assets", Type::Boolean, "true", "Without effect: there are none."),
        Param::query_or(
            "include_no_metadata_assets",
            Type::Boolean,
            "false",
            "Without effect: every asset has a symbol.",
        ),
        ONLY_TESTNETS,
    ],
    response: &ASSETS,
    handler: Handler::Now(assets),
    cache: CATALOGUE,
}];

static ASSETS: Schema = Schema {
    name: "fungible.AssetsResponse",
    doc: "Assets by chain id; a chain that is not known is absent.",
    fields: &[Field::new(
        "chain_to_assets_map",
        Kind::Free,
        "By chain id: `assets`, a list of fungible.Asset.",
    )],
};

/// An asset, as every endpoint shows it.
pub(crate) static ASSET: Schema = Schema {
    name: "fungible.Asset",
    doc: "A token on a chain.",
    fields: &[
        Field::new("denom", Kind::String, "Its denomination there."),
        Field::new("chain_id", Kind::String, "The chain."),
        Field::new("origin_denom", Kind::String, "Its denomination where it was made."),
        Field::new("origin_chain_id", Kind::String, "Where it was made."),
        Field::new(
            "trace",
            Kind::String,
            "The channels that it came over: `port/channel/…`, the latest first.",
        ),
        Field::new("is_cw20", Kind::Boolean, "Always false."),
        Field::new("is_evm", Kind::Boolean, "Whether its chain is an EVM chain."),
        Field::new("is_svm", Kind::Boolean, "Always false."),
        Field::new("symbol", Kind::String, "Short name."),
        Field::nullable("name", Kind::String, "Long name."),
        Field::nullable("logo_uri", Kind::String, "A picture."),
        Field::new("decimals", Kind::Integer, "Decimal places of the unit that people count in."),
        Field::optional("token_contract", Kind::String, "The ERC-20 behind it."),
        Field::optional("coingecko_id", Kind::String, "Its name at CoinGecko."),
        Field::new("recommended_symbol", Kind::String, "The symbol once more."),
        Field::optional("hidden", Kind::Boolean, "Not to be offered."),
    ],
};

/// Assets under their chains' ids, in the order of the registry, those that are not to be offered last: clients fall
/// back to the first one.
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
        #[derive(Serialize)]
        struct Assets {
            assets: Vec<WireAsset>,
        }
        let mut map = serializer.serialize_map(None)?;
        for (chain, about) in self.registry.chains() {
            let here = self.assets.iter().filter(|asset| self.registry[**asset].chain == chain);
            let mut assets: Vec<_> = here.map(|asset| WireAsset::of(self.registry, *asset)).collect();
            assets.sort_by_key(|asset| asset.hidden);
            if !assets.is_empty() {
                map.serialize_entry(&about.id, &Assets { assets })?;
            }
        }
        map.end()
    }
}

fn assets(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        chain_to_assets_map: ByChain<'a>,
    }
    let selection = Selection::of(call)?;
    let (native, evm) = (flag(call, "native_only", false)?, flag(call, "include_evm_assets", true)?);
    for ignored in ["include_cw20_assets", "include_svm_assets", "include_no_metadata_assets"] {
        flag(call, ignored, true)?;
    }
    let world = service.world();
    let registry = &*world.registry;
    let shown = registry.assets().filter(|(_, asset)| {
        let chain = &registry[asset.chain];
        selection.has(chain)
            && (evm || chain.kind == ChainKind::Cosmos)
            && (!native || asset.origin.parent().is_none())
    });
    json(&Answer { chain_to_assets_map: ByChain::new(registry, shown.map(|(reference, _)| reference)) })
}
