//! The assets, by chain.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use planner::WireAsset;
use registry::{AssetRef, Chain, ChainKind, ChainRef, Registry, denom};
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::{CATALOGUE, CHAIN_IDS, OLD_CHAIN_IDS, ONLY_TESTNETS, Selection, flag};
use crate::errors;
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
        Param::query_or("include_cw20_assets", Type::Flag, "true", "Whether CW20 tokens are listed."),
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
    handler: Handler::Async(assets),
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
        let mut by_chain: BTreeMap<ChainRef, Vec<AssetRef>> = BTreeMap::new();
        for asset in &self.assets {
            by_chain.entry(self.registry.chain_of(*asset)).or_default().push(*asset);
        }
        let mut map = serializer.serialize_map(Some(by_chain.len()))?;
        for (chain, assets) in by_chain {
            let mut assets: Vec<_> =
                assets.into_iter().map(|asset| WireAsset::of(self.registry, asset)).collect();
            assets.sort_by_key(|asset| asset.hidden);
            map.serialize_entry(&self.registry[chain].id, &ChainAssets { assets })?;
        }
        map.end()
    }
}

/// Which assets a call selects.
struct Filter {
    /// In the registry's order, each once.
    chains: Vec<ChainRef>,
    native: bool,
    cw20: bool,
    derived: bool,
}

impl Filter {
    fn of(registry: &Registry, call: &Call<'_>) -> Result<Self, HttpError> {
        let selection = Selection::of(call)?;
        let evm = flag(call, "include_evm_assets", true)?;
        flag(call, "include_svm_assets", true)?;
        let selects = |(_, chain): &(ChainRef, &Chain)| {
            selection.has(chain) && (evm || chain.kind == ChainKind::Cosmos)
        };
        Ok(Self {
            chains: registry.chains().filter(selects).map(|(chain, _)| chain).collect(),
            native: flag(call, "native_only", false)?,
            cw20: flag(call, "include_cw20_assets", true)?,
            derived: flag(call, "include_no_metadata_assets", false)?,
        })
    }

    /// The assets, those of the lists first.
    fn selected<'r>(&'r self, registry: &'r Registry) -> impl Iterator<Item = AssetRef> + 'r {
        let listed = registry.assets().filter(move |(_, asset)| {
            self.chains.binary_search(&asset.chain).is_ok()
                && (!self.native || asset.origin.parent().is_none())
                && (self.cw20 || denom::cw20(&asset.denom).is_none())
        });
        // A derived voucher has a parent, and is on a Cosmos chain.
        let chains = self.chains.iter().filter(move |_| self.derived && !self.native);
        let derived = chains.flat_map(move |chain| registry.derived_on(*chain));
        listed.map(|(reference, _)| reference).chain(derived)
    }

    /// A name of the list, the same for the same assets.
    fn name(&self) -> String {
        let chains: Vec<_> = self.chains.iter().map(|chain| chain.index().to_string()).collect();
        format!("assets {} {} {} {}", self.native, self.cw20, self.derived, chains.join(","))
    }

    fn body(&self, registry: &Registry) -> Result<Vec<u8>, HttpError> {
        let map = ByChain::new(registry, self.selected(registry));
        serde_json::to_vec(&AssetsResponse { chain_to_assets_map: map }).map_err(errors::internal)
    }
}

/// Most assets of a list that is made at once for each request: some 300 KB.
const MOST_AT_ONCE: usize = 1_000;

fn assets<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let world = service.world();
        let filter = Filter::of(&world.registry, call)?;
        if filter.selected(&world.registry).nth(MOST_AT_ONCE).is_none() {
            return filter.body(&world.registry).map(Reply::json);
        }
        let (name, registry) = (filter.name(), Arc::clone(&world.registry));
        let make = move || filter.body(&registry);
        service.lists.get(world.registry.hash(), name, make).await
    })
}
