//! Lenient serde deserializers for node JSON: strings (borrowed if they have no escapes), numbers as JSON numbers or
//! decimal strings, and `null` for empty values (Go encodes a nil list and a nil string so).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A JSON string, borrowed if it has no escapes; `null` reads as the empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct JsonText<'a>(Cow<'a, str>);

impl<'a> From<&'a str> for JsonText<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for JsonText<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl JsonText<'_> {
    /// True if there is no text.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Changes ASCII letters to lower case; copies a borrowed text only if it has others.
    pub(crate) fn make_ascii_lowercase(&mut self) {
        if self.bytes().any(|byte| byte.is_ascii_uppercase()) {
            self.0.to_mut().make_ascii_lowercase();
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Borrowed<'b>(#[serde(borrow)] Cow<'b, str>);
        let text: Option<Borrowed<'a>> = Option::deserialize(from)?;
        Ok(Self(text.map(|text| text.0).unwrap_or_default()))
    }
}

impl Deref for JsonText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for JsonText<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl PartialEq<str> for JsonText<'_> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for JsonText<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl fmt::Display for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// Bytes in hex of any case; `null` reads as no bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HexBytes(pub Vec<u8>);

impl<'de> Deserialize<'de> for HexBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = JsonText::deserialize(from)?;
        hex::decode(&*text)
            .map(Self)
            .map_err(|error| D::Error::custom(format!("{:?} is not hex: {error}", &*text)))
    }
}

impl Deref for HexBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes in base64; `null` reads as no bytes.
pub(crate) fn base64<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = JsonText::deserialize(from)?;
    BASE64
        .decode(text.as_bytes())
        .map_err(|error| D::Error::custom(format!("{:?} is not base64: {error}", &*text)))
}

/// A list; `null` is the empty one.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A whole number, as a JSON number or a decimal string; `null` is 0.
pub(crate) fn number<'de, D, N>(from: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Default + FromStr + TryFrom<i64> + TryFrom<u64>,
{
    from.deserialize_any(NumberVisitor(PhantomData))
}

struct NumberVisitor<N>(PhantomData<N>);

impl<N: Default + FromStr + TryFrom<i64> + TryFrom<u64>> Visitor<'_> for NumberVisitor<N> {
    type Value = N;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number that fits {}, or one as a decimal string", std::any::type_name::<N>())
    }

    fn visit_unit<E: Error>(self) -> Result<N, E> {
        Ok(N::default())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<N, E> {
        N::try_from(number).map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<N, E> {
        N::try_from(number).map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<N, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Default, Deserialize)]
    #[serde(default, bound(deserialize = "'de: 'a"))]
    struct Sample<'a> {
        one: JsonText<'a>,
        #[serde(deserialize_with = "list")]
        many: Vec<JsonText<'a>>,
        #[serde(deserialize_with = "number")]
        count: i64,
        #[serde(deserialize_with = "list")]
        list: Vec<u8>,
    }

    #[test]
    fn plain_strings_are_borrowed_and_escaped_ones_are_read() {
        let sample: Sample<'_> = serde_json::from_str(r#"{"one":"plain","many":["a\u003cb","c"]}"#).unwrap();
        assert!(matches!(sample.one.0, Cow::Borrowed("plain")));
        assert!(
            matches!(sample.many[..], [JsonText(Cow::Owned(ref a)), JsonText(Cow::Borrowed("c"))] if a == "a<b")
        );
    }

    #[test]
    fn null_and_absent_members_are_empty() {
        for text in ["{}", r#"{"one":null,"many":null,"count":null,"list":null}"#] {
            let sample: Sample<'_> = serde_json::from_str(text).unwrap();
            assert!(sample.one.is_empty() && sample.many.is_empty() && sample.list.is_empty(), "{text}");
            assert_eq!(sample.count, 0);
        }
    }

    #[test]
    fn numbers_are_read_in_both_forms_and_refused_when_they_do_not_fit() {
        for (text, count) in [(r#"{"count":"-7"}"#, -7), (r#"{"count":-7}"#, -7), (r#"{"count":7}"#, 7)] {
            assert_eq!(serde_json::from_str::<Sample<'_>>(text).unwrap().count, count);
        }
        for text in [r#"{"count":""}"#, r#"{"count":1.5}"#, r#"{"count":18446744073709551615}"#] {
            assert!(serde_json::from_str::<Sample<'_>>(text).is_err(), "{text}");
        }
    }
}
