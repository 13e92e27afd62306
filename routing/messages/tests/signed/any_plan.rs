//! Every plan, valid or not, gives transactions that execute all of it, once and in order, or an error.

use chain::U256;
use messages::{BuiltTxs, Tx, address};
use planner::{Hop, Plan, Step};
use proptest::prelude::*;
use registry::{AssetRef, ChainKind, ChainRef};
use serde_json::Value;

use crate::support::{Scenario, json, world};

/// Steps from one asset to another, valid or not.
fn steps(scenario: &Scenario, from: AssetRef, to: AssetRef) -> Vec<Step> {
    let registry = &scenario.registry;
    let mut steps = vec![Step::Send, Step::Wrap, Step::Unwrap];
    let ends = (registry[from].chain, registry[to].chain);
    for (channel, _) in registry
        .channels()
        .filter(|(_, channel)| channel.on(ends.0).is_some() && channel.on(ends.1).is_some())
    {
        steps.push(Step::Ibc { channel });
        for (bridge, _) in registry.bridges() {
            steps.extend([
                Step::MigratedDeposit { bridge, channel },
                Step::MigratedWithdraw { bridge, channel },
            ]);
        }
    }
    for (bridge, _) in registry.bridges() {
        steps.extend([Step::Deposit { bridge }, Step::Withdraw { bridge }]);
    }
    for (oft, group) in registry.ofts() {
        let at = |asset| group.legs.iter().position(|leg| leg.asset == asset);
        if let (Some(leaves), Some(lands)) = (at(from), at(to)) {
            steps.push(Step::LayerZero { oft, from: leaves, to: lands, fee: U256::from(7) });
        }
    }
    steps
}

/// Base units of `to` for those of `from`, for any two assets.
fn rescaled(scenario: &Scenario, from: AssetRef, to: AssetRef, amount: U256) -> U256 {
    let (decimals_in, decimals_out) = (scenario.registry[from].decimals, scenario.registry[to].decimals);
    let ten = |digits: u8| U256::from(10).pow(U256::from(digits));
    amount.saturating_mul(ten(decimals_out)) / ten(decimals_in)
}

/// A plan from random numbers: each selects an asset, a step, and whether a new transaction begins. Most numbers select
/// a valid step, some any step.
fn plan(scenario: &Scenario, start: usize, amount: u128, choices: &[(usize, usize, u8)]) -> Plan {
    let assets: Vec<AssetRef> = scenario.registry.assets().map(|(asset, _)| asset).collect();
    let (mut at, mut amount, mut tx) = (assets[start % assets.len()], U256::from(amount), 0);
    let mut hops = Vec::new();
    for (index, (pick, how, variant)) in choices.iter().enumerate() {
        let mut fitting: Vec<(Step, AssetRef)> = Vec::new();
        for to in &assets {
            fitting.extend(steps(scenario, at, *to).into_iter().map(|step| (step, *to)));
        }
        if *variant > 10 {
            let one = |(step, to): &(Step, AssetRef)| {
                let hop = Hop {
                    step: *step,
                    from: at,
                    to: *to,
                    amount_in: U256::from(10u128.pow(18)),
                    amount_out: rescaled(scenario, at, *to, U256::from(10u128.pow(18))),
                    tx: 0,
                    seconds: 1,
                };
                !scenario.make(vec![hop], &[]).unwrap_err().to_string().contains("hop 0")
            };
            fitting.retain(one);
        }
        let Some((step, to)) = fitting.get((pick * 31 + how) % fitting.len().max(1)).copied() else { break };
        if index > 0 && variant % 3 == 0 {
            tx += 1;
        }
        let out = rescaled(scenario, at, to, amount);
        let out = if *variant == 5 { out.saturating_add(U256::ONE) } else { out };
        hops.push(Hop { step, from: at, to, amount_in: amount, amount_out: out, tx, seconds: 1 });
        (at, amount) = (to, out);
    }
    if let Some(last) = hops.last_mut().filter(|_| choices.last().is_some_and(|choice| choice.2 == 7)) {
        last.tx += 2;
    }
    Plan { hops, swap: None }
}

