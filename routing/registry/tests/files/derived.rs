//! Vouchers that no list has, paths that only a list knows, and chains that forward packets.

use std::path::Path;

use registry::{AssetRef, Facts, Origin, Registry, Severity};

/// Voucher of `uwasm` on `hub-1`: `transfer/channel-2/uwasm`.
const WASM_ON_HUB: &str = "ibc/7C6FA10FAE5443E629EAABD56AC8A81CED6E1A472CD0943E2409AA7EB7FD8833";
/// Voucher of `uhub` on `zone-1`, which its list has: `transfer/channel-0/uhub`.
const HUB_ON_ZONE: &str = "ibc/8ABB4C90BA3B7AB14E7393B8F68A9FF439DB5E502A0E708B63CC3FB6F7EDE102";

fn shapes() -> Registry {
    let loaded = registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes")).unwrap();
    let errors: Vec<_> =
        loaded.problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    assert_eq!(errors, [] as [&registry::Problem; 0]);
    loaded.registry
}

fn asset(registry: &Registry, chain: &str, denom: &str) -> Option<AssetRef> {
    registry.asset(registry.chain(chain).unwrap(), denom)
}

#[test]
fn a_voucher_that_no_list_has_is_derived_from_its_channel() {
    let registry = shapes();
    let voucher = asset(&registry, "hub-1", WASM_ON_HUB).unwrap();
    let Origin::Ibc { channel, parent } = registry[voucher].origin else { panic!() };
    assert_eq!(Some(parent), asset(&registry, "wasm-1", "uwasm"));
    assert_eq!(registry[channel].on(registry[voucher].chain).unwrap().channel, "channel-2");
    assert_eq!(registry.path(voucher), "transfer/channel-2/uwasm");
    assert_eq!(registry.trace(voucher), "transfer/channel-2");
    assert_eq!((registry.root(voucher), registry.issued(voucher)), (parent, Some(parent)));
    let about = &registry[voucher];
    assert_eq!((about.symbol.as_str(), about.decimals, about.hidden), ("WASM", 6, true));
    // The same, whether it is kept or not.
    let (passing, path) = registry.passing(voucher);
    assert_eq!((passing.into_owned(), &*path), (about.clone(), "transfer/channel-2/uwasm"));
}

#[test]
fn derived_vouchers_are_no_listed_assets() {
    let registry = shapes();
    let hub = registry.chain("hub-1").unwrap();
    let derived: Vec<_> = registry.derived_on(hub).collect();
    assert!(derived.contains(&asset(&registry, "hub-1", WASM_ON_HUB).unwrap()));
    assert!(
        derived.iter().all(|voucher| registry.is_derived(*voucher) && registry.chain_of(*voucher) == hub)
    );
    assert!(registry.assets().all(|(asset, _)| !registry.is_derived(asset)));
    // A token of a contract, a token that returns, one that a list has, and one on another chain.
    let parents: Vec<_> = derived
        .iter()
        .map(|voucher| registry[registry[*voucher].origin.parent().unwrap()].denom.clone())
        .collect();
    assert!(!parents.iter().any(|denom| denom.starts_with("cw20:") || denom == "uhub"), "{parents:?}");
    let listed = asset(&registry, "zone-1", HUB_ON_ZONE).unwrap();
    assert!(!registry.is_derived(listed));
    assert_eq!(asset(&registry, "zone-1", WASM_ON_HUB), None);
    assert_eq!(asset(&registry, "hub-1", &WASM_ON_HUB.to_lowercase()), None);
    // Those of an asset and of its ancestors.
    let from: Vec<_> =
        registry.derived_from(listed).map(|voucher| registry.path(voucher).to_owned()).collect();
    assert!(!from.is_empty() && from.iter().all(|path| path.ends_with("/uhub")), "{from:?}");
}

#[test]
fn the_path_of_a_list_is_believed_if_its_hash_is_the_denomination() {
    let registry = shapes();
    let by_symbol = |chain: &str, symbol: &str| {
        let chain = registry.chain(chain).unwrap();
        let mut found = registry.assets().filter(|(_, asset)| asset.chain == chain && asset.symbol == symbol);
        found.next().unwrap().0
    };
    // Over IBC v2 to the hub, then over a channel.
    let (on_hub, on_zone) = (by_symbol("hub-1", "ETH"), by_symbol("zone-1", "ETH"));
    assert_eq!(registry[on_zone].origin.parent(), Some(on_hub));
    assert_eq!(registry.trace(on_hub), "transfer/08-wasm-7");
    assert_eq!(registry.trace(on_zone), "transfer/channel-0/transfer/08-wasm-7");
    assert_eq!(registry.issued(on_zone), None);
    // The chain writes `factory:` in packets.
    let bar = by_symbol("zone-1", "BAR");
    assert_eq!(registry.path(bar), "transfer/channel-5/factory:smith1x:ubar");
    assert_eq!(registry[registry.root(bar)].denom, "factory/smith1x/ubar");
    // Display units that are aliases.
    assert_eq!(registry[by_symbol("hub-1", "HUB")].decimals, 6);
    assert_eq!(registry[by_symbol("wasm-1", "CW")].decimals, 0);
    // The port of a contract.
    let Origin::Ibc { channel, .. } = registry[by_symbol("zone-1", "CW")].origin else { panic!() };
    let port = &registry[channel].on(registry.chain("wasm-1").unwrap()).unwrap().port;
    assert_eq!(port, "wasm.wasm1bridge");
}

#[test]
fn forwarding_is_decided_by_the_operator_then_the_chain_then_the_list() {
    let of = |own: &str, answer: Option<bool>| {
        let text = format!("[[chain]]\nid = 'noble-1'\nbech32_prefix = 'noble'\n{own}");
        let registry = registry::load_text(&text).unwrap();
        let mut facts = Facts::default();
        facts.forwards.extend(answer.map(|answer| ("noble-1".to_owned(), answer)));
        facts.forwards(&registry, registry.chain("noble-1").unwrap())
    };
    assert!(of("", None), "the list");
    assert!(!of("", Some(false)), "the chain");
    assert!(of("forwards = true", Some(false)) && !of("forwards = false", Some(true)), "the operator");
}
