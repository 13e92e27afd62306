//! The planner compared with an exhaustive search: on small random registries both must give the same result.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod every;
#[path = "../random/mod.rs"]
mod random;

use chain::U256;
use every::{connected, cost, expected, met, names};
use planner::{Graph, Hop, NoRoute, Plan, Request, World, plan};
use proptest::prelude::*;
use random::{Dice, GeneratedWorld, Size};
use registry::AssetRef;

fn world(made: &GeneratedWorld) -> World<'_> {
    World { registry: &made.registry, facts: &made.facts, quotes: &made.quotes }
}

/// A plan by names, so that two registries can be compared.
fn text_of(made: &GeneratedWorld, plans: &Result<Vec<Plan>, NoRoute>) -> String {
    match plans {
        Ok(plans) => plans
            .iter()
            .map(|plan| {
                let about =
                    |hop: &Hop| format!("{} {} {} {}", hop.amount_in, hop.amount_out, hop.tx, hop.seconds);
                let hops: Vec<_> = plan.hops.iter().map(about).collect();
                format!("{:?} {hops:?}", names(made, plan))
            })
            .collect::<Vec<_>>()
            .join("\n"),
        Err(why) => why.to_string(),
    }
}

/// Properties of every plan.
fn check(made: &GeneratedWorld, request: &Request, plan: &Plan) {
    let registry = &made.registry;
    assert_eq!(plan.hops.first().map(|hop| hop.from), Some(request.from));
    assert_eq!(plan.hops.last().map(|hop| hop.to), Some(request.to));
    assert_eq!(plan.amount_in(), request.amount_in);
    assert!(plan.hops.len() <= planner::MAX_HOPS);
    for pair in plan.hops.windows(2) {
        assert_eq!((pair[0].to, pair[0].amount_out), (pair[1].from, pair[1].amount_in));
        assert!(pair[1].tx == pair[0].tx || pair[1].tx == pair[0].tx + 1);
    }
    let mut assets = met(plan);
    if request.from != request.to {
        assets.sort_unstable();
        assets.dedup();
        assert_eq!(assets.len(), plan.hops.len() + 1, "an asset is met twice");
    }
    for hop in &plan.hops {
        // Normalised to the larger number of decimals, no amount grows.
        let (before, after) = (registry[hop.from].decimals, registry[hop.to].decimals);
        let ten = |power: u8| U256::from(10).checked_pow(U256::from(power)).unwrap();
        let most = before.max(after);
        if let (Some(before), Some(after)) =
            (hop.amount_in.checked_mul(ten(most - before)), hop.amount_out.checked_mul(ten(most - after)))
        {
            assert!(after <= before, "{hop:?}");
        }
        assert!(!hop.amount_out.is_zero());
    }
    assert!(request.multi_tx || plan.txs() == 1);
    assert!(request.op_hook || !plan.required_op_hook());
    let chains = plan.required_chain_addresses(registry);
    assert!(chains.len() >= 2);
    let id = |asset: AssetRef| registry[registry[asset].chain].id.as_str();
    assert_eq!((chains[0], chains[chains.len() - 1]), (id(request.from), id(request.to)));
}

fn small() -> impl Strategy<Value = Size> {
    (2usize..=8, 4usize..=20, 0usize..=4, prop_oneof![Just(0usize), 2usize..=8])
        .prop_map(|(chains, assets, ofts, trouble)| Size { chains, assets, ofts, trouble })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_registries_are_answered_as_if_every_way_had_been_tried(seed: u64, size in small()) {
        let parts = random::parts(seed, size);
        let made = random::build(&parts, 0, size);
        let graph = Graph::new(&made.registry);
        let (mut dice, neighbours) = (Dice(seed ^ 1), random::neighbours(&parts));
        for _ in 0..12 {
            let request = random::request(&mut dice, &made, &neighbours);
            if request.from == request.to {
                continue;
            }
            let answer = plan(&graph, world(&made), &request);
            let expected = expected(&made, &request);
            match &answer {
                Ok(plans) => {
                    prop_assert_eq!(plans, &expected);
                    for plan in plans {
                        check(&made, &request, plan);
                    }
                }
                Err(why) => {
                    prop_assert!(expected.is_empty(), "{} but there is {:?}", why, expected);
                    let no_path = matches!(why, NoRoute::NoPath { .. } | NoRoute::Doubt(_));
                    prop_assert_eq!(no_path, !connected(&made, &request), "{}", why);
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_files_does_not_matter(seed: u64, order in 1u64.., size in small()) {
        let parts = random::parts(seed, size);
        let (made, other) = (random::build(&parts, 0, size), random::build(&parts, order, size));
        let (graph, mixed) = (Graph::new(&made.registry), Graph::new(&other.registry));
        let (mut dice, neighbours) = (Dice(seed ^ 2), random::neighbours(&parts));
        for _ in 0..12 {
            let request = random::request(&mut dice, &made, &neighbours);
            let place = |asset: AssetRef| made.assets.iter().position(|one| *one == asset).unwrap();
            let (from, to) = (other.assets[place(request.from)], other.assets[place(request.to)]);
            let same = Request { from, to, ..request.clone() };
            let answer = plan(&graph, world(&made), &request);
            prop_assert_eq!(text_of(&made, &answer), text_of(&other, &plan(&mixed, world(&other), &same)));
            prop_assert_eq!(answer, plan(&graph, world(&made), &request));
        }
    }

    #[test]
    fn one_more_connection_never_makes_it_worse(seed: u64, size in small()) {
        let parts = random::parts(seed, size);
        let mut less = parts.clone();
        let mut dice = Dice(seed ^ 3);
        // Without the last group, or without a token that is not needed elsewhere.
        if less.ofts.pop().is_none() {
            less.assets.pop();
        }
        let (made, before) = (random::build(&parts, 0, size), random::build(&less, 0, size));
        let (graph, smaller) = (Graph::new(&made.registry), Graph::new(&before.registry));
        let neighbours = random::neighbours(&less);
        for _ in 0..12 {
            let request = random::request(&mut dice, &before, &neighbours);
            let place = |asset: AssetRef| before.assets.iter().position(|one| *one == asset).unwrap();
            let (from, to) = (made.assets[place(request.from)], made.assets[place(request.to)]);
            let same = Request { from, to, ..request.clone() };
            if let Ok(plans) = plan(&smaller, world(&before), &request) {
                let with = plan(&graph, world(&made), &same);
                prop_assert!(with.is_ok_and(|with| cost(&with[0]) <= cost(&plans[0])));
            }
        }
    }
}

#[test]
fn large_registries_are_answered_for_any_two_assets() {
    let mut found = 0;
    for seed in 0..300u64 {
        let mut dice = Dice(seed);
        // Some of maximum size, most of them smaller.
        let chains = if seed % 20 == 0 { 200 } else { 2 + dice.below(199) / (1 + dice.below(4)) };
        let size = Size { chains, assets: chains * 25, ofts: chains / 4, trouble: [0, 4, 30][dice.below(3)] };
        let parts = random::parts(seed, size);
        let made = random::build(&parts, 0, size);
        let (graph, neighbours) = (Graph::new(&made.registry), random::neighbours(&parts));
        for _ in 0..20 {
            let request = random::request(&mut dice, &made, &neighbours);
            let answer = plan(&graph, world(&made), &request);
            for plan in answer.iter().flatten() {
                check(&made, &request, plan);
                found += 1;
            }
            assert_eq!(answer, plan(&graph, world(&made), &request));
        }
    }
    assert!(found > 2_500, "{found} plans are too few to tell anything");
}
