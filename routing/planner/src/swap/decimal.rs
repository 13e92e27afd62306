//! The chain's decimals: integers in units of 10^-18 whose products and quotients are cut off (`BigDecimal` of movevm).

use chain::U256;

use super::Refusal;

/// 1.
pub(crate) const ONE: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);

/// Reads a decimal text with at most 18 digits after its point.
pub fn parse(text: &str) -> Option<U256> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 30 || fraction.len() > 18 || !digits(whole) || !digits(fraction) {
        return None;
    }
    U256::from_str_radix(&format!("{whole}{fraction:0<18}"), 10).ok()
}

/// A whole number.
pub(crate) fn whole(amount: u64) -> U256 {
    U256::from(amount)
}

/// a·b of integers, or of a decimal and an integer.
pub(crate) fn times(a: U256, b: U256) -> Result<U256, Refusal> {
    a.checked_mul(b).ok_or(Refusal::TooLarge)
}

pub(crate) fn plus(a: U256, b: U256) -> Result<U256, Refusal> {
    a.checked_add(b).ok_or(Refusal::TooLarge)
}

/// a − b; more than there is, is too large.
pub(crate) fn minus(a: U256, b: U256) -> Result<U256, Refusal> {
    a.checked_sub(b).ok_or(Refusal::TooLarge)
}

/// a / b of integers, cut off.
pub(crate) fn over(a: U256, b: U256) -> Result<U256, Refusal> {
    a.checked_div(b).ok_or(Refusal::Empty)
}

/// a·b of decimals.
pub(crate) fn mul(a: U256, b: U256) -> Result<U256, Refusal> {
    Ok(times(a, b)? / ONE)
}

/// a / b of decimals, or the decimal a / b of integers.
pub(crate) fn div(a: U256, b: U256) -> Result<U256, Refusal> {
    over(times(a, ONE)?, b)
}

/// The whole part of a decimal, as an amount.
pub(crate) fn trunc(decimal: U256) -> Result<u64, Refusal> {
    amount(decimal / ONE)
}

/// An integer as an amount, which the chain keeps in 64 bits.
pub(crate) fn amount(integer: U256) -> Result<u64, Refusal> {
    u64::try_from(integer).map_err(|_| Refusal::TooLarge)
}

/// `rate`·`amount`, rounded up.
pub(crate) fn fee(rate: U256, amount: U256) -> Result<U256, Refusal> {
    Ok(times(rate, amount)?.div_ceil(ONE))
}
