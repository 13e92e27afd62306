//! The executed swaps.

use std::collections::HashMap;

use planner::swap::{MinitswapPool, PoolKind, Quote, StablePool, WeightedPool};
use serde_json::Value;

use super::state::{INIT, Names, Pools, Step, swaps};

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

fn number(value: &Value, name: &str) -> u64 {
    text(value, name).parse().unwrap()
}

/// The pools of a line of `executed`, as they were after the block before; pools already known stay, with the swaps of
/// this block.
fn add_state(pools: &mut Pools, before: &Value) {
    for (pool, state) in before["dex"].as_object().unwrap() {
        pools.weighted.entry(pool.clone()).or_insert_with(|| WeightedPool::from_views(state, state).unwrap());
    }
    for (pool, state) in before["stableswap"].as_object().unwrap() {
        pools.stable.entry(pool.clone()).or_insert_with(|| StablePool::from_view(state).unwrap());
    }
    let minitswap = &before["minitswap"];
    if !minitswap.is_null() && pools.minitswap.is_none() {
        pools.minitswap =
            Some(MinitswapPool::from_views(&minitswap["pools"], &minitswap["module"]).unwrap().1);
    }
}

/// The amplification that moves in a straight line, at a block of the recording.
fn ramped(swaps: &Value, pool: &str, height: u64, time: u64) -> Option<u64> {
    let ramps = swaps["anns"][pool].as_array()?;
    let ramp = &ramps.iter().rfind(|ramp| ramp["height"].as_u64().unwrap() <= height)?["ann"];
    let [before, after] = ["ann_before", "ann_after"].map(|name| number(ramp, name));
    let [start, end] = ["timestamp_before", "timestamp_after"].map(|name| number(ramp, name));
    Some(if time >= end {
        after
    } else if after > before {
        before + (after - before) * (time - start) / (end - start)
    } else {
        before - (before - after) * (time - start) / (end - start)
    })
}

/// A Minitswap swap, with what the peg keeper does in it; the pool is left as the chain leaves it.
fn minitswap(pool: &mut MinitswapPool, time: u64, sells: bool, amount: u64) -> (Quote, u64, u64) {
    let quote = pool.amount_out(time, sells, amount).unwrap();
    if sells {
        let kept = pool.recovered(time).unwrap();
        *pool = kept.pool;
        pool.init -= quote.amount + quote.fee;
        pool.voucher += amount;
        return (quote, kept.offered, kept.returned);
    }
    pool.init += amount;
    pool.voucher -= quote.amount + quote.fee;
    // The fees are sold back; at one second and without fee, that is a sale before the peg keeper.
    let free = MinitswapPool { fee_rate: chain::U256::ZERO, last_recovered: time, ..pool.clone() };
    let back = free.amount_out(time, true, quote.fee).map_or(0, |back| back.amount);
    pool.init -= back;
    pool.voucher += quote.fee;
    let kept = pool.recovered(time).unwrap();
    *pool = kept.pool;
    (quote, kept.offered, kept.returned)
}

#[test]
fn each_executed_swap_gives_what_is_computed_at_its_block() {
    let swaps = swaps();
    let names = Names::of(&swaps);
    let mut blocks: HashMap<u64, Pools> = HashMap::new();
    let mut checked = 0;
    for line in swaps["executed"].as_array().unwrap() {
        if line["code"] != 0 || line["swaps"].as_array().unwrap().is_empty() {
            continue;
        }
        let (height, time) = (line["height"].as_u64().unwrap(), line["time"].as_u64().unwrap());
        let pools = blocks.entry(height).or_default();
        pools.time = time;
        add_state(pools, &line["state_before"]);
        for swap in line["swaps"].as_array().unwrap() {
            let (offered, returned) = (text(swap, "offer"), text(swap, "return"));
            let (amount, event) = (number(swap, "offer_amount"), &swap["event"]);
            let pool = swap["pool"].as_str().unwrap_or_default();
            let quote = match text(swap, "venue") {
                "dex" => {
                    let step = Step { kind: PoolKind::Weighted, pool, offered, returned };
                    let quote = pools.quote(&names, &step, amount, false).unwrap();
                    let is_second = usize::from(names.coins[pool][1] == offered);
                    let state = pools.weighted.get_mut(pool).unwrap();
                    state.reserves[is_second] += amount;
                    state.reserves[1 - is_second] -= quote.amount;
                    quote
                }
                "stableswap" => {
                    let (coins, state) = pools.stable.get_mut(pool).unwrap();
                    state.ann = ramped(&swaps, pool, height, time).unwrap_or(state.ann);
                    let at = |coin: &str| coins.iter().position(|known| known == coin).unwrap();
                    let (offered, returned) = (at(offered), at(returned));
                    let quote = state.amount_out(offered, returned, amount).unwrap();
                    state.reserves[offered] += amount;
                    state.reserves[returned] -= quote.amount;
                    quote
                }
                _ => {
                    let state = pools.minitswap.as_mut().unwrap();
                    let (quote, offer, taken) = minitswap(state, time, offered != INIT, amount);
                    assert_eq!(offer, number(event, "peg_keeper_offer_amount"), "{swap}");
                    assert_eq!(taken, number(event, "peg_keeper_return_amount"), "{swap}");
                    quote
                }
            };
            assert_eq!(quote.amount, number(swap, "return_amount"), "{swap}");
            if let Some(fee) = event["fee_amount"].as_str() {
                assert_eq!(quote.fee.to_string(), fee, "{swap}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 96);
}
