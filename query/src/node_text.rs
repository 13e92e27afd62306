//! Texts that nodes read and write as Go does.

/// Hex of any length.
///
/// # Errors
/// Those of Go's `encoding/hex`.
pub fn go_hex(text: &str) -> Result<Vec<u8>, String> {
    let invalid = |byte: u8| {
        let shown = char::from(byte);
        let is_printed = matches!(byte, b' '..=b'~' | 0xa1..=0xac | 0xae..);
        let quoted = if is_printed { format!(" '{shown}'") } else { String::new() };
        format!("encoding/hex: invalid byte: U+{byte:04X}{quoted}")
    };
    if let Some(byte) = text.bytes().find(|byte| !byte.is_ascii_hexdigit()) {
        return Err(invalid(byte));
    }
    hex::decode(text).map_err(|_| "encoding/hex: odd length hex string".to_owned())
}

/// What an error about something missing adds if blocks before `start_height` are not indexed.
pub(crate) fn since(start_height: u64) -> String {
    match start_height {
        0 | 1 => String::new(),
        from => format!(" (indexed from height {from}; ask a node about earlier blocks)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_has_the_errors_of_go() {
        assert_eq!(go_hex("00fF"), Ok(vec![0, 255]));
        assert_eq!(go_hex("abc"), Err("encoding/hex: odd length hex string".to_owned()));
        assert_eq!(go_hex("0xab"), Err("encoding/hex: invalid byte: U+0078 'x'".to_owned()));
        assert_eq!(go_hex("a\u{7f}"), Err("encoding/hex: invalid byte: U+007F".to_owned()));
        assert_eq!(go_hex("é"), Err("encoding/hex: invalid byte: U+00C3 'Ã'".to_owned()));
    }
}
