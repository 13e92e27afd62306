//! Pools of the L1's coin and of the same coin that came back from a rollup by IBC: `0x1::minitswap`.
//!
//! A peg keeper of the chain buys the voucher with the time that passes, up to a limit that depends on what it owns; so
//! a quote is for one second.

use chain::U256;

use super::decimal::{ONE, amount as to_amount, div, fee, minus, mul, over, plus, times, whole};
use super::stable::{invariant, solve};
use super::{Quote, Refusal};

const ITERATIONS: usize = 255;
const TWO: U256 = U256::from_limbs([2, 0, 0, 0]);
const HUNDRED: U256 = U256::from_limbs([100, 0, 0, 0]);
/// Of the probe of a spot price: one coin.
const PROBE: U256 = U256::from_limbs([1_000_000, 0, 0, 0]);

/// State of a virtual pool and of the module. Decimals are in units of 10^-18.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinitswapPool {
    /// The L1's coin in it.
    pub init: u64,
    /// The voucher in it.
    pub voucher: u64,
    /// Of either coin when nothing was swapped.
    pub size: u64,
    /// Voucher that the peg keeper owns.
    pub peg_keeper_owned: u64,
    /// Amplification·400.
    pub ann: u64,
    /// Base units per second that the peg keeper buys with.
    pub recover_velocity: U256,
    /// Share of the voucher up to which it leaves the pool.
    pub max_ratio: U256,
    /// How quickly that share is reached.
    pub recover_param: U256,
    /// Unix seconds of its last purchase.
    pub last_recovered: u64,
    /// Whether it swaps.
    pub active: bool,
    /// Share of the returned coin.
    pub fee_rate: U256,
    /// Share of a profit with the voucher.
    pub arb_fee_rate: U256,
}

/// What the peg keeper does at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The pool after it.
    pub pool: MinitswapPool,
    /// What it pays of the L1's coin.
    pub offered: u64,
    /// What it takes of the voucher.
    pub returned: u64,
}

impl MinitswapPool {
    /// What `amount` gives: of the L1's coin for the voucher if `sells_voucher`, else the other way round. The fee is in
    /// the returned coin.
    pub fn amount_out(&self, time: u64, sells_voucher: bool, amount: u64) -> Result<Quote, Refusal> {
        self.check()?;
        if sells_voucher { self.sold(time, amount) } else { self.bought(amount) }
    }

    /// The amount that gives about `wanted`, as the chain computes it.
    pub fn amount_in(&self, time: u64, sells_voucher: bool, wanted: u64) -> Result<Quote, Refusal> {
        self.check()?;
        if !sells_voucher {
            return self.needed(whole(wanted));
        }
        let pool = self.recovered(time)?.pool;
        let gross = div(times(whole(wanted), ONE)?, minus(ONE, self.fee_rate)?)? / ONE;
        let amount = pool.offered_for(gross, pool.voucher, pool.init)?;
        Ok(Quote { amount: to_amount(amount)?, fee: to_amount(minus(gross, whole(wanted))?)? })
    }

    /// Base units returned for one, without fee: the chain's probe with one coin in both directions.
    pub fn spot_price(&self, time: u64, sells_voucher: bool) -> Result<U256, Refusal> {
        self.check()?;
        // The chain lets the peg keeper buy only in the probe of this direction.
        let pool = if sells_voucher { self.clone() } else { self.recovered(time)?.pool };
        let vouchers = plus(pool.returned_for(PROBE, pool.init, pool.voucher)?, PROBE)?;
        let coins = plus(pool.returned_for(PROBE, pool.voucher, pool.init)?, PROBE)?;
        if sells_voucher { div(coins, vouchers) } else { div(vouchers, coins) }
    }

    /// The pool after the peg keeper's purchase at a time.
    pub fn recovered(&self, time: u64) -> Result<Recovered, Refusal> {
        let (size, init, voucher) = (whole(self.size), whole(self.init), whole(self.voucher));
        let owned = minus(plus(whole(self.peg_keeper_owned), voucher)?, size)?;
        let f = mul(self.recover_param, div(owned, size)?)?;
        let cube = mul(f, mul(f, f)?)?;
        let half = ONE / TWO;
        let limit = plus(half, mul(minus(self.max_ratio, half)?, div(cube, plus(ONE, cube)?)?)?)?;
        let ratio = div(voucher, plus(init, voucher)?)?;
        let passed = time.saturating_sub(self.last_recovered);
        let mut pool = Self { last_recovered: time.max(self.last_recovered), ..self.clone() };
        if ratio <= limit || passed == 0 {
            return Ok(Recovered { pool, offered: 0, returned: 0 });
        }
        let most = times(self.recover_velocity, whole(passed))? / ONE;
        let offered = self.balanced_at(limit)?.saturating_sub(init).min(most);
        let returned = self.returned_for(offered, self.init, self.voucher)?;
        let (offered, returned) = (to_amount(offered)?, to_amount(returned)?);
        pool.init = self.init.checked_add(offered).ok_or(Refusal::TooLarge)?;
        pool.voucher = self.voucher.checked_sub(returned).ok_or(Refusal::TooLarge)?;
        pool.peg_keeper_owned = self.peg_keeper_owned.checked_add(returned).ok_or(Refusal::TooLarge)?;
        Ok(Recovered { pool, offered, returned })
    }

    fn check(&self) -> Result<(), Refusal> {
        if !self.active {
            return Err(Refusal::SwitchedOff);
        }
        if self.size == 0 || self.init == 0 || self.voucher == 0 {
            return Err(Refusal::Empty);
        }
        Ok(())
    }

