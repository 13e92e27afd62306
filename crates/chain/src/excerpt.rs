//! Truncation of external text for messages: always one short line.

/// Maximum characters of an excerpt.
const MAX_CHARS: usize = 240;

/// The first 240 characters of an external text on one line: control characters are escaped, bytes that are not UTF-8
/// are replaced, and `…` marks the truncation.
pub fn excerpt(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref().trim_ascii();
    // A character has at most four bytes, so the head is longer than the excerpt whatever the text.
    let head = String::from_utf8_lossy(&text[..text.len().min(4 * (MAX_CHARS + 1))]);
    let mut line = String::new();
    for c in truncated(head.trim(), MAX_CHARS).chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// The first `max_chars` characters of a text; `…` marks the truncation.
pub fn truncated(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b" <html>\n\x1b[31m "), "<html>\\n\\u{1b}[31m");
        assert_eq!(excerpt([0xff, b'a']), "\u{fffd}a");
        assert_eq!(excerpt("é".repeat(10_000)).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn a_truncated_text_ends_with_dots_only_if_it_is_shorter() {
        assert_eq!((truncated("abc", 3), truncated("abcd", 3)), ("abc".to_owned(), "abc…".to_owned()));
        assert_eq!((truncated("éé", 2), truncated("ééé", 2)), ("éé".to_owned(), "éé…".to_owned()));
    }
}
