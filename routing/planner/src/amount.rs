//! Exact amounts after a hop.
//!
//! The operator's fee is deducted first; then decimals are converted as the hop converts them.
//!
//! # Invariants
//!
//! * No amount overflows, panics or grows in value.
//! * [`FeeSchedule::carry`] accepts the result of [`FeeSchedule::least`].

use chain::U256;
use registry::Terms;

/// Hundredths of a percent in a whole.
const WHOLE: u32 = 10_000;

/// Reason why a hop rejects an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The hop is paused for any amount.
    Paused,
    /// The amount is below the minimum, or fees consume it.
    TooSmall,
    /// Not a multiple of the wrapper's unit.
    Dust,
    /// Overflow of the hop's number format.
    TooLarge,
    /// No quote gives the amount out.
    NoQuote,
}

/// Conversion of decimals by a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// None.
    Same,
    /// As the ERC20Wrapper does: a remainder is refused.
    Wrapper { from: u8, to: u8 },
    /// As OFT contracts do: truncated to the shared decimals of the legs, which the message carries in 64 bits
    /// (LayerZero V2, `OFTCore.sol` `_toSD`).
    LayerZero { from: u8, to: u8, shared: u8 },
}

/// Fee and conversion of decimals of a hop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeeSchedule<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) scale: Scale,
}

impl FeeSchedule<'_> {
    /// Amount after the hop. `received` is the amount before the operator's fee, in the units of `amount`: `amount`
    /// itself, or the quote of a contract, which is capped at `amount`.
    pub(crate) fn carry(&self, amount: U256, received: U256) -> Result<U256, Rejection> {
        if amount < self.terms.min_amount {
            return Err(Rejection::TooSmall);
        }
        let fee = self.fee(amount).ok_or(Rejection::TooSmall)?;
        let net = received.min(amount).checked_sub(fee).filter(|net| !net.is_zero());
        self.scale.apply(net.ok_or(Rejection::TooSmall)?)
    }

    /// The least amount from `floor` up that this hop accepts and that gives at least `wanted`, if the contract charges
    /// no fee; `None` if there is none.
    pub(crate) fn least(&self, wanted: U256, floor: U256) -> Option<U256> {
        let floor = floor.max(self.terms.min_amount);
        let net = self.fee(floor).and_then(|fee| floor.checked_sub(fee)).unwrap_or(U256::ZERO);
        let step = self.scale.granule();
        let net = net.checked_next_multiple_of(step)?.max(self.scale.before(wanted)?);
        let kept = WHOLE.checked_sub(self.terms.fee_bps).filter(|kept| *kept > 0)?;
        let gross = net.checked_add(self.terms.fee_amount)?.checked_mul(U256::from(WHOLE))?;
        // The fee is at most one unit for each unit, so some amount gives every net amount.
        Some(gross.div_ceil(U256::from(kept)).max(floor))
    }

    /// The largest amount up to `amount` that leaves the wrapper no remainder, where it would refuse `amount` itself;
    /// of several with the same result the least. `None` if it is below the wrapper's unit.
    pub(crate) fn without_dust(&self, amount: U256) -> Option<U256> {
        let net = amount.checked_sub(self.fee(amount)?)?;
        let whole = net / self.scale.granule() * self.scale.granule();
        self.least(self.scale.apply(whole).ok().filter(|out| !out.is_zero())?, U256::ZERO)
    }

    /// Whether the hop has no fees.
    pub(crate) fn is_free(&self) -> bool {
        self.terms.fee_bps == 0 && self.terms.fee_amount.is_zero()
    }

    /// Operator's fee, rounded up; `None` on overflow.
    fn fee(&self, amount: U256) -> Option<U256> {
        if self.is_free() {
            return Some(U256::ZERO);
        }
        if self.terms.fee_bps > WHOLE {
            return None;
        }
        let (whole, bps) = (U256::from(WHOLE), U256::from(self.terms.fee_bps));
        // In two parts, so that no product is larger than the amount.
        let share = (amount / whole) * bps + ((amount % whole) * bps).div_ceil(whole);
        share.checked_add(self.terms.fee_amount)
    }
}

