//! What holds for any pool and amount.

use chain::U256;
use planner::swap::{MinitswapPool, Refusal, StablePool, WeightedPool, Weights};
use proptest::prelude::*;

const ONE: u64 = 1_000_000_000_000_000_000;

fn weighted() -> impl Strategy<Value = WeightedPool> {
    (1_000u64..1 << 50, 1_000u64..1 << 50, 5u64..=95, 0u64..50_000_000_000_000_000).prop_map(
        |(a, b, share, fee)| {
            let weights =
                Weights { weights: [share, 100 - share].map(|share| U256::from(ONE / 100 * share)), time: 0 };
            let (weights_before, weights_after) = (weights.clone(), weights);
            WeightedPool { reserves: [a, b], weights_before, weights_after, fee_rate: U256::from(fee) }
        },
    )
}

fn stable() -> impl Strategy<Value = StablePool> {
    (prop::collection::vec(1_000_000u64..1 << 50, 2..=5), 200u64..1_000_000, 0u64..10_000_000_000_000_000)
        .prop_map(|(reserves, ann, fee)| StablePool { reserves, ann, fee_rate: U256::from(fee) })
}

fn minitswap() -> impl Strategy<Value = MinitswapPool> {
    (1_000_000u64..1 << 45, 0u64..60, 200u64..1_000_000).prop_map(|(size, sold, ann)| {
        let pool = MinitswapPool {
            init: size,
            voucher: size,
            size,
            peg_keeper_owned: 0,
            ann,
            recover_velocity: U256::from(ONE) * U256::from(1000),
            max_ratio: U256::from(ONE / 10 * 7),
            recover_param: U256::from(2 * ONE),
            last_recovered: 0,
            active: true,
            fee_rate: U256::from(ONE / 1000),
            arb_fee_rate: U256::from(ONE / 1000),
        };
        // Someone sold before.
        let amount = size / 100 * sold;
        match pool.amount_out(0, true, amount.max(1)) {
            Ok(quote) if sold > 0 => {
                MinitswapPool { init: size - quote.amount - quote.fee, voucher: size + amount, ..pool }
            }
            _ => pool,
        }
    })
}

proptest! {
    #[test]
    fn a_weighted_pool_gives_more_for_more_and_never_its_reserve(
        pool in weighted(), amount in 1u64..1 << 40, more in 1u64..1 << 40, side in 0usize..2,
    ) {
        let quote = pool.amount_out(0, side, amount);
        if let (Ok(less), Ok(more)) = (&quote, pool.amount_out(0, side, amount + more)) {
            // The series stops at 10^-13 of the reserve.
            let slack = pool.reserves[1 - side] / 100_000_000_000 + 1;
            prop_assert!(less.amount <= more.amount + slack, "{less:?} {more:?}");
        }
        if let Ok(quote) = quote {
            prop_assert!(quote.amount < pool.reserves[1 - side]);
        }
    }

    #[test]
    fn a_round_trip_over_a_weighted_pool_gains_nothing(
        pool in weighted(), amount in 1u64..1 << 40, side in 0usize..2,
    ) {
        if let Ok(there) = pool.amount_out(0, side, amount) {
            let mut after = pool.clone();
            after.reserves[side] += amount;
            after.reserves[1 - side] -= there.amount;
            if let Ok(back) = after.amount_out(0, 1 - side, there.amount) {
                let slack = after.reserves[side] / 100_000_000_000 + 1;
                prop_assert!(back.amount <= amount + slack, "{there:?} {back:?}");
            }
        }
    }

    #[test]
    fn a_stable_pool_gives_more_for_more_and_never_its_reserve(
        pool in stable(), amount in 1u64..1 << 40, more in 1u64..1 << 40,
    ) {
        let quote = pool.amount_out(0, 1, amount);
        if let (Ok(less), Ok(more)) = (&quote, pool.amount_out(0, 1, amount + more)) {
            prop_assert!(less.amount <= more.amount + 1, "{less:?} {more:?}");
        }
        if let Ok(quote) = quote {
            prop_assert!(quote.amount < pool.reserves[1]);
        }
    }

    #[test]
    fn a_round_trip_over_a_stable_pool_gains_nothing(pool in stable(), amount in 1u64..1 << 40) {
        if let Ok(there) = pool.amount_out(0, 1, amount) {
            let mut after = pool.clone();
            after.reserves[0] += amount;
            after.reserves[1] -= there.amount;
            if let Ok(back) = after.amount_out(1, 0, there.amount) {
                prop_assert!(back.amount <= amount + 2, "{there:?} {back:?}");
            }
        }
    }

    #[test]
    fn a_minitswap_pool_gives_more_for_more_and_never_its_reserve(
        pool in minitswap(), amount in 1u64..1 << 40, more in 1u64..1 << 40, time in 0u64..1000, sells: bool,
    ) {
        let quote = pool.amount_out(time, sells, amount);
        if let (Ok(less), Ok(more)) = (&quote, pool.amount_out(time, sells, amount + more)) {
            prop_assert!(less.amount <= more.amount + 2, "{less:?} {more:?}");
        }
        if let Ok(quote) = quote {
            let recovered = pool.recovered(time).unwrap().pool;
            let reserve = if sells { recovered.init } else { pool.voucher };
            prop_assert!(quote.amount < reserve);
        }
    }

    #[test]
    fn no_state_of_a_pool_panics(
        reserves: [u64; 2], rates: [u64; 4], times: [u64; 3], amount: u64, ann: u64, owned: u64,
    ) {
        let weights = |at: usize| Weights { weights: [rates[at], rates[at + 1]].map(U256::from), time: times[at] };
        let pool = WeightedPool {
            reserves, weights_before: weights(0), weights_after: weights(1), fee_rate: U256::from(rates[3]),
        };
        let stable = StablePool { reserves: reserves.to_vec(), ann, fee_rate: U256::from(rates[0]) };
        let minitswap = MinitswapPool {
            init: reserves[0],
            voucher: reserves[1],
            size: reserves[0] / 2 + reserves[1] / 2,
            peg_keeper_owned: owned,
            ann,
            recover_velocity: U256::from(rates[1]),
            max_ratio: U256::from(rates[2]),
            recover_param: U256::from(rates[3]),
            last_recovered: times[0],
            active: true,
            fee_rate: U256::from(rates[0]),
            arb_fee_rate: U256::from(rates[1]),
        };
        for side in [0, 1] {
            let results: [Result<_, Refusal>; 6] = [
                pool.amount_out(times[2], side, amount),
                pool.amount_in(times[2], side, amount),
                stable.amount_out(side, 1 - side, amount),
                stable.amount_in(side, 1 - side, amount),
                minitswap.amount_out(times[2], side == 0, amount),
                minitswap.amount_in(times[2], side == 0, amount),
            ];
            for quote in results.into_iter().flatten() {
                prop_assert!(quote.amount < u64::MAX);
            }
            let _ = (pool.spot_price(times[2], side), stable.spot_price(side, 1 - side));
            let _ = minitswap.spot_price(times[2], side == 0);
        }
    }
}
