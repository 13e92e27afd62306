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
