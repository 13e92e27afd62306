//! Worked examples, byte for byte.

use chain::U256;
use messages::{Approval, Msg, OpHookRequest, Tx, op_hook};
use planner::{Hop, Step};
use serde_json::json;

use crate::support::world::{self, *};
use crate::support::{NOBLE, OTHER, OTHER_HEX, Scenario, USER, USER_HEX, json, string_words, text, word};

const L1: &str = "interwoven-1";

fn ibc(scenario: &Scenario, chain: &str, channel: u32) -> Step {
    let found =
        scenario.registry.channel_at(scenario.chain(chain), "transfer", &format!("channel-{channel}"));
    Step::Ibc { channel: found.unwrap() }
}

fn bridge(scenario: &Scenario) -> registry::BridgeRef {
    scenario.registry.bridge_of(scenario.chain(L1), 11).unwrap()
}

fn dollars(scenario: &Scenario) -> Vec<Hop> {
    vec![
        scenario.hop(
            ibc(scenario, "noble-1", 129),
            ("noble-1", "uusdc"),
            (L1, USDC_L1),
            1_000_000,
            1_000_000,
        ),
        scenario.hop(ibc(scenario, L1, 97), (L1, USDC_L1), ("cabal-1", USDC_L2), 1_000_000, 1_000_000),
        scenario.hop(
            Step::Wrap,
            ("cabal-1", USDC_L2),
            ("cabal-1", USDC_WRAPPED),
            1_000_000,
            finer(1_000_000),
        ),
    ]
}

#[test]
fn dollars_of_noble_are_forwarded_and_wrapped_by_one_message() {
    let scenario = world::mainnet();
    let made = scenario.make(dollars(&scenario), &[NOBLE, USER]).unwrap();
    assert_eq!(made.min_amount_out, U256::from(finer(1_000_000)));
    let [Tx::Cosmos { chain, path, signer, msgs, hops }] = made.txs.as_slice() else { panic!("{made:?}") };
    let chains: Vec<_> = ["noble-1", L1, "cabal-1"].map(|id| scenario.chain(id)).to_vec();
    assert_eq!((chain, path, signer.as_str(), hops), (&chains[0], &chains, NOBLE, &(0..3)));
    let input = format!(
        "0x1efd1a84{}{}{}{}{}",
        word(USER_HEX),
        word("80"),
        word("f4240"),
        word("6"),
        string_words(USDC_L2)
    );
    assert!(input.ends_with(concat!(
        "0000000000000000000000000000000000000000000000000000000000000044",
        "6962632f41413445374446303635444334443442323942383636324139313932",
        "3935463532354231393235314642323631384334314330444544334244313132",
        "3846454500000000000000000000000000000000000000000000000000000000"
    )));
    let memo = format!(
        concat!(
            r#"{{"forward":{{"receiver":"{0}","port":"transfer","channel":"channel-97","timeout":"10m","retries":2,"#,
            r#""next":{{"evm":{{"message":{{"contract_addr":"{0}","input":"{1}","value":"0","access_list":[]}}}}}}}}}}"#
        ),
        USDC_WRAPPER, input
    );
    let expected = format!(
        concat!(
            r#"{{"source_port":"transfer","source_channel":"channel-129","token":{{"denom":"uusdc","amount":"1000000"}},"#,
            r#""sender":"{}","receiver":"{}","timeout_height":{{}},"timeout_timestamp":"1767226200000000000","memo":{}}}"#
        ),
        NOBLE,
        // The account of Noble's key.
        chain::Account::from_bech32(NOBLE, "noble").unwrap().to_bech32("init"),
        serde_json::to_string(&memo).unwrap()
    );
    assert_eq!(
        msgs.as_slice(),
        [Msg { type_url: "/ibc.applications.transfer.v1.MsgTransfer", msg: expected }]
    );
}

