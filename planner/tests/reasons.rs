//! Why there is no way: the words have to name what really stands in it.

mod mainnet;

use chain::U256;
use mainnet::{CABAL_USDC, ETH, Fee, IBC_INIT, Mainnet, USDC, YOMI_INIT};
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
fn bridges_that_are_not_wanted_are_named() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(NOBLE, CABAL, 1);
    request.bridges = Some(vec![BridgeKind::OpInit, BridgeKind::LayerZero]);
    let why = mainnet.plan(&request).unwrap_err().to_string();
    assert!(why.ends_with("over the bridges OPINIT, LAYER_ZERO"), "{why}");
    request.bridges = Some(vec![BridgeKind::Ibc]);
    assert!(mainnet.plan(&request).is_ok());
}

#[test]
fn a_closed_channel_is_named_with_what_the_chain_said() {
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
    let said = registry::facts::BridgeFacts { disabled: true, ..registry::facts::BridgeFacts::default() };
    mainnet.facts.bridges.insert(("interwoven-1".to_owned(), 11), said);
    let why = mainnet.plan(&mainnet.request(INIT, ("yominet-1", YOMI_INIT), 1)).unwrap_err();
    assert!(
        matches!(&why, NoRoute::Paused(text) if text.contains("bridge 11 is paused: the bridge is disabled"))
    );
}

#[test]
fn the_minimum_is_that_of_the_whole_way_in_what_is_sent() {
    // 1 % at the second hop, a flat fee at the first, and a minimum behind both.
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
fn dust_is_told_in_what_is_sent() {
    let mainnet = Mainnet::new();
    let ask = |amount: u64| mainnet.plan(&mainnet.request(CABAL, NOBLE, amount));
    let multiple = U256::from(1_000_000_000_000u64);
    assert_eq!(ask(1), Err(NoRoute::Dust { multiple }));
    assert_eq!(ask(1_500_000_000_000), Err(NoRoute::Dust { multiple }));
    assert!(ask(2_000_000_000_000).is_ok());
}

#[test]
fn what_overflows_is_too_large() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(NOBLE, CABAL, 0);
    request.amount_in = U256::MAX;
    let why = mainnet.plan(&request).unwrap_err();
    assert!(matches!(why, NoRoute::TooLarge { amount: U256::MAX, .. }), "{why}");
}

#[test]
fn a_contract_that_says_nothing_is_named() {
    let mut mainnet = Mainnet::new();
    mainnet.fee = Fee(None);
    let request = mainnet.request(("1", "ethereum-native"), ("interwoven-1", ETH), 1_000_000_000_000_000);
    let why = mainnet.plan(&request).unwrap_err();
    assert!(
        matches!(&why, NoRoute::NoQuote(hop) if hop.contains("0x1111111111111111111111111111111111111111"))
    );
}

#[test]
fn what_the_client_can_change_is_told_before_a_pause() {
    let mut mainnet = Mainnet::with(|denom, asset| {
        if denom == IBC_INIT {
            asset.terms.paused = Some("repairs".to_owned());
            asset.terms.min_amount = U256::from(10);
        }
    });
    // Both stand in the way, so neither is enough: the first on the way is named.
    let why = mainnet.plan(&mainnet.request(INIT, ("echelon-1", IBC_INIT), 5)).unwrap_err();
    assert!(matches!(&why, NoRoute::Paused(text) if text.ends_with("repairs")), "{why}");
    mainnet.facts.hooks.clear();
    let why = mainnet.plan(&mainnet.request(NOBLE, CABAL, 5)).unwrap_err();
    assert_eq!(why, NoRoute::SeveralTxs { txs: 2 });
}

/// A rollup with a chain beside its L1, and a token of each kind of origin.
const SOUND: &str = r#"
[[chain]]
id = "l1-1"
name = "initia"
vm = "move"
l1 = true
fee_assets = [{ denom = "uinit" }]

[[chain]]
id = "l2-1"
vm = "evm"
fee_assets = [{ denom = "uinit" }]

[[chain]]
id = "1"
name = "ethereum"
kind = "evm"
native = { name = "Ether", symbol = "ETH" }
layer_zero = { eid = 1 }

[[channel]]
a = "l1-1/transfer/channel-3"
b = "l2-1/transfer/channel-0"

[[bridge]]
id = 7
l1 = "l1-1"
l2 = "l2-1"

[[asset]]
chain = "l1-1"
denom = "uinit"
symbol = "INIT"
decimals = 6
price_usd = "0.15"

[[asset]]
chain = "l2-1"
symbol = "INIT.op"
contract = "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb"
bridged = { from = "uinit" }

[[asset]]
chain = "l2-1"
denom = "evm/5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
symbol = "INIT.wrapped"
wrapped = { contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "L2" }

[[asset]]
chain = "l2-1"
symbol = "INIT.ibc"
ibc = { channel = "channel-0", from = "uinit" }

