//! Public registries with every known kind of defect.
//!
//! The fixtures are hand-written in the public layouts; `both/` imports `initia/` and `chain-registry/`.

use std::path::{Path, PathBuf};

use registry::{AssetRef, ChainRef, LoadError, Loaded, Origin, Registry, Severity};

const USDC: &str = "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4";
const PURE_INIT: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";
const OP_INIT: &str = "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A folder as a value in TOML.
fn text_of(path: &Path) -> String {
    path.display().to_string()
}

fn load(name: &str) -> Loaded {
    let environment = |name: &str| (name == "NOBLE").then(|| "noble".to_owned());
    registry::load_with(&folder(name), &environment).unwrap()
}

fn chain(registry: &Registry, id: &str) -> ChainRef {
    registry.chain(id).unwrap()
}

fn asset(registry: &Registry, id: &str, denom: &str) -> AssetRef {
    registry.asset(chain(registry, id), denom).unwrap_or_else(|| panic!("{denom} of {id}"))
}

fn by_symbol(registry: &Registry, id: &str, symbol: &str) -> AssetRef {
    let chain = chain(registry, id);
    let mut found = registry.assets().filter(|(_, asset)| asset.chain == chain && asset.symbol == symbol);
    found.find(|(_, asset)| !asset.hidden).unwrap().0
}

/// The channel's other end: chain id and channel.
fn beyond(registry: &Registry, id: &str, channel: &str) -> Option<(String, String)> {
    let here = chain(registry, id);
    let end = registry[registry.channel_at(here, "transfer", channel)?].beyond(here)?;
    Some((registry[end.chain].id.clone(), end.channel.clone()))
}

fn problems_with<'a>(loaded: &'a Loaded, part: &str) -> Vec<&'a registry::Problem> {
    loaded.problems.iter().filter(|problem| problem.to_string().contains(part)).collect()
}

#[test]
fn a_channel_that_only_a_trace_names_is_a_channel() {
    // 1
    let registry = load("both").registry;
    assert_eq!(
        beyond(&registry, "interwoven-1", "channel-10"),
        Some(("celestia".into(), "channel-86".into()))
    );
    let tia = by_symbol(&registry, "interwoven-1", "TIA");
    assert_eq!(registry[registry.root(tia)].denom, "utia");
}

#[test]
fn if_a_trace_contradicts_both_chains_the_chains_have_precedence() {
    // 2
    let loaded = load("both");
    let registry = &loaded.registry;
    let ends = beyond(registry, "strat-1", "channel-0");
    assert_eq!(ends, Some(("interwoven-1".into(), "channel-99".into())));
    let Origin::Ibc { parent, .. } = registry[asset(registry, "strat-1", PURE_INIT)].origin else { panic!() };
    assert_eq!(registry[parent].denom, "uinit");
    let reported = problems_with(&loaded, "channel-3101");
    assert_eq!(reported.len(), 1, "{:?}", loaded.problems);
    assert_eq!(reported[0].severity, Severity::Warning);
    assert_eq!(reported[0].place.file.as_deref(), Some("../initia/mainnets/strat/assetlist.json"));
}

#[test]
fn a_channel_to_a_removed_chain_is_reported_and_left_out() {
    // 3
    let loaded = load("both");
    assert_eq!(loaded.registry.chain("intergaze-1"), None);
    assert_eq!(beyond(&loaded.registry, "interwoven-1", "channel-7"), None);
    assert_eq!(problems_with(&loaded, "channel-7 to intergaze-1").len(), 1);
    assert_eq!(loaded.registry.chain("gone-1"), None);
    assert!(problems_with(&loaded, "gone-1").is_empty());
}

#[test]
fn both_channels_to_osmosis_exist_and_the_path_of_a_token_decides() {
    // 4
    let registry = load("both").registry;
    let to_osmosis = |channel: &str, other: &str| {
        assert_eq!(beyond(&registry, "interwoven-1", channel), Some(("osmosis-1".into(), other.into())));
    };
    to_osmosis("channel-71", "channel-102129");
    to_osmosis("channel-68", "channel-102122");
    let milk = by_symbol(&registry, "interwoven-1", "milkTIA");
    let Origin::Ibc { channel, parent } = registry[milk].origin else { panic!() };
    assert_eq!(registry[channel].on(chain(&registry, "interwoven-1")).unwrap().channel, "channel-71");
    assert_eq!(registry[parent].origin, Origin::Native);
}

