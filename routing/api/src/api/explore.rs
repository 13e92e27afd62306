//! Endpoints for reachable assets and chains, without prices, fees or node queries.

use planner::WireAsset;
use registry::{AssetRef, ChainRef, Registry};
use serde::Serialize;
use serde_json::Value;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::assets::{ASSET, ByChain};
use super::json;
use super::reach::{Forms, way};
use crate::body::{Body, wrong};
use crate::errors;
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    post(
        "/v2/fungible/assets_from_source",
        "Assets that a transfer can end with.",
        &FROM,
        &REACHED,
        assets_from_source,
    ),
    post(
        "/v2/fungible/assets_between_chains",
        "What can go from one chain to another.",
        &BETWEEN,
        &PAIRS,
        between,
    ),
    post("/v2/fungible/ibc_origin_assets", "Where assets were made.", &ASSETS, &ORIGINS, origins),
    post(
        "/v2/fungible/recommend_assets",
        "What a transfer could end with on a chain.",
        &WISHES,
        &ADVICE,
        recommend,
    ),
];

const fn post(
    path: &'static str,
    summary: &'static str,
    body: &'static [Param],
    response: &'static Schema,
    handler: fn(&Service, &Call<'_>) -> Result<Reply, Refusal>,
) -> Endpoint<Service> {
    Endpoint {
        method: Method::Post,
        path,
        tag: "Fungible",
        summary,
        params: body,
        response,
        handler: Handler::Now(handler),
        cache: Freshness::LIST,
    }
}

static FROM: [Param; 1] = [Param::Body(&Schema {
    name: "fungible.AssetsFromSourceRequest",
    doc: "An asset.",
    fields: &[
        Field::new("source_asset_denom", Kind::String, "What is sent."),
        Field::new("source_asset_chain_id", Kind::String, "From where."),
        Field::optional(
            "allow_multi_tx",
            Kind::Boolean,
            "Whether the user would sign several transactions; false.",
        ),
        Field::optional("native_only", Kind::Boolean, "Only what was made on its own chain; false."),
    ],
})];

static REACHED: Schema = Schema {
    name: "fungible.AssetsFromSourceResponse",
    doc: "Assets by chain.",
    fields: &[Field::new("dest_assets", Kind::Free, "By chain id: `assets`, a list of fungible.Asset.")],
};

static BETWEEN: [Param; 1] = [Param::Body(&Schema {
    name: "fungible.AssetsBetweenChainsRequest",
    doc: "Two chains.",
    fields: &[
        Field::new("source_chain_id", Kind::String, "From where."),
        Field::new("dest_chain_id", Kind::String, "Where to."),
        Field::optional(
            "allow_multi_tx",
            Kind::Boolean,
            "Whether the user would sign several transactions; false.",
        ),
    ],
})];

static PAIRS: Schema = Schema {
    name: "fungible.AssetsBetweenChainsResponse",
    doc: "Pairs of assets.",
    fields: &[Field::new(
        "assets_between_chains",
        Kind::Array(&Kind::Free),
        "`asset_on_source`, `asset_on_dest`, `txs_required`, `bridges`.",
    )],
};

static ASSETS: [Param; 1] = [Param::Body(&Schema {
    name: "fungible.IbcOriginAssetsRequest",
    doc: "Assets.",
    fields: &[Field::new("assets", Kind::Array(&Kind::Free), "`denom` and `chain_id`.")],
})];

static ORIGINS: Schema = Schema {
    name: "fungible.IbcOriginAssetsResponse",
    doc: "Where they were made, in the same order.",
    fields: &[Field::new("origin_assets", Kind::Array(&Kind::Object(&FOUND)), "")],
};

static FOUND: Schema = Schema {
    name: "fungible.OriginAsset",
    doc: "Where an asset was made.",
    fields: &[
        Field::nullable("asset", Kind::Object(&ASSET), "Null if the asset is not known."),
        Field::new("asset_found", Kind::Boolean, "Whether the asset is known."),
    ],
};

static WISHES: [Param; 1] = [Param::Body(&Schema {
    name: "fungible.RecommendAssetsRequest",
    doc: "Assets and where they should go.",
    fields: &[Field::new(
        "requests",
        Kind::Array(&Kind::Free),
        "`source_asset_denom`, `source_asset_chain_id`, `dest_chain_id`, `reason`.",
    )],
})];

static ADVICE: Schema = Schema {
    name: "fungible.RecommendAssetsResponse",
    doc: "Recommendations, in the same order.",
    fields: &[Field::new(
        "recommendation_entries",
        Kind::Array(&Kind::Free),
        "`recommendations`: `asset`, `reason`.",
    )],
};

/// Members that real clients send; the first ones matter here.
const FROM_MEMBERS: &[&str] = &[
    "source_asset_denom",
    "source_asset_chain_id",
    "allow_multi_tx",
    "native_only",
    "include_cw20_assets",
    "include_evm_assets",
    "include_svm_assets",
    "include_swaps",
    "swap_venues",
    "recommendation_reason",
    "group_by",
    "client_id",
];

/// The same.
const BETWEEN_MEMBERS: &[&str] = &[
    "source_chain_id",
    "dest_chain_id",
    "allow_multi_tx",
    "include_no_metadata_assets",
    "include_cw20_assets",
    "include_evm_assets",
    "client_id",
];

/// Ways that are looked for in one request.
const MAX_WAYS: usize = 4096;

fn assets_from_source(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        dest_assets: ByChain<'a>,
    }
    let body = Body::read(call, FROM_MEMBERS)?;
    let world = service.world();
    let registry = &*world.registry;
    let (denom, chain) = (body.text("source_asset_denom")?, body.text("source_asset_chain_id")?);
    let chain = chain.and_then(|chain| registry.chain(chain));
    let chain = chain.ok_or_else(|| Refusal::bad_request("Invalid chain_id"))?;
    let source = denom.and_then(|denom| registry.asset(chain, denom));
    let source = source.ok_or_else(|| Refusal::bad_request("Invalid source_asset_denom"))?;
    let (multi_tx, native) = (body.boolean("allow_multi_tx", false)?, body.boolean("native_only", false)?);
    let forms = Forms::of(registry, source);
    let others = registry
        .assets()
        .filter(|(_, asset)| !native || asset.origin.parent().is_none())
        .map(|(reference, _)| reference)
        .filter(|to| *to != source && forms.has(*to))
        .take(MAX_WAYS);
    let reached = others.filter(|to| way(&world, source, *to, multi_tx).is_some());
    json(&Answer { dest_assets: ByChain::new(registry, reached) })
}