[[asset]]
chain = "l2-1"
denom = "evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4"
symbol = "ONYX"
decimals = 18

[[asset]]
chain = "l2-1"
denom = "evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0"
symbol = "ONYX.remote"
decimals = 6
wrapped = { contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4" }

[[asset]]
chain = "l1-1"
symbol = "ONYX"
ibc = { channel = "channel-3", from = "evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0" }

[[asset]]
chain = "l1-1"
denom = "move/edfcddac"
symbol = "ETH"
decimals = 6

[[oft]]
symbol = "ETH"
leg = [
    { chain = "1", denom = "ethereum-native", kind = "native_adapter", contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", messaging_fee = 1 },
    { chain = "l1-1", denom = "move/edfcddac", kind = "move", contract = "0x2222", eid = 2, messaging_fee = 1 },
]
"#;

/// Every flaw of one text: what it replaces, and what is there instead.
const FLAWS: &[(&str, &str)] = &[
    (r#""0.15""#, r#""much""#),
    ("0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb", "0x1D14"),
    ("0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb", "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6Efb"),
    ("evm/5aAeb6053", "evm/5AAeb6053"),
    (
        r#"symbol = "INIT.wrapped""#,
        "symbol = \"INIT.wrapped\"\ncontract = \"0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb\"",
    ),
    (r#"symbol = "INIT.wrapped""#, "symbol = \"INIT.wrapped\"\ndecimals = 6"),
    (r#"symbol = "INIT.wrapped""#, "symbol = \"INIT.wrapped\"\ndecimals = 12"),
    ("symbol = \"ONYX\"\ndecimals = 18", "symbol = \"ONYX\"\ndecimals = 6"),
    ("symbol = \"ONYX.remote\"\ndecimals = 6", "symbol = \"ONYX.remote\"\ndecimals = 8"),
    (
        r#"contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "L2""#,
        r#"contract = "0xfB", from = "L2""#,
    ),
    (r#"symbol = "INIT.ibc""#, "symbol = \"INIT.ibc\"\ndecimals = 7"),
    (r#"symbol = "INIT.op""#, "symbol = \"INIT.op\"\ndecimals = 7"),
    // The same remote token for another local one.
    (
        "[[oft]]",
        r#"
[[asset]]
chain = "l2-1"
denom = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96"
symbol = "INIT.other"
wrapped = { contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "L2" }

[[oft]]"#,
    ),
    ("eid = 2, messaging_fee", "eid = 1, messaging_fee"),
    (r#"kind = "move""#, r#"kind = "token""#),
    (
        r#"kind = "native_adapter", contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359""#,
        r#"kind = "native_adapter", contract = "0xfB""#,
    ),
    ("l1 = true", "initia = true"),
];

struct OneForOne;

impl planner::Quotes for OneForOne {
    fn quote(&self, _: registry::OftRef, _: usize, _: usize, amount: U256) -> Option<registry::facts::Quote> {
        Some(registry::facts::Quote { received: amount, native_fee: U256::ONE })
    }
}

#[test]
fn no_route_uses_a_part_that_has_an_error() {
    let text = SOUND.replace("\"L2\"", &format!("{:?}", registry::denom::bridged(7, "uinit")));
    let sound = reached(&text).unwrap();
    assert_eq!(sound.refused, 0, "{:?}", sound.reasons);
    assert_eq!(sound.routes, 19);
    let mut loaded = 0;
    for (from, to) in FLAWS {
        let from = from.replace("\"L2\"", &format!("{:?}", registry::denom::bridged(7, "uinit")));
        let to = to.replace("\"L2\"", &format!("{:?}", registry::denom::bridged(7, "uinit")));
        assert!(text.contains(&from), "{from}");
        // A file with some of them does not load at all, which is as safe.
        let Some(flawed) = reached(&text.replace(&from, &to)) else { continue };
        loaded += 1;
        assert!(flawed.errors > 0, "{to}: no error");
        assert!(flawed.routes < sound.routes, "{to}");
    }
    assert!(loaded > FLAWS.len() / 2, "{loaded}");
}

#[derive(Default)]
struct Reached {
    errors: usize,
    routes: usize,
    /// Pairs of which one has an error.
    refused: usize,
    reasons: Vec<String>,
}

/// Asks for a route between any two tokens; those with an error must have none, and say so.
fn reached(text: &str) -> Option<Reached> {
    use registry::{Origin, Part};
    let registry = registry::load_text(text).ok()?;
    let (graph, facts) = (planner::Graph::new(&registry), registry::Facts::default());
    let world = planner::World { registry: &registry, facts: &facts, quotes: &OneForOne };
    let errors = registry::check(&registry);
    let errors = errors.iter().filter(|problem| problem.severity == registry::Severity::Error).count();
    let mut reached = Reached { errors, ..Reached::default() };
    let bad = |asset| registry.error(Part::Asset(asset)).is_some();
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
                Err(why) if bad(from) || bad(to) => {
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
