//! The chains, the kinds of bridges, the venues.

use futures_util::future::BoxFuture;
use planner::operation::SwapVenue;
use registry::{Chain, ChainKind, ChainRef};
use schemars::JsonSchema;
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::{CATALOGUE, CHAIN_IDS, OLD_CHAIN_IDS, ONLY_TESTNETS, Selection, flag, json, swap_options};
use crate::errors;
use crate::service::{Service, World};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Get,
        path: "/v2/info/chains",
        tag: "Info",
        summary: "The chains that routes can begin or end on.",
        params: &[
            CHAIN_IDS,
            OLD_CHAIN_IDS,
            // The wallet widget sends neither parameter and needs all chains.
            Param::query_or("include_evm", Type::Flag, "true", "Whether EVM chains are listed."),
            Param::query_or("include_svm", Type::Boolean, "true", "Without effect: there are none."),
            ONLY_TESTNETS,
        ],
        response: schema::of::<ChainsResponse<'_>>(),
        handler: Handler::Async(chains),
        cache: CATALOGUE,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/info/bridges",
        tag: "Info",
        summary: "The kinds of bridges that routes can use.",
        params: &[],
        response: schema::of::<BridgesResponse<'_>>(),
        handler: Handler::Sync(bridges),
        cache: CATALOGUE,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/fungible/venues",
        tag: "Fungible",
        summary: "Places where tokens are exchanged. Routes use none of them.",
        params: &[ONLY_TESTNETS],
        response: schema::of::<VenuesResponse<'_>>(),
        handler: Handler::Sync(venues),
        cache: CATALOGUE,
    },
];

/// Chains.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "info.ChainsResponse")]
struct ChainsResponse<'a> {
    chains: Vec<WireChain<'a>>,
}

/// A chain.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "info.Chain")]
struct WireChain<'a> {
    /// Its name in the registry; `initia` is the L1.
    chain_name: &'a str,
    /// Its id; a decimal number for an EVM chain.
    chain_id: &'a str,
    /// Whether it forwards packets.
    pfm_enabled: bool,
    cosmos_module_support: Modules,
    /// Whether its transfers carry a memo.
    supports_memo: bool,
    /// A picture.
    logo_uri: Option<&'a str>,
    /// Of its addresses; empty for an EVM chain.
    bech32_prefix: &'a str,
    fee_assets: Vec<WireFeeAsset<'a>>,
    /// `cosmos` or `evm`.
    chain_type: &'static str,
    /// Which memos it understands.
    ibc_capabilities: Capabilities,
    /// Whether its tokens are worth nothing.
    is_testnet: bool,
    /// Display name.
    pretty_name: &'a str,
    /// CometBFT RPC, or JSON-RPC of an EVM chain; empty if not known.
    rpc: &'a str,
    /// Cosmos REST; empty for an EVM chain or if not known.
    rest: &'a str,
    /// Not to be offered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    /// An EVM chain's coin.
    #[serde(skip_serializing_if = "Option::is_none")]
    evm_fee_asset: Option<Coin<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Modules {
    authz: bool,
    feegrant: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
#[allow(clippy::struct_field_names, reason = "the names of the wire")]
struct Capabilities {
    cosmos_pfm: bool,
    cosmos_ibc_hooks: bool,
    cosmos_memo: bool,
    cosmos_autopilot: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct WireFeeAsset<'a> {
    denom: &'a str,
    gas_price: Option<GasPrice<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct GasPrice<'a> {
    low: &'a str,
    average: &'a str,
    high: &'a str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Coin<'a> {
    name: &'a str,
    symbol: &'a str,
    decimals: u8,
}

/// Kinds of bridges.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "info.BridgesResponse")]
struct BridgesResponse<'a> {
    bridges: Vec<WireBridge<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct WireBridge<'a> {
    id: &'static str,
    name: &'static str,
    /// Address of an image; empty if the registry has none.
    logo_uri: &'a str,
}

/// Venues.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.VenuesResponse")]
struct VenuesResponse<'a> {
    venues: Vec<Venue<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Venue<'a> {
    name: &'a str,
    chain_id: &'a str,
    logo_uri: Option<&'a str>,
}

