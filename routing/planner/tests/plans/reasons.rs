//! Reasons why there is no route: the message must name the actual obstacle.

#[path = "../../../registry/tests/files/flaws/mod.rs"]
mod flaws;

use crate::mainnet::{CABAL_USDC, ETH, Fee, IBC_INIT, Mainnet, USDC, YOMI_INIT};
use chain::U256;
use planner::NoRoute;
use registry::BridgeKind;

const NOBLE: (&str, &str) = ("noble-1", "uusdc");
const CABAL: (&str, &str) = ("cabal-1", CABAL_USDC);
const INIT: (&str, &str) = ("interwoven-1", "uinit");

#[test]
fn nothing_connects_two_tokens() {
    let mainnet = Mainnet::new();
    let why = mainnet.plan(&mainnet.request(NOBLE, INIT, 1)).unwrap_err();
    assert_eq!(
        why.to_string(),
        "no routes found: nothing connects uusdc on noble-1 with uinit on interwoven-1"
    );
}

#[test]
fn excluded_bridges_are_named() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(NOBLE, CABAL, 1);
    request.bridges = Some(vec![BridgeKind::OpInit, BridgeKind::LayerZero]);
    let why = mainnet.plan(&request).unwrap_err().to_string();
    assert!(why.ends_with("over the bridges OPINIT, LAYER_ZERO"), "{why}");
    request.bridges = Some(vec![BridgeKind::Ibc]);
    assert!(mainnet.plan(&request).is_ok());
}

#[test]
fn a_closed_channel_is_named_with_the_chains_answer() {
    let mut mainnet = Mainnet::new();
    let end = ("cabal-1".to_owned(), "transfer".to_owned(), "channel-0".to_owned());
    mainnet.facts.closed.insert(end, "its client expired".to_owned());
    let why = mainnet.plan(&mainnet.request(NOBLE, CABAL, 1_000_000)).unwrap_err();
    let expected = format!(
        "no routes found: the IBC transfer of {USDC} from interwoven-1 to cabal-1 by transfer/channel-97 is paused: its \
         client expired"
    );
    assert_eq!(why.to_string(), expected);
}

#[test]
fn a_bridge_that_is_disabled_stops_deposits() {
    let mut mainnet = Mainnet::new();
    let bridge_facts =
        registry::facts::BridgeFacts { disabled: true, ..registry::facts::BridgeFacts::default() };
    mainnet.facts.bridges.insert(("interwoven-1".to_owned(), 11), bridge_facts);
    let why = mainnet.plan(&mainnet.request(INIT, ("yominet-1", YOMI_INIT), 1)).unwrap_err();
    assert!(
        matches!(&why, NoRoute::Paused(text) if text.contains("bridge 11 is paused: the bridge is disabled"))
    );
}

#[test]
fn the_minimum_is_that_of_the_whole_path_in_the_source_asset() {
    // 1 % at the second hop, a flat fee at the first, and a minimum after both.
    let mainnet = Mainnet::with(|denom, asset| match denom {
        USDC => asset.terms.fee_amount = U256::from(100),
        CABAL_USDC => asset.terms.min_amount = U256::from(990),
        "ibc/AA4E7DF065DC4D4B29B8662A919295F525B19251FB2618C41C0DED3BD1128FEE" => asset.terms.fee_bps = 100,
        _ => {}
    });
    let ask = |amount| mainnet.plan(&mainnet.request(NOBLE, CABAL, amount));
    let Err(NoRoute::TooSmall { amount, minimum, hop }) = ask(500) else { panic!("it is enough") };
    assert_eq!((amount, minimum), (U256::from(500), U256::from(1_100)));
    assert!(hop.starts_with("wrapping"), "{hop}");
    assert!(ask(1_100).is_ok());
    assert!(ask(1_099).is_err());
    let Err(NoRoute::TooSmall { minimum, .. }) = ask(100) else { panic!("it is enough") };
    assert_eq!(minimum, U256::from(1_100));
}

#[test]
fn dust_is_reported_in_the_source_asset() {
    let mainnet = Mainnet::new();
    let ask = |amount: u64| mainnet.plan(&mainnet.request(CABAL, NOBLE, amount));
    let multiple = U256::from(1_000_000_000_000u64);
    assert_eq!(ask(1), Err(NoRoute::Dust { multiple, usable: None }));
    let usable = Some(U256::from(1_000_000_000_000u64));
    assert_eq!(ask(1_500_000_000_000), Err(NoRoute::Dust { multiple, usable }));
    assert!(ask(2_000_000_000_000).is_ok());
}

#[test]
fn an_overflowing_amount_is_too_large() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(NOBLE, CABAL, 0);
    request.amount_in = U256::MAX;
    let why = mainnet.plan(&request).unwrap_err();
    assert!(matches!(why, NoRoute::TooLarge { amount: U256::MAX, .. }), "{why}");
}

