//! Further transactions of plans, and refusals.

use chain::U256;
use messages::{Approval, BuildError, Tx};
use planner::{Hop, Step};
use registry::{denom, intermediary};
use serde_json::{Value, json};

use crate::support::world::{self, *};
use crate::support::{
    NOBLE, OTHER, OTHER_HEX, Scenario, USER, USER_HEX, in_tx, json, string_words, text, word,
};

const L1: &str = "interwoven-1";

fn channel(scenario: &Scenario, chain: &str, number: u32) -> registry::ChannelRef {
    scenario.registry.channel_at(scenario.chain(chain), "transfer", &format!("channel-{number}")).unwrap()
}

fn bridge(scenario: &Scenario) -> registry::BridgeRef {
    scenario.registry.bridge_of(scenario.chain(L1), 11).unwrap()
}

fn ibc(scenario: &Scenario, over: (&str, u32), from: (&str, &str), to: (&str, &str)) -> Hop {
    scenario.hop(Step::Ibc { channel: channel(scenario, over.0, over.1) }, from, to, 5, 5)
}

/// The denomination of uinit on osmosis.
fn init_on_osmosis() -> String {
    denom::of_path("transfer/channel-1/uinit")
}

fn migrated_out(scenario: &Scenario) -> Hop {
    let step = Step::MigratedWithdraw { bridge: bridge(scenario), channel: channel(scenario, L1, 25) };
    scenario.hop(step, ("yominet-1", INIT_L2), (L1, "uinit"), 5, 5)
}

#[test]
fn a_migrated_coin_becomes_the_voucher_and_is_transferred_and_forwarded() {
    let scenario = world::migrated();
    let osmosis = init_on_osmosis();
    let on = ibc(&scenario, (L1, 71), (L1, "uinit"), ("osmosis-1", &osmosis));
    let receiver = chain::Account::from([7; 20]).to_bech32("osmo");
    let msgs = scenario.msgs(vec![migrated_out(&scenario), on], &[USER, &receiver]);
    let [migrate, transfer] = msgs.as_slice() else { panic!("{msgs:?}") };
    assert_eq!(migrate.type_url, "/opinit.opchild.v1.MsgMigrateToken");
    assert_eq!(json(migrate), json!({"sender": USER, "amount": {"denom": INIT_L2, "amount": "5"}}));
    let transfer = json(transfer);
    assert_eq!(transfer["token"], json!({"denom": INIT_VOUCHER, "amount": "5"}));
    assert_eq!(transfer["source_channel"], "channel-0");
    assert_eq!(transfer["receiver"], USER);
    let memo: Value = serde_json::from_str(text(&transfer, "/memo")).unwrap();
    let forward = json!({
        "receiver": receiver, "port": "transfer", "channel": "channel-71", "timeout": "10m", "retries": 2,
    });
    assert_eq!(memo, json!({"forward": forward}));
}

#[test]
fn a_wrapped_migrated_coin_is_unwrapped_to_its_owner_first() {
    let scenario = world::migrated();
    let (coin, wrapped) = (("yominet-1", INIT_L2), ("yominet-1", INIT_WRAPPED));
    let unwrap = scenario.hop(Step::Unwrap, wrapped, coin, finer(5), 5);
    let msgs = scenario.msgs(vec![unwrap, migrated_out(&scenario)], &[USER, OTHER]);
    let urls: Vec<&str> = msgs.iter().map(|msg| msg.type_url).collect();
    let (call, names) = (
        "/minievm.evm.v1.MsgCall",
        ["/opinit.opchild.v1.MsgMigrateToken", "/ibc.applications.transfer.v1.MsgTransfer"],
    );
    assert_eq!(urls, [call, call, names[0], names[1]]);
    let amount = format!("{:x}", finer(5));
    let words = [word(USER_HEX), word("60"), word(&amount), string_words(INIT_WRAPPED)].concat();
    assert_eq!(json(&msgs[1])["input"], format!("0xcf9ee0c3{words}"), "unwrapped to who signs");
    let transfer = json(&msgs[3]);
    assert_eq!((&transfer["receiver"], &transfer["memo"]), (&json!(OTHER), &json!("")));
}

