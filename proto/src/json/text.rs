//! Strings: JSON text, base64 and hex.
//!
//! Strings that are not UTF-8 are accepted, and each invalid byte is printed as U+FFFD, as in Go.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A JSON string.
pub(crate) fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    match std::str::from_utf8(bytes) {
        Ok(text) => escape(text.as_bytes(), out),
        Err(_) => {
            for chunk in bytes.utf8_chunks() {
                escape(chunk.valid().as_bytes(), out);
                write_replacements(chunk.invalid().len(), out);
            }
        }
    }
    out.push(b'"');
}

/// One U+FFFD for each of `count` invalid bytes.
pub(crate) fn write_replacements(count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.extend_from_slice("\u{fffd}".as_bytes());
    }
}

/// The content of a JSON string, from valid UTF-8.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(position) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (clean, tail) = rest.split_at(position);
        out.extend_from_slice(clean);
        escape_one(tail[0], out);
        rest = &tail[1..];
    }
    out.extend_from_slice(rest);
}

fn escape_one(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
    }
}

/// Bytes as a string in standard base64 with padding.
pub(crate) fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The only error is a slice that is too short, and this one has exactly the length of padded base64.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or_default();
    out.truncate(start + written);
    out.push(b'"');
}

/// Bytes as a string of upper-case hex digits.
pub(crate) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::{write_base64, write_hex, write_string};

    fn written(write: fn(&[u8], &mut Vec<u8>), bytes: &[u8]) -> String {
        let mut out = Vec::new();
        write(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quotes_backslashes_and_controls_are_escaped_and_nothing_else() {
        assert_eq!(
            written(write_string, "a\"\\\n\r\t\u{0}\u{1f}\u{7f}<é\u{2028}".as_bytes()),
            "\"a\\\"\\\\\\n\\r\\t\\u0000\\u001F\u{7f}<é\u{2028}\""
        );
    }

    #[test]
    fn each_byte_that_is_not_utf8_becomes_a_replacement_character() {
        assert_eq!(written(write_string, b"a\xe2\x82b\xff"), "\"a\u{fffd}\u{fffd}b\u{fffd}\"");
    }

    #[test]
    fn bytes_are_padded_base64_or_upper_case_hex() {
        assert_eq!(written(write_base64, &[0xfb, 0xff]), "\"+/8=\"");
        assert_eq!(written(write_base64, b""), "\"\"");
        assert_eq!(written(write_hex, &[0xab, 0x01]), "\"AB01\"");
    }
}
