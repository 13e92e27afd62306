//! What the check finds, and that it finds nothing in the example.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it says")]

use std::path::Path;

use registry::{Part, Registry, Severity, check, load_text};

/// A registry without a flaw.
const SOUND: &str = r#"
[[chain]]
id = "l1-1"
name = "initia"
vm = "move"
l1 = true
fee_assets = [{ denom = "uinit", average = 0.015 }]
explorer_tx = "https://scan.example.org/${txHash}"
endpoints = { rpc = ["http://a"], rest = ["http://a"] }

[[chain]]
id = "l2-1"
vm = "evm"
fee_assets = [{ denom = "umin" }]
endpoints = { rpc = ["http://b"], rest = ["http://b"], executor = ["http://b"] }

[[chain]]
id = "1"
name = "ethereum"
kind = "evm"
native = { name = "Ether", symbol = "ETH" }
layer_zero = { eid = 1, endpoint = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed" }
endpoints = { json_rpc = ["http://c"] }

[[channel]]
a = "l1-1/transfer/channel-3"
b = "l2-1/transfer/channel-0"

[[bridge]]
id = 7
l2 = "l2-1"

[[asset]]
chain = "l1-1"
denom = "uinit"
symbol = "INIT"
decimals = 6
price_usd = "0.15"

[[asset]]
chain = "l2-1"
denom = "umin"
symbol = "MIN"
decimals = 6

[[asset]]
chain = "l2-1"
hidden = true
denom = "l2/DENOM"
bridged = { from = "uinit" }

[[asset]]
chain = "l2-1"
denom = "evm/5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
decimals = 18
wrapped = { contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "l2/DENOM" }

[[asset]]
chain = "l2-1"
symbol = "INIT.ibc"
ibc = { channel = "channel-0", from = "uinit" }

[[asset]]
chain = "l1-1"
denom = "move/edfcddac"
symbol = "ETH"
decimals = 6

[[oft]]
symbol = "ETH"
leg = [
    { chain = "1", denom = "ethereum-native", kind = "native_adapter", contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359" },
    { chain = "l1-1", denom = "move/edfcddac", kind = "move", contract = "0x2222", eid = 2 },
]
"#;

fn sound() -> String {
    SOUND.replace("l2/DENOM", &registry::denom::bridged(7, "uinit"))
}

fn found(registry: &Registry) -> Vec<String> {
    check(registry).iter().map(ToString::to_string).collect()
}

/// What is found when one text is replaced by another.
fn flawed(from: &str, to: &str) -> Vec<String> {
    let text = sound();
    assert!(text.contains(from), "{from}");
    let registry = load_text(&text.replace(from, to)).unwrap();
    every_error_is_kept(&registry);
    found(&registry)
}

/// Every error of an asset, a bridge or an OFT is one that the registry itself knows.
fn every_error_is_kept(registry: &Registry) {
    let part = |about: &str| {
        let assets = registry.assets().map(|(reference, asset)| {
            (format!("{} of {}", asset.denom, registry[asset.chain].id), Part::Asset(reference))
        });
        let bridges = registry.bridges().map(|(reference, bridge)| {
            (format!("bridge {} to {}", bridge.id, registry[bridge.l2].id), Part::Bridge(reference))
        });
        let ofts =
            registry.ofts().map(|(reference, oft)| (format!("oft {}", oft.symbol), Part::Oft(reference)));
        assets.chain(bridges).chain(ofts).find(|(name, _)| name == about).map(|(_, part)| part)
    };
    for problem in check(registry) {
        match part(&problem.place.key) {
            Some(part) if problem.severity == Severity::Error => {
                assert!(registry.error(part).is_some(), "{problem}");
                assert!(problem.what.ends_with("; no route uses it"), "{problem}");
            }
            Some(_) => {}
            None => assert!(!problem.what.ends_with("; no route uses it"), "{problem}"),
        }
    }
}

#[test]
fn nothing_is_found_in_a_registry_without_a_flaw() {
    assert_eq!(found(&load_text(&sound()).unwrap()), [""; 0]);
    let example = registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("example")).unwrap();
    assert_eq!(found(&example.registry), [""; 0]);
}

#[test]
fn each_flaw_is_found_and_named() {
    let contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
    let flaws = [
        (r#"rpc = ["http://a"], "#, "", "warning: `chain l1-1`: a cosmos chain without endpoints.rpc"),
        (r#"json_rpc = ["http://c"]"#, "", "warning: `chain 1`: an EVM chain without endpoints.json_rpc"),
        (
            r#"["http://c"]"#,
            r#"["ws://secret"]"#,
            "error: `chain 1`: an address in endpoints.json_rpc does not",
        ),
        ("/${txHash}", "/", "error: `chain l1-1`: explorer_tx has no `${txHash}`"),
        (r#"name = "initia""#, r#"name = "other""#, "warning: `chain l1-1`: clients know the L1 by the name"),
        (r#"fee_assets = [{ denom = "umin" }]"#, "", "warning: `chain l2-1`: no fee_assets"),
        (r#"denom = "umin" }]"#, r#"denom = "umax" }]"#, "warning: `chain l2-1`: fees are paid in `umax`"),
        (r#"symbol = "INIT.ibc""#, r#"symbol = "INIT""#, "warning: `INIT of l2-1`: is the symbol of"),
        (
            r#"bridged = { from = "uinit" }"#,
            r#"decimals = 6
            symbol = "X""#,
            "warning: `bridge 7 to l2-1`: no asset is bridged by it",
        ),
        (
            r#", executor = ["http://b"]"#,
            "",
            "warning: `bridge 7 to l2-1`: the rollup has no endpoints.executor",
        ),
        ("eid = 2 }", "eid = 1 }", "error: `oft ETH`: two legs have the eid 1"),
        (
            r#"kind = "native_adapter""#,
            r#"kind = "adapter""#,
            "error: `oft ETH`: a native_adapter, and only that",
        ),
        (r#"kind = "native_adapter""#, r#"kind = "move""#, "error: `oft ETH`: the kind of the leg on `1`"),
        ("eid = 2 }", "eid = 2, shared_decimals = 5 }", "error: `oft ETH`: its legs do not share"),
        ("eid = 2 }", r#"eid = 2, options = "0xz" }"#, "error: `oft ETH`: the options of the leg on `l1-1`"),
        (
            "decimals = 18",
            "decimals = 6",
            "wrapped with 6 decimals, what it stands for has 6: an ERC20Wrapper makes a token with 18",
        ),
        ("decimals = 18", "decimals = 12", "wrapped with 12 decimals, what it stands for has 6"),
        (
            "decimals = 18",
            "decimals = 18\ncontract = \"0x042adD9e80f7a23Ab71D5e1d392af1d3928B7D05\"",
            "contract is not the one that the denomination names; no route uses it",
        ),
        (r#"symbol = "INIT.ibc""#, "decimals = 7", "has 7 decimals, but what it stands for has 6"),
        ("evm/5aAeb", "evm/5AAeb", "the case of denom is part of it"),
        (contract, "0xfb6916095Ca1df60bB79Ce92cE3Ea74c37c5d359", "the checksum of wrapped.contract is wrong"),
        (contract, "0xfB69", "error: `oft ETH`: the contract on 1 is no address of 20 bytes"),
        ("endpoint = \"0x5a", "endpoint = \"5a", "error: `chain 1`: layer_zero.endpoint is no address"),
        (
            r#"ibc = { channel = "channel-0", from = "uinit" }"#,
            r#"denom = "ibc/00"
            decimals = 6"#,
            "warning: `ibc/00 of l2-1`: nobody says where this voucher is from",
        ),
    ];
    for (from, to, wanted) in flaws {
        let found = flawed(from, to);
        assert!(found.iter().any(|problem| problem.contains(wanted)), "{wanted}: {found:#?}");
        assert!(!found.iter().any(|problem| problem.contains("secret")), "{found:#?}");
    }
}

/// The sound registry, with ONYX and `more` of its chain: 18 decimals, made on a rollup, and the token with 6 that the
/// wrapper made of it.
fn with_onyx(more: &str) -> Registry {
    let wrapper = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
    let onyx = format!(
        r#"
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
wrapped = {{ contract = "{wrapper}", from = "evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4" }}
{more}"#
    );
    load_text(&(sound() + &onyx)).unwrap()
}

#[test]
fn a_token_with_six_decimals_that_is_wrapped_from_one_with_more_is_the_remote_one() {
    let registry = with_onyx("");
    assert_eq!(found(&registry), [""; 0]);
    let chain = registry.chain("l2-1").unwrap();
    let asset = |denom: &str| registry.asset(chain, denom).unwrap();
    let made = asset("evm/44CFAaB1cF49996540A6B6A87d1f0a604267E6b0");
    let local = asset("evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4");
    let pair = registry.wrapper_pair(made).unwrap();
    assert_eq!((pair.remote, pair.local), (made, local));
    assert_eq!(registry.wrapper_pair_of(local, made), Some(pair));
    assert_eq!(registry.wrapper_pair(local), None);
    // The usual way round, where the bridged coin is the remote one.
    let init = asset("evm/5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    let pair = registry.wrapper_pair(init).unwrap();
    assert_eq!((Some(pair.remote), pair.local), (registry[init].origin.parent(), init));
}

#[test]
fn two_pairs_that_one_wrapper_cannot_have_are_both_errors() {
    let more = |wrapper: &str| {
        format!(
            "[[asset]]\nchain = 'l2-1'\ndenom = 'evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96'\nsymbol = 'ONYX.2'\n\
             decimals = 6\nwrapped = {{ contract = '{wrapper}', from = 'evm/4BaDFb501Ab304fF11217C44702bb9E9732E7CF4' }}\n"
        )
    };
    let found_in = |wrapper: &str| found(&with_onyx(&more(wrapper)));
    let both = found_in("0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359");
    assert_eq!(both.len(), 2, "{both:#?}");
    assert!(both.iter().all(|problem| problem.contains("the wrapper cannot have made both it and `evm/")));
    assert_eq!(found_in("0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783"), [""; 0]);
}

#[test]
fn a_chain_that_nothing_connects_is_found() {
    let lonely = "[[chain]]\nid = 'x-1'\nbech32_prefix = 'x'\n";
    let found = found(&load_text(&format!("{}{lonely}", sound())).unwrap());
    assert!(
        found.iter().any(|problem| problem.starts_with("warning: `chain x-1`: no channel, bridge or OFT"))
    );
}

#[test]
fn a_bridge_to_what_is_no_l1_is_found() {
    let text = sound().replace("l1 = true", "initia = true").replace("id = 7", "id = 7\nl1 = 'l1-1'");
    let registry = load_text(&text).unwrap();
    every_error_is_kept(&registry);
    let found = found(&registry);
    assert!(found.iter().any(|problem| problem.contains("leads to `l1-1`, which is no l1")), "{found:#?}");
}
