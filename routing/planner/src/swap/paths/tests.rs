//! The search compared with all paths.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::swap::{Pool, PoolState, StablePool, WeightedPool, Weights};

const COINS: usize = 6;

/// Shares of the first coin's weight: a half, a fifth, four fifths.
const WEIGHTS: [u64; 3] = [500, 200, 800];

/// A pool between two coins, with the scales of its reserves as powers of ten.
fn pool(number: usize, (kind, first, second): (usize, usize, usize), scales: (u32, u32, u64)) -> Pool {
    let milli = U256::from(10u64.pow(15));
    let second = if first == second { (second + 1) % COINS } else { second };
    let reserves = [scales.2 * 10u64.pow(scales.0), scales.2 * 7 * 10u64.pow(scales.1)];
    let state = if let Some(share) = WEIGHTS.get(kind) {
        let weights = [milli * U256::from(*share), milli * U256::from(1_000 - share)];
        let weights = Weights { weights, time: 0 };
        let (weights_before, weights_after) = (weights.clone(), weights);
        let fee_rate = milli * U256::from(3);
        PoolState::Weighted(WeightedPool { reserves, weights_before, weights_after, fee_rate })
    } else {
        let reserves = vec![reserves[0], reserves[0] + reserves[0] / 3];
        PoolState::Stable(StablePool { reserves, ann: 6_000, fee_rate: milli })
    };
    let coins = [first, second].map(|coin| format!("coin{coin}")).to_vec();
    Pool { id: number.to_string(), coins, state }
}

/// The best end of all paths, each quoted whole.
fn best_of_all(market: &Market, from: usize, target: usize, amount: u64, is_out: bool) -> Option<u64> {
    fn visit(
        market: &Market,
        (target, is_out): (usize, bool),
        visited: &[usize],
        amount: u64,
        ends: &mut Vec<u64>,
    ) {
        let at = visited[visited.len() - 1];
        if at == target {
            ends.push(amount);
            return;
        }
        for way in market.leaving(at).iter().filter(|_| visited.len() <= MAX_LEGS) {
            let forward = if is_out { opposite(market, *way, at) } else { *way };
            if visited.contains(&way.to) {
                continue;
            }
            if let Ok(quote) = market.quote(forward, amount, is_out) {
                let mut visited = visited.to_vec();
                visited.push(way.to);
                visit(market, (target, is_out), &visited, quote.amount, ends);
            }
        }
    }
    let mut ends = Vec::new();
    visit(market, (target, is_out), &[from], amount, &mut ends);
    if is_out { ends.into_iter().min() } else { ends.into_iter().max() }
}

proptest! {
    #[test]
    fn the_best_path_is_the_best_of_all(
        pools in vec(((0..4usize, 0..COINS, 0..COINS), (3..13u32, 3..13u32, 1..100u64)), 1..14),
        (from, target) in (0..COINS, 0..COINS),
        digits in 1..12u32,
        amount in 1..100u64,
        is_out: bool,
    ) {
        let pools = pools.into_iter().enumerate();
        let pools = pools.map(|(number, (ends, scales))| pool(number, ends, scales)).collect();
        let market = Market::new("l1".to_owned(), 1, 1, pools);
        let position = |coin: usize| market.coins().iter().position(|name| *name == format!("coin{coin}"));
        let (Some(from), Some(target)) = (position(from), position(target)) else { return Ok(()) };
        if from == target {
            return Ok(());
        }
        let amount = amount * 10u64.pow(digits);
        let limits = Limits { legs: MAX_LEGS, allows: &|_| true };
        let found = best(&market, limits, from, &[target], amount, is_out);
        let end = found.ok().map(|found| {
            let path = &found[0].1;
            if is_out { path.amount_in() } else { path.amount_out() }
        });
        prop_assert_eq!(end, best_of_all(&market, from, target, amount, is_out));
    }
}
