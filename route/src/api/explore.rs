//! What can be reached from where. None of these looks at prices, fees or nodes: a route does.

use planner::{Request, Step, WireAsset, plan};
use registry::{AssetRef, BridgeKind};
use serde::Serialize;
use serde_json::Value;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::assets::{ASSET, ByChain};
use super::json;
use crate::body::{Body, wrong};
use crate::deny;
use crate::quotes::Known;
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
    Endpoint {
        method: Method::Get,
        path: "/v2/info/registry",
        tag: "Info",
        summary: "Which registry is in use, and what the chains said against it.",
        params: &[],
        response: &REGISTRY,
        handler: Handler::Now(registry_info),
        cache: Freshness::LIST,
    },
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

static REGISTRY: Schema = Schema {
    name: "info.Registry",
    doc: "The registry in use.",
    fields: &[
        Field::new("hash", Kind::String, "Of its content."),
        Field::new("chains", Kind::Integer, "How many."),
        Field::new("assets", Kind::Integer, "How many."),
        Field::new("channels", Kind::Integer, "How many."),
        Field::new("bridges", Kind::Integer, "How many."),
        Field::new(
            "paused",
            Kind::Array(&Kind::String),
            "Channels and bridges that are not to be used now, and why.",
        ),
    ],
};

/// Pairs of assets that are looked at in one request.
const MAX_PAIRS: usize = 100_000;

/// What gets from one asset to another without regard to the amount: how many transactions, over which bridges.
fn way(world: &World, from: AssetRef, to: AssetRef, multi_tx: bool) -> Option<(usize, Vec<&'static str>)> {
    let registry = &*world.registry;
    let known = Known::nothing(registry);
    let seen = planner::World { registry, facts: &world.facts, quotes: &known };
    // One whole token, and where that is below a minimum, very many.
    let whole = chain::U256::from(10).pow(chain::U256::from(registry[from].decimals));
    let amounts = [whole, whole.saturating_mul(chain::U256::from(1_000_000_000_000_u64))];
    let best = amounts.into_iter().find_map(|amount_in| {
        let request =
            Request { from, to, amount_in, op_withdraw: false, multi_tx, op_hook: true, bridges: None };
        plan(&world.graph, seen, &request).ok()?.into_iter().next()
    })?;
    let mut bridges: Vec<&str> = Vec::new();
    for hop in &best.hops {
        if let Some(kind) = bridge(hop.step).map(BridgeKind::id)
            && !bridges.contains(&kind)
        {
            bridges.push(kind);
        }
    }
    Some((best.txs(), bridges))
}

fn bridge(step: Step) -> Option<BridgeKind> {
    match step {
        Step::Ibc { .. } | Step::MigratedDeposit { .. } | Step::MigratedWithdraw { .. } => {
            Some(BridgeKind::Ibc)
        }
        Step::Deposit { .. } | Step::Withdraw { .. } => Some(BridgeKind::OpInit),
        Step::LayerZero { .. } => Some(BridgeKind::LayerZero),
        Step::Send | Step::Wrap | Step::Unwrap => None,
    }
}

fn assets_from_source(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        dest_assets: ByChain<'a>,
    }
    let body = Body::read(
        call,
        &[
            "source_asset_denom",
            "source_asset_chain_id",
            "allow_multi_tx",
            "include_cw20_assets",
            "native_only",
            "include_swaps",
            "swap_venues",
            "recommendation_reason",
            "group_by",
            "client_id",
            "include_evm_assets",
            "include_svm_assets",
        ],
    )?;
    let world = service.world();
    let registry = &*world.registry;
    let (denom, chain) = (body.text("source_asset_denom")?, body.text("source_asset_chain_id")?);
    let chain = chain
        .and_then(|chain| registry.chain(chain))
        .ok_or_else(|| Refusal::bad_request("Invalid chain_id"))?;
    let source = denom.and_then(|denom| registry.asset(chain, denom));
    let source = source.ok_or_else(|| Refusal::bad_request("Invalid source_asset_denom"))?;
    let (multi_tx, native) = (body.boolean("allow_multi_tx", false)?, body.boolean("native_only", false)?);
    let others = registry
        .assets()
        .filter(|(reference, asset)| *reference != source && (!native || asset.origin.parent().is_none()));
    let reached =
        others.map(|(reference, _)| reference).filter(|to| way(&world, source, *to, multi_tx).is_some());
    json(&Answer { dest_assets: ByChain::new(registry, reached) })
}