impl Scale {
    fn apply(self, net: U256) -> Result<U256, Rejection> {
        match self {
            Self::Same => Ok(net),
            Self::Wrapper { from, to } if to >= from => {
                net.checked_mul(power(to - from)).ok_or(Rejection::TooLarge)
            }
            Self::Wrapper { from, to } => match net.div_rem(power(from - to)) {
                (units, rest) if rest.is_zero() => Ok(units),
                _ => Err(Rejection::Dust),
            },
            Self::LayerZero { from, to, shared } => {
                let units = net / power(from - shared);
                if units.is_zero() {
                    return Err(Rejection::TooSmall);
                }
                if units > U256::from(u64::MAX) {
                    return Err(Rejection::TooLarge);
                }
                units.checked_mul(power(to - shared)).ok_or(Rejection::TooLarge)
            }
        }
    }

    /// The least input that gives `wanted`.
    fn before(self, wanted: U256) -> Option<U256> {
        match self {
            Self::Same => Some(wanted),
            Self::Wrapper { from, to } if to >= from => Some(wanted.div_ceil(power(to - from))),
            Self::Wrapper { from, to } => wanted.checked_mul(power(from - to)),
            Self::LayerZero { from, to, shared } => {
                wanted.div_ceil(power(to - shared)).checked_mul(power(from - shared))
            }
        }
    }

    /// Unit of which an amount must be a multiple.
    fn granule(self) -> U256 {
        match self {
            Self::Wrapper { from, to } if from > to => power(from - to),
            _ => U256::ONE,
        }
    }

    /// Trailing zeros that the amount needs before the hop to have `zeros` after it.
    pub(crate) fn zeros_before(self, zeros: u8) -> u8 {
        match self {
            Self::Same => zeros,
            Self::Wrapper { from, to } | Self::LayerZero { from, to, .. } => {
                zeros.saturating_add(from).saturating_sub(to)
            }
        }
    }
}