#[test]
fn a_rollup_with_migrated_coins_gets_the_account_that_forwards() {
    for (scenario, migrated) in [(world::mainnet(), false), (world::migrated(), true)] {
        let hops = vec![
            ibc(&scenario, (L1, 25), (L1, "uinit"), ("yominet-1", INIT_VOUCHER)),
            ibc(&scenario, ("yominet-1", 0), ("yominet-1", INIT_VOUCHER), (L1, "uinit")),
        ];
        let msg = json(&scenario.msgs(hops, &[USER, USER])[0]);
        let holder = intermediary::forwarder("channel-0", USER).to_bech32("init");
        let expected = if migrated { holder.as_str() } else { USER };
        assert_eq!(text(&msg, "/receiver"), expected);
    }
}

#[test]
fn a_second_forwarder_is_derived_from_the_first() {
    let mut scenario = world::migrated();
    let bridged = registry::facts::BridgeFacts {
        migrated: [("uinit".to_owned(), Some(("transfer".to_owned(), "channel-25".to_owned())))].into(),
        ..Default::default()
    };
    scenario.facts.bridges.insert((L1.to_owned(), 11), bridged);
    let osmosis = init_on_osmosis();
    let hops = vec![
        ibc(&scenario, ("osmosis-1", 1), ("osmosis-1", &osmosis), (L1, "uinit")),
        ibc(&scenario, (L1, 25), (L1, "uinit"), ("yominet-1", INIT_VOUCHER)),
        ibc(&scenario, ("yominet-1", 0), ("yominet-1", INIT_VOUCHER), (L1, "uinit")),
    ];
    let sender = chain::Account::from([7; 20]).to_bech32("osmo");
    let msg = json(&scenario.msgs(hops, &[&sender, USER])[0]);
    assert_eq!(text(&msg, "/receiver"), chain::Account::from([7; 20]).to_bech32("init"));
    let memo: Value = serde_json::from_str(text(&msg, "/memo")).unwrap();
    let on_l1 = intermediary::forwarder("channel-71", &sender).to_bech32("init");
    let on_yominet = intermediary::forwarder("channel-0", &on_l1).to_bech32("init");
    assert_eq!(text(&memo, "/forward/receiver"), on_yominet);
    assert_eq!(text(&memo, "/forward/next/forward/receiver"), USER);
}