#[test]
fn an_operators_unlisted_bridged_coin_is_hidden() {
    // 5
    let registry = load("initia").registry;
    let shown = by_symbol(&registry, "strat-1", "INIT");
    assert_eq!(registry[shown].denom, PURE_INIT);
    let strat = chain(&registry, "strat-1");
    let bridged = registry
        .assets()
        .find(|(_, asset)| asset.chain == strat && matches!(asset.origin, Origin::Bridged { .. }));
    let (_, bridged) = bridged.unwrap();
    assert!(bridged.hidden);
    assert_eq!((bridged.symbol.as_str(), bridged.decimals), ("INIT", 6));
    let iusd = by_symbol(&registry, "hotake-1", "iUSD");
    let Origin::Wrapped { parent, .. } = &registry[iusd].origin else { panic!() };
    assert!(matches!(registry[*parent].origin, Origin::Ibc { .. }));
    assert!(registry[*parent].hidden);
    assert_eq!(registry[*parent].decimals, 6);
}

#[test]
fn an_asset_without_traces_counts_as_native() {
    // 6
    let registry = load("initia").registry;
    for (id, symbol) in [("interwoven-1", "ETH"), ("yominet-1", "ETH")] {
        let eth = by_symbol(&registry, id, symbol);
        assert_eq!(registry[eth].origin, Origin::Native);
        assert_eq!(registry.trace(eth), "");
    }
}

#[test]
fn a_list_with_an_old_chain_id_gives_no_channel_and_is_reported() {
    // 7
    let own = tempfile::tempdir().unwrap();
    let devnets = text_of(&folder("initia"));
    let text = format!("[import]\ninitia = '{devnets}'\nnetwork = 'devnets'\n");
    std::fs::write(own.path().join("registry.toml"), text).unwrap();
    let loaded = registry::load(own.path()).unwrap();
    assert_eq!(loaded.registry.channels().count(), 0);
    assert_eq!(
        problems_with(&loaded, "stone-17 channel-0 to stonewasm-16").len(),
        1,
        "{:?}",
        loaded.problems
    );
    assert_eq!(problems_with(&loaded, "stonewasm-17 channel-0 to stone-17").len(), 1);
    let (_, bridge) = loaded.registry.bridges().next().unwrap();
    assert_eq!(bridge.id, 5);
    assert!(loaded.registry.chains().all(|(_, chain)| chain.testnet));
}

#[test]
fn a_broken_chain_and_a_broken_asset_are_skipped_and_reported_with_their_file() {
    let loaded = load("initia");
    assert_eq!(loaded.registry.chains().count(), 4);
    let reported = problems_with(&loaded, "mainnets/broken/chain.json");
    assert_eq!(reported.len(), 1);
    assert!(reported[0].what.contains("cannot be read") && reported[0].severity == Severity::Error);
    assert_eq!(problems_with(&loaded, "`NONE`: `base` is not text").len(), 1, "{:?}", loaded.problems);
}

#[test]
fn an_asset_whose_denomination_is_not_that_of_its_path_is_left_out() {
    let loaded = load("both");
    let reported = problems_with(&loaded, "uanother");
    assert_eq!(reported.len(), 1, "{:?}", loaded.problems);
    assert!(reported[0].what.contains("left out") && reported[0].severity == Severity::Warning);
    let l1 = chain(&loaded.registry, "interwoven-1");
    assert!(loaded.registry.assets().all(|(_, asset)| asset.chain != l1 || asset.symbol != "WRONG"));
}

#[test]
fn the_initia_registry_alone_gives_the_fields_that_a_router_needs() {
    let registry = load("initia").registry;
    let yominet = &registry[chain(&registry, "yominet-1")];
    assert_eq!((yominet.name.as_str(), yominet.vm, yominet.l1), ("yominet", chain::Vm::Evm, false));
    assert!(yominet.initia && yominet.forwards && !yominet.testnet && !yominet.hidden);
    assert_eq!(yominet.endpoints.rpc, ["https://rpc-yominet.example.org"]);
    assert_eq!(yominet.endpoints.json_rpc, ["https://jsonrpc-yominet.example.org"]);
    assert_eq!(yominet.endpoints.executor, ["https://executor-yominet.example.org"]);
    assert_eq!(yominet.explorer_tx.as_deref(), Some("https://scan.example.org/yominet-1/txs/${txHash}"));
    let fee = &yominet.fee_assets[0];
    assert_eq!([&fee.low, &fee.average, &fee.high], ["5000000"; 3]);
    let (first, l1) = registry.chains().next().unwrap();
    assert_eq!((l1.id.as_str(), l1.vm, l1.l1), ("interwoven-1", chain::Vm::Move, true));
    assert_eq!(registry.bridge_of(first, 11), registry.bridge_to(chain(&registry, "yominet-1")));
    let init = asset(&registry, "yominet-1", "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96");
    let Origin::Wrapped { contract, parent } = &registry[init].origin else { panic!() };
    assert_eq!(contract, "0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783");
    assert_eq!((registry[*parent].denom.as_str(), registry[*parent].hidden), (OP_INIT, true));
    assert_eq!(registry[init].contract.as_deref(), Some("0x856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96"));
    let returned = by_symbol(&registry, "interwoven-1", "INIT.yominet");
    assert_eq!(registry.path(returned), format!("transfer/channel-25/{OP_INIT}"));
    assert_eq!(registry[registry.root(returned)].denom, "uinit");
}