/// 10 to the power of a difference in decimals. A registry has at most 36 decimals; 10^38 is the largest that fits.
pub(crate) fn power(exponent: u8) -> U256 {
    U256::from(10u128.saturating_pow(u32::from(exponent)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn terms(min: u64, fee: u64, bps: u32) -> Terms {
        Terms { min_amount: U256::from(min), fee_amount: U256::from(fee), fee_bps: bps, ..Terms::default() }
    }

    fn carry(terms: &Terms, scale: Scale, amount: U256) -> Result<U256, Rejection> {
        FeeSchedule { terms, scale }.carry(amount, amount)
    }

    #[test]
    fn fees_are_rounded_up_and_the_minimum_applies_to_the_input() {
        let terms = terms(100, 7, 25);
        let left = |amount: u64| carry(&terms, Scale::Same, U256::from(amount));
        // 0.25 % of 10,000 is 25; of 10,001 slightly more.
        assert_eq!(left(10_000), Ok(U256::from(9_968)));
        assert_eq!(left(10_001), Ok(U256::from(9_968)));
        assert_eq!(left(100), Ok(U256::from(92)));
        assert_eq!(left(99), Err(Rejection::TooSmall));
    }

    #[test]
    fn an_amount_that_fees_consume_is_too_small() {
        assert_eq!(carry(&terms(0, 10, 0), Scale::Same, U256::from(10)), Err(Rejection::TooSmall));
        assert_eq!(carry(&terms(0, 0, 10_000), Scale::Same, U256::MAX), Err(Rejection::TooSmall));
        assert_eq!(carry(&terms(0, 0, 10_001), Scale::Same, U256::MAX), Err(Rejection::TooSmall));
        assert_eq!(carry(&terms(0, 0, 0), Scale::Same, U256::ZERO), Err(Rejection::TooSmall));
        let cut = Scale::LayerZero { from: 18, to: 6, shared: 6 };
        assert_eq!(carry(&terms(0, 0, 0), cut, U256::from(999_999_999_999u64)), Err(Rejection::TooSmall));
    }

    #[test]
    fn the_wrapper_refuses_a_remainder_and_layer_zero_cuts_it_off() {
        let none = Terms::default();
        let amount = U256::from(1_000_000_000_001u64);
        assert_eq!(carry(&none, Scale::Wrapper { from: 18, to: 6 }, amount), Err(Rejection::Dust));
        assert_eq!(carry(&none, Scale::LayerZero { from: 18, to: 6, shared: 6 }, amount), Ok(U256::ONE));
        assert_eq!(
            carry(&none, Scale::LayerZero { from: 18, to: 8, shared: 6 }, amount),
            Ok(U256::from(100))
        );
    }

    #[test]
    fn an_amount_that_overflows_is_too_large() {
        let none = Terms::default();
        assert_eq!(carry(&none, Scale::Wrapper { from: 6, to: 18 }, U256::MAX), Err(Rejection::TooLarge));
        let wire = Scale::LayerZero { from: 6, to: 18, shared: 6 };
        assert_eq!(carry(&none, wire, U256::from(u64::MAX) + U256::ONE), Err(Rejection::TooLarge));
        assert!(carry(&none, wire, U256::from(u64::MAX)).is_ok());
    }

    #[test]
    fn no_more_than_the_amount_sent_arrives() {
        let none = Terms::default();
        let fees = FeeSchedule { terms: &none, scale: Scale::Same };
        assert_eq!(fees.carry(U256::from(5), U256::from(6)), Ok(U256::from(5)));
        assert_eq!(fees.carry(U256::from(5), U256::from(4)), Ok(U256::from(4)));
    }

    proptest! {
        #[test]
        fn the_least_amount_is_accepted_and_no_smaller_one_suffices(
            min in 0u64..5_000, fee in 0u64..5_000, bps in 0u32..10_000, wanted in 1u64..1_000_000,
            floor in 0u64..1_000_000, scale in 0u8..4,
        ) {
            let terms = terms(min, fee, bps);
            let scale = match scale {
                0 => Scale::Same,
                1 => Scale::Wrapper { from: 3, to: 6 },
                2 => Scale::Wrapper { from: 6, to: 3 },
                _ => Scale::LayerZero { from: 6, to: 5, shared: 4 },
            };
            let (fees, wanted) = (FeeSchedule { terms: &terms, scale }, U256::from(wanted));
            let least = fees.least(wanted, U256::from(floor)).unwrap();
            prop_assert!(fees.carry(least, least).unwrap() >= wanted);
            for below in 1u64..100 {
                let Some(less) = least.checked_sub(U256::from(below)) else { break };
                let enough = fees.carry(less, less).is_ok_and(|out| out >= wanted);
                prop_assert!(!enough || less < U256::from(floor), "{less} is enough too");
            }
        }

        #[test]
        fn without_its_dust_an_amount_is_accepted_and_one_unit_more_would_be_over_it(
            fee in 0u64..5_000, bps in 0u32..9_999, amount in 1u64..10_000_000,
        ) {
            let (terms, amount) = (terms(0, fee, bps), U256::from(amount));
            let fees = FeeSchedule { terms: &terms, scale: Scale::Wrapper { from: 6, to: 3 } };
            if fees.carry(amount, amount) == Err(Rejection::Dust) {
                if let Some(less) = fees.without_dust(amount) {
                    let out = fees.carry(less, less).unwrap();
                    prop_assert!(less < amount);
                    prop_assert!(fees.least(out + U256::ONE, U256::ZERO).unwrap() > amount);
                } else {
                    prop_assert!(fees.least(U256::ONE, U256::ZERO).unwrap() > amount);
                }
            }
        }

        #[test]
        fn no_amount_panics(limbs: [u64; 4], bps: u32, fee: [u64; 4], from in 0u8..=36, to in 0u8..=36) {
            let amount = U256::from_limbs(limbs);
            let terms = Terms { fee_amount: U256::from_limbs(fee), fee_bps: bps, ..Terms::default() };
            for scale in [
                Scale::Same,
                Scale::Wrapper { from, to },
                Scale::LayerZero { from, to, shared: from.min(to) },
            ] {
                let fees = FeeSchedule { terms: &terms, scale };
                if let (Scale::Same, Ok(out)) = (scale, fees.carry(amount, amount)) {
                    prop_assert!(out <= amount);
                }
                if let Some(least) = fees.least(U256::ONE, amount) {
                    prop_assert!(least >= amount);
                }
                if let Some(less) = fees.without_dust(amount) {
                    prop_assert!(less <= amount);
                }
            }
        }
    }
}
