//! Amounts in US dollars, as decimal strings with two places.
//!
//! Exact integer arithmetic, no floating point: the same amount always gives the same string.

use chain::U256;
use registry::{AssetRef, Facts, Registry};

use crate::amount::power;

/// Maximum digits of a price before and after its point; a longer price counts as unknown.
const DIGITS: usize = 30;

/// Value of `amount` base units of an asset; `None` if the price is unknown or the value overflows.
pub fn of(registry: &Registry, facts: &Facts, asset: AssetRef, amount: U256) -> Option<String> {
    worth(amount, registry[asset].decimals, price(registry, facts, asset)?)
}

/// Price of one whole token: that of the files, else that of the feed for the asset or for its origin.
pub fn price<'a>(registry: &'a Registry, facts: &'a Facts, asset: AssetRef) -> Option<&'a str> {
    let of_feed = |asset: AssetRef| facts.prices.get(registry[asset].coingecko_id.as_deref()?);
    let price = registry[asset].price_usd.as_ref();
    price.or_else(|| of_feed(asset).or_else(|| of_feed(registry.root(asset)))).map(String::as_str)
}

/// Value of `amount` base units with `decimals` decimals at a price, rounded half up to cents.
pub fn worth(amount: U256, decimals: u8, price: &str) -> Option<String> {
    let (digits, places) = read(price)?;
    let value = amount.checked_mul(digits)?;
    let places = decimals.checked_add(places)?;
    let cents = match places.checked_sub(2) {
        None => value.checked_mul(power(2 - places))?,
        Some(beyond) => {
            // In two parts, because a single power of ten would overflow.
            let half = power(beyond.min(38));
            let rest = power(beyond.saturating_sub(38));
            let unit = half.checked_mul(rest)?;
            let (cents, rest) = value.div_rem(unit);
            cents + U256::from(rest >= unit - unit / U256::from(2))
        }
    };
    let (dollars, cents) = cents.div_rem(U256::from(100));
    Some(format!("{dollars}.{cents:0>2}"))
}

/// A price's digits without the point, and the number of digits after it.
fn read(price: &str) -> Option<(U256, u8)> {
    let (whole, fraction) = price.split_once('.').unwrap_or((price, ""));
    let is_number = |text: &str| text.len() <= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = U256::from_str_radix(&format!("{whole}{fraction}"), 10).ok()?;
    Some((digits, u8::try_from(fraction.len()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cents_are_rounded_half_up() {
        let cases: [(u64, u8, &str, Option<&str>); 11] = [
            (1_000_000, 6, "0.15", Some("0.15")),
            (1_000_000, 6, "0.155", Some("0.16")),
            (1_000_000, 6, "0.1549999", Some("0.15")),
            (1, 6, "1", Some("0.00")),
            (5_000, 6, "1", Some("0.01")),
            (4_999, 6, "1", Some("0.00")),
            (3, 0, "2", Some("6.00")),
            (15, 1, "1", Some("1.50")),
            (1_000_000_000_000_000_000, 18, "3141.592653589793", Some("3141.59")),
            (1, 0, "", None),
            (1, 0, "-1", None),
        ];
        for (amount, decimals, price, expected) in cases {
            assert_eq!(worth(U256::from(amount), decimals, price).as_deref(), expected, "{amount} {price}");
        }
    }

    #[test]
    fn nothing_overflows() {
        assert_eq!(worth(U256::MAX, 0, "9"), None);
        assert_eq!(worth(U256::MAX, 36, "1").map(|text| text.len()), Some(45));
        assert_eq!(worth(U256::ONE, 36, "0.000000000000000000000000000001").as_deref(), Some("0.00"));
        assert_eq!(worth(U256::ONE, 36, "0.0000000000000000000000000000001"), None);
    }
}
