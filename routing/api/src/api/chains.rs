//! The chains, the kinds of bridges, the venues.

use registry::{Chain, ChainKind};
use serde::Serialize;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, Method, Param, Type};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::{CATALOGUE, CHAIN_IDS, ONLY_TESTNETS, Selection, flag, json};
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Get,
        path: "/v2/info/chains",
        tag: "Info",
        summary: "The chains that routes can begin or end on.",
        params: &[
            CHAIN_IDS,
            // The wallet widget names neither and wants all.
            Param::query_or("include_evm", Type::Boolean, "true", "Whether EVM chains are listed."),
            Param::query_or("include_svm", Type::Boolean, "true", "Without effect: there are none."),
            ONLY_TESTNETS,
        ],
        response: &CHAINS,
        handler: Handler::Now(chains),
        cache: CATALOGUE,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/info/bridges",
        tag: "Info",
        summary: "The kinds of bridges that routes can use.",
        params: &[],
        response: &BRIDGES,
        handler: Handler::Now(bridges),
        cache: CATALOGUE,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/fungible/venues",
        tag: "Fungible",
        summary: "Places where tokens are exchanged. Routes use none of them.",
        params: &[ONLY_TESTNETS],
        response: &VENUES,
        handler: Handler::Now(venues),
        cache: CATALOGUE,
    },
];

static CHAINS: Schema = Schema {
    name: "info.ChainsResponse",
    doc: "Chains.",
    fields: &[Field::new("chains", Kind::Array(&Kind::Object(&CHAIN)), "")],
};

static CHAIN: Schema = Schema {
    name: "info.Chain",
    doc: "A chain.",
    fields: &[
        Field::new("chain_name", Kind::String, "Its name in the registry; `initia` is the L1."),
        Field::new("chain_id", Kind::String, "Its id; a decimal number for an EVM chain."),
        Field::new("pfm_enabled", Kind::Boolean, "Whether it forwards packets."),
        Field::new("cosmos_module_support", Kind::Free, "`authz` and `feegrant`."),
        Field::new("supports_memo", Kind::Boolean, "Whether its transfers carry a memo."),
        Field::nullable("logo_uri", Kind::String, "A picture."),
        Field::new("bech32_prefix", Kind::String, "Of its addresses; empty for an EVM chain."),
        Field::new(
            "fee_assets",
            Kind::Array(&Kind::Free),
            "`denom` and `gas_price`: `low`, `average`, `high`.",
        ),
        Field::new("chain_type", Kind::String, "`cosmos` or `evm`."),
        Field::new("ibc_capabilities", Kind::Free, "Which memos it understands."),
        Field::new("is_testnet", Kind::Boolean, "Whether its tokens are worth nothing."),
        Field::new("pretty_name", Kind::String, "What people call it."),
        Field::new("rpc", Kind::String, "CometBFT RPC, or JSON-RPC of an EVM chain; empty if not known."),
        Field::new("rest", Kind::String, "Cosmos REST; empty for an EVM chain or if not known."),
        Field::optional("hidden", Kind::Boolean, "Not to be offered."),
        Field::optional(
            "evm_fee_asset",
            Kind::Free,
            "`name`, `symbol` and `decimals` of an EVM chain's coin.",
        ),
    ],
};

static BRIDGES: Schema = Schema {
    name: "info.BridgesResponse",
    doc: "Kinds of bridges.",
    fields: &[Field::new("bridges", Kind::Array(&Kind::Free), "`id`, `name` and `logo_uri`.")],
};

static VENUES: Schema = Schema {
    name: "fungible.VenuesResponse",
    doc: "Venues.",
    fields: &[Field::new("venues", Kind::Array(&Kind::Free), "`name`, `chain_id` and `logo_uri`.")],
};

#[derive(Serialize)]
struct WireChain<'a> {
    chain_name: &'a str,
    chain_id: &'a str,
    pfm_enabled: bool,
    cosmos_module_support: Modules,
    supports_memo: bool,
    logo_uri: Option<&'a str>,
    bech32_prefix: &'a str,
    fee_assets: Vec<WireFeeAsset<'a>>,
    chain_type: &'static str,
    ibc_capabilities: Capabilities,
    is_testnet: bool,
    pretty_name: &'a str,
    rpc: &'a str,
    rest: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    evm_fee_asset: Option<Coin<'a>>,
}

