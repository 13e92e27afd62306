//! Writes JSON into bytes: strings that are always valid, numbers, hex.
//!
//! Output parses back to the same text, including quotes, control characters and NULs.

/// What a byte needs inside a JSON string: 0 nothing, `u` the long form, else the letter after the backslash.
const ESCAPE: [u8; 256] = {
    let mut table = [0; 256];
    let mut control = 0;
    while control < 0x20 {
        table[control] = b'u';
        control += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0a] = b'n';
    table[0x0c] = b'f';
    table[0x0d] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Appends a JSON string with its quotes. Characters beyond ASCII are written as they are.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// Appends `lead`, which ends in a key of ours and its colon, then the text as a JSON string.
pub(crate) fn push_member(out: &mut Vec<u8>, lead: &str, text: &str) {
    out.extend_from_slice(lead.as_bytes());
    push_str(out, text);
}

/// Appends a number in decimal.
pub fn push_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends bytes as lower-case hex, without `0x`.
pub fn push_hex_lower(out: &mut Vec<u8>, bytes: &[u8]) {
    push_hex(out, bytes, LOWER);
}

/// Appends bytes as upper-case hex, without `0x`.
pub fn push_hex_upper(out: &mut Vec<u8>, bytes: &[u8]) {
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

fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let escape = ESCAPE[usize::from(byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            out.extend_from_slice(b"00");
            push_hex_lower(out, &[byte]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
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

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        push_str(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_control_characters_and_nul_are_escaped() {
        assert_eq!(written("a\"b\\c\n\r\t\u{8}\u{c}\0\u{1f}<ä"), r#""a\"b\\c\n\r\t\b\f\u0000\u001f<ä""#);
        assert_eq!(written(""), "\"\"");
    }

    proptest! {
        #[test]
        fn any_text_reads_back_as_itself(text in any::<String>()) {
            prop_assert_eq!(serde_json::from_str::<String>(&written(&text)).unwrap(), text);
        }

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
