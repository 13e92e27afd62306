//! JSON in a bytes field of a contract message, copied into the output without white space.
//!
//! Checked as it is copied, since a chain may contain bytes there that are not JSON. Go copies strings that are not
//! UTF-8 and unpaired surrogates; both become U+FFFD here, as a Go reader decodes them.

use crate::json::text::write_replacements;
use crate::json::wire::WireError;

/// Copies one JSON value of at most `depth` levels.
pub(crate) fn write_compact(text: &[u8], depth: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut copy = Copy { rest: text, out };
    copy.value(depth)?;
    if copy.next().is_some() { Err("JSON with something after its end") } else { Ok(()) }
}

const CUT_OFF: WireError = "JSON that is cut off";

struct Copy<'a, 'o> {
    rest: &'a [u8],
    out: &'o mut Vec<u8>,
}

impl Copy<'_, '_> {
    /// The next byte after white space, without consuming it.
    fn next(&mut self) -> Option<u8> {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    fn take(&mut self, count: usize) {
        let (head, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.out.extend_from_slice(head);
        self.rest = rest;
    }

    fn value(&mut self, depth: usize) -> Result<(), WireError> {
        match self.next().ok_or(CUT_OFF)? {
            b'{' | b'[' if depth == 0 => Err("JSON that is nested too deep"),
            b'{' => self.items(b'}', |copy| copy.member(depth - 1)),
            b'[' => self.items(b']', |copy| copy.value(depth - 1)),
            b'"' => self.string(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    fn items(
        &mut self,
        close: u8,
        item: impl Fn(&mut Self) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        self.take(1);
        if self.next() == Some(close) {
            self.take(1);
            return Ok(());
        }
        loop {
            item(self)?;
            match self.next() {
                Some(b',') => self.take(1),
                Some(byte) if byte == close => {
                    self.take(1);
                    return Ok(());
                }
                Some(_) => return Err("JSON without a comma between two values"),
                None => return Err(CUT_OFF),
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<(), WireError> {
        if self.next().ok_or(CUT_OFF)? != b'"' {
            return Err("JSON with a key that is not a string");
        }
        self.string()?;
        if self.next().ok_or(CUT_OFF)? != b':' {
            return Err("JSON without a colon after a key");
        }
        self.take(1);
        self.value(depth)
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), WireError> {
        if !self.rest.starts_with(word) {
            return Err("JSON with an unknown word");
        }
        self.take(word.len());
        Ok(())
    }

    fn number(&mut self) -> Result<(), WireError> {
        let digits = |from: usize, text: &[u8]| {
            text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut end = usize::from(self.rest.first() == Some(&b'-'));
        end += match self.rest.get(end) {
            Some(b'0') => 1,
            Some(b'1'..=b'9') => digits(end, self.rest),
            _ => return Err("JSON with an unknown word"),
        };
        if self.rest.get(end) == Some(&b'.') {
            let count = digits(end + 1, self.rest);
            if count == 0 {
                return Err("JSON with a number that ends in a point");
            }
            end += 1 + count;
        }
        if matches!(self.rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.rest.get(end + 1), Some(b'+' | b'-')));
            let count = digits(end + 1 + sign, self.rest);
            if count == 0 {
                return Err("JSON with a number without an exponent");
            }
            end += 1 + sign + count;
        }
        self.take(end);
        Ok(())
    }

    fn string(&mut self) -> Result<(), WireError> {
        self.take(1);
        loop {
            let stop = self.rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            let plain = &self.rest[..stop.ok_or(CUT_OFF)?];
            for chunk in plain.utf8_chunks() {
                self.out.extend_from_slice(chunk.valid().as_bytes());
                write_replacements(chunk.invalid().len(), self.out);
            }
            self.rest = &self.rest[plain.len()..];
            match self.rest.first() {
                Some(b'"') => {
                    self.take(1);
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return Err("JSON with a control character in a string"),
            }
        }
    }

    fn escape(&mut self) -> Result<(), WireError> {
        match self.rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.take(2),
            Some(b'u') => {
                let first = unit(self.rest).ok_or("JSON with a broken escape")?;
                let second = self.rest.get(6..).and_then(unit);
                match (first, second) {
                    (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => self.take(12),
                    (0xd800..=0xdfff, _) => {
                        self.out.extend_from_slice(b"\\ufffd");
                        self.rest = &self.rest[6..];
                    }
                    _ => self.take(6),
                }
            }
            _ => return Err("JSON with a broken escape"),
        }
        Ok(())
    }
}

/// The UTF-16 unit of an escape such as `\u00e9` at the start of `text`.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::write_compact;

    fn compact(text: impl AsRef<[u8]>) -> Option<String> {
        let mut out = Vec::new();
        write_compact(text.as_ref(), 3, &mut out).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn white_space_is_removed_and_other_bytes_are_kept() {
        let text = " {\t\"a b\" : [ 1 , -2.50e+3,0 ,\n{ } ],\r\"\\u00e9\\n\": \"x\\\" y\" , \"a b\":null} ";
        let expected = "{\"a b\":[1,-2.50e+3,0,{}],\"\\u00e9\\n\":\"x\\\" y\",\"a b\":null}";
        assert_eq!(compact(text).unwrap(), expected);
        for text in ["\"text\"", "12", "true", "null", "[]"] {
            assert_eq!(compact(text).unwrap(), text);
        }
    }

    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "[1 2]",
            "01",
            "1.",
            "1e",
            "-",
            "+1",
            ".5",
            "tru",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "1 1",
            "[}",
            "\u{c}1",
            "[1\u{c}]",
            "NaN",
        ] {
            assert_eq!(compact(text), None, "{text:?}");
        }
    }

    #[test]
    fn nesting_has_a_bound() {
        assert!(compact("[[[1]]]").is_some());
        assert_eq!(compact("[[[[1]]]]"), None);
    }

    #[test]
    fn undecodable_text_becomes_a_replacement_character() {
        assert_eq!(compact(b"\"a\xffb\"").unwrap(), "\"a\u{fffd}b\"");
        assert_eq!(compact("\"\\ud83d\\ude00\"").unwrap(), "\"\\ud83d\\ude00\"");
        assert_eq!(compact("\"\\ud83d!\\ude00\"").unwrap(), "\"\\ufffd!\\ufffd\"");
        assert_eq!(compact("\"\\ud83d\\u0041\"").unwrap(), "\"\\ufffd\\u0041\"");
    }
}
