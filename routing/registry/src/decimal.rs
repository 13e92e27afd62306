//! Decimal numbers as strings.
//!
//! # Invariants
//!
//! * A result has digits with an optional point and fraction, and is not longer than a price can be.

/// Longest text: more than any price or 256-bit amount has.
const LONGEST: usize = 100;

/// Whether a text is digits, and perhaps a point and more digits.
pub(crate) fn is_plain(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= LONGEST && digits(whole) && digits(fraction)
}

/// A number without its exponent: `1.5e-3` is `0.0015`. What is plain stays as it is. `None` if it is no number, is
/// below zero, or is longer than 100 characters.
pub(crate) fn plain(text: &str) -> Option<String> {
    if is_plain(text) {
        return Some(text.to_owned());
    }
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.unsigned_abs() <= 90)?;
    if !is_plain(mantissa) {
        return None;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let places = usize::try_from(exponent.unsigned_abs()).ok()?;
    let text = if exponent < 0 {
        let padded = format!("{}{whole}", "0".repeat(places + 1));
        let (whole, moved) = padded.split_at(padded.len() - places);
        format!("{whole}.{moved}{fraction}")
    } else {
        let padded = format!("{fraction}{}", "0".repeat(places.saturating_sub(fraction.len())));
        let (moved, fraction) = padded.split_at(places);
        format!("{whole}{moved}.{fraction}")
    };
    let text = tidy(&text);
    is_plain(&text).then_some(text)
}

/// Without zeros in front and behind.
fn tidy(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_written_out() {
        for (given, wanted) in [
            ("0.1500", "0.1500"),
            ("5000000", "5000000"),
            ("1e-9", "0.000000001"),
            ("1.5e-3", "0.0015"),
            ("12.5E1", "125"),
            ("1.25e1", "12.5"),
            ("5e6", "5000000"),
            ("1e+2", "100"),
        ] {
            assert_eq!(plain(given).as_deref(), Some(wanted), "{given}");
        }
    }

    #[test]
    fn what_is_no_number_or_too_long_is_refused() {
        for given in ["", ".", "1.", ".5", "-1", "1e", "1e999999999", "e5", "nan", "inf", "1e5e5", "0x1"] {
            assert_eq!(plain(given), None, "{given}");
        }
        assert_eq!(plain(&"9".repeat(101)), None);
    }
}
