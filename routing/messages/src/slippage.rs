//! Slippage tolerance: the minimum amount out.

use chain::U256;

use crate::error::{BuildError, truncated};

/// Maximum number of digits after the point.
const DIGITS: usize = 18;
/// 10^18.
const ONE: u128 = 10u128.pow(18);
/// 100 % in units of 10^-18 %.
const WHOLE: u128 = 100 * ONE;

/// Tolerated loss as a share of an amount, exact to 10^-18 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slippage {
    /// In units of 10^-18 percent, at most [`WHOLE`].
    missing: u128,
}

impl Slippage {
    /// Reads a percentage: a decimal text from 0 to 100 such as `0.5`, without sign or exponent.
    pub fn parse(text: &str) -> Result<Self, BuildError> {
        let refused = || BuildError::Slippage(truncated(text));
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let sized = (1..=3).contains(&whole.len()) && (1..=DIGITS).contains(&part.len());
        if !(sized && digits(whole) && digits(part)) {
            return Err(refused());
        }
        let whole: u128 = whole.parse().map_err(|_| refused())?;
        let part: u128 = format!("{part:0<DIGITS$}").parse().map_err(|_| refused())?;
        let missing = whole * ONE + part;
        if missing > WHOLE { Err(refused()) } else { Ok(Self { missing }) }
    }

    /// `amount × (100 − slippage) / 100`, rounded down.
    pub fn least(self, amount: U256) -> U256 {
        let (whole, kept) = (U256::from(WHOLE), U256::from(WHOLE - self.missing));
        // Division comes first, so that no product exceeds 256 bits; the remainder makes the result exact.
        amount / whole * kept + amount % whole * kept / whole
    }

    /// `amount × (100 − slippage) / 100`, rounded up.
    pub fn least_rounded_up(self, amount: U256) -> U256 {
        let (whole, kept) = (U256::from(WHOLE), U256::from(WHOLE - self.missing));
        amount / whole * kept + (amount % whole * kept).div_ceil(whole)
    }

    /// `amount × (100 + slippage) / 100`, rounded down, within 64 bits.
    pub fn most(self, amount: u64) -> u64 {
        let (whole, amount) = (U256::from(WHOLE), U256::from(amount));
        u64::try_from(amount * U256::from(WHOLE + self.missing) / whole).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn least(amount: u128, percent: &str) -> U256 {
        Slippage::parse(percent).unwrap().least(U256::from(amount))
    }

    #[test]
    fn the_tolerance_is_deducted_and_the_result_rounded_down() {
        assert_eq!(least(33_150_000, "0.5"), U256::from(32_984_250));
        assert_eq!(least(1, "0.000000000000000001"), U256::ZERO);
        assert_eq!(least(3, "50"), U256::ONE);
        assert_eq!(least(7, "0"), U256::from(7));
        assert_eq!(least(7, "0.0"), U256::from(7));
        assert_eq!(least(7, "100"), U256::ZERO);
        let up =
            |amount: u64, percent| Slippage::parse(percent).unwrap().least_rounded_up(U256::from(amount));
        // Of transactions of the mainnet.
        assert_eq!(up(40_801_114, "1"), U256::from(40_393_103));
        assert_eq!(up(10_185_848_708, "0.1"), U256::from(10_175_662_860u64));
        assert_eq!((up(1, "99.9"), up(7, "0"), up(7, "100")), (U256::ONE, U256::from(7), U256::ZERO));
        let most = |amount, percent| Slippage::parse(percent).unwrap().most(amount);
        assert_eq!((most(199, "0.5"), most(200, "0.5"), most(u64::MAX, "1")), (199, 201, u64::MAX));
        assert_eq!(Slippage::parse("0").unwrap().least(U256::MAX), U256::MAX);
        assert_eq!(Slippage::parse("50").unwrap().least(U256::MAX), U256::MAX >> 1);
    }

    #[test]
    fn an_invalid_percentage_is_refused_with_its_text() {
        let long = "1".repeat(400);
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e1",
            "100.1",
            "101",
            "1000",
            "0.1234567890123456789",
            " 1",
            "١",
            &long,
        ] {
            let refused = Slippage::parse(text).unwrap_err();
            let BuildError::Slippage(given) = refused else { panic!("{refused}") };
            assert!(given == text || given.ends_with('…') && given.chars().count() == 81, "{text}");
        }
    }

    proptest! {
        #[test]
        fn it_equals_the_plain_formula_where_that_does_not_overflow(amount: u64, percent in 0u32..=10_000) {
            let text = format!("{}.{:02}", percent / 100, percent % 100);
            let plain = u128::from(amount) * u128::from(10_000 - percent) / 10_000;
            prop_assert_eq!(least(amount.into(), &text), U256::from(plain));
        }
    }
}
