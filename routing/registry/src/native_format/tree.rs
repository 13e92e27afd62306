//! Common syntax tree of TOML and JSON files, with line numbers of keys where the format provides them.
//!
//! # Invariants
//!
//! * A key occurs once per table.
//! * Numbers stay strings, so that no digits are lost.
//! * No error quotes a line of the file, which may contain a secret.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use toml::de::{DeInteger, DeTable, DeValue};

use crate::problem::LoadError;

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Item {
    /// From 1; `None` in JSON.
    pub(super) line: Option<usize>,
    pub(super) value: Value,
}

/// Type of a value.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// As written, decimal.
    Number(String),
    Flag(bool),
    List(Vec<Item>),
    Table(Vec<(String, Item)>),
    /// TOML's dates, JSON's null.
    Other,
}

/// Parses a file by its name's end: `.json` is JSON, all else TOML.
pub(super) fn parse(file: &Arc<str>, text: &str) -> Result<Item, LoadError> {
    let bad = |reason: String| LoadError::Syntax { file: file.to_string(), reason };
    if file.ends_with(".json") {
        return serde_json::from_str(text).map_err(|error| bad(error.to_string()));
    }
    let lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|error| bad(lines.syntax(text, &error)))?;
    Ok(Item { line: None, value: lines.table(document.get_ref()) })
}

/// Where each line of a text begins.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let after = |(at, _)| at + 1;
        Self(std::iter::once(0).chain(text.match_indices('\n').map(after)).collect())
    }

    fn of(&self, offset: usize) -> usize {
        self.0.partition_point(|&begin| begin <= offset)
    }

    /// Error without the line's text, which the parser's own message would quote.
    fn syntax(&self, text: &str, error: &toml::de::Error) -> String {
        let message = error.message();
        let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
            return message.to_owned();
        };
        let column = 1 + before.rsplit('\n').next().map_or(0, |start| start.chars().count());
        format!("line {}, column {column}: {message}", self.of(before.len()))
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let field = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            let line = self.of(key.span().start);
            (name.clone().into_owned(), Item { line: Some(line), value: self.value(value.get_ref()) })
        };
        Value::Table(table.iter().map(field).collect())
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Integer(number) => Value::Number(decimal(number)),
            DeValue::Float(number) => Value::Number(number.as_str().replace('_', "")),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(_) => Value::Other,
            DeValue::Table(table) => self.table(table),
            DeValue::Array(items) => {
                let item = |item: &toml::Spanned<DeValue<'_>>| Item {
                    line: Some(self.of(item.span().start)),
                    value: self.value(item.get_ref()),
                };
                Value::List(items.iter().map(item).collect())
            }
        }
    }
}

/// In decimal, whatever its base in the file; one that is too large stays as it is and is refused as a value.
fn decimal(number: &DeInteger<'_>) -> String {
    let value = i128::from_str_radix(number.as_str(), number.radix());
    value.map_or_else(|_| number.to_string(), |value| value.to_string())
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Tree).map(|value| Self { line: None, value })
    }
}

struct Tree;

impl<'de> Visitor<'de> for Tree {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut table: Vec<(String, Item)> = Vec::new();
        while let Some((key, item)) = fields.next_entry::<String, Item>()? {
            if table.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            table.push((key, item));
        }
        Ok(Value::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_mistake_is_named_and_not_repeated() {
        let line = "headers = { authorization = \"Bearer hunter2\"";
        let refused = |name: &str, text: &str| parse(&name.into(), text).unwrap_err().to_string();
        for text in [format!("# ä\n[node]\n{line}\n"), format!("# ä\nx = 1\n{line} }} x\n")] {
            let said = refused("nodes.toml", &text);
            assert!(said.starts_with("nodes.toml cannot be parsed: line 3, column "), "{said}");
            assert!(!said.contains("hunter2") && !said.contains('\n'), "{said}");
        }
        let said = refused("nodes.json", "{\n\"authorization\": \"Bearer hunter2\" x");
        assert!(said.contains("line 2 column") && !said.contains("hunter2"), "{said}");
    }
}
