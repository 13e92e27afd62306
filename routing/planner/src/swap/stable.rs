//! Pools of coins of about the same value: `swap_script` and the simulations of `0x1::stableswap`.

use chain::U256;

use super::decimal::{ONE, amount as to_amount, div, fee, minus, over, plus, times, trunc, whole};
use super::{Quote, Refusal};

/// The chain's limit of iterations, which it reaches for no usual pool.
const ITERATIONS: usize = 255;
/// `ann` has two decimals.
const HUNDRED: U256 = U256::from_limbs([100, 0, 0, 0]);
/// The probe of a spot price is at least a millionth of a coin with six decimals.
const LEAST_PROBE: U256 = U256::from_limbs([1_000_000, 0, 0, 0]);

/// State of a `StableSwap` pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StablePool {
    /// Base units of each coin.
    pub reserves: Vec<u64>,
    /// Amplification·n^n·100 at the time of the state.
    pub ann: u64,
    /// Share of the returned coin, in units of 10^-18.
    pub fee_rate: U256,
}

impl StablePool {
    /// What `amount` of coin `offered` gives of coin `returned` (positions); the fee is in the returned coin.
    pub fn amount_out(&self, offered: usize, returned: usize, amount: u64) -> Result<Quote, Refusal> {
        let gross = swapped(&self.balances(), self.ann(), (offered, returned), whole(amount))?;
        let fee = fee(self.fee_rate, gross)?;
        Ok(Quote {
            amount: to_amount(gross.checked_sub(fee).ok_or(Refusal::TooSmall)?)?,
            fee: to_amount(fee)?,
        })
    }

    /// The amount of coin `offered` that gives about `wanted` of coin `returned`, as the chain computes it.
    pub fn amount_in(&self, offered: usize, returned: usize, wanted: u64) -> Result<Quote, Refusal> {
        let (mut balances, ann) = (self.balances(), self.ann());
        check(&balances, (offered, returned))?;
        let wanted = plus(whole(wanted), U256::ONE)?;
        let gross = trunc(div(times(wanted, ONE)?, minus(ONE, self.fee_rate)?)?)?;
        let d = invariant(&balances, ann)?;
        let left = minus(balances[returned], whole(gross))?;
        if left.is_zero() {
            return Err(Refusal::TooLarge);
        }
        balances[returned] = left;
        let amount = minus(balance(&balances, offered, ann, d)?, whole(self.reserves[offered]))?;
        Ok(Quote { amount: to_amount(amount)?, fee: to_amount(minus(whole(gross), wanted)?)? })
    }

    /// Base units of coin `returned` for one of coin `offered`, without fee: the chain's probe in both directions.
    pub fn spot_price(&self, offered: usize, returned: usize) -> Result<U256, Refusal> {
        let (mut balances, ann) = (self.balances(), self.ann());
        let mut probe = invariant(&balances, ann)? / U256::from(1000);
        if probe < LEAST_PROBE {
            for balance in &mut balances {
                *balance = times(*balance, LEAST_PROBE)?;
            }
            probe = times(probe, LEAST_PROBE)?;
        }
        let there = plus(swapped(&balances, ann, (offered, returned), probe)?, probe)?;
        let back = plus(swapped(&balances, ann, (returned, offered), probe)?, probe)?;
        div(there, back)
    }

    fn balances(&self) -> Vec<U256> {
        self.reserves.iter().map(|reserve| whole(*reserve)).collect()
    }

    fn ann(&self) -> U256 {
        whole(self.ann)
    }
}

fn check(balances: &[U256], (offered, returned): (usize, usize)) -> Result<(), Refusal> {
    let known = offered < balances.len() && returned < balances.len() && offered != returned;
    if known { Ok(()) } else { Err(Refusal::NoSuchCoin) }
}

/// What a swap takes out before the fee.
fn swapped(balances: &[U256], ann: U256, coins: (usize, usize), amount: U256) -> Result<U256, Refusal> {
    check(balances, coins)?;
    let d = invariant(balances, ann)?;
    let mut after = balances.to_vec();
    after[coins.0] = plus(after[coins.0], amount)?;
    let left = balance(&after, coins.1, ann, d)?;
    let before = balances[coins.1];
    before.checked_sub(plus(left, U256::ONE)?).ok_or(Refusal::TooSmall)
}

/// D, the total of a balanced pool of the same value.
pub(crate) fn invariant(balances: &[U256], ann: U256) -> Result<U256, Refusal> {
    let n = U256::from(balances.len());
    let sum = balances.iter().try_fold(U256::ZERO, |sum, balance| plus(sum, *balance))?;
    if sum.is_zero() {
        return Err(Refusal::Empty);
    }
    let mut d = sum;
    for _ in 0..ITERATIONS {
        let before = d;
        let product =
            balances.iter().try_fold(d, |product, balance| over(over(times(product, d)?, n)?, *balance))?;
        let above = times(plus(times(ann, sum)? / HUNDRED, times(product, n)?)?, d)?;
        let below = plus(times(minus(ann, HUNDRED)?, d)? / HUNDRED, times(n + U256::ONE, product)?)?;
        d = over(above, below)?;
        if d.abs_diff(before) <= U256::ONE {
            break;
        }
    }
    Ok(d)
}

/// The balance of one coin that keeps D, given the others.
fn balance(balances: &[U256], coin: usize, ann: U256, d: U256) -> Result<U256, Refusal> {
    let n = U256::from(balances.len());
    let (mut sum, mut c) = (U256::ZERO, d);
    for (_, other) in balances.iter().enumerate().filter(|(position, _)| *position != coin) {
        sum = plus(sum, *other)?;
        c = over(times(c, d)?, times(*other, n)?)?;
    }
    c = over(over(times(times(c, d)?, HUNDRED)?, ann)?, n)?;
    solve(c, plus(sum, over(times(d, HUNDRED)?, ann)?)?, d)
}

/// The root of y² + (b − D)·y = c by Newton's method.
pub(crate) fn solve(c: U256, b: U256, d: U256) -> Result<U256, Refusal> {
    let mut y = d;
    for _ in 0..ITERATIONS {
        let before = y;
        y = over(plus(times(y, y)?, c)?, minus(plus(y + y, b)?, d)?)?;
        if y.abs_diff(before) <= U256::ONE {
            break;
        }
    }
    Ok(y)
}