impl<'a> WireChain<'a> {
    fn of(world: &'a World, reference: ChainRef) -> Self {
        let (chain, forwards) =
            (&world.registry[reference], world.facts.forwards(&world.registry, reference));
        let cosmos = chain.kind == ChainKind::Cosmos;
        let endpoints = &chain.endpoints;
        let first = |addresses: &'a [String]| endpoints.first_public(addresses).unwrap_or_default();
        // Wallets connect here; on an EVM chain they need JSON-RPC.
        let rpc = if cosmos || endpoints.json_rpc.is_empty() { &endpoints.rpc } else { &endpoints.json_rpc };
        let fee_assets = chain.fee_assets.iter().map(|asset| WireFeeAsset {
            denom: &asset.denom,
            gas_price: (![&asset.low, &asset.average, &asset.high].iter().all(|price| price.is_empty()))
                .then_some(GasPrice { low: &asset.low, average: &asset.average, high: &asset.high }),
        });
        Self {
            chain_name: &chain.name,
            chain_id: &chain.id,
            pfm_enabled: forwards,
            // Modules that every cosmos chain since SDK 0.43 has.
            cosmos_module_support: Modules { authz: cosmos, feegrant: cosmos },
            supports_memo: cosmos,
            logo_uri: chain.logo_uri.as_deref(),
            bech32_prefix: &chain.bech32_prefix,
            fee_assets: fee_assets.collect(),
            chain_type: if cosmos { "cosmos" } else { "evm" },
            ibc_capabilities: Capabilities {
                cosmos_pfm: forwards,
                cosmos_ibc_hooks: chain.initia,
                cosmos_memo: cosmos,
                cosmos_autopilot: false,
            },
            is_testnet: chain.testnet,
            pretty_name: &chain.pretty_name,
            rpc: first(rpc),
            rest: first(&endpoints.rest),
            hidden: chain.hidden,
            evm_fee_asset: chain.native.as_ref().map(|coin| Coin {
                name: &coin.name,
                symbol: &coin.symbol,
                decimals: coin.decimals,
            }),
        }
    }
}

/// Most chains of a list that is made at once for each request: some 100 KB.
const MOST_AT_ONCE: usize = 100;

fn chains<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let (selection, evm) = (Selection::of(call)?, flag(call, "include_evm", true)?);
        let world = service.world();
        let is_shown = |(_, chain): &(ChainRef, &Chain)| {
            selection.has(chain) && (evm || chain.kind == ChainKind::Cosmos)
        };
        let shown: Vec<_> = world.registry.chains().filter(is_shown).map(|(chain, _)| chain).collect();
        if shown.len() <= MOST_AT_ONCE {
            return list(&world, &shown).map(Reply::json);
        }
        // Whether a chain forwards is a fact, and no part of the registry.
        let about =
            |chain: &ChainRef| format!("{} {}", chain.index(), world.facts.forwards(&world.registry, *chain));
        let name = format!("chains {}", shown.iter().map(about).collect::<Vec<_>>().join(","));
        let hash = world.registry.hash().to_owned();
        service.lists.get(&hash, name, move || list(&world, &shown)).await
    })
}

fn list(world: &World, shown: &[ChainRef]) -> Result<Vec<u8>, HttpError> {
    let chains = shown.iter().map(|chain| WireChain::of(world, *chain)).collect();
    serde_json::to_vec(&ChainsResponse { chains }).map_err(errors::internal)
}

fn bridges(service: &Service, _: &Call<'_>) -> Result<Reply, HttpError> {
    let world = service.world();
    let bridges = world.registry.bridge_kinds();
    let bridges =
        bridges.map(|(kind, logo_uri)| WireBridge { id: kind.id(), name: kind.name(), logo_uri }).collect();
    json(&BridgesResponse { bridges })
}

fn venues(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let selection = Selection::of(call)?;
    let world = service.world();
    let selected = |venue: &SwapVenue| {
        let chain = world.registry.chain(&venue.chain_id);
        chain.is_some_and(|chain| selection.has(&world.registry[chain]))
    };
    let listed: Vec<SwapVenue> = swap_options::venues(&world).into_iter().filter(selected).collect();
    let venues = listed.iter().map(|venue| Venue {
        name: &venue.name,
        chain_id: &venue.chain_id,
        logo_uri: venue.logo_uri.as_deref(),
    });
    json(&VenuesResponse { venues: venues.collect() })
}
