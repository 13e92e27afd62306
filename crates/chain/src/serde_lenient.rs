//! Lenient serde deserializers for node JSON: strings (borrowed if they have no escapes), numbers as JSON numbers or
//! decimal strings, and `null` for empty values (Go encodes a nil list and a nil string so).

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A string; `null` is the empty one.
pub(crate) fn text<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Cow<'a, str>, D::Error> {
    Ok(optional_text(from)?.unwrap_or_default())
}

/// A string or `null`.
pub(crate) fn optional_text<'de: 'a, 'a, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Cow<'a, str>>, D::Error> {
    from.deserialize_option(TextVisitor(PhantomData))
}

/// A list of strings; `null` is the empty one.
pub(crate) fn texts<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Vec<Cow<'a, str>>, D::Error> {
    let texts: Vec<Text<'a>> = list(from)?;
    Ok(texts.into_iter().map(|text| text.0).collect())
}

/// A list; `null` is the empty one.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A whole number, written as one or as a decimal string; `null` is 0.
pub(crate) fn number<'de, D, N>(from: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Default + FromStr + TryFrom<i64> + TryFrom<u64>,
{
    from.deserialize_any(NumberVisitor(PhantomData))
}

/// [`text`] as a type, for where serde wants one.
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from).map(Text)
    }
}

struct TextVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for TextVisitor<'a> {
    type Value = Option<Cow<'a, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or null")
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }
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

    #[derive(Deserialize)]
    struct Sample<'a> {
        #[serde(borrow, default, deserialize_with = "text")]
        one: Cow<'a, str>,
        #[serde(borrow, default, deserialize_with = "texts")]
        many: Vec<Cow<'a, str>>,
        #[serde(default, deserialize_with = "number")]
        count: i64,
        #[serde(default, deserialize_with = "list")]
        list: Vec<u8>,
    }

    #[test]
    fn plain_strings_are_borrowed_and_escaped_ones_are_read() {
        let sample: Sample<'_> = serde_json::from_str(r#"{"one":"plain","many":["a\u003cb","c"]}"#).unwrap();
        assert!(matches!(sample.one, Cow::Borrowed("plain")));
        assert!(matches!(sample.many[..], [Cow::Owned(ref a), Cow::Borrowed("c")] if a == "a<b"));
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
