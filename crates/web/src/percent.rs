//! Percent-decoding of path segments and query strings (RFC 3986 §2.1).
//!
//! Each value is decoded exactly once; an invalid escape or invalid UTF-8 is an error.

use std::borrow::Cow;

/// An escape that is not two hex digits, or bytes that are not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A path segment: `+` is itself.
pub(crate) fn decode_segment(raw: &str) -> Result<Cow<'_, str>, Malformed> {
    match memchr::memchr(b'%', raw.as_bytes()) {
        None => Ok(Cow::Borrowed(raw)),
        Some(_) => decode(raw, b'+'),
    }
}

/// A name or a value of a query string: `+` is a space.
pub(crate) fn decode_query(raw: &str) -> Result<Cow<'_, str>, Malformed> {
    match memchr::memchr2(b'%', b'+', raw.as_bytes()) {
        None => Ok(Cow::Borrowed(raw)),
        Some(_) => decode(raw, b' '),
    }
}

fn decode(raw: &str, plus: u8) -> Result<Cow<'_, str>, Malformed> {
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = bytes.next().and_then(hex_digit).ok_or(Malformed)?;
                let low = bytes.next().and_then(hex_digit).ok_or(Malformed)?;
                high << 4 | low
            }
            b'+' => plus,
            other => other,
        });
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| Malformed)
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plus_is_a_space_in_a_query_only() {
        assert_eq!(decode_query("a+b%2Bc").unwrap(), "a b+c");
        assert_eq!(decode_segment("a+b%2bc").unwrap(), "a+b+c");
    }

    #[test]
    fn it_decodes_once() {
        assert_eq!(decode_segment("%2541%2F").unwrap(), "%41/");
    }

    #[test]
    fn broken_escapes_and_broken_utf8_are_refused() {
        for raw in ["%", "%4", "%zz", "%4g", "a%", "%+1", "%ff", "%C3", "%c3%28", "%ed%a0%80"] {
            assert_eq!(decode_segment(raw), Err(Malformed), "{raw}");
            assert_eq!(decode_query(raw), Err(Malformed), "{raw}");
        }
    }

    proptest! {
        #[test]
        fn every_text_survives_the_escaping_of_all_its_bytes(text in ".*") {
            use std::fmt::Write as _;
            let mut raw = String::new();
            for byte in text.bytes() {
                write!(raw, "%{byte:02x}").unwrap();
            }
            prop_assert_eq!(decode_segment(&raw).unwrap(), text.as_str());
            prop_assert_eq!(decode_query(&raw).unwrap(), text.as_str());
        }
    }
}
