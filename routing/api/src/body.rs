//! Parsing of request bodies; an error names the member, its value and the allowed values.
//!
//! A `null` member counts as absent. A member that no known client sends is rejected, with the nearest known name,
//! because a misspelt amount must not silently become a default.

use chain::U256;
use serde_json::{Map, Value};
use web::call::Call;
use web::refusal::Refusal;

use crate::errors;

/// Digits of the largest amount: 2^256 − 1.
const MAX_DIGITS: usize = 78;
/// Excerpt of a rejected value for an error message.
const EXCERPT: usize = 64;
/// Entries of a list of texts or of a map.
const MAX_ENTRIES: usize = 256;

/// The members of a body.
pub(crate) struct Body {
    members: Map<String, Value>,
}

impl Body {
    /// Reads the body of a call, all of whose members must be among `known`.
    pub(crate) fn read(call: &Call<'_>, known: &[&str]) -> Result<Self, Refusal> {
        if let Some(media) = call.media_type().filter(|media| !is_json(media)) {
            return Err(errors::not_json(&format!("content-type is `{media}`, must be application/json")));
        }
        // Clients may leave an empty object out.
        let text = if call.body().trim_ascii().is_empty() { b"{}" } else { call.body() };
        let value: Value = serde_json::from_slice(text).map_err(|e| errors::not_json(&e.to_string()))?;
        let Value::Object(members) = value else {
            return Err(errors::not_json(&format!("{} is no object", shown(&value))));
        };
        if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let near = known.iter().min_by_key(|name| strsim::damerau_levenshtein(name, unknown));
            let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            let name = unknown.chars().take(EXCERPT).collect::<String>();
            return Err(Refusal::bad_request(format!("unknown field `{name}`{hint}")));
        }
        Ok(Self { members })
    }

    /// The member itself, if it is there and not null.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// A text that may be missing.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        self.value(name).map(|value| value.as_str().ok_or_else(|| wrong(name, value, "a string"))).transpose()
    }

    /// A text that must be there and not be empty.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.text(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| errors::invalid(name, "it is missing or empty, must be a string"))
    }

    /// A truth value, or what holds without it.
    pub(crate) fn boolean(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        self.value(name)
            .map_or(Ok(default), |value| value.as_bool().ok_or_else(|| wrong(name, value, "true or false")))
    }

    /// An amount in base units above zero: decimal digits in a string, or a whole number.
    pub(crate) fn amount(&self, name: &str) -> Result<U256, Refusal> {
        let value = self.value(name).ok_or_else(|| errors::invalid(name, "it is missing"))?;
        amount(name, value)
    }

    /// A whole number, in a string or not.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) => {
                text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
            }
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| wrong(name, value, "a whole number"))
    }

    /// Texts; none if they are missing.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| wrong(name, value, "a list of strings"))?;
        if items.len() > MAX_ENTRIES {
            return Err(errors::invalid(name, &format!("{} entries, at most {MAX_ENTRIES}", items.len())));
        }
        let text = |item: &Value| item.as_str().map(str::to_owned);
        items.iter().map(|item| text(item).ok_or_else(|| wrong(name, item, "a string"))).collect()
    }

    /// An object with at most 256 members; `None` if it is missing.
    pub(crate) fn object(&self, name: &str) -> Result<Option<&Map<String, Value>>, Refusal> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| wrong(name, value, "an object"))?;
        if object.len() > MAX_ENTRIES {
            return Err(errors::invalid(name, &format!("{} members, at most {MAX_ENTRIES}", object.len())));
        }
        Ok(Some(object))
    }
}

/// See [`Body::amount`].
fn amount(name: &str, value: &Value) -> Result<U256, Refusal> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        _ => return Err(wrong(name, value, "a decimal integer in a string")),
    };
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong(name, value, "a decimal integer in a string: digits only"));
    }
    let digits = text.trim_start_matches('0');
    if digits.is_empty() {
        return Err(wrong(name, value, "above zero"));
    }
    let amount = (digits.len() <= MAX_DIGITS).then(|| U256::from_str_radix(digits, 10).ok()).flatten();
    amount.ok_or_else(|| errors::invalid(name, &format!("{} digits, at most 2^256 - 1", digits.len())))
}

/// What stands there, and what must.
pub(crate) fn wrong(name: &str, value: &Value, must: &str) -> Refusal {
    errors::invalid(name, &format!("{} must be {must}", shown(value)))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn is_json(media: &str) -> bool {
    let media = media.to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> String {
        amount("amount_in", value).unwrap_err().message().to_owned()
    }

    #[test]
    fn amounts_are_whole_positive_and_fit_a_word() {
        assert_eq!(amount("a", &Value::from("0012")).ok(), Some(U256::from(12)));
        assert_eq!(amount("a", &Value::from(7)).ok(), Some(U256::from(7)));
        assert_eq!(amount("a", &Value::from(U256::MAX.to_string())).ok(), Some(U256::MAX));
        for bad in ["", "-1", "+1", "1.5", "1e6", "0x10", " 1", "0", "000", "１"] {
            assert!(message(&Value::from(bad)).starts_with("invalid amount_in: "), "{bad}");
        }
        for bad in [Value::from(-1), Value::from(1.5), Value::from(true), Value::from(vec![1])] {
            assert!(message(&bad).contains("must be a decimal integer"), "{bad}");
        }
        assert_eq!(
            message(&Value::from("9".repeat(400))),
            "invalid amount_in: 400 digits, at most 2^256 - 1"
        );
        assert!(message(&Value::from("9".repeat(78))).contains("at most 2^256 - 1"));
    }

    #[test]
    fn what_is_refused_is_shown_in_part() {
        assert_eq!(shown(&Value::from("é".repeat(100))).chars().count(), EXCERPT + 1);
    }
}
