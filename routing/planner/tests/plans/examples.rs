//! Worked examples, byte for byte if they are on the wire.

use crate::mainnet::{CABAL_USDC, ETH, IBC_INIT, IBC_OP_INIT, Mainnet, OP_INIT, USDC, YOMI_INIT};
use chain::U256;
use planner::{NoRoute, Operation, Plan, Step, WireAsset, operations};

const NOBLE: (&str, &str) = ("noble-1", "uusdc");
const INIT: (&str, &str) = ("interwoven-1", "uinit");
const YOMI: (&str, &str) = ("yominet-1", YOMI_INIT);
const CABAL: (&str, &str) = ("cabal-1", CABAL_USDC);
const ETHER: (&str, &str) = ("1", "ethereum-native");

/// JSON in the layout of the examples: one space per level.
fn pretty(value: &impl serde::Serialize) -> String {
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, format)).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn best(mainnet: &Mainnet, request: &planner::Request) -> (Plan, Vec<Operation>) {
    let plan = mainnet.plan(request).unwrap().remove(0);
    let operations = operations(mainnet.world(), &plan);
    (plan, operations)
}

fn ten(power: u32) -> u64 {
    10u64.pow(power)
}

#[test]
fn usdc_is_forwarded_and_wrapped_by_a_packet_under_one_signature() {
    let mainnet = Mainnet::new();
    let (plan, operations) = best(&mainnet, &mainnet.request(NOBLE, CABAL, 1_000_000));
    let steps: Vec<_> = plan.hops.iter().map(|hop| std::mem::discriminant(&hop.step)).collect();
    assert_eq!((steps.len(), plan.hops[2].step), (3, Step::Wrap));
    assert_eq!((plan.txs(), plan.required_op_hook()), (1, false));
    assert_eq!(plan.amount_out(), U256::from(ten(18)));
    assert_eq!(plan.seconds(&mainnet.registry), 40);
    assert_eq!(plan.chain_ids(&mainnet.registry), ["noble-1", "interwoven-1", "cabal-1"]);
    assert_eq!(plan.required_chain_addresses(&mainnet.registry), ["noble-1", "cabal-1"]);
    let body = serde_json::to_value(&operations).unwrap();
    for (place, field, expected) in [
        (0, "channel", "channel-129"),
        (0, "denom_in", "uusdc"),
        (0, "denom_out", USDC),
        (1, "channel", "channel-97"),
        (1, "denom_in", USDC),
        (1, "denom_out", CABAL_USDC),
        (1, "dest_denom", CABAL_USDC),
    ] {
        assert_eq!(body[place]["transfer"][field], expected, "{place} {field}");
    }
    assert_eq!(operations.len(), 2);
    assert_eq!((operations[1].amount_in.as_str(), operations[1].amount_out.len()), ("1000000", 19));
}

#[test]
fn without_a_packet_s_call_the_wrap_is_a_separate_transaction() {
    let mut mainnet = Mainnet::new();
    mainnet.facts.hooks.clear();
    let mut request = mainnet.request(NOBLE, CABAL, 1_000_000);
    assert_eq!(mainnet.plan(&request), Err(NoRoute::SeveralTxs { txs: 2 }));
    request.multi_tx = true;
    let (plan, operations) = best(&mainnet, &request);
    assert_eq!(plan.txs(), 2);
    assert_eq!(plan.required_chain_addresses(&mainnet.registry), ["noble-1", "cabal-1", "cabal-1"]);
    let body = serde_json::to_value(&operations[2]).unwrap();
    assert_eq!(body["tx_index"], 1);
    assert_eq!(body["swap"]["swap_in"]["swap_venue"]["name"], "erc20-wrapper");
    assert_eq!(
        body["swap"]["swap_in"]["swap_operations"][0]["pool"],
        "0xB24905344757Bf9CE80442fE1245A9019ee2d749"
    );
    assert_eq!(body["swap"]["from_chain_id"], "cabal-1");
    assert_eq!(body["swap"]["estimated_affiliate_fee"], format!("0{CABAL_USDC}"));
}

