//! Properties of the model, and the document.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use crate::inputs::{self, Measured, Model, Polls, Scenario};
use crate::prediction::{Prediction, predict};
use crate::{cache, demand, document, engine, placement};

fn inputs() -> (Measured, Model) {
    inputs::read().unwrap()
}

fn outcome(change: impl Fn(&mut Measured, &mut Scenario)) -> Prediction {
    let (mut measured, model) = inputs();
    let mut scenario = model.scenario.last().unwrap().clone();
    change(&mut measured, &mut scenario);
    predict(&measured, &model, &scenario).unwrap()
}

#[test]
fn the_document_has_the_tables_of_the_model() {
    let path = inputs::root().join(document::PATH);
    let text = std::fs::read_to_string(&path).unwrap();
    let (measured, model) = inputs();
    let after = document::replace(&text, &document::tables(&measured, &model).unwrap()).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, after).unwrap();
        return;
    }
    assert!(text == after, "{} is out of date: UPDATE_GOLDEN=1 writes it", document::PATH);
}

/// The bound is what the document claims.
#[test]
fn no_measured_case_is_more_than_twice_the_prediction_or_less_than_half() {
    let (measured, _) = inputs();
    for case in &measured.case {
        let ratio = engine::predict(&measured, &case.of) / case.measured;
        assert!((0.5..=2.0).contains(&ratio), "{}: predicted / measured is {ratio:.2}", case.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn ches_approximation_is_near_the_simulation(
        blocks in 2_000..20_000_u32, exponent in 0.4..1.3_f64, share in 0.01..0.5_f64, seed in any::<u64>(),
    ) {
        let capacity = f64::from(blocks) * share;
        let whole = (1..=blocks).find(|&number| f64::from(number) >= capacity).unwrap();
        let simulated = cache::simulate(
            blocks, exponent, NonZeroUsize::try_from(usize::try_from(whole).unwrap()).unwrap(), 100_000, seed,
        );
        let (predicted, _) = cache::che(&cache::zipf(f64::from(blocks), exponent, 1.0), f64::from(whole));
        prop_assert!((simulated - predicted).abs() < 0.015, "{simulated} and {predicted}");
    }
}

proptest! {
    #[test]
    fn a_larger_cache_never_has_fewer_hits_and_holds_what_it_can(
        blocks in 10.0..1e9_f64, exponent in 0.0..1.5_f64, share in 0.001..0.9_f64, more in 1.0..10.0_f64,
    ) {
        let classes = cache::zipf(blocks, exponent, 1.0);
        let (hits, held) = cache::che(&classes, blocks * share);
        let (more_hits, _) = cache::che(&classes, blocks * share * more);
        prop_assert!(more_hits >= hits - 1e-9 && (0.0..=1.0 + 1e-9).contains(&hits));
        prop_assert!((held / (blocks * share) - 1.0).abs() < 1e-3, "{held} of {}", blocks * share);
    }

    #[test]
    fn classes_have_all_blocks_and_accesses(
        blocks in 1..100_000_u32, exponent in 0.0..1.5_f64, rate in 0.1..1e6_f64,
    ) {
        let classes = cache::zipf(f64::from(blocks), exponent, rate);
        let all: f64 = classes.iter().map(|class| class.blocks).sum();
        let accesses: f64 = classes.iter().map(|class| class.blocks * class.rate).sum();
        prop_assert!((all - f64::from(blocks)).abs() < 0.5, "{all}");
        prop_assert!((accesses / rate - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_longer_pause_or_fewer_blocks_need_no_more_polls(
        shortest_ms in 10.0..1000.0_f64, factor in 1.0..100.0_f64, more in 1.0..10.0_f64, blocks in 0.001..20.0_f64,
    ) {
        let polls = |longest_ms| Polls { shortest_ms, longest_ms, announced: false };
        let (short, long) = (polls(shortest_ms * factor), polls(shortest_ms * factor * more));
        let rate = engine::polls_per_s(&short, 5.0, blocks);
        prop_assert!(rate <= 1000.0 / (shortest_ms + 5.0) + 1e-9);
        prop_assert!(rate >= 1000.0 / (shortest_ms * factor + 5.0) - 1e-9);
        // The last pause of an interval may reach beyond it, by at most itself.
        prop_assert!(engine::polls_per_s(&long, 5.0, blocks) <= 2.0 * rate);
    }

    #[test]
    fn each_chain_is_on_different_servers_and_few_move_when_one_is_added(
        replicas in prop::collection::vec(1..4_u32, 200), servers in 4..40_u32,
    ) {
        let before = placement::place(&replicas, servers);
        let after = placement::place(&replicas, servers + 1);
        for ((before, after), number) in before.iter().zip(&after).zip(&replicas) {
            prop_assert_eq!(u32::try_from(before.len()).unwrap(), *number);
            let mut distinct = before.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), before.len());
            // Only the new server takes a place.
            prop_assert!(after.iter().all(|server| before.contains(server) || *server == servers));
        }
    }
}

#[test]
fn groups_have_all_chains_and_their_load() {
    let (measured, model) = inputs();
    let chains = demand::chains(model.scenario.last().unwrap(), &measured.data);
    let groups = demand::groups(&chains);
    let sum = |of: fn(&demand::Chain) -> f64| {
        let grouped: f64 = groups.iter().map(|group| group.number * of(&group.mean)).sum();
        grouped / chains.iter().map(of).sum::<f64>()
    };
    for ratio in [
        sum(|chain| chain.txs),
        sum(|chain| chain.requests_per_s),
        sum(|chain| chain.blocks_per_s),
        sum(|_| 1.0),
    ] {
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}

#[test]
fn no_request_is_lost_between_the_scenario_and_the_servers() {
    let (measured, model) = inputs();
    for scenario in &model.scenario {
        let found = predict(&measured, &model, scenario).unwrap();
        let sum: f64 = found.loads.iter().sum();
        assert!((sum / scenario.requests_per_s - 1.0).abs() < 1e-9, "{}: {sum}", scenario.name);
        let parts: f64 = found.cost.parts().iter().map(|(_, usd)| usd).sum();
        assert!(parts > 0.0 && found.cost.parts().iter().all(|(_, usd)| *usd >= 0.0), "{}", scenario.name);
    }
}

#[test]
fn costs_and_limits_move_in_the_right_direction() {
    let base = outcome(|_, _| ());
    let (first, _) = base.limits();
    assert!(first.share <= 1.0, "{first:?}");
    let polled = outcome(|_, scenario| scenario.polls.longest_ms *= 4.0);
    assert!(polled.gets.polls < base.gets.polls && polled.lag_ms.1 > base.lag_ms.1);
    let cached = outcome(|_, scenario| scenario.cache_gib *= 1.5);
    assert!(cached.hit_ratio > base.hit_ratio && cached.gets.misses < base.gets.misses);
    let asked = outcome(|_, scenario| scenario.requests_per_s *= 4.0);
    assert!(asked.servers > base.servers && asked.cost.servers > base.cost.servers);
    let more = outcome(|_, scenario| scenario.chains *= 2);
    assert!(more.cost.total() > base.cost.total() && more.writers > base.writers);
    let everywhere = outcome(|_, scenario| scenario.replicas = 0);
    assert!(everywhere.gets.polls > base.gets.polls, "each server polls each chain");
}

#[test]
fn a_fleet_is_as_large_as_its_limit_demands() {
    let (measured, mut model) = inputs();
    let scenario = model.scenario.last().unwrap().clone();
    let found = predict(&measured, &model, &scenario).unwrap();
    assert!(found.servers > scenario.min_servers);
    // Servers come in steps of a twentieth.
    let fewer = Scenario { min_servers: found.servers - found.servers / 10 - 1, ..scenario.clone() };
    assert!(predict(&measured, &model, &fewer).unwrap().servers > fewer.min_servers);
    model.machine.cores *= 100.0;
    model.machine.memory_gib *= 100.0;
    for price in &mut model.price {
        price.partition_gets_per_s *= 100.0;
    }
    assert_eq!(predict(&measured, &model, &scenario).unwrap().servers, scenario.min_servers);
}