#[derive(Serialize)]
struct Between {
    assets_between_chains: Vec<Pair>,
}

#[derive(Serialize)]
struct Pair {
    asset_on_source: WireAsset,
    asset_on_dest: WireAsset,
    txs_required: usize,
    bridges: Vec<&'static str>,
}

fn between(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::read(call, BETWEEN_MEMBERS)?;
    let world = service.world();
    let registry = &*world.registry;
    let chain = |name: &str, what: &str| {
        let id = body.required(name)?;
        registry.chain(id).ok_or_else(|| Refusal::not_found(format!("{what} chain not found")))
    };
    let (source, dest) = (chain("source_chain_id", "source")?, chain("dest_chain_id", "dest")?);
    let multi_tx = body.boolean("allow_multi_tx", false)?;
    let pairs = on(registry, source).flat_map(|from| {
        let forms = Forms::of(registry, from);
        on(registry, dest).filter(move |to| *to != from && forms.has(*to)).map(move |to| (from, to))
    });
    let pairs = pairs.take(MAX_WAYS).filter_map(|(from, to)| {
        way(&world, from, to, multi_tx).map(|way| Pair {
            asset_on_source: WireAsset::of(registry, from),
            asset_on_dest: WireAsset::of(registry, to),
            txs_required: way.txs,
            bridges: way.bridges,
        })
    });
    json(&Between { assets_between_chains: pairs.collect() })
}