#[derive(Serialize)]
struct Modules {
    authz: bool,
    feegrant: bool,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names, reason = "the names of the wire")]
struct Capabilities {
    cosmos_pfm: bool,
    cosmos_ibc_hooks: bool,
    cosmos_memo: bool,
    cosmos_autopilot: bool,
}

#[derive(Serialize)]
struct WireFeeAsset<'a> {
    denom: &'a str,
    gas_price: Option<GasPrice<'a>>,
}

#[derive(Serialize)]
struct GasPrice<'a> {
    low: &'a str,
    average: &'a str,
    high: &'a str,
}

#[derive(Serialize)]
struct Coin<'a> {
    name: &'a str,
    symbol: &'a str,
    decimals: u8,
}

impl<'a> WireChain<'a> {
    fn of(chain: &'a Chain) -> Self {
        let cosmos = chain.kind == ChainKind::Cosmos;
        let endpoints = &chain.endpoints;
        let first = |addresses: &'a [String]| endpoints.told(addresses).unwrap_or_default();
        // A wallet's connection: what speaks JSON-RPC on an EVM chain.
        let rpc = if cosmos || endpoints.json_rpc.is_empty() { &endpoints.rpc } else { &endpoints.json_rpc };
        let fee_assets = chain.fee_assets.iter().map(|asset| WireFeeAsset {
            denom: &asset.denom,
            gas_price: (![&asset.low, &asset.average, &asset.high].iter().all(|price| price.is_empty()))
                .then_some(GasPrice { low: &asset.low, average: &asset.average, high: &asset.high }),
        });
        Self {
            chain_name: &chain.name,
            chain_id: &chain.id,
            pfm_enabled: chain.forwards,
            // Modules that every cosmos chain since SDK 0.43 has.
            cosmos_module_support: Modules { authz: cosmos, feegrant: cosmos },
            supports_memo: cosmos,
            logo_uri: chain.logo_uri.as_deref(),
            bech32_prefix: &chain.bech32_prefix,
            fee_assets: fee_assets.collect(),
            chain_type: if cosmos { "cosmos" } else { "evm" },
            ibc_capabilities: Capabilities {
                cosmos_pfm: chain.forwards,
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

fn chains(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        chains: Vec<WireChain<'a>>,
    }
    let (selection, evm) = (Selection::of(call)?, flag(call, "include_evm", true)?);
    let world = service.world();
    let shown = world.registry.chains().map(|(_, chain)| chain);
    let shown = shown.filter(|chain| selection.has(chain) && (evm || chain.kind == ChainKind::Cosmos));
    json(&Answer { chains: shown.map(WireChain::of).collect() })
}

fn bridges(service: &Service, _: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        bridges: Vec<WireBridge<'a>>,
    }
    #[derive(Serialize)]
    struct WireBridge<'a> {
        id: &'static str,
        name: &'static str,
        logo_uri: Option<&'a str>,
    }
    let world = service.world();
    let bridges = world.registry.bridge_kinds();
    let bridges =
        bridges.map(|(kind, logo_uri)| WireBridge { id: kind.id(), name: kind.name(), logo_uri }).collect();
    json(&Answer { bridges })
}

fn venues(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer<'a> {
        venues: Vec<Venue<'a>>,
    }
    #[derive(Serialize)]
    struct Venue<'a> {
        name: &'a str,
        chain_id: &'a str,
        logo_uri: Option<&'a str>,
    }
    let selection = Selection::of(call)?;
    let world = service.world();
    let venues = world.registry.venues().iter().map(|venue| (venue, &world.registry[venue.chain]));
    let venues = venues.filter(|(_, chain)| selection.has(chain)).map(|(venue, chain)| Venue {
        name: &venue.name,
        chain_id: &chain.id,
        logo_uri: venue.logo_uri.as_deref(),
    });
    json(&Answer { venues: venues.collect() })
}
