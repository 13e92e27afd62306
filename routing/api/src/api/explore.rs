//! Endpoints for reachable assets and chains, without prices, fees or node queries.

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use planner::WireAsset;
use registry::{AssetRef, ChainKind, ChainRef, Registry, denom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::assets::{ByChain, ChainAssets};
use super::reach::{Forms, way};
use super::{flag, json};
use crate::body::{self, Text, check_length};
use crate::errors;
use crate::service::{Service, World};

/// Published clients send a GET, the description of Skip's interface has a POST.
const BETWEEN: &str = "/v2/fungible/assets_between_chains";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/assets_from_source",
        tag: "Fungible",
        summary: "Assets that a transfer can end with.",
        params: &[Param::Body(schema::of::<AssetsFromSourceRequest>())],
        response: schema::of::<AssetsFromSourceResponse<'_>>(),
        handler: Handler::Async(assets_from_source),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: BETWEEN,
        tag: "Fungible",
        summary: "Pairs of assets that can be transferred from one chain to another.",
        params: &[
            Param::required("source_chain_id", Type::String, "Chain that the transfer starts on."),
            Param::required("dest_chain_id", Type::String, "Chain that the transfer ends on."),
            Param::query_or(
                "allow_multi_tx",
                Type::Flag,
                "false",
                "Whether the user would sign several transactions.",
            ),
        ],
        response: schema::of::<AssetsBetweenChainsResponse>(),
        handler: Handler::Async(between_of_query),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Post,
        path: BETWEEN,
        tag: "Fungible",
        summary: "The same as GET, with a body.",
        params: &[Param::Body(schema::of::<AssetsBetweenChainsRequest>())],
        response: schema::of::<AssetsBetweenChainsResponse>(),
        handler: Handler::Async(between_of_body),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/ibc_origin_assets",
        tag: "Fungible",
        summary: "Origin of assets.",
        params: &[Param::Body(schema::of::<IbcOriginAssetsRequest>())],
        response: schema::of::<IbcOriginAssetsResponse>(),
        handler: Handler::Sync(origins),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Post,
        path: "/v2/fungible/recommend_assets",
        tag: "Fungible",
        summary: "Recommended destination assets on a chain.",
        params: &[Param::Body(schema::of::<RecommendAssetsRequest>())],
        response: schema::of::<RecommendAssetsResponse<'_>>(),
        handler: Handler::Async(recommend),
        cache: MaxAge::LIST,
    },
];

/// An asset.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.AssetsFromSourceRequest")]
struct AssetsFromSourceRequest {
    /// Denomination of the source asset.
    #[schemars(required)]
    source_asset_denom: Option<String>,
    /// Chain that the transfer starts on.
    #[schemars(required)]
    source_asset_chain_id: Option<String>,
    /// Whether the user would sign several transactions; false.
    allow_multi_tx: Option<bool>,
    /// Only assets that originate on their chain; false.
    native_only: Option<bool>,
    /// Whether CW20 tokens are listed; true.
    include_cw20_assets: Option<bool>,
    /// Whether assets of EVM chains are listed; true.
    include_evm_assets: Option<bool>,
}

/// Assets by chain.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.AssetsFromSourceResponse")]
struct AssetsFromSourceResponse<'a> {
    #[schemars(with = "BTreeMap<String, ChainAssets>")]
    dest_assets: ByChain<'a>,
}

/// Two chains.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.AssetsBetweenChainsRequest")]
struct AssetsBetweenChainsRequest {
    /// Chain that the transfer starts on.
    source_chain_id: Text,
    /// Chain that the transfer ends on.
    dest_chain_id: Text,
    /// Whether the user would sign several transactions; false.
    allow_multi_tx: Option<bool>,
    /// Whether CW20 tokens are listed; true.
    include_cw20_assets: Option<bool>,
    /// Whether assets of EVM chains are listed; true.
    include_evm_assets: Option<bool>,
}