#[test]
fn init_is_deposited_with_a_hook() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(INIT, YOMI, 1_000_000);
    let (plan, operations) = best(&mainnet, &request);
    assert_eq!((plan.txs(), plan.required_op_hook(), plan.seconds(&mainnet.registry)), (1, true, 30));
    assert_eq!(plan.chain_ids(&mainnet.registry), ["interwoven-1", "yominet-1"]);
    assert_eq!(plan.required_chain_addresses(&mainnet.registry), ["interwoven-1", "yominet-1"]);
    let expected = r#"[
 {
  "op_init_transfer": {
   "from_chain_id": "interwoven-1",
   "to_chain_id": "yominet-1",
   "denom_in": "uinit",
   "denom_out": "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96",
   "op_init_bridge_id": "11",
   "bridge_id": "OPINIT",
   "smart_relay": false
  },
  "tx_index": 0,
  "amount_in": "1000000",
  "amount_out": "1000000000000000000"
 }
]"#;
    assert_eq!(pretty(&operations), expected);

    request.op_hook = false;
    assert_eq!(mainnet.plan(&request), Err(NoRoute::NeedsHook));
    // A user who signs twice needs no hook.
    request.multi_tx = true;
    let (plan, operations) = best(&mainnet, &request);
    assert_eq!((plan.txs(), plan.required_op_hook(), operations.len()), (2, false, 2));
}

#[test]
fn a_migrated_deposit_is_a_transfer_that_calls_the_wrapper() {
    let mut mainnet = Mainnet::migrated();
    mainnet.facts.hooks.insert("yominet-1".to_owned(), true);
    let (plan, operations) = best(&mainnet, &mainnet.request(INIT, YOMI, 1_000_000));
    assert_eq!((plan.txs(), plan.required_op_hook(), plan.seconds(&mainnet.registry)), (1, false, 20));
    let body = serde_json::to_value(&operations).unwrap();
    assert_eq!(body[0]["transfer"]["channel"], "channel-25");
    assert_eq!(body[0]["transfer"]["denom_out"], YOMI_INIT);
}

#[test]
fn init_is_withdrawn_one_to_one() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(YOMI, INIT, ten(18));
    request.op_withdraw = true;
    let (plan, operations) = best(&mainnet, &request);
    assert_eq!((plan.txs(), plan.amount_out()), (1, U256::from(1_000_000)));
    assert_eq!(plan.seconds(&mainnet.registry), 604_800 + 2_400);
    let body = serde_json::to_value(&operations).unwrap();
    assert_eq!(body[0]["op_init_transfer"]["denom_in"], YOMI_INIT);
    assert_eq!(body[0]["op_init_transfer"]["denom_out"], "uinit");
    assert_eq!(body[0]["amount_out"], "1000000");
    // It is the only route, so it is also planned without a request.
    request.op_withdraw = false;
    assert_eq!(best(&mainnet, &request).0, plan);

    request.amount_in += U256::ONE;
    assert_eq!(
        mainnet.plan(&request),
        Err(NoRoute::Dust { multiple: U256::from(ten(12)), usable: Some(U256::from(ten(18))) })
    );
}

#[test]
fn a_withdrawal_leads_only_to_the_l1() {
    let mainnet = Mainnet::new();
    let mut request = mainnet.request(YOMI, ("echelon-1", IBC_INIT), ten(18));
    request.multi_tx = true;
    let (plan, _) = best(&mainnet, &request);
    assert_eq!(plan.txs(), 2);
    assert_eq!(plan.required_chain_addresses(&mainnet.registry), ["yominet-1", "interwoven-1", "echelon-1"]);
    request.op_withdraw = true;
    assert!(matches!(mainnet.plan(&request), Err(NoRoute::NoPath { .. })));
}