/// The hook of two examples, which differ in the requesting account.
fn init_hook(address: &str) -> Vec<Msg> {
    let scenario = world::mainnet();
    let hook = op_hook(&OpHookRequest {
        registry: &scenario.registry,
        facts: &scenario.facts,
        source: scenario.asset(L1, "uinit"),
        source_address: address,
        dest: scenario.asset("yominet-1", INIT_WRAPPED),
        dest_address: address,
    })
    .unwrap();
    assert_eq!(hook.chain, scenario.chain("yominet-1"));
    hook.hook
}

#[test]
fn the_op_hook_equals_that_of_the_wire_contract_byte_for_byte() {
    let msg = |msg: &str| Msg { type_url: "/minievm.evm.v1.MsgCall", msg: msg.to_owned() };
    let expected = [
        msg(concat!(
            r#"{"sender":"init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0","#,
            r#""contract_addr":"0x2eE7007DF876084d4C74685e90bB7f4cd7c86e22","#,
            r#""input":"0x095ea7b30000000000000000000000004eb08d5c1b0a821303a86c7b3ac805c2793de783"#,
            r#"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","value":"0","access_list":[]}"#
        )),
        msg(concat!(
            r#"{"sender":"init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0","#,
            r#""contract_addr":"0x4eb08D5c1B0A821303A86C7b3AC805c2793dE783","#,
            r#""input":"0x701dcf21"#,
            "0000000000000000000000004b3f1a2c5d6e7f8091a2b3c4d5e6f70811223344",
            "0000000000000000000000000000000000000000000000000000000000000060",
            "0000000000000000000000000000000000000000000000000000000000000006",
            "0000000000000000000000000000000000000000000000000000000000000043",
            "6c322f3866373363666166313533353230663531316234666330626437316436",
            "3064363462346531396566663034613335306536343237313861336331616233",
            "6230360000000000000000000000000000000000000000000000000000000000",
            r#"","value":"0","access_list":[]}"#
        )),
    ];
    assert_eq!(init_hook(OTHER), expected);
}

#[test]
fn the_op_hook_equals_that_of_the_mechanics_too() {
    let hook = init_hook(USER);
    assert_eq!(json(&hook[0])["contract_addr"], INIT_L2_ERC20);
    let wrap = format!("0x701dcf21{}{}{}{}", word(USER_HEX), word("60"), word("6"), string_words(INIT_L2));
    assert_eq!(json(&hook[1])["input"], wrap);
    assert_eq!(init_hook(USER_HEX), hook, "an address in hex is the same account");
}

#[test]
fn a_deposit_without_hook_equals_that_of_the_wire_contract() {
    let scenario = world::mainnet();
    let step = Step::Deposit { bridge: bridge(&scenario) };
    let deposit = scenario.hop(step, (L1, "uinit"), ("yominet-1", INIT_L2), 1_000_000, 1_000_000);
    let expected = concat!(
        r#"{"sender":"init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0","bridge_id":"11","#,
        r#""to":"init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0","amount":{"denom":"uinit","amount":"1000000"}}"#
    );
    for addresses in [[OTHER, OTHER], [OTHER, OTHER_HEX]] {
        let msgs = scenario.msgs(vec![deposit.clone()], &addresses);
        assert_eq!(msgs[0].type_url, "/opinit.ophost.v1.MsgInitiateTokenDeposit");
        assert_eq!(msgs[0].msg, expected);
    }
}

#[test]
fn a_migrated_deposit_is_wrapped_by_the_packet_with_the_bridged_denom_and_no_signature() {
    let scenario = world::migrated();
    let Step::Ibc { channel } = ibc(&scenario, L1, 25) else { panic!() };
    let step = Step::MigratedDeposit { bridge: bridge(&scenario), channel };
    let hops = vec![
        scenario.hop(step, (L1, "uinit"), ("yominet-1", INIT_L2), 1_000_000, 1_000_000),
        scenario.hop(
            Step::Wrap,
            ("yominet-1", INIT_L2),
            ("yominet-1", INIT_WRAPPED),
            1_000_000,
            finer(1_000_000),
        ),
    ];
    let msg = json(&scenario.msgs(hops, &[USER, USER])[0]);
    assert_eq!(msg["source_channel"], "channel-25");
    assert_eq!(msg["receiver"], INIT_WRAPPER);
    let input = format!(
        "0x1efd1a84{}{}{}{}{}",
        word(USER_HEX),
        word("80"),
        word("f4240"),
        word("6"),
        string_words(INIT_L2)
    );
    let memo: serde_json::Value = serde_json::from_str(text(&msg, "/memo")).unwrap();
    let message = json!({"contract_addr": INIT_WRAPPER, "input": input, "value": "0", "access_list": []});
    assert_eq!(memo, json!({"evm": {"message": message}}));
}

