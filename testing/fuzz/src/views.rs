//! Views of pools: any reply is a state or an error, and a state gives no more than it has.

use planner::swap::{Market, MinitswapPool, Pool, PoolState, StablePool, WeightedPool};
use serde_json::{Value, json};

use crate::edit;
use crate::input::Input;

/// Members of a view and their values.
pub const WORDS: &[&str] = &[
    "\"swap_fee_rate\":",
    "\"current_ann\":",
    "\"coin_balances\":[",
    "\"timestamp\":",
    "\"18446744073709551615\"",
    "\"0.999999999999999999\"",
    "\"0.000000000000000001\"",
    "\"-1\"",
    "null",
];

/// Input: edits of a recorded reply of each kind, and an amount.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let (kind, amount, time) = (input.byte() % 3, input.long(), input.long());
    let (mut replies, is_out) = (recorded(kind), input.byte().is_multiple_of(2));
    edit::apply(&mut replies, &mut input);
    let Some((coins, state)) = read(kind, &replies) else { return false };
    assert!((2..=5).contains(&coins.len()), "{coins:?}");
    let quotes = |offered: usize, returned: usize| {
        let (quote, reserve) = match (&state, is_out) {
            (PoolState::Weighted(pool), false) => {
                (pool.amount_out(time, offered, amount), pool.reserves[returned])
            }
            (PoolState::Weighted(pool), true) => (pool.amount_in(time, offered, amount), u64::MAX),
            (PoolState::Stable(pool), false) => {
                (pool.amount_out(offered, returned, amount), pool.reserves[returned])
            }
            (PoolState::Stable(pool), true) => (pool.amount_in(offered, returned, amount), u64::MAX),
            (PoolState::Minitswap(pool), false) => (pool.amount_out(time, offered == 0, amount), u64::MAX),
            (PoolState::Minitswap(pool), true) => (pool.amount_in(time, offered == 0, amount), u64::MAX),
        };
        if let Ok(quote) = quote {
            assert!(quote.amount <= reserve, "{quote:?} of {reserve}");
        }
    };
    for offered in 0..coins.len() {
        (0..coins.len())
            .filter(|returned| *returned != offered)
            .for_each(|returned| quotes(offered, returned));
    }
    let pool = Pool { id: "move/1".to_owned(), coins: coins.clone(), state };
    let market = Market::new("l1".to_owned(), 1, time, vec![pool]);
    assert!(market.coins().len() <= coins.len());
    true
}

fn read(kind: u8, replies: &Value) -> Option<(Vec<String>, PoolState)> {
    let named = |coins: [&str; 2]| coins.map(str::to_owned).to_vec();
    match kind {
        0 => {
            let pool = WeightedPool::from_views(&replies[0], &replies[1]).ok()?;
            Some((named(["uinit", "uusdc"]), PoolState::Weighted(pool)))
        }
        1 => {
            let (coins, pool) = StablePool::from_view(&replies[0]).ok()?;
            Some((coins, PoolState::Stable(pool)))
        }
        _ => {
            let (voucher, pool) = MinitswapPool::from_views(&replies[0], &replies[1]).ok()?;
            Some((vec![voucher, "uinit".to_owned()], PoolState::Minitswap(pool)))
        }
    }
}

/// Replies as the recorded chain `l1-l2-swaps` gave them.
fn recorded(kind: u8) -> Value {
    let weights = json!({ "coin_a_weight": "0.8", "coin_b_weight": "0.2", "timestamp": "1795719445" });
    match kind {
        0 => json!([
            { "coin_a_amount": "30000000000000", "coin_b_amount": "1200000000000", "total_share": "7000000000000" },
            { "weights": { "weights_before": weights.clone(), "weights_after": weights }, "swap_fee_rate": "0.003" },
        ]),
        1 => json!([{
            "coin_metadata": ["0x29", "0xc8", "0xbe"],
            "coin_denoms": ["uusdc", "uusdt", "ueth"],
            "coin_balances": ["19141139273", "140000000000", "2786041231"],
            "current_ann": "20000",
            "swap_fee_rate": "0.0004",
        }]),
        _ => json!([
            {
                "ibc_op_init_denom": "ibc/82EB1C694C571F954E68BFD68CFCFCD6123B0EBB69AAA8BAB7A082939B45E802",
                "virtual_pool": {
                    "pool_size": "10000000000",
                    "recover_velocity": "1000000",
                    "max_ratio": "0.7",
                    "recover_param": "2",
                    "init_pool_amount": "5089932513",
                    "ibc_op_init_pool_amount": "15110215124",
                    "last_recovered_timestamp": "1795719803",
                    "peg_keeper_owned_ibc_op_init_balance": "310100923",
                    "ann": "3000",
                    "active": true,
                },
            },
            { "swap_fee_rate": "0.001", "arb_fee_rate": "0.0005", "emergency_state": false },
        ]),
    }
}

/// Each kind, both directions, with and without edits.
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |number: u8| {
        let amount = (1_000_u64 << (number * 2)).to_be_bytes();
        let time = 1_795_719_854_u64.to_be_bytes();
        // Another number at one of the places.
        let edit = [0, number, 4, 8, 0, 0, number, 255, 0, 0, 0, 0];
        let head = [&[number % 3][..], &amount, &time, &[number % 2]].concat();
        if number < 6 { head } else { [&head[..], &edit].concat() }
    };
    (0..18).map(seed).collect()
}
