//! Numbers of a search, in the order in which a node has them.
//!
//! A node reads a value as an integer of any size, or else as a binary fraction of 125 bits. Decimals of at most [`EXACT`] digits keep
//! their order there, so digits are compared. Forms that it may round otherwise are [`Reading::Unclear`].

use std::cmp::Ordering;

/// Digits of decimals that 125 bits keep apart.
const EXACT: usize = 37;

/// A decimal number without zeros at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
}

/// What a text is to a node that compares numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    Number(Number<'a>),
    /// No number, which is within no range.
    Nothing,
    /// A number with an exponent, an infinite one, or one with more than [`EXACT`] digits and a fraction.
    Unclear,
}

/// Reads a text as Go's `big.Int` and `big.Float` do.
pub(super) fn read(text: &str) -> Reading<'_> {
    let (is_negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(unsigned, "inf" | "Inf") {
        return Reading::Unclear;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E', 'p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Reading::Nothing;
    }
    if let Some(exponent) = exponent {
        return if is_digits(exponent) && !exponent.is_empty() { Reading::Unclear } else { Reading::Nothing };
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if !fraction.is_empty() && whole.len() + fraction.len() > EXACT {
        return Reading::Unclear;
    }
    let is_negative = is_negative && !(whole.is_empty() && fraction.is_empty());
    Reading::Number(Number { is_negative, whole, fraction })
}

impl Number<'_> {
    /// Its order among numbers.
    pub(super) fn order(self, other: Number<'_>) -> Ordering {
        match (self.is_negative, other.is_negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.digits(other),
            (true, true) => self.digits(other).reverse(),
        }
    }

    fn digits(self, other: Number<'_>) -> Ordering {
        let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
        whole.then_with(|| self.fraction.cmp(other.fraction))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(first: &str, second: &str) -> Ordering {
        match (read(first), read(second)) {
            (Reading::Number(first), Reading::Number(second)) => first.order(second),
            other => panic!("{first} {second}: {other:?}"),
        }
    }

    #[test]
    fn texts_are_numbers_if_go_reads_them_as_such() {
        for none in [
            "", "-", "+", ".", "x", "1x", "1_000", "0x1", "1.2.3", "100umin", "1e", "1e+", "NaN", "infinity",
            "--1",
        ] {
            assert_eq!(read(none), Reading::Nothing, "{none}");
        }
        let long = format!("{}.5", "1".repeat(EXACT));
        for unclear in ["1e5", "1E-5", "2p3", "inf", "-Inf", ".5e1", &long] {
            assert_eq!(read(unclear), Reading::Unclear, "{unclear}");
        }
        for (first, second) in [("5", "5."), ("5", "+5.0"), ("007", "7"), ("-0", "0"), (".5", "0.50")] {
            assert_eq!(order(first, second), Ordering::Equal, "{first} {second}");
        }
        for (first, second) in [
            ("9", "10"),
            ("9.9", "10"),
            ("0.45", "0.5"),
            ("-10", "-9"),
            ("-0.5", "0"),
            ("18446744073709551615", "18446744073709551616"),
            (
                "115792089237316195423570985008687907853269984665640564039457584007913129639935",
                "1".repeat(79).as_str(),
            ),
        ] {
            assert_eq!(order(first, second), Ordering::Less, "{first} {second}");
        }
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_numbers(first in any::<i64>(), second in any::<i64>(), places in 0_u32..9, others in 0_u32..9) {
            let decimal = |number: i64, places: u32| {
                let power = 10_u128.pow(places);
                let (sign, number) = (if number < 0 { "-" } else { "" }, u128::from(number.unsigned_abs()));
                let fraction = format!("{:0width$}", number % power, width = places as usize);
                format!("{sign}{}.{}", number / power, if places == 0 { "" } else { &fraction })
            };
            let scaled = |number: i64, places: u32| i128::from(number) * 10_i128.pow(9 - places);
            prop_assert_eq!(
                order(&decimal(first, places), &decimal(second, others)),
                scaled(first, places).cmp(&scaled(second, others))
            );
        }

        #[test]
        fn no_text_makes_it_panic(text in r"[-+]?[0-9.eEpPinf_ é]{0,12}") {
            read(&text);
        }
    }
}
