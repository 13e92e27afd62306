//! Parsing of request bodies with serde; an error names the member, its value and the allowed values.
//!
//! A `null` member counts as absent. An unknown member is ignored, because new versions of clients send new ones; with
//! [`Config::strict`] it is rejected, so that tests find a misspelt one. A missing member names the unknown one that is
//! nearest to it.

use std::fmt;
use std::marker::PhantomData;

use chain::U256;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_path_to_error::Track;
use web::call::Call;
use web::http_error::HttpError;

use crate::config::Config;
use crate::errors;

/// Pattern of denominations: those of Cosmos chains, token addresses and names of coins of EVM chains.
pub(crate) const DENOM: &str = "^[a-zA-Z0-9][a-zA-Z0-9/:._-]{2,255}$";
/// Digits of the largest amount: 2^256 − 1.
const MAX_DIGITS: usize = 78;
/// Characters of a rejected value in an error message.
pub(crate) const EXCERPT: usize = 64;
/// Entries of a list or of a map.
const MAX_ENTRIES: usize = 256;
/// Unknown members that a log line or an error can name.
const MAX_UNKNOWN: usize = 8;
/// Edits between a misspelt name and the right one.
const MAX_TYPOS: usize = 2;
/// Seconds until an IBC transfer may be refunded, at most.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// Parses the body of a call. Members in `without_effect` are known and dropped.
pub(crate) fn read<T: DeserializeOwned>(
    config: &Config,
    call: &Call<'_>,
    without_effect: &[&str],
) -> Result<T, HttpError> {
    let mut members = members(call)?;
    members.retain(|name, _| !without_effect.contains(&name.as_str()));
    let (mut unknown, mut track) = (Unknown::default(), Track::new());
    let body = serde_path_to_error::Deserializer::new(Value::Object(members), &mut track);
    let parsed = serde_ignored::deserialize(body, |path| unknown.add(&path));
    match parsed {
        Ok(_) if config.strict && unknown.count > 0 => {
            Err(HttpError::bad_request(format!("unknown field `{}`", unknown.first[0])))
        }
        Ok(value) => {
            if unknown.count > 0 {
                tracing::debug!(members = ?unknown.first, n_members = unknown.count, "unknown members ignored");
            }
            Ok(value)
        }
        Err(error) => Err(refusal(&track.path().to_string(), &error.to_string(), &unknown)),
    }
}

/// The unknown members of a body: all of them are counted, the first are kept.
#[derive(Default)]
struct Unknown {
    first: Vec<String>,
    count: usize,
}

impl Unknown {
    fn add(&mut self, path: &serde_ignored::Path<'_>) {
        self.count += 1;
        if self.first.len() < MAX_UNKNOWN {
            // An optional member is `?` in a path.
            self.first.push(chain::truncated(&path.to_string().replace(".?", ""), EXCERPT));
        }
    }

    /// The one that may be `missing`, misspelt.
    fn nearest(&self, missing: &str) -> Option<&str> {
        let distance = |name: &&String| strsim::damerau_levenshtein(name, missing);
        let nearest = self.first.iter().min_by_key(distance)?;
        (distance(&nearest) <= MAX_TYPOS).then_some(nearest)
    }
}

/// The error for a body that serde rejects at `path`.
fn refusal(path: &str, reason: &str, unknown: &Unknown) -> HttpError {
    let missing = reason.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let Some(name) = missing else {
        return errors::invalid(path, &reason.chars().take(4 * EXCERPT).collect::<String>());
    };
    let member = if path == "." { name.to_owned() } else { format!("{path}.{name}") };
    match unknown.nearest(&member) {
        None => errors::missing(&member),
        Some(other) => errors::invalid(&member, &format!("it is missing; the unknown `{other}` was ignored")),
    }
}

/// The members of a body.
fn members(call: &Call<'_>) -> Result<Map<String, Value>, HttpError> {
    if let Some(media) = call.media_type().filter(|media| !is_json(media)) {
        return Err(errors::not_json(&format!("content-type is `{media}`, must be application/json")));
    }
    // Clients may omit an empty object.
    let text = if call.body().trim_ascii().is_empty() { b"{}" } else { call.body() };
    serde_json::from_slice(text).map_err(|e| errors::not_json(&e.to_string()))
}

/// Checks the length of a list or map.
pub(crate) fn check_length(name: &str, length: usize) -> Result<(), HttpError> {
    if length <= MAX_ENTRIES {
        return Ok(());
    }
    Err(errors::invalid(name, &format!("{length} entries, at most {MAX_ENTRIES}")))
}

/// A struct that is read from an object only: serde reads one from an array too.
#[derive(JsonSchema)]
#[schemars(transparent, inline)]
pub(crate) struct Object<T>(pub(crate) T);

/// A text that is not empty.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("minLength" = 1))]
pub(crate) struct Text(pub(crate) String);

