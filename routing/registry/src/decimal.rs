//! Decimal numbers as strings.
//!
//! # Invariants
//!
//! A result has digits with an optional point and fraction, and is no longer than the longest price.

/// Maximum length of a text; prices and 256-bit amounts are shorter.
const MAX_LEN: usize = 100;

/// Whether a text is digits, optionally followed by a point and more digits.
pub(crate) fn is_plain(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= MAX_LEN && digits(whole) && digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_number_has_digits_and_at_most_one_point_between_them() {
        for text in ["0.1500", "5000000", "0", "1.0"] {
            assert!(is_plain(text), "{text}");
        }
        for text in ["", ".", "1.", ".5", "-1", "1e", "1e9", "e5", "nan", "inf", "0x1", "1.2.3"] {
            assert!(!is_plain(text), "{text}");
        }
        assert!(is_plain(&"9".repeat(100)) && !is_plain(&"9".repeat(101)));
    }
}