#[test]
fn a_migrated_withdrawal_takes_seconds_and_can_be_forwarded() {
    let mainnet = Mainnet::migrated();
    let (plan, operations) =
        best(&mainnet, &mainnet.request(("yominet-1", OP_INIT), ("echelon-1", IBC_INIT), 5));
    assert!(matches!(plan.hops[0].step, Step::MigratedWithdraw { .. }));
    assert_eq!((plan.txs(), plan.seconds(&mainnet.registry), operations.len()), (1, 40, 2));
    // The wrapper sends the packet itself.
    let (plan, _) = best(&mainnet, &mainnet.request(YOMI, ("echelon-1", IBC_INIT), ten(12)));
    assert_eq!((plan.txs(), plan.amount_out()), (1, U256::ONE));
    // The wrapper does not send the bridged coin over that channel: the user must send it.
    let mut request = mainnet.request(YOMI, ("interwoven-1", IBC_OP_INIT), ten(12));
    assert_eq!(mainnet.plan(&request), Err(NoRoute::SeveralTxs { txs: 2 }));
    request.multi_tx = true;
    assert_eq!(best(&mainnet, &request).0.txs(), 2);
}

#[test]
fn the_fast_route_out_gives_the_other_token() {
    let mainnet = Mainnet::new();
    let (plan, operations) = best(&mainnet, &mainnet.request(YOMI, ("interwoven-1", IBC_OP_INIT), ten(18)));
    assert_eq!((plan.txs(), plan.seconds(&mainnet.registry), operations.len()), (1, 20, 1));
    let body = serde_json::to_value(&operations).unwrap();
    assert_eq!(body[0]["transfer"]["channel"], "channel-0");
    assert_eq!(body[0]["transfer"]["denom_in"], YOMI_INIT);
    assert_eq!(
        (body[0]["amount_in"].as_str().unwrap().len(), &body[0]["amount_out"]),
        (19, &"1000000".into())
    );
}

#[test]
fn ether_arrives_with_the_decimals_of_the_l1() {
    let mainnet = Mainnet::new();
    let (plan, operations) =
        best(&mainnet, &mainnet.request(ETHER, ("interwoven-1", ETH), 1_000_999_999_999_999));
    assert_eq!(plan.seconds(&mainnet.registry), 15 * 12 + 60);
    assert_eq!(plan.amount_out(), U256::from(1000));
    let (_, operations_of_a_round_sum) =
        best(&mainnet, &mainnet.request(ETHER, ("interwoven-1", ETH), ten(15)));
    let expected = r#"[
 {
  "layer_zero_transfer": {
   "from_chain_id": "1",
   "to_chain_id": "interwoven-1",
   "denom_in": "ethereum-native",
   "denom_out": "move/edfcddacac79ab86737a1e9e65805066d8be286a37cb94f4884b892b0e39f954",
   "source_oft_contract_address": "0x1111111111111111111111111111111111111111",
   "destination_endpoint_id": 30326,
   "messaging_fee_asset": {
    "denom": "ethereum-native",
    "chain_id": "1",
    "origin_denom": "ethereum-native",
    "origin_chain_id": "1",
    "trace": "",
    "is_cw20": false,
    "is_evm": true,
    "is_svm": false,
    "symbol": "ETH",
    "name": "Ether",
    "logo_uri": "https://raw.githubusercontent.com/initia-labs/initia-registry/main/images/ETH.png",
    "decimals": 18,
    "coingecko_id": "ethereum",
    "recommended_symbol": "ETH"
   },
   "messaging_fee_amount": "41000000000000",
   "messaging_fee_amount_usd": "0.12",
   "bridge_id": "LAYER_ZERO"
  },
  "tx_index": 0,
  "amount_in": "1000000000000000",
  "amount_out": "1000"
 }
]"#;
    assert_eq!(pretty(&operations_of_a_round_sum), expected);
    assert_eq!(operations[0].amount_in, "1000999999999999");
}

#[test]
fn a_transfer_to_a_rollup_is_rendered_with_all_its_nulls() {
    let mainnet = Mainnet::new();
    let (_, operations) = best(&mainnet, &mainnet.request(INIT, ("echelon-1", IBC_INIT), 33_150_000));
    let expected = r#"[
 {
  "transfer": {
   "port": "transfer",
   "channel": "channel-35",
   "from_chain_id": "interwoven-1",
   "to_chain_id": "echelon-1",
   "pfm_enabled": true,
   "supports_memo": true,
   "denom_in": "uinit",
   "denom_out": "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50",
   "fee_amount": null,
   "usd_fee_amount": null,
   "fee_asset": null,
   "bridge_id": "IBC",
   "smart_relay": false,
   "to_chain_entry_contract_address": null,
   "to_chain_callback_contract_address": null,
   "dest_denom": "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50"
  },
  "tx_index": 0,
  "amount_in": "33150000",
  "amount_out": "33150000"
 }
]"#;
    assert_eq!(pretty(&operations), expected);
}