fn unwrap_init(scenario: &Scenario) -> Hop {
    let (wrapped, coin) = (("yominet-1", INIT_WRAPPED), ("yominet-1", INIT_L2));
    scenario.hop(Step::Unwrap, wrapped, coin, finer(1_000_000), 1_000_000)
}

/// 10^18 in hex.
const ETHER: &str = "0de0b6b3a7640000";

#[test]
fn wrapped_init_leaves_slowly_by_two_calls() {
    let scenario = world::mainnet();
    let step = Step::Withdraw { bridge: bridge(&scenario) };
    let withdraw = scenario.hop(step, ("yominet-1", INIT_L2), (L1, "uinit"), 1_000_000, 1_000_000);
    let msgs = scenario.msgs(vec![unwrap_init(&scenario), withdraw], &[USER, USER]);
    let [approve, call] = msgs.as_slice() else { panic!("{msgs:?}") };
    assert_eq!((approve.type_url, call.type_url), ("/minievm.evm.v1.MsgCall", "/minievm.evm.v1.MsgCall"));
    assert_eq!(
        json(approve),
        json!({
            "sender": USER,
            "contract_addr": "0x856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96",
            "input": format!("0x095ea7b3{}{}", word(INIT_WRAPPER), word(ETHER)),
            "value": "0",
            "access_list": [],
        })
    );
    let head = format!("0xb9cf3742{}{}{}", word("60"), word("c0"), word(ETHER));
    assert_eq!(json(call)["input"], format!("{head}{}{}", string_words(USER), string_words(INIT_WRAPPED)));
    assert_eq!(json(call)["contract_addr"], INIT_WRAPPER);
}

#[test]
fn wrapped_init_leaves_fast_with_or_without_memo() {
    let scenario = world::mainnet();
    let to_l1 = scenario.hop(
        ibc(&scenario, "yominet-1", 0),
        ("yominet-1", INIT_L2),
        (L1, INIT_BACK),
        1_000_000,
        1_000_000,
    );
    let msgs = scenario.msgs(vec![unwrap_init(&scenario), to_l1.clone()], &[USER, OTHER]);
    let timeout = word(&format!("{:x}", 1_767_226_200_000_000_000u64));
    let texts = format!("{}{}{}", string_words(INIT_WRAPPED), string_words("channel-0"), string_words(OTHER));
    let heads = format!("{}{}{}{}{timeout}", word("a0"), word(ETHER), word("100"), word("140"));
    assert_eq!(json(&msgs[1])["input"], format!("0x24721917{heads}{texts}"));
}

#[test]
fn a_wrapped_token_that_is_forwarded_carries_a_memo() {
    let scenario = world::mainnet();
    // No planner finds this route; it represents any token that is unwrapped and forwarded.
    let hops = vec![
        scenario.hop(
            Step::Unwrap,
            ("cabal-1", USDC_WRAPPED),
            ("cabal-1", USDC_L2),
            finer(1_000_000),
            1_000_000,
        ),
        scenario.hop(ibc(&scenario, "cabal-1", 0), ("cabal-1", USDC_L2), (L1, USDC_L1), 1_000_000, 1_000_000),
        scenario.hop(ibc(&scenario, L1, 3), (L1, USDC_L1), ("noble-1", "uusdc"), 1_000_000, 1_000_000),
    ];
    let msgs = scenario.msgs(hops, &[USER, NOBLE]);
    let input = json(&msgs[1])["input"].as_str().unwrap().to_owned();
    let timeout = word(&format!("{:x}", 1_767_226_200_000_000_000u64));
    let memo = format!(
        r#"{{"forward":{{"receiver":"{NOBLE}","port":"transfer","channel":"channel-3","timeout":"10m","retries":2}}}}"#
    );
    // The receiver takes a word of length and two of text.
    let heads = [word("c0"), word(ETHER), word("120"), word("160"), timeout, word("1c0")].concat();
    let texts = [USDC_WRAPPED, "channel-0", USER, &memo].map(string_words).concat();
    assert_eq!(input, format!("0xf787cbdd{heads}{texts}"));
}