fn between(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer {
        assets_between_chains: Vec<Pair>,
    }
    #[derive(Serialize)]
    struct Pair {
        asset_on_source: WireAsset,
        asset_on_dest: WireAsset,
        txs_required: usize,
        bridges: Vec<&'static str>,
    }
    let body = Body::read(
        call,
        &[
            "source_chain_id",
            "dest_chain_id",
            "include_no_metadata_assets",
            "include_cw20_assets",
            "include_evm_assets",
            "allow_multi_tx",
            "client_id",
        ],
    )?;
    let world = service.world();
    let registry = &*world.registry;
    let chain = |name: &str, what: &str| {
        let id = body.required(name)?;
        registry.chain(id).ok_or_else(|| Refusal::not_found(format!("{what} chain not found")))
    };
    let (source, dest) = (chain("source_chain_id", "source")?, chain("dest_chain_id", "dest")?);
    let multi_tx = body.boolean("allow_multi_tx", false)?;
    let on = |chain| {
        registry.assets().filter(move |(_, asset)| asset.chain == chain).map(|(reference, _)| reference)
    };
    let pairs = on(source).flat_map(|from| on(dest).map(move |to| (from, to))).take(MAX_PAIRS);
    let pairs = pairs.filter(|(from, to)| from != to).filter_map(|(from, to)| {
        way(&world, from, to, multi_tx).map(|(txs_required, bridges)| Pair {
            asset_on_source: WireAsset::of(registry, from),
            asset_on_dest: WireAsset::of(registry, to),
            txs_required,
            bridges,
        })
    });
    json(&Answer { assets_between_chains: pairs.collect() })
}

fn origins(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer {
        origin_assets: Vec<Origin>,
    }
    #[derive(Serialize)]
    struct Origin {
        asset: Option<WireAsset>,
        asset_found: bool,
    }
    let body = Body::read(call, &["assets", "client_id"])?;
    let world = service.world();
    let registry = &*world.registry;
    let mut origin_assets = Vec::new();
    for item in list(&body, "assets")? {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (Some(denom), Some(chain)) = (text("denom"), text("chain_id")) else {
            return Err(Refusal::bad_request("Must supply denom and chain_id"));
        };
        let asset = registry.chain(chain).and_then(|chain| registry.asset(chain, denom));
        let asset = asset.map(|asset| WireAsset::of(registry, registry.root(asset)));
        origin_assets.push(Origin { asset_found: asset.is_some(), asset });
    }
    json(&Answer { origin_assets })
}

fn recommend(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer {
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
        message: String,
    }
    let body = Body::read(call, &["requests", "client_id"])?;
    let world = service.world();
    let registry = &*world.registry;
    let entry = |item: &Value| -> Result<Vec<Recommendation>, String> {
        let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let source = text("source_asset_chain_id").and_then(|chain| registry.chain(chain));
        let source =
            source.zip(text("source_asset_denom")).and_then(|(chain, denom)| registry.asset(chain, denom));
        let source = source.ok_or("Must supply source_asset")?;
        let dest = text("dest_chain_id").and_then(|chain| registry.chain(chain)).ok_or("Invalid chain_id")?;
        let there = registry.assets().filter(|(_, asset)| asset.chain == dest && !asset.hidden);
        let direct = there.filter(|(to, _)| way(&world, source, *to, false).is_some());
        let direct =
            direct.map(|(to, _)| Recommendation { asset: WireAsset::of(registry, to), reason: "DIRECT" });
        let found: Vec<_> = direct.collect();
        if found.is_empty() { Err("no recommendation found".to_owned()) } else { Ok(found) }
    };
    let entries = list(&body, "requests")?.iter().map(|item| match entry(item) {
        Ok(recommendations) => Entry { recommendations, error: None },
        Err(message) => Entry { recommendations: Vec::new(), error: Some(Fault { message }) },
    });
    let recommendation_entries: Vec<_> = entries.collect();
    if recommendation_entries.iter().all(|entry| entry.recommendations.is_empty()) {
        return Err(Refusal::not_found("no recommendation found"));
    }
    json(&Answer { recommendation_entries })
}

fn list<'b>(body: &'b Body, name: &str) -> Result<&'b [Value], Refusal> {
    const MOST: usize = 256;
    match body.value(name) {
        Some(Value::Array(items)) if items.len() <= MOST => Ok(items),
        Some(other) => Err(wrong(name, other, &format!("a list of at most {MOST} objects"))),
        None => Err(deny::invalid(name, "it is missing")),
    }
}

fn registry_info(service: &Service, _: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        hash: &'a str,
        chains: usize,
        assets: usize,
        channels: usize,
        bridges: usize,
        paused: Vec<String>,
    }
    let world = service.world();
    let registry = &*world.registry;
    let channels = registry.channels().filter_map(|(reference, channel)| {
        let end = &channel.a;
        let name = format!("{}/{} of {}", end.port, end.channel, registry[end.chain].id);
        world.facts.paused(registry, reference).map(|reason| format!("{name}: {reason}"))
    });
    let bridges = registry.bridges().filter_map(|(reference, bridge)| {
        world.facts.stopped(registry, reference).map(|reason| format!("bridge {}: {reason}", bridge.id))
    });
    json(&Answer {
        hash: registry.hash(),
        chains: registry.chains().count(),
        assets: registry.assets().count(),
        channels: registry.channels().count(),
        bridges: registry.bridges().count(),
        paused: channels.chain(bridges).collect(),
    })
}