#[test]
fn a_fee_is_rendered_in_the_asset_that_it_is_deducted_from() {
    let mainnet = Mainnet::with(|denom, asset| {
        if denom == IBC_INIT {
            asset.terms.fee_amount = U256::from(1_000_000);
        }
    });
    let (_, operations) = best(&mainnet, &mainnet.request(INIT, ("echelon-1", IBC_INIT), 33_150_000));
    let body = serde_json::to_value(&operations).unwrap();
    assert_eq!(body[0]["transfer"]["fee_amount"], "1000000");
    assert_eq!(body[0]["transfer"]["usd_fee_amount"], "0.15");
    assert_eq!(body[0]["transfer"]["fee_asset"]["denom"], "uinit");
    assert_eq!(body[0]["amount_out"], "32150000");
}

#[test]
fn assets_are_rendered_in_the_form_of_clients() {
    let mainnet = Mainnet::new();
    let body = |chain, denom| pretty(&WireAsset::of(&mainnet.registry, mainnet.asset(chain, denom)));
    let expected = r#"{
 "denom": "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4",
 "chain_id": "interwoven-1",
 "origin_denom": "uusdc",
 "origin_chain_id": "noble-1",
 "trace": "transfer/channel-3",
 "is_cw20": false,
 "is_evm": false,
 "is_svm": false,
 "symbol": "USDC",
 "name": "USD Coin",
 "logo_uri": "https://raw.githubusercontent.com/initia-labs/initia-registry/main/images/USDC.png",
 "decimals": 6,
 "coingecko_id": "usd-coin",
 "recommended_symbol": "USDC"
}"#;
    assert_eq!(body("interwoven-1", USDC), expected);
    let expected = r#"{
 "denom": "evm/856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96",
 "chain_id": "yominet-1",
 "origin_denom": "uinit",
 "origin_chain_id": "interwoven-1",
 "trace": "",
 "is_cw20": false,
 "is_evm": false,
 "is_svm": false,
 "symbol": "INIT",
 "name": "Initia Native Token",
 "logo_uri": "https://raw.githubusercontent.com/initia-labs/initia-registry/main/images/INIT.png",
 "decimals": 18,
 "token_contract": "0x856aB2c9F35B9187aB3eB0Fcd11DCc6160427e96",
 "coingecko_id": "initia",
 "recommended_symbol": "INIT"
}"#;
    assert_eq!(body("yominet-1", YOMI_INIT), expected);
    let expected = r#"{
 "denom": "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06",
 "chain_id": "yominet-1",
 "origin_denom": "uinit",
 "origin_chain_id": "interwoven-1",
 "trace": "",
 "is_cw20": false,
 "is_evm": false,
 "is_svm": false,
 "symbol": "INIT",
 "name": "Initia Native Token (OP)",
 "logo_uri": "https://raw.githubusercontent.com/initia-labs/initia-registry/main/images/INIT.png",
 "decimals": 6,
 "coingecko_id": "initia",
 "recommended_symbol": "INIT",
 "hidden": true
}"#;
    assert_eq!(body("yominet-1", OP_INIT), expected);
}

#[test]
fn the_same_asset_is_sent_on_its_chain() {
    let mainnet = Mainnet::new();
    let (plan, operations) = best(&mainnet, &mainnet.request(INIT, INIT, 7));
    assert_eq!(plan.hops[0].step, Step::Send);
    assert_eq!(plan.chain_ids(&mainnet.registry), ["interwoven-1"]);
    assert_eq!(plan.required_chain_addresses(&mainnet.registry), ["interwoven-1", "interwoven-1"]);
    let expected = r#"[{"bank_send":{"chain_id":"interwoven-1","denom":"uinit"},"tx_index":0,"amount_in":"7","amount_out":"7"}]"#;
    assert_eq!(serde_json::to_string(&operations).unwrap(), expected);
    assert!(matches!(mainnet.plan(&mainnet.request(INIT, INIT, 0)), Err(NoRoute::TooSmall { .. })));
}
