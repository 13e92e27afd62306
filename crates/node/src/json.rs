//! Members of JSON replies by JSON pointer (RFC 6901). Errors contain the pointer and the invalid value.

use std::str::FromStr;

use chain::excerpt;
use serde_json::Value;

pub(crate) fn text_at<'a>(json: &'a Value, pointer: &str) -> Result<&'a str, String> {
    json.pointer(pointer).and_then(Value::as_str).ok_or_else(|| format!("there is no text at {pointer}"))
}

/// A number in a JSON string.
pub(crate) fn number_at<T: FromStr>(json: &Value, pointer: &str) -> Result<T, String> {
    let text = text_at(json, pointer)?;
    text.parse().map_err(|_| format!("`{}` at {pointer} is not a number", excerpt(text)))
}

/// A hash of 32 bytes in hex; `None` if it is empty or missing.
pub(crate) fn hash_at(json: &Value, pointer: &str) -> Result<Option<[u8; 32]>, String> {
    let Some(text) = json.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mut hash = [0; 32];
    match hex::decode_to_slice(text, &mut hash) {
        Ok(()) => Ok(Some(hash)),
        Err(_) => Err(format!("`{}` at {pointer} is not a hash", excerpt(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_or_invalid_member_is_reported() {
        let json = serde_json::json!({"a": {"text": "x", "number": "7", "negative": "-8", "empty": "", "bool": true}});
        assert_eq!(text_at(&json, "/a/text"), Ok("x"));
        assert_eq!(text_at(&json, "/a/b").unwrap_err(), "there is no text at /a/b");
        assert_eq!(text_at(&json, "/a/bool").unwrap_err(), "there is no text at /a/bool");
        assert_eq!(number_at::<u64>(&json, "/a/number"), Ok(7));
        assert_eq!(
            number_at::<u64>(&json, "/a/negative").unwrap_err(),
            "`-8` at /a/negative is not a number"
        );
        assert_eq!((hash_at(&json, "/a/empty"), hash_at(&json, "/a/b")), (Ok(None), Ok(None)));
        assert_eq!(hash_at(&json, "/a/text").unwrap_err(), "`x` at /a/text is not a hash");
        let hash = serde_json::json!("AB".repeat(32));
        assert_eq!(hash_at(&hash, ""), Ok(Some([0xab; 32])));
    }
}