#[test]
fn a_voucher_of_a_chain_that_is_not_imported_keeps_its_path() {
    let registry = load("initia").registry;
    let usdc = asset(&registry, "interwoven-1", USDC);
    assert_eq!(registry[usdc].origin, Origin::Native);
    assert_eq!(registry.path(usdc), "transfer/channel-3/uusdc");
    // It is listed here, and on the path of other assets.
    assert!(!registry[usdc].hidden);
    let on_strat = by_symbol(&registry, "strat-1", "USDC");
    assert_eq!(registry.root(on_strat), usdc);
    assert_eq!(registry.trace(on_strat), "transfer/channel-0/transfer/channel-3");
}

#[test]
fn native_members_have_precedence_and_both_registries_fill_in_the_rest() {
    let registry = load("both").registry;
    let noble = &registry[chain(&registry, "noble-1")];
    assert!(noble.forwards && !noble.initia);
    assert_eq!(noble.endpoints.rpc, ["https://noble.example.org"]);
    assert_eq!(noble.bech32_prefix, "noble");
    assert_eq!(noble.fee_assets[0].low, "0.1");
    assert!(noble.endpoints.rest.is_empty() || noble.endpoints.rest == ["https://rest-noble.example.org"]);
    let l1 = chain(&registry, "interwoven-1");
    let channel = &registry[registry.channel_at(l1, "transfer", "channel-71").unwrap()];
    assert_eq!(channel.paused.as_deref(), Some("nobody relays"));
    let strat = chain(&registry, "strat-1");
    assert_eq!(registry[registry.channel_at(strat, "transfer", "channel-0").unwrap()].seconds, Some(40));
    let bridge = registry.bridge_to(chain(&registry, "yominet-1")).unwrap();
    assert_eq!((registry[bridge].id, registry[bridge].finalization_seconds), (11, 100));
    let usdc = asset(&registry, "interwoven-1", USDC);
    assert_eq!(registry[usdc].terms.fee_bps, 30);
    assert_eq!(registry[registry.root(usdc)].chain, chain(&registry, "noble-1"));
    // Children inherit the price.
    let wrapped = by_symbol(&registry, "yominet-1", "INIT");
    assert_eq!(registry[wrapped].price_usd.as_deref(), Some("0.15"));
}

#[test]
fn a_pair_file_that_contradicts_a_trace_is_reported_and_ignored() {
    let loaded = load("both");
    let ends = beyond(&loaded.registry, "interwoven-1", "channel-3");
    assert_eq!(ends, Some(("noble-1".into(), "channel-129".into())));
    assert_eq!(problems_with(&loaded, "channel-777").len(), 1, "{:?}", loaded.problems);
}

#[test]
fn the_chain_registry_alone_gives_chains_pairs_and_assets() {
    let loaded = load("chain-registry");
    let registry = &loaded.registry;
    let ids: Vec<_> = registry.chains().map(|(_, chain)| chain.id.as_str()).collect();
    assert_eq!(ids, ["celestia", "interwoven-1", "noble-1", "osmosis-1"]);
    let usdc = by_symbol(registry, "osmosis-1", "USDC");
    assert_eq!(registry[registry.root(usdc)].chain, chain(registry, "noble-1"));
    let osmosis = chain(registry, "osmosis-1");
    let dead = registry.channel_at(osmosis, "transfer", "channel-751").unwrap();
    assert_eq!(registry[dead].paused.as_deref(), Some("the chain registry says INACTIVE"));
    assert_eq!(registry.channel_at(osmosis, "transfer", "*"), None);
    // Over the port of a contract.
    assert_eq!(beyond(registry, "noble-1", "channel-4"), Some(("osmosis-1".into(), "channel-7".into())));
    // From an unlisted chain.
    let juno = by_symbol(registry, "osmosis-1", "JUNO");
    assert_eq!(registry.path(juno), "transfer/channel-5/ujuno");
    assert_eq!(registry[juno].origin, Origin::Native);
    assert_eq!(loaded.problems, []);
}

