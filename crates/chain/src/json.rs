//! Appends JSON to bytes: strings and numbers by `serde_json` and `itoa`, hex, and members around spliced records.

use serde::Serialize;

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a value. Characters beyond ASCII are written as they are.
pub(crate) fn push(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(
        written.is_ok(),
        "only writers and map keys that are not strings fail, and here are none: {written:?}"
    );
}

/// Appends `lead`, which ends in a constant key and its colon, then the text as a JSON string.
pub(crate) fn push_member(out: &mut Vec<u8>, lead: &str, text: &str) {
    out.extend_from_slice(lead.as_bytes());
    push(out, text);
}

/// Appends a number in decimal.
pub(crate) fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends bytes as lower-case hex, without `0x`.
pub(crate) fn push_hex_lower(out: &mut Vec<u8>, bytes: &[u8]) {
    push_hex(out, bytes, LOWER);
}

/// Appends bytes as upper-case hex, without `0x`.
pub(crate) fn push_hex_upper(out: &mut Vec<u8>, bytes: &[u8]) {
    push_hex(out, bytes, UPPER);
}

/// Appends `[a,b,…]`, each item written by `write`.
pub(crate) fn push_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

fn push_hex(out: &mut Vec<u8>, bytes: &[u8], digits: &[u8; 16]) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(digits[usize::from(byte >> 4)]);
        out.push(digits[usize::from(byte & 0x0f)]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_control_characters_and_nul_are_escaped() {
        let mut out = Vec::new();
        push(&mut out, "a\"b\\c\n\r\t\u{8}\u{c}\0\u{1f}<ä");
        assert_eq!(String::from_utf8(out).unwrap(), r#""a\"b\\c\n\r\t\b\f\u0000\u001f<ä""#);
    }

    proptest! {
        #[test]
        fn hex_reads_back_as_the_bytes(bytes in any::<Vec<u8>>()) {
            let (mut lower, mut upper) = (Vec::new(), Vec::new());
            push_hex_lower(&mut lower, &bytes);
            push_hex_upper(&mut upper, &bytes);
            prop_assert_eq!(hex::decode(&lower).unwrap(), bytes);
            prop_assert_eq!(upper, lower.to_ascii_uppercase());
        }
    }
}