fn an_address(scenario: &Scenario, chain: ChainRef) -> String {
    let chain = &scenario.registry[chain];
    let account = chain::Account::from([0x5b; 20]);
    if chain.kind == ChainKind::Evm { account.to_hex() } else { account.to_bech32(&chain.bech32_prefix) }
}

/// Number of chains that forward a packet with this memo.
fn depth(memo: &str) -> usize {
    if memo.is_empty() {
        return 0;
    }
    let parsed: Value = serde_json::from_str(memo).unwrap();
    let (mut depth, mut at) = (0, &parsed);
    while let Some(forward) = at.get("forward") {
        depth += 1;
        let Some(next) = forward.get("next") else { break };
        at = next;
    }
    depth
}

fn check(scenario: &Scenario, plan: &Plan, made: &BuiltTxs) -> Result<(), TestCaseError> {
    let mut next = 0;
    for tx in &made.txs {
        prop_assert_eq!(tx.hops().start, next);
        prop_assert!(tx.hops().end > next);
        next = tx.hops().end;
        let hops = &plan.hops[tx.hops().clone()];
        prop_assert!(hops.iter().all(|hop| hop.tx == hops[0].tx));
        let Tx::Cosmos { msgs, path, .. } = tx else { continue };
        prop_assert!(!msgs.is_empty());
        prop_assert!(path.windows(2).all(|two| two[0] != two[1]));
        prop_assert_eq!(path[0], scenario.registry[hops[0].from].chain);
        for msg in msgs {
            let value = json(msg);
            if msg.type_url.ends_with(".MsgTransfer") {
                let packets = |hop: &&Hop| {
                    matches!(
                        hop.step,
                        Step::Ibc { .. } | Step::MigratedDeposit { .. } | Step::MigratedWithdraw { .. }
                    )
                };
                let memo = crate::support::text(&value, "/memo");
                prop_assert_eq!(depth(memo) + 1, hops.iter().filter(packets).count());
            }
        }
    }
    prop_assert_eq!(next, plan.hops.len());
    prop_assert!(made.min_amount_out <= plan.hops[next - 1].amount_out);
    Ok(())
}

fn choices() -> impl Strategy<Value = Vec<(usize, usize, u8)>> {
    proptest::collection::vec((0usize..1_000, 0usize..1_000, 0u8..=255), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_plan_gives_all_its_transactions_or_a_refusal(
        start in 0usize..1_000,
        amount in 1u128..=u128::MAX >> 8,
        choices in choices(),
        all_chains: bool,
        migrated: bool,
    ) {
        let scenario = if migrated { world::migrated() } else { world::mainnet() };
        let plan = plan(&scenario, start, amount, &choices);
        let chains = if all_chains {
            plan.chains(&scenario.registry)
        } else {
            plan.required_chains(&scenario.registry)
        };
        let addresses: Vec<String> = chains.into_iter().map(|chain| an_address(&scenario, chain)).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        match scenario.make(plan.hops.clone(), &addresses) {
            Ok(made) => check(&scenario, &plan, &made)?,
            Err(refused) => prop_assert!(!refused.to_string().is_empty()),
        }
    }

    #[test]
    fn any_text_is_read_as_an_address_or_refused(text in "\\PC{0,60}", chain in 0usize..7) {
        let scenario = world::mainnet();
        let (chain, _) = scenario.registry.chains().nth(chain).unwrap();
        if let Err(refused) = address::read(&scenario.registry, chain, "source_address", &text) {
            prop_assert!(refused.to_string().starts_with("source_address `"));
        }
    }
}

#[test]
fn the_random_plans_are_not_all_refused() {
    let scenario = world::migrated();
    let mut made = [0; 4];
    for seed in 0..600 {
        let choices: Vec<_> = (0..=seed % 3).map(|at| (seed * 7 + at * 13, seed + at, 11)).collect();
        let plan = plan(&scenario, seed, 10u128.pow(18), &choices);
        let chains = plan.required_chains(&scenario.registry);
        let addresses: Vec<String> = chains.into_iter().map(|chain| an_address(&scenario, chain)).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        if scenario.make(plan.hops.clone(), &addresses).is_ok() {
            made[plan.hops.len()] += 1;
        }
    }
    assert!(made[1] > 50 && made[2] > 20 && made[3] > 10, "{made:?}");
}