#[test]
fn a_contract_without_an_answer_is_named() {
    let mut mainnet = Mainnet::new();
    mainnet.fee = Fee(None);
    let request = mainnet.request(("1", "ethereum-native"), ("interwoven-1", ETH), 1_000_000_000_000_000);
    let why = mainnet.plan(&request).unwrap_err();
    assert!(
        matches!(&why, NoRoute::NoQuote(hop) if hop.contains("0x1111111111111111111111111111111111111111"))
    );
}

#[test]
fn limits_that_the_client_can_change_are_reported_before_a_pause() {
    let mut mainnet = Mainnet::with(|denom, asset| {
        if denom == IBC_INIT {
            asset.terms.paused = Some("repairs".to_owned());
            asset.terms.min_amount = U256::from(10);
        }
    });
    // Both block the route, so neither alone is enough: the first on the path is named.
    let why = mainnet.plan(&mainnet.request(INIT, ("echelon-1", IBC_INIT), 5)).unwrap_err();
    assert!(matches!(&why, NoRoute::Paused(text) if text.ends_with("repairs")), "{why}");
    mainnet.facts.hooks.clear();
    let why = mainnet.plan(&mainnet.request(NOBLE, CABAL, 5)).unwrap_err();
    assert_eq!(why, NoRoute::SeveralTxs { txs: 2 });
}

struct OneForOne;

impl planner::Quotes for OneForOne {
    fn quote(&self, _: registry::OftRef, _: usize, _: usize, amount: U256) -> Option<registry::facts::Quote> {
        Some(registry::facts::Quote { received: amount, native_fee: U256::ONE })
    }
}

#[test]
fn no_route_uses_a_part_that_has_an_error() {
    let sound = reached(&flaws::sound()).unwrap();
    assert_eq!((sound.errors, sound.refused, sound.routes), (0, 0, 19), "{:?}", sound.reasons);
    let mut cut = 0;
    for (text, found) in flaws::flawed() {
        // Files with some of the flaws do not load at all, which is equally safe.
        let Some(flawed) = reached(&text) else { continue };
        // Errors of chains and warnings exclude no asset.
        if flawed.errors > 0 {
            cut += 1;
            assert!(flawed.routes < sound.routes, "{found}");
        }
    }
    assert_eq!(cut, 18);
}

#[derive(Default)]
struct Reached {
    /// Number of assets, bridges and groups with an error.
    errors: usize,
    routes: usize,
    /// Pairs with an error in one of their assets, or in the only bridge or group that would connect them.
    refused: usize,
    reasons: Vec<String>,
}

/// Requests a route between each pair of tokens; one with an error must have none, and be named.
fn reached(text: &str) -> Option<Reached> {
    use registry::{Origin, Part};
    let registry = registry::load_text(text).ok()?;
    let (graph, facts) = (planner::Graph::new(&registry), registry::Facts::default());
    let world = planner::World { registry: &registry, facts: &facts, quotes: &OneForOne };
    let assets = registry.assets().map(|(asset, _)| Part::Asset(asset));
    let bridges = registry.bridges().map(|(bridge, _)| Part::Bridge(bridge));
    let ofts = registry.ofts().map(|(oft, _)| Part::Oft(oft));
    let errors = assets.chain(bridges).chain(ofts).filter(|part| registry.error(*part).is_some()).count();
    let mut reached = Reached { errors, ..Reached::default() };
    let bad = |asset| registry.error(Part::Asset(asset)).is_some();
    let bad_oft = |asset| {
        let mut ofts = registry.ofts().filter(|(oft, _)| registry.error(Part::Oft(*oft)).is_some());
        ofts.any(|(_, group)| group.legs.iter().any(|leg| leg.asset == asset))
    };
    for (from, _) in registry.assets() {
        for (to, _) in registry.assets().filter(|(to, _)| *to != from) {
            let request = planner::Request {
                from,
                to,
                amount_in: U256::from(10).pow(U256::from(20)),
                op_withdraw: false,
                multi_tx: true,
                op_hook: true,
                bridges: None,
            };
            match planner::plan(&graph, world, &request) {
                Ok(plans) => {
                    assert!(!bad(from) && !bad(to), "{text}");
                    reached.routes += 1;
                    for hop in plans.iter().flat_map(|plan| &plan.hops) {
                        assert!(!bad(hop.from) && !bad(hop.to), "{text}");
                        for asset in [hop.from, hop.to] {
                            let Origin::Bridged { bridge, .. } = registry[asset].origin else { continue };
                            let by_bridge = matches!(
                                hop.step,
                                planner::Step::Deposit { .. } | planner::Step::Withdraw { .. }
                            );
                            assert!(!by_bridge || registry.error(Part::Bridge(bridge)).is_none(), "{text}");
                        }
                        if let planner::Step::LayerZero { oft, .. } = hop.step {
                            assert!(registry.error(Part::Oft(oft)).is_none(), "{text}");
                        }
                    }
                }
                Err(why) if bad(from) || bad(to) || (bad_oft(from) && bad_oft(to)) => {
                    reached.refused += 1;
                    assert!(matches!(why, NoRoute::Doubt(_)), "{why}");
                    assert!(why.to_string().contains("the registry has an error in "), "{why}");
                }
                Err(why) => reached.reasons.push(why.to_string()),
            }
        }
    }
    Some(reached)
}
