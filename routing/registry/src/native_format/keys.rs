//! Keys of the native format; `README.md` documents them.

use std::sync::Arc;

use chain::Vm;

use super::table::Table;
use super::tree;
use super::variables::Environment;
use crate::draft::{
    AssetDraft, BridgeDraft, ChainDraft, ChannelDraft, Draft, EndDraft, LegDraft, Located, NativeDraft,
    OftDraft, OriginDraft, Source, VenueDraft,
};
use crate::model::{BridgeKind, ChainKind, FeeAsset, LegKind, Terms};
use crate::problem::{LoadError, Place, Problem};

/// The port of ICS-20 transfers.
pub(crate) const TRANSFER: &str = "transfer";

/// Content of one file.
pub(crate) struct File {
    pub(crate) draft: Draft,
    pub(crate) import: Option<Import>,
}

/// Public registries to take in as well.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Import {
    pub(crate) place: Place,
    /// Folder of an Initia registry.
    pub(crate) initia: Option<String>,
    /// Which of its networks.
    pub(crate) network: Option<String>,
    /// Folder of a cosmos chain registry.
    pub(crate) chain_registry: Option<String>,
    /// Names or ids of the chains to take; all if not given.
    pub(crate) chains: Option<Vec<String>>,
}

/// Reads a file of our own form.
pub(crate) fn read(file: &Arc<str>, text: &str, environment: Environment<'_>) -> Result<File, LoadError> {
    let tree = tree::parse(file, text)?;
    let place = Place::new(file, "");
    let read: Result<File, Problem> = Table::read(&tree, place, environment, |top| File {
        import: top.table("import", import),
        draft: Draft {
            chains: top.tables("chain", |table| placed(table, chain)),
            channels: top.tables("channel", |table| placed(table, channel)),
            bridges: top.tables("bridge", |table| placed(table, bridge)),
            assets: top.tables("asset", |table| placed(table, asset)),
            ofts: top.tables("oft", |table| placed(table, oft)),
            venues: top.tables("venue", |table| placed(table, venue)),
            bridge_logos: top.tables("bridge_kind", |table| placed(table, bridge_kind)),
        },
    });
    Ok(read?)
}

fn placed<'a, T>(table: &mut Table<'a>, part: impl FnOnce(&mut Table<'a>) -> T) -> Located<T> {
    let part = part(table);
    Located { source: Source::Own, place: table.place().clone(), part }
}

fn import(table: &mut Table<'_>) -> Import {
    Import {
        place: table.place().clone(),
        initia: table.text("initia"),
        network: table.choice("network", &NETWORKS.map(|name| (name, name))).map(str::to_owned),
        chain_registry: table.text("chain_registry"),
        chains: table.texts("chains"),
    }
}

/// The folders of an Initia registry.
pub(crate) const NETWORKS: [&str; 3] = ["mainnets", "testnets", "devnets"];

const VMS: [(&str, Vm); 4] = [("evm", Vm::Evm), ("move", Vm::Move), ("wasm", Vm::Wasm), ("none", Vm::None)];

fn chain(table: &mut Table<'_>) -> ChainDraft {
    let endpoints = table.table("endpoints", |table| {
        let addresses = ["rpc", "rest", "json_rpc", "executor"].map(|kind| table.addresses(kind));
        (addresses, table.secrets())
    });
    let ([rpc, rest, json_rpc, executor], secret) = endpoints.unwrap_or_default();
    let layer_zero = table.table("layer_zero", |table| (table.number("eid"), table.text("endpoint")));
    let (layer_zero_eid, layer_zero_endpoint) = layer_zero.unwrap_or_default();
    let fee_assets = table.tables("fee_assets", fee_asset);
    ChainDraft {
        id: table.needed("id"),
        name: table.text("name"),
        pretty_name: table.text("pretty_name"),
        kind: table.choice("kind", &[("cosmos", ChainKind::Cosmos), ("evm", ChainKind::Evm)]),
        vm: table.choice("vm", &VMS),
        initia: table.flag("initia"),
        l1: table.flag("l1"),
        bech32_prefix: table.text("bech32_prefix"),
        testnet: table.flag("testnet"),
        hidden: table.flag("hidden"),
        forwards: table.flag("forwards"),
        logo_uri: table.text("logo_uri"),
        explorer_tx: table.text("explorer_tx"),
        rpc,
        rest,
        json_rpc,
        executor,
        secret: (!secret.is_empty()).then_some(secret),
        fee_assets: (!fee_assets.is_empty()).then_some(fee_assets),
        native: table.table("native", native),
        layer_zero_eid,
        layer_zero_endpoint,
        confirmations: table.number("confirmations"),
        block_seconds: table.number("block_seconds"),
    }
}

fn fee_asset(table: &mut Table<'_>) -> FeeAsset {
    FeeAsset {
        denom: table.needed("denom"),
        low: table.decimal("low").unwrap_or_default(),
        average: table.decimal("average").unwrap_or_default(),
        high: table.decimal("high").unwrap_or_default(),
    }
}

fn native(table: &mut Table<'_>) -> NativeDraft {
    NativeDraft {
        name: table.needed("name"),
        symbol: table.needed("symbol"),
        decimals: table.number("decimals").unwrap_or(18),
        denom: table.text("denom"),
    }
}