/// Pairs of assets.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.AssetsBetweenChainsResponse")]
struct AssetsBetweenChainsResponse {
    assets_between_chains: Vec<Pair>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Pair {
    asset_on_source: WireAsset,
    asset_on_dest: WireAsset,
    txs_required: usize,
    bridges: Vec<&'static str>,
}

/// Assets.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.IbcOriginAssetsRequest")]
struct IbcOriginAssetsRequest {
    assets: Vec<AssetName>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct AssetName {
    #[schemars(required, length(min = 1))]
    denom: Option<String>,
    #[schemars(required, length(min = 1))]
    chain_id: Option<String>,
}

/// Origins of the assets, in the same order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.IbcOriginAssetsResponse")]
struct IbcOriginAssetsResponse {
    origin_assets: Vec<OriginAsset>,
}

/// Origin of an asset.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.OriginAsset")]
struct OriginAsset {
    /// Null if the asset is not known.
    asset: Option<WireAsset>,
    /// Whether the asset is known.
    asset_found: bool,
}

/// Assets and destination chains.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.RecommendAssetsRequest")]
struct RecommendAssetsRequest {
    requests: Vec<RecommendationRequest>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct RecommendationRequest {
    #[schemars(required)]
    source_asset_denom: Option<String>,
    #[schemars(required)]
    source_asset_chain_id: Option<String>,
    #[schemars(required)]
    dest_chain_id: Option<String>,
}

/// Recommendations, in the same order.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.RecommendAssetsResponse")]
struct RecommendAssetsResponse<'a> {
    /// The old form: those of the first request.
    recommendations: &'a [Recommendation],
    recommendation_entries: &'a [Entry],
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Entry {
    recommendations: Vec<Recommendation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<EntryError>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Recommendation {
    asset: WireAsset,
    reason: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct EntryError {
    message: &'static str,
}

/// Maximum number of routes that one request searches for.
const MAX_WAYS: usize = 4096;

fn assets_from_source<'a>(
    service: &'a Service,
    call: &'a Call<'a>,
) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let without_effect = [
            "include_svm_assets",
            "include_swaps",
            "swap_venues",
            "recommendation_reason",
            "group_by",
            "client_id",
        ];
        let request: AssetsFromSourceRequest = body::read(&service.config, call, &without_effect)?;
        let world = service.world();
        service.lists.heavy().run(move || reached(&world, request)).await?
    })
}

fn reached(world: &World, request: AssetsFromSourceRequest) -> Result<Reply, HttpError> {
    let registry = &*world.registry;
    let chain = request.source_asset_chain_id.and_then(|chain| registry.chain(&chain));
    let chain = chain.ok_or_else(|| HttpError::bad_request("Invalid chain_id"))?;
    let source = request.source_asset_denom.and_then(|denom| registry.asset(chain, &denom));
    let source = source.ok_or_else(|| HttpError::bad_request("Invalid source_asset_denom"))?;
    let (multi_tx, native) = (request.allow_multi_tx == Some(true), request.native_only == Some(true));
    let kinds = Kinds { cw20: request.include_cw20_assets, evm: request.include_evm_assets };
    let forms = Forms::of(registry, source);
    let listed = registry
        .assets()
        .filter(|(_, asset)| !native || asset.origin.parent().is_none())
        .map(|(reference, _)| reference)
        .filter(|to| *to != source && forms.has(*to) && kinds.has(registry, *to));
    let derived = registry.derived_from(source).filter(|to| !native && *to != source);
    let others = listed.chain(derived).take(MAX_WAYS);
    let reached = others.filter(|to| way(world, source, *to, multi_tx).is_some());
    json(&AssetsFromSourceResponse { dest_assets: ByChain::new(registry, reached) })
}

/// Kinds of assets that a request can leave out: all are in if it does not say `false`.
struct Kinds {
    cw20: Option<bool>,
    evm: Option<bool>,
}

impl Kinds {
    fn has(&self, registry: &Registry, asset: AssetRef) -> bool {
        let about = &registry[asset];
        (self.cw20 != Some(false) || denom::cw20(&about.denom).is_none())
            && (self.evm != Some(false) || registry[about.chain].kind == ChainKind::Cosmos)
    }
}

fn between_of_query<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let chain =
            |name| call.first(name).map(|id| Text(id.to_owned())).ok_or_else(|| errors::missing(name));
        let request = AssetsBetweenChainsRequest {
            source_chain_id: chain("source_chain_id")?,
            dest_chain_id: chain("dest_chain_id")?,
            allow_multi_tx: Some(flag(call, "allow_multi_tx", false)?),
            include_cw20_assets: None,
            include_evm_assets: None,
        };
        between(service, request).await
    })
}

fn between_of_body<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        between(service, body::read(&service.config, call, &["include_no_metadata_assets", "client_id"])?)
            .await
    })
}

async fn between(service: &Service, request: AssetsBetweenChainsRequest) -> Result<Reply, HttpError> {
    let world = service.world();
    service.lists.heavy().run(move || pairs(&world, &request)).await?
}

