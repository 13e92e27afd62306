//! Renderings of one transaction by descriptors of different age.
//!
//! An upgrade of a chain adds fields to messages. A node prints also transactions of earlier heights with the members that
//! were added since, with their default values; a record that was stored before the upgrade lacks them. Both are right.

use serde_json::{Map, Value};

/// Whether two records of a transaction are equal but for members of `tx` that one of them lacks and that have the
/// default of their type in the other.
pub fn differ_in_defaults_only(one: &[u8], other: &[u8]) -> bool {
    let read = |record| serde_json::from_slice::<Map<String, Value>>(record).ok();
    let (Some(mut one), Some(mut other)) = (read(one), read(other)) else { return false };
    match (one.remove("tx"), other.remove("tx")) {
        (Some(tx), Some(other_tx)) => one == other && same(&tx, &other_tx),
        _ => false,
    }
}

fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let in_both = |(name, value): (&String, &Value)| match other.get(name) {
                Some(other) => same(value, other),
                None => is_default(value),
            };
            let mut added = other.iter().filter(|(name, _)| !one.contains_key(*name));
            one.iter().all(in_both) && added.all(|(_, value)| is_default(value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other,
    }
}

/// Whether the gateway prints this value for a field that is not set.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_default),
        // Numbers as text, durations, the first name of an enum, and the zero time.
        Value::String(text) => {
            let digits = text.trim_end_matches('s');
            digits.bytes().all(|byte| matches!(byte, b'0' | b'.'))
                || text.ends_with("_UNSPECIFIED")
                || text == "0001-01-01T00:00:00Z"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::differ_in_defaults_only;

    fn differ(one: &str, other: &str) -> bool {
        let both = (
            differ_in_defaults_only(one.as_bytes(), other.as_bytes()),
            differ_in_defaults_only(other.as_bytes(), one.as_bytes()),
        );
        assert_eq!(both.0, both.1, "{one} {other}");
        both.0
    }

    #[test]
    fn members_that_an_upgrade_adds_with_their_defaults_are_no_difference() {
        let old = r#"{"height":"5","tx":{"body":{"messages":[{"@type":"/a.B","x":"1"}]}}}"#;
        for added in [
            r#""y":[]"#,
            r#""y":"""#,
            r#""y":"0""#,
            r#""y":"0.000000000000000000""#,
            r#""y":null"#,
            r#""y":false"#,
            r#""y":{"z":"0s","n":0}"#,
            r#""y":"MODE_UNSPECIFIED""#,
        ] {
            let new = old.replace(r#""x":"1""#, &format!(r#""x":"1",{added}"#));
            assert!(differ(old, &new), "{new}");
        }
    }

    #[test]
    fn every_other_difference_is_one() {
        let old = r#"{"height":"5","tx":{"body":{"messages":[{"@type":"/a.B","x":"1"}]}}}"#;
        for (from, to) in [
            (r#""x":"1""#, r#""x":"2""#),
            (r#""x":"1""#, r#""x":"1","y":"2""#),
            (r#""x":"1""#, r#""y":"1""#),
            (r#""x":"1""#, r#""x":"""#),
            (r#""messages":["#, r#""messages":[{},"#),
            (r#""height":"5""#, r#""height":"6""#),
            (r#""height":"5""#, r#""height":"5","code":0"#),
        ] {
            assert!(!differ(old, &old.replace(from, to)), "{to}");
        }
        assert!(!differ(r#"{"height":"5"}"#, r#"{"height":"5"}"#) && !differ("", "{}"));
    }
}
