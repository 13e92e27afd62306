//! Weighted pools: `swap_script` and the simulations of `0x1::dex`.

use chain::U256;

use super::decimal::{ONE, amount as to_amount, div, fee, minus, mul, plus, times, trunc, whole};
use super::{Quote, Refusal};

/// A term of a series below which the chain stops: 10^-13.
const EPSILON: U256 = U256::from_limbs([100_000, 0, 0, 0]);
/// The chain takes powers of bases above this one only: 0.01.
const LEAST_BASE: U256 = U256::from_limbs([10_000_000_000_000_000, 0, 0, 0]);

/// State of a weighted pool. Decimals are in units of 10^-18.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedPool {
    /// Base units of either coin.
    pub reserves: [u64; 2],
    /// Until its time; before it the pool does not swap.
    pub weights_before: Weights,
    /// From its time on. Between the two times weights move evenly.
    pub weights_after: Weights,
    /// Share of the offered coin.
    pub fee_rate: U256,
}

/// Weights of the two coins at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    /// Of either coin.
    pub weights: [U256; 2],
    /// Unix seconds.
    pub time: u64,
}

/// One direction of a pool at a time.
struct Side {
    /// Reserves and weights of the offered and of the returned coin.
    offered: (U256, U256),
    returned: (U256, U256),
}

impl WeightedPool {
    /// What `amount` of coin `offered` (0 or 1) gives; the fee is in the offered coin.
    pub fn amount_out(&self, time: u64, offered: usize, amount: u64) -> Result<Quote, Refusal> {
        let side = self.open_side(time, offered)?;
        if amount == 0 {
            return Err(Refusal::Zero);
        }
        let fee = self.fee(amount)?;
        let net = whole(amount).checked_sub(fee).ok_or(Refusal::TooSmall)?;
        let base = div(side.offered.0, plus(side.offered.0, net)?)?;
        let power = pow(base, div(side.offered.1, side.returned.1)?)?;
        let out = trunc(times(minus(ONE, power)?, side.returned.0)?)?;
        Ok(Quote { amount: out, fee: to_amount(fee)? })
    }

    /// The amount of coin `offered` that gives about `wanted` of the other, rounded down as the chain does.
    pub fn amount_in(&self, time: u64, offered: usize, wanted: u64) -> Result<Quote, Refusal> {
        let side = self.open_side(time, offered)?;
        let left = minus(side.returned.0, whole(wanted))?;
        let base = div(side.returned.0, left)?;
        let power = pow(base, div(side.returned.1, side.offered.1)?)?;
        let net = times(minus(power, ONE)?, side.offered.0)?;
        let amount = trunc(div(net, minus(ONE, self.fee_rate)?)?)?;
        Ok(Quote { amount, fee: to_amount(self.fee(amount)?)? })
    }

    /// Base units of the other coin for one of coin `offered`, without fee.
    pub fn spot_price(&self, time: u64, offered: usize) -> Result<U256, Refusal> {
        let side = self.side(time, offered)?;
        div(times(side.offered.1, side.returned.0)?, times(side.returned.1, side.offered.0)?)
    }

    fn fee(&self, amount: u64) -> Result<U256, Refusal> {
        Ok(fee(self.fee_rate, whole(amount))?.max(U256::ONE))
    }

    fn open_side(&self, time: u64, offered: usize) -> Result<Side, Refusal> {
        if time < self.weights_before.time {
            return Err(Refusal::NotStarted);
        }
        if self.reserves.contains(&0) {
            return Err(Refusal::Empty);
        }
        self.side(time, offered)
    }

    fn side(&self, time: u64, offered: usize) -> Result<Side, Refusal> {
        let returned = 1usize.checked_sub(offered).ok_or(Refusal::NoSuchCoin)?;
        let weights = self.weights_at(time)?;
        let of = |coin: usize| (whole(self.reserves[coin]), weights[coin]);
        Ok(Side { offered: of(offered), returned: of(returned) })
    }

    fn weights_at(&self, time: u64) -> Result<[U256; 2], Refusal> {
        let (before, after) = (&self.weights_before, &self.weights_after);
        if time <= before.time {
            return Ok(before.weights);
        }
        if time >= after.time {
            return Ok(after.weights);
        }
        let (since, left) = (whole(time - before.time), whole(after.time - time));
        let at = |coin: usize| {
            let sum = plus(times(before.weights[coin], left)?, times(after.weights[coin], since)?)?;
            Ok(sum / (since + left))
        };
        Ok([at(0)?, at(1)?])
    }
}

/// The logarithm's size and whether it is negative, by the chain's series around 1.
fn ln(base: U256) -> Result<(U256, bool), Refusal> {
    let negative = base < ONE;
    let a = base.abs_diff(ONE);
    let (mut sum, mut term, mut n) = (U256::ZERO, a, 1u64);
    while term > EPSILON {
        if n.is_multiple_of(2) && !negative {
            sum = minus(sum, term)?;
        } else {
            sum = plus(sum, term)?;
        }
        term = times(mul(term, a)?, whole(n))? / whole(n + 1);
        n += 1;
    }
    Ok((sum, negative))
}

/// `base` to the power of `exponent`, by the chain's series of the exponential function.
fn pow(base: U256, exponent: U256) -> Result<U256, Refusal> {
    if base <= LEAST_BASE || base >= ONE + ONE {
        return Err(Refusal::TooLarge);
    }
    let (ln, negative) = ln(base)?;
    let k = mul(ln, exponent)?;
    let (mut sum, mut subtracted, mut term, mut n) = (ONE, U256::ZERO, k, 1u64);
    while term > EPSILON {
        if negative && !n.is_multiple_of(2) {
            subtracted = plus(subtracted, term)?;
        } else {
            sum = plus(sum, term)?;
        }
        n += 1;
        term = mul(term, k)? / whole(n);
    }
    minus(sum, subtracted)
}
