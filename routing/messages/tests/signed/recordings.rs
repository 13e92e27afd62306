//! Our messages compared with two recorded chains: simulated messages, messages sent by users, and the chains' own
//! types.

use messages::{BuildError, Msg};
use planner::{Hop, Step};
use prost::Message as _;
use serde_json::Value;

use crate::support::proto_form::{Deposit, Send, Transfer, Withdrawal, encode, transfer};
use crate::support::world::{self, *};
use crate::support::{OTHER, Scenario, USER, USER_HEX, json, recorded, text};

fn channel(scenario: &Scenario) -> Step {
    Step::Ibc { channel: scenario.registry.channel_at(scenario.chain(L1), "transfer", "channel-0").unwrap() }
}

fn bridge(scenario: &Scenario) -> registry::BridgeRef {
    scenario.registry.bridge_of(scenario.chain(L1), 1).unwrap()
}

/// The denomination of a token on the other end of the channel.
fn across(scenario: &Scenario, chain: &str, denom: &str) -> (&'static str, String) {
    let there = if chain == L1 { L2 } else { L1 };
    let path = scenario.registry.path(scenario.asset(chain, denom)).to_owned();
    let end = ("transfer", "channel-0");
    (there, registry::denom::of_path(&registry::denom::received(&path, end, end)))
}

fn over_channel(scenario: &Scenario, chain: &str, denom: &str, amount: u128) -> Hop {
    let (there, arrived) = across(scenario, chain, denom);
    scenario.hop(channel(scenario), (chain, denom), (there, &arrived), amount, amount)
}

/// Our message for the transfer of a recorded message; `None` if no route makes such a transfer.
fn ours(chain: &str, type_url: &str, bytes: &[u8]) -> Option<(Result<Msg, BuildError>, String)> {
    let mut scenario = world::recorded();
    let (hop, sender, receiver) = match type_url {
        "/ibc.applications.transfer.v1.MsgTransfer" => {
            let sent = Transfer::decode(bytes).unwrap();
            if !sent.memo.is_empty() || sent.timeout_timestamp == 0 {
                return None;
            }
            scenario.now = sent.timeout_timestamp - 300_000_000_000;
            let token = sent.token.unwrap();
            (
                over_channel(&scenario, chain, &token.denom, token.amount.parse().unwrap()),
                sent.sender,
                sent.receiver,
            )
        }
        "/opinit.ophost.v1.MsgInitiateTokenDeposit" => {
            let sent = Deposit::decode(bytes).unwrap();
            let coin = sent.amount.unwrap();
            if !sent.data.is_empty() || sent.bridge_id != 1 {
                return None;
            }
            let l2 = registry::denom::bridged(1, &coin.denom);
            let step = Step::Deposit { bridge: bridge(&scenario) };
            let amount = coin.amount.parse().unwrap();
            (scenario.hop(step, (L1, &coin.denom), (L2, &l2), amount, amount), sent.sender, sent.to)
        }
        "/opinit.opchild.v1.MsgInitiateTokenWithdrawal" => {
            let sent = Withdrawal::decode(bytes).unwrap();
            let coin = sent.amount.unwrap();
            let step = Step::Withdraw { bridge: bridge(&scenario) };
            let amount = coin.amount.parse().unwrap();
            (scenario.hop(step, (L2, &coin.denom), (L1, "uinit"), amount, amount), sent.sender, sent.to)
        }
        "/cosmos.bank.v1beta1.MsgSend" => {
            let sent = Send::decode(bytes).unwrap();
            let coin = sent.amount[0].clone();
            let amount = coin.amount.parse().unwrap();
            let hop = scenario.hop(Step::Send, (chain, &coin.denom), (chain, &coin.denom), amount, amount);
            (hop, sent.from_address, sent.to_address)
        }
        _ => return None,
    };
    let made = scenario.make(vec![hop], &[&sender, &receiver]);
    let first = made.map(|made| {
        let messages::Tx::Cosmos { msgs, .. } = &made.txs[0] else { panic!("{made:?}") };
        assert_eq!(msgs.len(), 1);
        msgs[0].clone()
    });
    Some((first, receiver))
}

fn id(chain: &str) -> &'static str {
    if chain == "l1" { L1 } else { L2 }
}