fn channel(table: &mut Table<'_>) -> ChannelDraft {
    let a = table.needed("a");
    let a = end(table, "a", &a);
    let b = table.text("b").map(|b| end(table, "b", &b));
    ChannelDraft { a, b, paused: table.text("paused"), seconds: table.number("seconds") }
}

/// `chain/port/channel`; a chain's id has no slash.
fn end(table: &mut Table<'_>, key: &str, text: &str) -> EndDraft {
    let parts: Vec<_> = text.split('/').collect();
    if let [chain, port, channel] = parts[..]
        && parts.iter().all(|part| !part.is_empty())
    {
        return EndDraft { chain: chain.to_owned(), port: port.to_owned(), channel: channel.to_owned() };
    }
    if !text.is_empty() {
        table.refuse(key, "must be chain, port and channel such as \"interwoven-1/transfer/channel-0\"");
    }
    EndDraft { chain: String::new(), port: String::new(), channel: String::new() }
}

fn bridge(table: &mut Table<'_>) -> BridgeDraft {
    let migrated = table.tables("migrated", |table| {
        let denom = table.needed("denom");
        let channel = table.needed("channel");
        let (port, channel) = channel.split_once('/').unwrap_or((TRANSFER, &channel));
        (denom, port.to_owned(), channel.to_owned())
    });
    BridgeDraft {
        l2: table.needed("l2"),
        id: table.number("id"),
        l1: table.text("l1"),
        paused: table.text("paused"),
        deposit_seconds: table.number("deposit_seconds"),
        finalization_seconds: table.number("finalization_seconds"),
        submission_seconds: table.number("submission_seconds"),
        migrated: (!migrated.is_empty()).then_some(migrated),
    }
}

fn asset(table: &mut Table<'_>) -> AssetDraft {
    let origins = [
        table.table("ibc", |table| OriginDraft::Ibc {
            port: table.text("port").unwrap_or_else(|| TRANSFER.to_owned()),
            channel: table.needed("channel"),
            from: table.needed("from"),
        }),
        table.table("bridged", |table| OriginDraft::Bridged { from: table.needed("from") }),
        table.table("wrapped", |table| OriginDraft::Wrapped {
            contract: table.needed("contract"),
            from: table.needed("from"),
        }),
    ];
    let path = table.text("path");
    if origins.iter().flatten().count() + usize::from(path.is_some()) > 1 {
        table.refuse("chain", "an asset has one of `ibc`, `bridged`, `wrapped` and `path` at most");
    }
    AssetDraft {
        chain: table.needed("chain"),
        denom: table.text("denom"),
        path,
        symbol: table.text("symbol"),
        name: table.text("name"),
        decimals: table.number("decimals"),
        contract: table.text("contract"),
        logo_uri: table.text("logo_uri"),
        description: table.text("description"),
        coingecko_id: table.text("coingecko_id"),
        price_usd: table.decimal("price_usd"),
        // An asset that a file names is visible, even if other assets imply it.
        hidden: Some(table.flag("hidden").unwrap_or(false)),
        origin: origins.into_iter().flatten().next(),
        terms: table.table("terms", terms),
    }
}

fn terms(table: &mut Table<'_>) -> Terms {
    let fee_bps = table.number("fee_bps").unwrap_or(0);
    if fee_bps > 10_000 {
        table.refuse("fee_bps", "must be at most 10000: hundredths of a percent");
    }
    Terms {
        paused: table.text("paused"),
        seconds: table.number("seconds"),
        min_amount: table.amount("min_amount").unwrap_or_default(),
        fee_amount: table.amount("fee_amount").unwrap_or_default(),
        fee_bps,
    }
}

fn oft(table: &mut Table<'_>) -> OftDraft {
    OftDraft { symbol: table.needed("symbol"), legs: table.tables("leg", leg) }
}

const LEG_KINDS: [(&str, LegKind); 4] = [
    ("token", LegKind::Token),
    ("adapter", LegKind::Adapter),
    ("native_adapter", LegKind::NativeAdapter),
    ("move", LegKind::Move),
];

fn leg(table: &mut Table<'_>) -> LegDraft {
    let kind = table.choice("kind", &LEG_KINDS);
    if kind.is_none() {
        table.needed("kind");
    }
    LegDraft {
        place: table.place().clone(),
        chain: table.needed("chain"),
        denom: table.needed("denom"),
        kind: kind.unwrap_or(LegKind::Token),
        contract: table.needed("contract"),
        eid: table.number("eid"),
        shared_decimals: table.number("shared_decimals").unwrap_or(6),
        options: table.text("options").unwrap_or_else(|| "0x".to_owned()),
        messaging_fee: table.amount("messaging_fee"),
        terms: table.table("terms", terms).unwrap_or_default(),
    }
}

fn venue(table: &mut Table<'_>) -> VenueDraft {
    VenueDraft { name: table.needed("name"), chain: table.needed("chain"), logo_uri: table.text("logo_uri") }
}

fn bridge_kind(table: &mut Table<'_>) -> (BridgeKind, String) {
    let choices = BridgeKind::ALL.map(|kind| (kind.id(), kind));
    let kind = table.choice("id", &choices);
    if kind.is_none() {
        table.needed("id");
    }
    (kind.unwrap_or(BridgeKind::Ibc), table.needed("logo_uri"))
}
