//! Serde forms of texts, numbers and names, in files and in the fingerprint.

use std::fmt::{self, Display};
use std::str::FromStr;

use chain::{U256, Vm};
use serde::de::{Deserialize as _, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize as _, Serializer};

use crate::decimal;

/// Serializes a value by its `Display` form.
pub(crate) fn display<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serializes an optional amount as a decimal string.
#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
pub(crate) fn display_option<S: Serializer>(value: &Option<U256>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|amount| amount.to_string()).serialize(serializer)
}

/// Deserializes a text that is not empty.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Err(Error::invalid_value(Unexpected::Str(""), &"a text that is not empty"));
    }
    Ok(text)
}

/// Deserializes a text that is not empty, of an optional key.
pub(crate) fn text_option<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text(from).map(Some)
}

/// Deserializes the name of a virtual machine.
pub(crate) fn vm<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vm>, D::Error> {
    let name = String::deserialize(from)?;
    let refused = |_| Error::invalid_value(Unexpected::Str(&name), &"one of evm, move, wasm, none");
    Vm::from_str(&name).map(Some).map_err(refused)
}

/// Deserializes a decimal number from a number or a text.
pub(crate) fn price<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = from.deserialize_any(Number)?;
    if decimal::is_plain(&text) {
        return Ok(text);
    }
    Err(Error::invalid_value(Unexpected::Other(&format!("`{text}`")), &"a decimal number such as \"0.15\""))
}

/// [`price`] of an optional key.
pub(crate) fn price_option<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    price(from).map(Some)
}

/// Deserializes an amount in base units from a number or a text.
pub(crate) fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<U256, D::Error> {
    let text = from.deserialize_any(Number)?;
    let digits =
        Some(&text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty());
    digits.and_then(|digits| U256::from_str_radix(digits, 10).ok()).ok_or_else(|| {
        let must = "a whole number of base units below 2^256, as a number or as a text";
        Error::invalid_value(Unexpected::Other(&format!("`{text}`")), &must)
    })
}

/// [`amount`] of an optional key.
pub(crate) fn amount_option<'de, D: Deserializer<'de>>(from: D) -> Result<Option<U256>, D::Error> {
    amount(from).map(Some)
}

/// Deserializes a share in hundredths of a percent.
pub(crate) fn basis_points<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let share = u32::deserialize(from)?;
    if share > 10_000 {
        let must = "at most 10000: hundredths of a percent";
        return Err(Error::invalid_value(Unexpected::Unsigned(share.into()), &must));
    }
    Ok(share)
}

/// Visitor of a number or a text, which gives its digits without an exponent.
struct Number;

macro_rules! visits {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<String, E> {
            Ok(value.to_string())
        })+
    };
}

impl Visitor<'_> for Number {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or its digits as a text")
    }

    visits!(visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price_of(json: &str) -> Option<String> {
        price(&mut serde_json::Deserializer::from_str(json)).ok()
    }

    #[test]
    fn exponents_are_written_out() {
        for (given, wanted) in [
            ("\"0.1500\"", "0.1500"),
            ("5000000", "5000000"),
            ("1e-9", "0.000000001"),
            ("1.5e-3", "0.0015"),
            ("12.5E1", "125"),
            ("5e6", "5000000"),
            ("1e+2", "100"),
            ("0.15", "0.15"),
        ] {
            assert_eq!(price_of(given).as_deref(), Some(wanted), "{given}");
        }
        for given in ["-1", "-0.5", "1e200", "\"1e9\"", "\"\"", "true", "null", "[]"] {
            assert_eq!(price_of(given), None, "{given}");
        }
    }
}