#[test]
fn every_simulated_transfer_equals_ours_byte_for_byte() {
    let mut statuses = Vec::new();
    for chain in ["l1", "l2"] {
        for simulated in recorded::simulated(chain) {
            let [message] = simulated.body.messages.as_slice() else { panic!("one message each") };
            let (made, _) = ours(id(chain), &message.type_url, &message.value).unwrap();
            let made = made.unwrap();
            assert_eq!(made.type_url, message.type_url);
            assert_eq!(encode(&made), message.value, "{}", made.msg);
            statuses.push((simulated.status, made.type_url.rsplit_once('.').unwrap().1));
        }
    }
    assert_eq!(
        statuses,
        [
            (200, "MsgTransfer"),
            (200, "MsgInitiateTokenDeposit"),
            (500, "MsgTransfer"),
            (200, "MsgTransfer"),
            (200, "MsgInitiateTokenWithdrawal"),
        ],
        "the one that fails wants more than there is, which no message can know"
    );
}

#[test]
fn messages_sent_by_users_equal_ours() {
    let (mut same, mut refused) = (0, Vec::new());
    for chain in ["l1", "l2"] {
        for message in recorded::messages(chain) {
            let Some((made, receiver)) = ours(id(chain), &message.type_url, &message.value) else { continue };
            match made {
                Ok(made) => {
                    assert_eq!(made.type_url, message.type_url);
                    assert_eq!(encode(&made), message.value, "{}", made.msg);
                    same += 1;
                }
                Err(BuildError::Address { .. }) => refused.push(receiver),
                Err(other) => panic!("{other}"),
            }
        }
    }
    // Transfers that the chains refunded are refused here.
    assert_eq!(refused, ["not-an-address", "not-an-address", "cosmos1invalid"]);
    assert_eq!(same, SAME);
}

/// 31 transfers without memo and with a time, 7 deposits without hook into bridge 1, 10 withdrawals, one send.
const SAME: usize = 31 + 7 + 10 + 1;

/// The recorded transfers whose memo starts with `key`.
fn with_memo(chain: &str, key: &str) -> Vec<Transfer> {
    let start = format!("{{\"{key}\":");
    let transfers =
        recorded::messages(chain).into_iter().filter(|any| any.type_url.ends_with("transfer.v1.MsgTransfer"));
    transfers
        .filter(|any| any.type_url.starts_with("/ibc.applications.transfer"))
        .map(|any| Transfer::decode(any.value.as_slice()).unwrap())
        .filter(|sent| sent.memo.starts_with(&start))
        .collect()
}

