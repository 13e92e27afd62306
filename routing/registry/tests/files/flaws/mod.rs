//! A registry without a flaw, and flaws: the replaced text and the expected finding. The tests of `registry` check the
//! findings; those of `planner`, which also include this file, check the excluded routes.

/// An L1, a rollup and an EVM chain, and a token of each kind of origin.
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
denom = "umin"
symbol = "MIN"
decimals = 6

[[asset]]
chain = "l2-1"
hidden = true
denom = "l2/DENOM"
contract = "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb"
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

const WRAPPER: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";
const BRIDGED: &str = "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6EFb";

/// The text of the registry without a flaw.
pub(crate) fn sound() -> String {
    named(SOUND)
}

/// The same with one text replaced by another, and a part of the expected finding.
pub(crate) fn flawed() -> impl Iterator<Item = (String, &'static str)> {
    FLAWS.iter().map(|(from, to, found)| {
        let (text, from) = (sound(), named(from));
        assert!(text.contains(&from), "{from}");
        (text.replace(&from, &named(to)), *found)
    })
}

fn named(text: &str) -> String {
    text.replace("l2/DENOM", &registry::denom::bridged(7, "uinit"))
}

/// The replaced text, its replacement, and the expected finding.
const FLAWS: &[(&str, &str, &str)] = &[
    (r#"rpc = ["http://a"], "#, "", "warning: `chain l1-1`: a cosmos chain without endpoints.rpc"),
    (r#"json_rpc = ["http://c"]"#, "", "warning: `chain 1`: an EVM chain without endpoints.json_rpc"),
    (r#"["http://c"]"#, r#"["ws://secret"]"#, "error: `chain 1`: an address in endpoints.json_rpc does not"),
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
    (r#", executor = ["http://b"]"#, "", "warning: `bridge 7 to l2-1`: the rollup has no endpoints.executor"),
    ("eid = 2,", "eid = 1,", "error: `oft ETH`: two legs have the eid 1"),
    (
        r#"kind = "native_adapter""#,
        r#"kind = "adapter""#,
        "error: `oft ETH`: a native_adapter, and only that",
    ),
    (r#"kind = "native_adapter""#, r#"kind = "move""#, "error: `oft ETH`: the kind of the leg on `1`"),
    ("eid = 2,", "eid = 2, shared_decimals = 5,", "error: `oft ETH`: its legs do not share"),
    ("eid = 2,", r#"eid = 2, options = "0xz","#, "error: `oft ETH`: the options of the leg on `l1-1`"),
    (
        "decimals = 18\nwrapped",
        "decimals = 6\nwrapped",
        "wrapped with 6 decimals, what it stands for has 6: an ERC20Wrapper makes a token with 18",
    ),
    (
        "decimals = 18\nwrapped",
        "decimals = 12\nwrapped",
        "wrapped with 12 decimals, what it stands for has 6",
    ),
    (
        "decimals = 18\nwrapped",
        "decimals = 18\ncontract = \"0x042adD9e80f7a23Ab71D5e1d392af1d3928B7D05\"\nwrapped",
        "contract is not the one that the denomination names; no route uses it",
    ),
    (r#"symbol = "INIT.ibc""#, "decimals = 7", "has 7 decimals, but what it stands for has 6"),
    ("evm/5aAeb", "evm/5AAeb", "the case of denom is part of it"),
    (WRAPPER, "0xfb6916095Ca1df60bB79Ce92cE3Ea74c37c5d359", "the checksum of wrapped.contract is wrong"),
    (WRAPPER, "0xfB69", "error: `oft ETH`: the contract on 1 is not an address of 20 bytes"),
    ("endpoint = \"0x5a", "endpoint = \"5a", "error: `chain 1`: layer_zero.endpoint is not an address"),
    (
        r#"ibc = { channel = "channel-0", from = "uinit" }"#,
        r#"denom = "ibc/00"
        decimals = 6"#,
        "warning: `ibc/00 of l2-1`: the origin of this voucher is unknown",
    ),
    (BRIDGED, "0x1D14", "contract is not an address of 20 bytes in hex with 0x; no route uses it"),
    (BRIDGED, "0x1D14AE89516E15E050bf6C4A1f549b9deB5f6Efb", "the checksum of contract is wrong"),
    (r#""0.15""#, r#""much""#, "must be a decimal number such as"),
    ("symbol = \"ONYX\"\ndecimals = 18", "symbol = \"ONYX\"\ndecimals = 6", "what it stands for has 6"),
    ("decimals = 6\nwrapped", "decimals = 8\nwrapped", "wrapped with 8 decimals, what it stands for has 18"),
    (
        "[[oft]]",
        r#"
[[asset]]
chain = "l2-1"
denom = "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96"
symbol = "INIT.other"
wrapped = { contract = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359", from = "l2/DENOM" }

[[oft]]"#,
        "the wrapper cannot have made both it and `evm/",
    ),
    ("l1 = true", "initia = true", "leads to `l1-1`, which is not an l1"),
];