    fn sold(&self, time: u64, amount: u64) -> Result<Quote, Refusal> {
        let pool = self.recovered(time)?.pool;
        let gross = pool.returned_for(whole(amount), pool.voucher, pool.init)?;
        let fee = fee(self.fee_rate, gross)?;
        let out = gross.checked_sub(fee).filter(|out| !out.is_zero()).ok_or(Refusal::TooSmall)?;
        Ok(Quote { amount: to_amount(out)?, fee: to_amount(fee)? })
    }

    fn bought(&self, amount: u64) -> Result<Quote, Refusal> {
        let gross = self.returned_for(whole(amount), self.init, self.voucher)?;
        self.above_par(gross)?;
        let (swap_fee, arb_fee) = self.fees(gross, whole(amount))?;
        let fees = plus(swap_fee, arb_fee)?;
        let out = gross.checked_sub(fees).filter(|out| !out.is_zero()).ok_or(Refusal::AtPar)?;
        Ok(Quote { amount: to_amount(out)?, fee: to_amount(fees)? })
    }

    /// Fees in the voucher for `amount` of the L1's coin: on the swap, and on the profit.
    fn fees(&self, gross: U256, amount: U256) -> Result<(U256, U256), Refusal> {
        let swap_fee = fee(self.fee_rate, gross)?;
        let profit = gross.saturating_sub(swap_fee).saturating_sub(amount);
        Ok((swap_fee, fee(self.arb_fee_rate, profit)?))
    }

    /// The L1's coin that `wanted` of the voucher costs. The chain raises the gross amount until fees leave enough.
    fn needed(&self, wanted: U256) -> Result<Quote, Refusal> {
        let mut gross = div(times(wanted, ONE)?, minus(ONE, self.fee_rate)?)? / ONE;
        self.above_par(gross)?;
        let mut swap_fee = minus(gross, wanted)?;
        let mut amount = self.offered_for(gross, self.init, self.voucher)?;
        let mut arb_fee = fee(self.arb_fee_rate, wanted.saturating_sub(amount))?;
        let mut missing = arb_fee;
        let mut got = minus(wanted, arb_fee)?;
        for _ in 0..ITERATIONS {
            if wanted <= got {
                break;
            }
            gross = plus(gross, missing)?;
            self.above_par(gross)?;
            swap_fee = fee(self.fee_rate, gross)?;
            amount = self.offered_for(gross, self.init, self.voucher)?;
            let rest = minus(gross, swap_fee)?;
            let profit = if wanted > amount { minus(rest, amount)? } else { U256::ZERO };
            arb_fee = fee(self.arb_fee_rate, profit)?;
            got = minus(rest, arb_fee)?;
            missing = wanted.saturating_sub(got);
        }
        Ok(Quote { amount: to_amount(amount)?, fee: to_amount(plus(swap_fee, arb_fee)?)? })
    }

    /// The voucher's discount can only be undone as far as it was sold before.
    fn above_par(&self, gross: U256) -> Result<(), Refusal> {
        let left = whole(self.voucher).checked_sub(gross);
        if left.is_some_and(|left| left >= whole(self.size)) { Ok(()) } else { Err(Refusal::AtPar) }
    }

    /// What the curve returns for an amount, given the reserves of the offered and the returned coin.
    fn returned_for(&self, amount: U256, offered: u64, returned: u64) -> Result<U256, Refusal> {
        if amount.is_zero() {
            return Ok(U256::ZERO);
        }
        let left = self.other(plus(whole(offered), amount)?)?;
        whole(returned).checked_sub(left).ok_or(Refusal::TooSmall)
    }

    /// What the curve takes for an amount, given the reserves of the offered and the returned coin.
    fn offered_for(&self, amount: U256, offered: u64, returned: u64) -> Result<U256, Refusal> {
        let left = minus(whole(returned), amount)?;
        if left.is_zero() {
            return Err(Refusal::TooLarge);
        }
        if amount.is_zero() {
            return Ok(U256::ZERO);
        }
        minus(self.other(left)?, whole(offered))
    }

    /// The reserve of one coin for that of the other.
    fn other(&self, reserve: U256) -> Result<U256, Refusal> {
        let (ann, size) = (whole(self.ann), whole(self.size));
        let d = invariant(&[size, size], ann)?;
        let cube = times(times(times(d, d)?, d)?, HUNDRED)?;
        let c = over(over(cube, ann)? / U256::from(4), reserve)?;
        solve(c, plus(reserve, over(times(d, HUNDRED)?, ann)?)?, d)
    }

    /// The reserve of the L1's coin at which the voucher's share of the pool is `ratio`, by the chain's iteration.
    fn balanced_at(&self, ratio: U256) -> Result<U256, Refusal> {
        let size = whole(self.size);
        let slope = div(ratio, minus(ONE, ratio)?)?;
        let mut init = div(times(times(size, ONE)?, TWO)?, plus(slope, ONE)?)? / ONE;
        if init == size {
            return Ok(size);
        }
        let mut voucher = self.other(init)?;
        for _ in 0..ITERATIONS {
            let before = init;
            let above = times(times(size, ONE)?, minus(voucher, init)?)?;
            let below = plus(times(slope, minus(size, init)?)?, times(minus(voucher, size)?, ONE)?)?;
            voucher = mul(slope, div(above, below)?)? / ONE;
            init = self.other(voucher)?;
            if voucher == size {
                break;
            }
            if init > size {
                return Ok(size);
            }
            if init.abs_diff(before) <= U256::ONE {
                break;
            }
        }
        Ok(init)
    }
}