/// An amount in base units above zero: decimal digits in a string, or a whole number.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("type" = ["string", "integer"], "pattern" = "^0*[1-9][0-9]{0,77}$", "minimum" = 1))]
pub(crate) struct Amount(#[schemars(with = "String")] pub(crate) U256);

/// Seconds until an IBC transfer may be refunded: a whole number, in a string or not.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("type" = ["string", "integer"], "pattern" = "^0*([1-9][0-9]{0,3}|[1-7][0-9]{4}|8[0-5][0-9]{3}|86[0-3][0-9]{2}|86400)$", "minimum" = 1, "maximum" = MAX_TIMEOUT_SECONDS))]
pub(crate) struct TimeoutSeconds(pub(crate) u64);

/// A decimal number, in a string or not.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("type" = ["string", "number"], "pattern" = "^[0-9]+([.][0-9]+)?$", "minimum" = 0, "maximum" = 100))]
pub(crate) struct Decimal(pub(crate) String);

/// Base units that a client expects to arrive; absent if it is empty or zero, which clients send for "unknown".
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("type" = ["string", "integer"], "pattern" = "^[0-9]{0,77}$", "minimum" = 0))]
pub(crate) struct Expected(#[schemars(with = "String")] pub(crate) Option<U256>);

/// Fee of affiliates in hundredths of a percent: none, because no fee for an affiliate is taken.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(inline, try_from = "String", extend("type" = ["string", "integer"], "pattern" = "^0*$", "minimum" = 0, "maximum" = 0))]
pub(crate) struct NoFee;

/// Affiliates by chain, each with a fee of zero.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct NoAffiliates;

/// A member that is accepted only if it is absent.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Unsupported;

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

impl TryFrom<Value> for Text {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) if !text.is_empty() => Ok(Self(text)),
            Value::Null | Value::String(_) => Err("it is missing or empty, must be a string".to_owned()),
            other => Err(must_be(&other, "a string")),
        }
    }
}

impl TryFrom<Value> for Amount {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let text = match &value {
            Value::Null => return Err("it is missing".to_owned()),
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_u64() => number.to_string(),
            _ => return Err(must_be(&value, "a decimal integer in a string")),
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(must_be(&value, "a decimal integer in a string: digits only"));
        }
        let digits = text.trim_start_matches('0');
        if digits.is_empty() {
            return Err(must_be(&value, "above zero"));
        }
        let amount = (digits.len() <= MAX_DIGITS).then(|| U256::from_str_radix(digits, 10).ok()).flatten();
        amount.map(Self).ok_or_else(|| format!("{} digits, at most 2^256 - 1", digits.len()))
    }
}

impl TryFrom<Value> for TimeoutSeconds {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let seconds = match &value {
            Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            other => other.as_u64(),
        };
        let seconds = seconds.ok_or_else(|| must_be(&value, "a whole number"))?;
        if (1..=MAX_TIMEOUT_SECONDS).contains(&seconds) {
            return Ok(Self(seconds));
        }
        Err(format!("{seconds} must be 1 to {MAX_TIMEOUT_SECONDS}"))
    }
}

impl TryFrom<Value> for Decimal {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(must_be(&other, "a decimal number in a string, 0 to 100")),
        }
    }
}

impl TryFrom<Value> for Expected {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        match &value {
            Value::String(text) if is_zero(text) => Ok(Self(None)),
            Value::Number(number) if number.as_u64() == Some(0) => Ok(Self(None)),
            _ => Amount::try_from(value).map(|amount| Self(Some(amount.0))),
        }
    }
}

/// Why a fee is refused.
const NO_FEE: &str = "0: no fee for an affiliate is taken";

impl TryFrom<Value> for NoFee {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match &value {
            Value::String(text) if text.bytes().all(|byte| byte == b'0') => Ok(Self),
            Value::Number(number) if number.as_u64() == Some(0) => Ok(Self),
            Value::Null => Ok(Self),
            _ => Err(must_be(&value, NO_FEE)),
        }
    }
}

impl TryFrom<Map<String, Value>> for NoAffiliates {
    type Error = String;

    fn try_from(chains: Map<String, Value>) -> Result<Self, String> {
        for (chain, about) in chains {
            for affiliate in about["affiliates"].as_array().into_iter().flatten() {
                let fee = NoFee::try_from(affiliate["basis_points_fee"].clone());
                fee.map_err(|why| {
                    format!("basis_points_fee of {}: {why}", chain::truncated(&chain, EXCERPT))
                })?;
            }
        }
        Ok(Self)
    }
}

impl TryFrom<Value> for Unsupported {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Err(must_be(&value, "left out: it is not supported"))
    }
}

fn must_be(value: &Value, must: &str) -> String {
    format!("{} must be {must}", chain::truncated(&value.to_string(), EXCERPT))
}

fn is_json(media: &str) -> bool {
    let media = media.to_ascii_lowercase();
    media == "application/json" || (media.starts_with("application/") && media.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(value: impl Into<Value>) -> Result<U256, String> {
        Amount::try_from(value.into()).map(|amount| amount.0)
    }

    #[test]
    fn amounts_are_whole_positive_and_fit_256_bits() {
        assert_eq!(amount("0012"), Ok(U256::from(12)));
        assert_eq!(amount(7), Ok(U256::from(7)));
        assert_eq!(amount(U256::MAX.to_string()), Ok(U256::MAX));
        for bad in ["", "-1", "+1", "1.5", "1e6", "0x10", " 1", "0", "000", "１"] {
            assert!(amount(bad).is_err(), "{bad}");
        }
        for bad in [Value::from(-1), Value::from(1.5), Value::from(true), Value::from(vec![1])] {
            assert!(amount(bad.clone()).unwrap_err().contains("must be a decimal integer"), "{bad}");
        }
        assert_eq!(amount("9".repeat(400)).unwrap_err(), "400 digits, at most 2^256 - 1");
        assert!(amount("9".repeat(78)).unwrap_err().contains("at most 2^256 - 1"));
    }
}
