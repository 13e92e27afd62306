//! Percent-decoding of path segments and query strings (RFC 3986 §2.1).
//!
//! # Invariants
//! * Each value is decoded exactly once.
//! * An invalid escape and invalid UTF-8 are errors: the result is `None`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// A path segment: `+` is itself.
pub(crate) fn decode_segment(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('%') {
        return Some(Cow::Borrowed(raw));
    }
    let is_escape = |after: &str| {
        after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    // The library leaves an invalid escape as it is.
    if !raw.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(raw).decode_utf8().ok()
}

/// A name or a value of a query string: `+` is a space.
pub(crate) fn decode_query(raw: &str) -> Option<Cow<'_, str>> {
    if raw.contains('+') {
        return decode_segment(&raw.replace('+', " ")).map(|text| Cow::Owned(text.into_owned()));
    }
    decode_segment(raw)
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
    fn without_an_escape_the_text_itself_is_returned() {
        assert!(matches!(decode_segment("a+b"), Some(Cow::Borrowed("a+b"))));
    }

    #[test]
    fn it_decodes_once() {
        assert_eq!(decode_segment("%2541%2F").unwrap(), "%41/");
    }

    #[test]
    fn invalid_escapes_and_invalid_utf8_are_errors() {
        for raw in ["%", "%4", "%zz", "%4g", "a%", "%+1", "%ff", "%C3", "%c3%28", "%ed%a0%80"] {
            assert_eq!(decode_segment(raw), None, "{raw}");
            assert_eq!(decode_query(raw), None, "{raw}");
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