fn pairs(world: &World, request: &AssetsBetweenChainsRequest) -> Result<Reply, HttpError> {
    let registry = &*world.registry;
    let chain = |id: &Text, side: &str| {
        registry.chain(&id.0).ok_or_else(|| HttpError::not_found(format!("{side} chain not found")))
    };
    let (source, dest) = (chain(&request.source_chain_id, "source")?, chain(&request.dest_chain_id, "dest")?);
    let multi_tx = request.allow_multi_tx == Some(true);
    let kinds = Kinds { cw20: request.include_cw20_assets, evm: request.include_evm_assets };
    let kinds = &kinds;
    let of = move |chain| on(registry, chain).filter(move |asset| kinds.has(registry, *asset));
    let pairs = of(source).flat_map(|from| {
        let forms = Forms::of(registry, from);
        of(dest).filter(move |to| *to != from && forms.has(*to)).map(move |to| (from, to))
    });
    let pairs = pairs.take(MAX_WAYS).filter_map(|(from, to)| {
        way(world, from, to, multi_tx).map(|way| Pair {
            asset_on_source: WireAsset::of(registry, from),
            asset_on_dest: WireAsset::of(registry, to),
            txs_required: way.txs,
            bridges: way.bridges,
        })
    });
    json(&AssetsBetweenChainsResponse { assets_between_chains: pairs.collect() })
}

/// The assets of a chain.
fn on(registry: &Registry, chain: ChainRef) -> impl Iterator<Item = AssetRef> {
    registry.assets().filter(move |(_, asset)| asset.chain == chain).map(|(reference, _)| reference)
}

fn origins(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let IbcOriginAssetsRequest { assets } = body::read(&service.config, call, &["client_id"])?;
    check_length("assets", assets.len())?;
    let world = service.world();
    let registry = &*world.registry;
    let origin = |AssetName { denom, chain_id }: AssetName| {
        let (Some(denom), Some(chain)) = (given(denom), given(chain_id)) else {
            return Err(HttpError::bad_request("Must supply denom and chain_id"));
        };
        let asset = registry.chain(&chain).and_then(|chain| registry.asset(chain, &denom));
        let asset = asset.and_then(|asset| registry.issued(asset));
        let asset = asset.map(|asset| WireAsset::of(registry, asset));
        Ok(OriginAsset { asset_found: asset.is_some(), asset })
    };
    let origin_assets = assets.into_iter().map(origin).collect::<Result<_, _>>()?;
    json(&IbcOriginAssetsResponse { origin_assets })
}

fn recommend<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let RecommendAssetsRequest { requests } = body::read(&service.config, call, &["client_id"])?;
        check_length("requests", requests.len())?;
        let world = service.world();
        service.lists.heavy().run(move || recommendations(&world, requests)).await?
    })
}

fn recommendations(world: &World, requests: Vec<RecommendationRequest>) -> Result<Reply, HttpError> {
    let entries = requests.into_iter().map(|request| match recommended(world, request) {
        Ok(recommendations) => Entry { recommendations, error: None },
        Err(message) => Entry { recommendations: Vec::new(), error: Some(EntryError { message }) },
    });
    let recommendation_entries: Vec<_> = entries.collect();
    if recommendation_entries.iter().all(|entry| entry.recommendations.is_empty()) {
        return Err(HttpError::not_found("no recommendation found"));
    }
    let recommendations = recommendation_entries.first().map_or(&[][..], |entry| &entry.recommendations);
    json(&RecommendAssetsResponse { recommendations, recommendation_entries: &recommendation_entries })
}

fn recommended(world: &World, request: RecommendationRequest) -> Result<Vec<Recommendation>, &'static str> {
    let registry = &*world.registry;
    let chain = |id: Option<String>| given(id).and_then(|id| registry.chain(&id));
    let source = chain(request.source_asset_chain_id).zip(given(request.source_asset_denom));
    let source = source.and_then(|(chain, denom)| registry.asset(chain, &denom));
    let source = source.ok_or("Must supply source_asset")?;
    let dest = chain(request.dest_chain_id).ok_or("Invalid chain_id")?;
    let forms = Forms::of(registry, source);
    let there = on(registry, dest).filter(|to| !registry[*to].hidden && forms.has(*to));
    let direct = there.filter(|to| way(world, source, *to, false).is_some());
    let found: Vec<_> =
        direct.map(|to| Recommendation { asset: WireAsset::of(registry, to), reason: "DIRECT" }).collect();
    if found.is_empty() { Err("no recommendation found") } else { Ok(found) }
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