#[test]
fn a_forward_equals_the_users_except_for_retries_and_receiver() {
    let mut compared = 0;
    for chain in ["l1", "l2"] {
        for sent in with_memo(chain, "forward") {
            let mut scenario = world::recorded();
            scenario.now = sent.timeout_timestamp - 300_000_000_000;
            let memo: Value = serde_json::from_str(&sent.memo).unwrap();
            let receiver = text(&memo, "/forward/receiver");
            let token = sent.token.clone().unwrap();
            let amount: u128 = token.amount.parse().unwrap();
            let out = over_channel(&scenario, id(chain), &token.denom, amount);
            let (there, arrived) = across(&scenario, id(chain), &token.denom);
            let back = over_channel(&scenario, there, &arrived, amount);
            let made = scenario.make(vec![out, back], &[&sent.sender, receiver]);
            if receiver == "not-an-address" {
                assert!(matches!(made, Err(BuildError::Address { .. })));
                continue;
            }
            let made = made.unwrap();
            let messages::Tx::Cosmos { msgs, .. } = &made.txs[0] else { panic!("{made:?}") };
            let mut made = transfer(&msgs[0]);
            let holder = chain::Account::from_bech32(&sent.sender, "init").unwrap();
            assert_eq!(made.receiver, holder.to_bech32("init"));
            made.receiver.clone_from(&sent.receiver);
            made.memo = made.memo.replace(r#""retries":2"#, r#""retries":0"#);
            assert_eq!(made, sent);
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}

#[test]
fn a_hook_equals_the_users_except_for_its_calldata() {
    let sent = with_memo("l1", "evm");
    assert_eq!(sent.len(), 2);
    for sent in sent {
        let mut scenario = world::recorded();
        scenario.now = sent.timeout_timestamp - 300_000_000_000;
        let amount: u128 = sent.token.clone().unwrap().amount.parse().unwrap();
        let out = over_channel(&scenario, L1, "uinit", amount);
        let (_, voucher) = across(&scenario, L1, "uinit");
        let wrapped = (L2, "evm/8771048e9Bdba5F70f601bd365F5FbfF71759433");
        let wrap = scenario.hop(Step::Wrap, (L2, &voucher), wrapped, amount, finer(amount));
        let msg = scenario.msgs(vec![out, wrap], &[&sent.sender, &sent.sender]).remove(0);
        let (our, their): (Value, Value) = (
            serde_json::from_str(text(&json(&msg), "/memo")).unwrap(),
            serde_json::from_str(&sent.memo).unwrap(),
        );
        let input = "/evm/message/input";
        let mut made = transfer(&msg);
        made.memo = made.memo.replace(text(&our, input), text(&their, input));
        assert_eq!(made, sent);
    }
}

/// Whether the chain's JSON contains our message, lists in full; `{}` stands for an object of defaults.
fn says(printed: &Value, ours: &Value) -> bool {
    match (printed, ours) {
        (Value::Object(printed), Value::Object(ours)) => {
            ours.iter().all(|(key, ours)| printed.get(key).is_some_and(|printed| says(printed, ours)))
        }
        (Value::Array(printed), Value::Array(ours)) => {
            printed.len() == ours.len() && printed.iter().zip(ours).all(|(printed, ours)| says(printed, ours))
        }
        _ => printed == ours,
    }
}

/// Members of the chain's JSON that our message lacks, without defaults.
fn unsaid(printed: &Value, ours: &Value) -> Vec<String> {
    let members = printed.as_object().unwrap().iter();
    let empty = |value: &Value| {
        value.is_null() || value == "" || value == "0" || value.as_array().is_some_and(Vec::is_empty)
    };
    members
        .filter(|(key, value)| ours.get(key).is_none() && !empty(value))
        .map(|(key, _)| key.clone())
        .collect()
}

/// One message of each kind, with the chain whose types have it.
fn one_of_each() -> Vec<(&'static str, Msg)> {
    let (scenario, migrated) = (world::mainnet(), world::migrated());
    let l1 = "interwoven-1";
    let init_bridge = scenario.registry.bridge_of(scenario.chain(l1), 11).unwrap();
    let to_yominet = scenario.registry.channel_at(scenario.chain(l1), "transfer", "channel-25").unwrap();
    let to_cabal = scenario.registry.channel_at(scenario.chain(l1), "transfer", "channel-97").unwrap();
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let coin = ("yominet-1", INIT_L2);
    let wrapped = ("yominet-1", INIT_WRAPPED);
    let packet = vec![
        scenario.hop(Step::Ibc { channel: to_cabal }, (l1, USDC_L1), ("cabal-1", USDC_L2), 5, 5),
        scenario.hop(Step::Wrap, ("cabal-1", USDC_L2), ("cabal-1", USDC_WRAPPED), 5, finer(5)),
    ];
    let cross = Step::LayerZero { oft, from: 1, to: 0, fee: chain::U256::from(250_000) };
    let crossing = scenario.hop(cross, (l1, ETH_L1), ("1", "ethereum-native"), 5, finer(5));
    let migrate = Step::MigratedWithdraw { bridge: init_bridge, channel: to_yominet };
    let unwrap = scenario.hop(Step::Unwrap, wrapped, coin, finer(5), 5);
    let out = migrated.hop(migrate, coin, (l1, "uinit"), 5, 5);
    let two = [USER, OTHER];
    let mut all: Vec<(&str, Msg)> = Vec::new();
    let mut add = |chain, msgs: Vec<Msg>| all.extend(msgs.into_iter().map(|msg| (chain, msg)));
    add("l1", scenario.msgs(packet, &two));
    add("l1", scenario.msgs(vec![scenario.hop(Step::Send, (l1, "uinit"), (l1, "uinit"), 5, 5)], &two));
    let deposit = Step::Deposit { bridge: init_bridge };
    add("l1", scenario.msgs(vec![scenario.hop(deposit, (l1, "uinit"), coin, 5, 5)], &two));
    add("l1", scenario.msgs(vec![crossing], &[USER, USER_HEX]));
    let withdraw = Step::Withdraw { bridge: init_bridge };
    add("l2", scenario.msgs(vec![scenario.hop(withdraw, coin, (l1, "uinit"), 5, 5)], &two));
    add("l2", migrated.msgs(vec![unwrap, out], &two));
    all
}

#[test]
fn every_kind_of_message_round_trips_through_the_chains_types() {
    let types = [("l1", recorded::types("l1")), ("l2", recorded::types("l2"))];
    let mut kinds = std::collections::BTreeSet::new();
    for (chain, msg) in one_of_each() {
        let (_, types) = types.iter().find(|(name, _)| *name == chain).unwrap();
        let mut out = Vec::new();
        proto::json::write_message(types, &msg.type_url[1..], &encode(&msg), &mut out).unwrap();
        let (printed, ours): (Value, Value) =
            (serde_json::from_slice(&out).unwrap(), serde_json::from_str(&msg.msg).unwrap());
        assert!(says(&printed, &ours), "{printed}\n{ours}");
        assert_eq!(unsaid(&printed, &ours), Vec::<String>::new(), "{printed}\n{ours}");
        kinds.insert(msg.type_url);
    }
    assert_eq!(kinds.len(), 7, "{kinds:?}");
}
