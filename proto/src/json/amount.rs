//! The SDK's big numbers: `math.Int` and `math.LegacyDec`, decimal digits on the wire.
//!
//! Go would also read `0x10`, `010` or `1_000`. A node never writes such digits; a transaction with them is an error
//! here, and ingest requests its JSON from the node.

use crate::json::wire::WireError;

/// 2^256 - 1, the largest magnitude of a `math.Int`.
const MAX_INTEGER: &[u8] = b"115792089237316195423570985008687907853269984665640564039457584007913129639935";

/// 2^315 - 1, the largest magnitude of a `math.LegacyDec`, scaled.
const MAX_DECIMAL: &[u8] =
    b"66749594872528440074844428317798503581334516323645399060845050244444366430645017188217565216767";

/// Digits after the point of a `math.LegacyDec`.
const SCALE: usize = 18;

/// A whole number; empty bytes mean an unset one, printed as 0.
pub(crate) fn write_integer(digits: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let (sign, digits) = split(digits, MAX_INTEGER)?;
    out.push(b'"');
    out.extend_from_slice(sign);
    out.extend_from_slice(digits);
    out.push(b'"');
    Ok(())
}

/// A number scaled by 10^18, with all 18 digits after the point; empty bytes mean an unset one, printed as `"0"`
/// without a point, as `LegacyDec.MarshalJSON` does.
pub(crate) fn write_decimal(digits: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    if digits.is_empty() {
        out.extend_from_slice(b"\"0\"");
        return Ok(());
    }
    let (sign, digits) = split(digits, MAX_DECIMAL)?;
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(SCALE));
    out.push(b'"');
    out.extend_from_slice(sign);
    out.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    out.push(b'.');
    out.extend_from_slice(&b"000000000000000000"[fraction.len()..]);
    out.extend_from_slice(fraction);
    out.push(b'"');
    Ok(())
}

/// Sign and digits of a number in its canonical form.
fn split<'a>(text: &'a [u8], max: &[u8]) -> Result<(&'a [u8], &'a [u8]), WireError> {
    let (sign, digits) = if text.first() == Some(&b'-') { text.split_at(1) } else { text.split_at(0) };
    match digits {
        [] if sign.is_empty() => Ok((b"", b"0")),
        [b'0'] if sign.is_empty() => Ok((b"", digits)),
        [b'1'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            if digits.len() > max.len() || (digits.len() == max.len() && digits > max) {
                return Err("a number out of range");
            }
            Ok((sign, digits))
        }
        _ => Err("a number that is not in canonical decimal digits"),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_INTEGER, write_decimal, write_integer};
    use crate::json::wire::WireError;

    fn written(write: fn(&[u8], &mut Vec<u8>) -> Result<(), WireError>, digits: &str) -> Option<String> {
        let mut out = Vec::new();
        write(digits.as_bytes(), &mut out).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_decimal_has_eighteen_digits_after_the_point() {
        for (digits, expected) in [
            ("100000000000000000", "\"0.100000000000000000\""),
            ("1000000000000000000", "\"1.000000000000000000\""),
            ("-1234500000000000000001", "\"-1234.500000000000000001\""),
            ("-1", "\"-0.000000000000000001\""),
            ("0", "\"0.000000000000000000\""),
            ("", "\"0\""),
        ] {
            assert_eq!(written(write_decimal, digits).unwrap(), expected);
        }
    }

    #[test]
    fn an_integer_keeps_its_digits_and_an_unset_one_is_zero() {
        assert_eq!(written(write_integer, "-42").unwrap(), "\"-42\"");
        assert_eq!(written(write_integer, "").unwrap(), "\"0\"");
        let max = String::from_utf8(MAX_INTEGER.to_vec()).unwrap();
        assert_eq!(written(write_integer, &max).unwrap(), format!("\"{max}\""));
        assert_eq!(written(write_integer, &max.replace("935", "936")), None);
    }

    #[test]
    fn digits_that_go_would_rewrite_are_refused() {
        for digits in ["-", "-0", "+1", "01", "0x10", "1_0", "1.0", " 1", "1\u{e9}"] {
            assert_eq!(written(write_integer, digits), None, "{digits}");
            assert_eq!(written(write_decimal, digits), None, "{digits}");
        }
    }
}
