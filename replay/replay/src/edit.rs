//! Access to members of a node's JSON by JSON pointer (RFC 6901).
//!
//! # Invariants
//!
//! - A missing member or one of another type is an error that names its path; members are never added.

use serde_json::Value;

/// The member at a path in the form of RFC 6901.
pub(crate) fn get<'a>(json: &'a Value, path: &str) -> Result<&'a Value, String> {
    json.pointer(path).ok_or_else(|| format!("{path} is missing"))
}

/// The text at a path.
pub(crate) fn text<'a>(json: &'a Value, path: &str) -> Result<&'a str, String> {
    get(json, path)?.as_str().ok_or_else(|| format!("{path} is not text"))
}

/// The items at a path; `null` is an empty list.
pub(crate) fn list<'a>(json: &'a Value, path: &str) -> Result<&'a [Value], String> {
    match get(json, path)? {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items),
        _ => Err(format!("{path} is not an array")),
    }
}

/// The bytes in hex at a path.
pub(crate) fn hex(json: &Value, path: &str) -> Result<Vec<u8>, String> {
    hex::decode(text(json, path)?).map_err(|e| format!("{path}: {e}"))
}

/// The bytes in hex after `0x` at a path.
pub(crate) fn hex_data(json: &Value, path: &str) -> Result<Vec<u8>, String> {
    hex::decode(text(json, path)?.trim_start_matches("0x")).map_err(|e| format!("{path}: {e}"))
}

/// The number at a path: a JSON number, or a text in decimal or, after `0x`, in hex.
pub(crate) fn number(json: &Value, path: &str) -> Result<u64, String> {
    let number = match get(json, path)? {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        _ => None,
    };
    number.ok_or_else(|| format!("{path} is not a whole number"))
}

/// Replaces the member at a path.
pub(crate) fn put(json: &mut Value, path: &str, new: impl Into<Value>) -> Result<(), String> {
    let place = json.pointer_mut(path).ok_or_else(|| format!("{path} is missing"))?;
    *place = new.into();
    Ok(())
}

/// A quantity in the EVM's JSON-RPC encoding.
pub(crate) fn quantity(number: u64) -> String {
    format!("{number:#x}")
}