#[test]
fn forwarders_of_the_wrappers_packet_are_derived_from_the_wrapper() {
    let scenario = world::migrated();
    let hops = vec![
        scenario.hop(Step::Unwrap, ("cabal-1", USDC_WRAPPED), ("cabal-1", USDC_L2), finer(5), 5),
        ibc(&scenario, ("cabal-1", 0), ("cabal-1", USDC_L2), (L1, USDC_L1)),
        ibc(&scenario, (L1, 25), (L1, USDC_L1), ("yominet-1", USDC_L2)),
        ibc(&scenario, ("yominet-1", 0), ("yominet-1", USDC_L2), (L1, USDC_L1)),
    ];
    let call = json(&scenario.msgs(hops, &[USER, OTHER])[1]);
    let bytes = alloy::hex::decode(text(&call, "/input")).unwrap();
    let held = String::from_utf8_lossy(&bytes);
    let wrapper = chain::Account::from_hex_literal(USDC_WRAPPER).unwrap().to_bech32("init");
    let on_l1 = intermediary::forwarder("channel-97", &wrapper).to_bech32("init");
    let on_yominet = intermediary::forwarder("channel-0", &on_l1).to_bech32("init");
    assert!(held.contains(&format!(r#"{{"receiver":"{on_yominet}","port""#)), "{held}");
}

#[test]
fn each_transaction_is_signed_by_the_account_that_the_one_before_paid() {
    let scenario = world::mainnet();
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let fee = U256::from(7);
    let cross = Step::LayerZero { oft, from: 0, to: 1, fee };
    let out = scenario.hop(cross, ("1", "ethereum-native"), (L1, ETH_L1), finer(9), 9);
    let send = in_tx(scenario.hop(Step::Send, (L1, ETH_L1), (L1, ETH_L1), 9, 9), 1);
    let hops = vec![out, send];
    let plan = planner::Plan { hops: hops.clone(), swap: None };
    let ids = |chains: Vec<registry::ChainRef>| -> Vec<String> {
        chains.into_iter().map(|chain| scenario.registry[chain].id.clone()).collect()
    };
    assert_eq!(ids(plan.required_chains(&scenario.registry)), ["1", L1, L1]);
    assert_eq!(ids(plan.chains(&scenario.registry)), ["1", L1]);
    let made = scenario.make(hops.clone(), &[USER_HEX, USER, OTHER]).unwrap();
    let [Tx::Evm { data, hops: first, .. }, Tx::Cosmos { signer, msgs, hops: second, path, .. }] =
        made.txs.as_slice()
    else {
        panic!("{made:?}")
    };
    assert!(data.contains(&word(USER_HEX)) && !data.contains(&word(OTHER_HEX)));
    assert_eq!((signer.as_str(), first, second, path.len()), (USER, &(0..1), &(1..2), 1));
    assert_eq!(
        json(&msgs[0]),
        json!({"from_address": USER, "to_address": OTHER, "amount": [{"denom": ETH_L1, "amount": "9"}]})
    );
    // By `chain_ids`, one address on the L1 is both the user's and the recipient's.
    let made = scenario.make(hops, &[USER_HEX, USER]).unwrap();
    let Tx::Cosmos { msgs, .. } = &made.txs[1] else { panic!("{made:?}") };
    assert_eq!(json(&msgs[0])["to_address"], USER);
}

#[test]
fn coins_and_tokens_of_an_evm_chain_are_sent_by_value_and_by_contract() {
    let scenario = world::mainnet();
    let send = |denom| scenario.hop(Step::Send, ("1", denom), ("1", denom), 9, 9);
    let made = scenario.make(vec![send("ethereum-native")], &[USER_HEX, OTHER_HEX]).unwrap();
    let Tx::Evm { to, value, data, .. } = &made.txs[0] else { panic!("{made:?}") };
    assert_eq!((to.as_str(), *value, data.as_str()), (OTHER_HEX, U256::from(9), ""));
    let made = scenario.make(vec![send(USDE)], &[USER_HEX, OTHER_HEX]).unwrap();
    let Tx::Evm { to, value, data, .. } = &made.txs[0] else { panic!("{made:?}") };
    assert_eq!((to.as_str(), *value), (USDE, U256::ZERO));
    assert_eq!(*data, format!("a9059cbb{}{}", word(OTHER_HEX), word("9")));
}

#[test]
fn an_adapter_needs_an_allowance_and_dust_stays() {
    let scenario = world::mainnet();
    let (oft, _) = scenario.registry.ofts().nth(1).unwrap();
    let step = Step::LayerZero { oft, from: 0, to: 1, fee: U256::from(7) };
    let amount = finer(9);
    let hop = scenario.hop(step, ("1", USDE), ("42161", USDE_ARBITRUM), amount + 123, amount);
    let made = scenario.make(vec![hop], &[USER_HEX, OTHER_HEX]).unwrap();
    assert_eq!(made.min_amount_out, U256::from(amount), "nothing is kept, so nothing may be missing");
    let Tx::Evm { to, value, data, approvals, .. } = &made.txs[0] else { panic!("{made:?}") };
    assert_eq!((to.as_str(), *value), (USDE_ADAPTER, U256::from(7)));
    let (token, spender) = (USDE.to_owned(), USDE_ADAPTER.to_owned());
    assert_eq!(*approvals, [Approval { token, spender, amount: U256::from(amount) }]);
    let hex = word(&format!("{amount:x}"));
    assert!(data.contains(&format!("{hex}{hex}")), "both amounts are without dust: {data}");
    assert!(data.contains("00030100110100000000000000000000000000030d40"), "the options go along");
}

#[test]
fn if_a_group_keeps_a_fee_slippage_sets_the_minimum_received() {
    let scenario = world::mainnet();
    let (oft, _) = scenario.registry.ofts().nth(1).unwrap();
    let step = Step::LayerZero { oft, from: 1, to: 0, fee: U256::from(7) };
    let hop = scenario.hop(step, ("42161", USDE_ARBITRUM), ("1", USDE), finer(1_000), finer(900));
    let made = scenario.make(vec![hop], &[USER_HEX, OTHER_HEX]).unwrap();
    assert_eq!(made.min_amount_out, U256::from(finer(900) * 995 / 1_000));
    let Tx::Evm { value, data, approvals, .. } = &made.txs[0] else { panic!("{made:?}") };
    assert_eq!((*value, approvals.len()), (U256::from(7), 0));
    let amounts = word(&format!("{:x}", finer(1_000))) + &word(&format!("{:x}", finer(895)));
    assert!(data.contains(&amounts), "whole units of what crosses: {data}");
}

#[test]
fn a_deposit_pays_the_next_signer_or_the_recipient() {
    let scenario = world::mainnet();
    let deposit = scenario.hop(
        Step::Deposit { bridge: bridge(&scenario) },
        (L1, "uinit"),
        ("yominet-1", INIT_L2),
        5,
        5,
    );
    let wrapped = ("yominet-1", INIT_WRAPPED);
    let wrap = in_tx(scenario.hop(Step::Wrap, ("yominet-1", INIT_L2), wrapped, 5, finer(5)), 1);
    let made = scenario.make(vec![deposit, wrap], &[USER, USER, OTHER]).unwrap();
    let [Tx::Cosmos { msgs: first, .. }, Tx::Cosmos { msgs: second, .. }] = made.txs.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!(json(&first[0])["to"], USER);
    assert_eq!(json(&second[0])["contract_addr"], INIT_L2_ERC20);
    let input = text(&json(&second[1]), "/input").to_owned();
    assert!(input.starts_with(&format!("0x1efd1a84{}", word(OTHER_HEX))), "{input}");
}

#[test]
fn a_transaction_that_no_signature_covers_is_refused_by_name() {
    let scenario = world::migrated();
    let withdraw = || {
        scenario.hop(
            Step::Withdraw { bridge: bridge(&scenario) },
            ("yominet-1", INIT_L2),
            (L1, "uinit"),
            5,
            5,
        )
    };
    let osmosis = init_on_osmosis();
    let on = || ibc(&scenario, (L1, 71), (L1, "uinit"), ("osmosis-1", &osmosis));
    let to = chain::Account::from([7; 20]).to_bech32("osmo");
    assert_eq!(
        scenario.refusal(vec![withdraw(), on()], &[USER, &to]),
        "this route cannot be signed: no single transaction does this: withdrawal, IBC transfer"
    );
    let step = Step::MigratedDeposit { bridge: bridge(&scenario), channel: channel(&scenario, L1, 25) };
    let deposit = scenario.hop(step, (L1, "uinit"), ("yominet-1", INIT_L2), 5, 5);
    let back = ibc(&scenario, ("yominet-1", 0), ("yominet-1", INIT_L2), (L1, INIT_BACK));
    assert_eq!(
        scenario.refusal(vec![deposit, back], &[USER, USER]),
        "this route cannot be signed: what was migrated to `yominet-1` cannot be forwarded by it"
    );
    let up = scenario.hop(
        Step::Withdraw { bridge: bridge(&scenario) },
        (L1, "uinit"),
        ("yominet-1", INIT_L2),
        5,
        5,
    );
    assert_eq!(
        scenario.refusal(vec![up], &[USER, USER]),
        "this route cannot be signed: hop 0 is no withdrawal between these assets"
    );
    assert_eq!(scenario.refusal(vec![], &[]), "this route cannot be signed: it has 0 hops, not 1 to 32");
    let mut other = withdraw();
    other.tx = 1;
    assert_eq!(
        scenario.refusal(vec![other], &[USER, USER]),
        "this route cannot be signed: hop 0 is in transaction 1"
    );
    let mut more = on();
    more.amount_in = U256::from(6);
    assert_eq!(
        scenario.refusal(vec![withdraw(), in_tx(more, 1)], &[USER, USER, &to]),
        "this route cannot be signed: hop 1 does not start with what the one before brought"
    );
}

#[test]
fn a_packet_calls_a_wrapper_only_if_the_chain_allows_it() {
    let mut scenario = world::migrated();
    let step = Step::MigratedDeposit { bridge: bridge(&scenario), channel: channel(&scenario, L1, 25) };
    let coin = ("yominet-1", INIT_L2);
    let hops = || {
        let wrap = scenario.hop(Step::Wrap, coin, ("yominet-1", INIT_WRAPPED), 5, finer(5));
        vec![scenario.hop(step, (L1, "uinit"), coin, 5, 5), wrap]
    };
    assert!(scenario.make(hops(), &[USER, USER]).is_ok());
    let hops = hops();
    scenario.facts.hooks.clear();
    assert_eq!(
        scenario.refusal(hops, &[USER, USER]),
        "this route cannot be signed: chain `yominet-1` does not let packets call its wrapper"
    );
}

#[test]
fn amounts_that_a_message_cannot_carry_are_refused_with_the_limit() {
    let scenario = world::mainnet();
    let withdraw = |amount: u128| {
        scenario.hop(
            Step::Withdraw { bridge: bridge(&scenario) },
            ("yominet-1", INIT_L2),
            (L1, "uinit"),
            amount,
            amount,
        )
    };
    assert!(scenario.make(vec![withdraw(u128::from(u64::MAX))], &[USER, USER]).is_ok());
    let refusal = scenario.refusal(vec![withdraw(u128::from(u64::MAX) + 1)], &[USER, USER]);
    assert_eq!(
        refusal,
        format!(
            "amount 18446744073709551616 of `{INIT_L2}` cannot be sent: a withdrawal can be claimed up to 18446744073709551615"
        )
    );
    let mut everything = ibc(&scenario, (L1, 25), (L1, "uinit"), ("yominet-1", INIT_VOUCHER));
    (everything.amount_in, everything.amount_out) = (all(), all());
    assert!(matches!(scenario.make(vec![everything.clone()], &[USER, USER]), Err(BuildError::Amount { .. })));
    (everything.amount_in, everything.amount_out) = (U256::ZERO, U256::ZERO);
    assert!(matches!(scenario.make(vec![everything], &[USER, USER]), Err(BuildError::Amount { .. })));
    let (oft, _) = scenario.registry.ofts().next().unwrap();
    let step = |fee| Step::LayerZero { oft, from: 1, to: 0, fee };
    let cross = |amount: u128, fee| {
        scenario.hop(step(fee), (L1, ETH_L1), ("1", "ethereum-native"), amount, finer(amount))
    };
    assert!(scenario.make(vec![cross(u128::from(u64::MAX), U256::ZERO)], &[USER, USER_HEX]).is_ok());
    for hop in [cross(u128::from(u64::MAX) + 1, U256::ZERO), cross(1, U256::from(1u128 << 64))] {
        let refused = scenario.make(vec![hop], &[USER, USER_HEX]).unwrap_err();
        assert!(
            refused.to_string().ends_with("it must fit into 64 bits, as Move counts, with its fee"),
            "{refused}"
        );
    }
    let mut dust = scenario.hop(
        Step::LayerZero { oft, from: 0, to: 1, fee: U256::ZERO },
        ("1", "ethereum-native"),
        (L1, ETH_L1),
        finer(1) - 1,
        1,
    );
    assert!(
        matches!(scenario.make(vec![dust.clone()], &[USER_HEX, USER]), Err(BuildError::Plan(_))),
        "it brings more"
    );
    dust.amount_out = U256::ZERO;
    assert!(matches!(scenario.make(vec![dust], &[USER_HEX, USER]), Err(BuildError::Amount { .. })));
}

#[test]
fn the_timeout_is_counted_from_now_and_must_exist() {
    let mut scenario = world::mainnet();
    let hop = || ibc(&scenario, (L1, 25), (L1, "uinit"), ("yominet-1", INIT_VOUCHER));
    let hops = vec![hop()];
    let at = |scenario: &Scenario| {
        text(&json(&scenario.msgs(hops.clone(), &[USER, USER])[0]), "/timeout_timestamp").to_owned()
    };
    assert_eq!(at(&scenario), "1767226200000000000");
    scenario.timeout = 1;
    assert_eq!(at(&scenario), "1767225901000000000");
    for wrong in [0, u64::MAX, u64::MAX / 1_000_000_000] {
        scenario.timeout = wrong;
        assert_eq!(scenario.make(hops.clone(), &[USER, USER]), Err(BuildError::Timeout(wrong)));
    }
}

#[test]
fn a_bad_percentage_is_refused_even_if_it_has_no_effect() {
    let mut scenario = world::mainnet();
    let hops = vec![ibc(&scenario, (L1, 25), (L1, "uinit"), ("yominet-1", INIT_VOUCHER))];
    scenario.slippage = "100.5";
    assert_eq!(scenario.make(hops, &[USER, USER]), Err(BuildError::Slippage("100.5".to_owned())));
}

#[test]
fn a_chain_without_forwarding_is_not_used_to_forward() {
    let mut made = world::WorldBuilder::new();
    let first = made.cosmos("a-1", "noble", chain::Vm::None, false);
    let (still, last) = (made.still("b-1", "noble"), made.cosmos("c-1", "noble", chain::Vm::None, false));
    let (ab, bc) = (made.channel((first, 1), (still, 2)), made.channel((still, 3), (last, 4)));
    let coin = made.native(first, "coin", 6);
    let second = made.came(still, 6, registry::Origin::Ibc { channel: ab, parent: coin });
    let third = made.came(last, 6, registry::Origin::Ibc { channel: bc, parent: second });
    let scenario = Scenario::new(made.finish(), registry::Facts::default());
    let hop = |channel, from, to| Hop {
        step: Step::Ibc { channel },
        from,
        to,
        amount_in: U256::ONE,
        amount_out: U256::ONE,
        tx: 0,
        seconds: 1,
    };
    let hops = vec![hop(ab, coin, second), hop(bc, second, third)];
    assert_eq!(
        scenario.refusal(hops, &[NOBLE, NOBLE]),
        "this route cannot be signed: chain `b-1` does not forward packets"
    );
}