#[test]
fn only_the_requested_chains_are_imported() {
    let own = tempfile::tempdir().unwrap();
    let at = text_of(&folder("chain-registry"));
    let text = format!("[import]\nchain_registry = '{at}'\nchains = ['noble', 'osmosis-1', 'junoo']\n");
    std::fs::write(own.path().join("registry.toml"), text).unwrap();
    let loaded = registry::load(own.path()).unwrap();
    let ids: Vec<_> = loaded.registry.chains().map(|(_, chain)| chain.id.as_str()).collect();
    assert_eq!(ids, ["noble-1", "osmosis-1"]);
    assert_eq!(problems_with(&loaded, "`junoo`").len(), 1);
}

#[test]
fn the_built_site_gives_the_same_registry_as_the_checkout() {
    let site = tempfile::tempdir().unwrap();
    let mut chains = Vec::new();
    for name in ["initia", "yominet", "strat", "hotake"] {
        let from = folder("initia/mainnets").join(name);
        let chain: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(from.join("chain.json")).unwrap()).unwrap();
        chains.push(chain);
        let to = site.path().join("chains").join(name);
        std::fs::create_dir_all(&to).unwrap();
        std::fs::copy(from.join("assetlist.json"), to.join("assetlist.json")).unwrap();
    }
    let text = serde_json::to_string(&chains).unwrap();
    std::fs::write(site.path().join("chains.json"), text).unwrap();
    let loaded = registry::load(site.path()).unwrap();
    assert_eq!(loaded.registry.hash(), load("initia").registry.hash());
}

#[test]
fn an_overlay_of_a_missing_public_part_is_reported_and_left_out() {
    let own = tempfile::tempdir().unwrap();
    let at = text_of(&folder("chain-registry"));
    let text = format!(
        "[import]\nchain_registry = '{at}'\n[[channel]]\na = 'noble-1/transfer/channel-5'\npaused = 'x'\n\
         [[asset]]\nchain = 'juno-1'\ndenom = 'ujuno'\nsymbol = 'JUNO'\ndecimals = 6\n"
    );
    std::fs::write(own.path().join("registry.toml"), text).unwrap();
    let loaded = registry::load(own.path()).unwrap();
    let reported: Vec<_> = loaded.problems.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[1].starts_with("error: registry.toml line 6: `asset`: chain `juno-1` is in no list"),
        "{reported:?}"
    );
    assert!(
        reported[0].starts_with("error: registry.toml line 3: `channel`: `b` is missing"),
        "{reported:?}"
    );
}

#[test]
fn a_native_origin_replaces_the_imported_one() {
    let own = tempfile::tempdir().unwrap();
    let at = text_of(&folder("chain-registry"));
    let usdc = "ibc/498A0751C798A0D9A389AA3691123DADA57DAA4FE165D5C75894505B876BA6E4";
    let import = format!("[import]\nchain_registry = '{at}'\n");
    // Osmosis has no bridge, so the native origin keeps the path.
    let overlay =
        format!("[[asset]]\nchain = 'osmosis-1'\ndenom = '{usdc}'\nbridged = {{ from = 'uusdc' }}\n");
    for (text, is_native) in [(import.clone(), false), (import + &overlay, true)] {
        std::fs::write(own.path().join("registry.toml"), text).unwrap();
        let registry = registry::load(own.path()).unwrap().registry;
        let usdc = asset(&registry, "osmosis-1", usdc);
        assert_eq!(registry[usdc].origin == Origin::Native, is_native);
        assert_eq!(registry.path(usdc), "transfer/channel-750/uusdc");
    }
}

#[test]
fn a_folder_that_is_no_registry_is_refused_by_name() {
    let own = tempfile::tempdir().unwrap();
    let error = registry::load(own.path()).unwrap_err();
    assert!(matches!(error, LoadError::Empty(_)), "{error}");
    std::fs::write(own.path().join("registry.toml"), "[import]\ninitia = 'nowhere'\n").unwrap();
    let error = registry::load(own.path()).unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}