#[test]
fn ether_goes_to_initia_as_value_with_the_fee_on_top() {
    let scenario = world::mainnet();
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let fee = U256::from(0x7048_860d_af40_u64);
    let step = Step::LayerZero { oft, from: 0, to: 1, fee };
    let hop = scenario.hop(step, ("1", "ethereum-native"), (L1, ETH_L1), finer(1_000_000), 1_000_000);
    let made = scenario.make(vec![hop], &[USER_HEX, USER]).unwrap();
    assert_eq!(made.min_amount_out, U256::from(1_000_000));
    let words = [
        "80",
        "7048860daf40",
        "0",
        USER_HEX,
        "7676",
        USER_HEX,
        ETHER,
        ETHER,
        "e0",
        "100",
        "120",
        "0",
        "0",
        "0",
    ];
    let data = format!("c7c7f5b3{}", words.map(word).concat());
    let [Tx::Evm { chain, to, value, data: made, approvals, signer, hops }] = made.txs.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!((*chain, to.as_str(), signer.as_str()), (scenario.chain("1"), ETH_OFT, USER_HEX));
    assert_eq!(*value, fee + U256::from(finer(1_000_000)));
    assert_eq!((made, approvals, hops), (&data, &Vec::<Approval>::new(), &(0..1)));
}

#[test]
fn ether_comes_back_from_initia_by_the_module_with_the_arguments_of_the_mechanics() {
    let scenario = world::mainnet();
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let step = Step::LayerZero { oft, from: 1, to: 0, fee: U256::from(250_000) };
    let hop = scenario.hop(step, (L1, ETH_L1), ("1", "ethereum-native"), 1_000_000, finer(1_000_000));
    let msgs = scenario.msgs(vec![hop], &[USER, USER_HEX]);
    assert_eq!(msgs[0].type_url, "/initia.move.v1.MsgExecute");
    let expected = format!(
        concat!(
            r#"{{"sender":"{}","module_address":"{}","module_name":"oft","function_name":"send_withdraw","#,
            r#""type_args":[],"args":["lXUAAA==","IAAAAAAAAAAAAAAAAAkBru0dUUSYfa49lashn/dem6Y2","#,
            r#""QEIPAAAAAAA=","QEIPAAAAAAA=","AA==","AA==","AA==","kNADAAAAAAA=","AAAAAAAAAAA="]}}"#
        ),
        USER, ETH_MODULE
    );
    assert_eq!(msgs[0].msg, expected);
}

#[test]
fn every_call_has_the_selector_of_the_contracts() {
    let scenario = world::migrated();
    let selector = |msg: &Msg| json(msg)["input"].as_str().unwrap()[..10].to_owned();
    let two = |hops| scenario.msgs(hops, &[USER]).iter().map(selector).collect::<Vec<_>>();
    let (coin, wrapped) = (("yominet-1", INIT_L2), ("yominet-1", INIT_WRAPPED));
    let wrap = scenario.hop(Step::Wrap, coin, wrapped, 5, finer(5));
    assert_eq!(two(vec![wrap]), ["0x095ea7b3", "0x1efd1a84"]);
    let unwrap = scenario.hop(Step::Unwrap, wrapped, coin, finer(5), 5);
    assert_eq!(two(vec![unwrap]), ["0x095ea7b3", "0xcf9ee0c3"]);
}
