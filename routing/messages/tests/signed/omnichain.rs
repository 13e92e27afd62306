//! Sends of OFT contracts: on a minievm chain the same calls as the recorded ones of an EVM chain.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use chain::{U256, Vm};
use messages::{Msg, Tx};
use planner::Step;
use registry::{LegKind, Oft, Origin};
use serde_json::Value;

use crate::support::Scenario;
use crate::support::world::{WorldBuilder, leg};

/// The user of the recorded chains.
const USER: &str = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A";
/// (token, OFT contract, kind) on the sending chain, and the contract on the receiving one.
const TOK: [&str; 3] = [
    "0xC3931Da4f49Bdae5F28F070B5b9f0e3af4486061",
    "0xC3931Da4f49Bdae5F28F070B5b9f0e3af4486061",
    "0x8E554e26bA3C2f3E6E20b5fd875D39059AAf2d4f",
];
const ADP: [&str; 3] = [
    "0x1020352dA119bD6b02BDCB6802E9e8F0D33265bD",
    "0xFea03a0FFD816A0c93110Aed483bAEa238789A6c",
    "0x245baEE4d345A1ABB41C1E961Bf86E3974eF1dD6",
];

/// Recipient, value and calldata of the recorded transactions of the user, in order.
fn recorded() -> Vec<(String, U256, String)> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-oft/a/state.ndjson.zst");
    let lines = BufReader::new(zstd::Decoder::new(File::open(path).unwrap()).unwrap()).lines();
    let sent = lines.filter_map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let tx = (line["method"] == "eth_getTransactionByHash").then(|| line["result"].clone())?;
        let text = |name: &str| tx[name].as_str().unwrap().to_owned();
        let is_users = tx["from"].as_str().is_some_and(|from| from.eq_ignore_ascii_case(USER));
        let value = |text: &str| U256::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        is_users.then(|| (text("to"), value(&text("value")), text("input")))
    });
    sent.collect()
}

/// A rollup in the place of the sending chain, with one group.
fn world([token, oft, far]: [&str; 3], kind: LegKind) -> Scenario {
    let mut world = WorldBuilder::new();
    let (here, there) =
        (world.cosmos("rollup-1", "init", Vm::Evm, false), world.evm("31338", "test-evm-b-native"));
    let sending = world.asset(here, &format!("evm/{}", &token[2..]), 18, Origin::Native, Some(token));
    let receiving = world.asset(there, far, 18, Origin::Native, None);
    let legs = vec![leg(sending, kind, oft, 40_101), leg(receiving, LegKind::Token, far, 40_102)];
    world.builder.oft(Oft { symbol: "TOK".to_owned(), legs }).unwrap();
    Scenario::new(world.finish(), registry::Facts::default())
}

/// Our messages for a send with the fee that the recorded user paid.
fn ours(parts: [&str; 3], kind: LegKind, amount: u128, fee: U256) -> Vec<Msg> {
    let scenario = world(parts, kind);
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let step = Step::LayerZero { oft, from: 0, to: 1, fee };
    let denom = format!("evm/{}", &parts[0][2..]);
    let hop = scenario.hop(step, ("rollup-1", &denom), ("31338", parts[2]), amount, amount);
    let sender = chain::Account::from_hex_literal(USER).unwrap().to_bech32("init");
    let made = scenario.make(vec![hop], &[&sender, USER]).unwrap();
    let [Tx::Cosmos { msgs, signer, .. }] = made.txs.as_slice() else { panic!("{made:?}") };
    assert_eq!(*signer, sender);
    msgs.clone()
}

fn assert_same(ours: &Msg, (to, value, input): &(String, U256, String)) {
    assert_eq!(ours.type_url, "/minievm.evm.v1.MsgCall");
    let call: Value = serde_json::from_str(&ours.msg).unwrap();
    assert!(call["contract_addr"].as_str().unwrap().eq_ignore_ascii_case(to), "{call}");
    assert_eq!(
        (&call["value"], &call["input"]),
        (&Value::from(value.to_string()), &Value::from(input.as_str()))
    );
}

#[test]
fn a_rollup_sends_what_the_recorded_user_sent() {
    let sent = recorded();
    let fee = sent[0].1;
    let msgs = ours(TOK, LegKind::Token, 1_000_000_000_000_000_000, fee);
    assert_eq!(msgs.len(), 1);
    assert_same(&msgs[0], &sent[0]);

    let msgs = ours(ADP, LegKind::Adapter, 1_500_000_000_000_000_000, fee);
    assert_eq!(msgs.len(), 2);
    assert_same(&msgs[0], &sent[1]);
    assert_same(&msgs[1], &sent[2]);
}

#[test]
fn the_coin_of_a_rollup_is_sent_as_value_with_the_fee() {
    let msgs = ours(TOK, LegKind::NativeAdapter, 3_000_000_000_000_000_000, U256::from(7));
    let call: Value = serde_json::from_str(&msgs[0].msg).unwrap();
    assert_eq!((msgs.len(), &call["value"]), (1, &Value::from("3000000000000000007")));
}