/// The assets of a chain.
fn on(registry: &Registry, chain: ChainRef) -> impl Iterator<Item = AssetRef> {
    registry.assets().filter(move |(_, asset)| asset.chain == chain).map(|(reference, _)| reference)
}

#[derive(Serialize)]
struct Origins {
    origin_assets: Vec<Origin>,
}

#[derive(Serialize)]
struct Origin {
    asset: Option<WireAsset>,
    asset_found: bool,
}

fn origins(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::read(call, &["assets", "client_id"])?;
    let world = service.world();
    let registry = &*world.registry;
    let mut origin_assets = Vec::new();
    for item in list(&body, "assets")? {
        let (Some(denom), Some(chain)) = (text(item, "denom"), text(item, "chain_id")) else {
            return Err(Refusal::bad_request("Must supply denom and chain_id"));
        };
        let asset = registry.chain(chain).and_then(|chain| registry.asset(chain, denom));
        let asset = asset.map(|asset| WireAsset::of(registry, registry.root(asset)));
        origin_assets.push(Origin { asset_found: asset.is_some(), asset });
    }
    json(&Origins { origin_assets })
}

#[derive(Serialize)]
struct Advice {
    recommendation_entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    recommendations: Vec<Recommendation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Fault>,
}

#[derive(Serialize)]
struct Recommendation {
    asset: WireAsset,
    reason: &'static str,
}

#[derive(Serialize)]
struct Fault {
    message: &'static str,
}

fn recommend(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::read(call, &["requests", "client_id"])?;
    let world = service.world();
    let entries = list(&body, "requests")?.iter().map(|item| match recommended(&world, item) {
        Ok(recommendations) => Entry { recommendations, error: None },
        Err(message) => Entry { recommendations: Vec::new(), error: Some(Fault { message }) },
    });
    let recommendation_entries: Vec<_> = entries.collect();
    if recommendation_entries.iter().all(|entry| entry.recommendations.is_empty()) {
        return Err(Refusal::not_found("no recommendation found"));
    }
    json(&Advice { recommendation_entries })
}

fn recommended(world: &World, item: &Value) -> Result<Vec<Recommendation>, &'static str> {
    let registry = &*world.registry;
    let chain = |name: &str| text(item, name).and_then(|chain| registry.chain(chain));
    let source = chain("source_asset_chain_id").zip(text(item, "source_asset_denom"));
    let source = source.and_then(|(chain, denom)| registry.asset(chain, denom));
    let source = source.ok_or("Must supply source_asset")?;
    let dest = chain("dest_chain_id").ok_or("Invalid chain_id")?;
    let forms = Forms::of(registry, source);
    let there = on(registry, dest).filter(|to| !registry[*to].hidden && forms.has(*to));
    let direct = there.filter(|to| way(world, source, *to, false).is_some());
    let found: Vec<_> =
        direct.map(|to| Recommendation { asset: WireAsset::of(registry, to), reason: "DIRECT" }).collect();
    if found.is_empty() { Err("no recommendation found") } else { Ok(found) }
}

fn list<'b>(body: &'b Body, name: &str) -> Result<&'b [Value], Refusal> {
    const MOST: usize = 256;
    match body.value(name) {
        Some(Value::Array(items)) if items.len() <= MOST => Ok(items),
        Some(other) => Err(wrong(name, other, &format!("a list of at most {MOST} objects"))),
        None => Err(errors::invalid(name, "it is missing")),
    }
}

/// A text of an item that is there and not empty.
fn text<'v>(item: &'v Value, name: &str) -> Option<&'v str> {
    item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}
