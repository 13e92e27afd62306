//! Table reader that rejects unknown keys.
//!
//! # Invariants
//!
//! * The known keys are exactly those that the code reads.
//! * An error does not stop the reading, so that a misspelt key is reported as unknown and not as missing.

use std::collections::BTreeSet;

use chain::U256;

use super::tree::{Item, Value};
use super::variables::{self, Environment};
use crate::decimal;
use crate::problem::{Place, Problem};

/// A table whose keys are being read.
pub(super) struct Table<'a> {
    place: Place,
    fields: &'a [(String, Item)],
    known: BTreeSet<&'static str>,
    /// The first error; later ones are reported after it is fixed.
    bad: Option<Problem>,
    environment: Environment<'a>,
    secrets: Vec<String>,
}

impl<'a> Table<'a> {
    /// Reads the table `item` with `parts`, or returns its first error.
    pub(super) fn read<T>(
        item: &'a Item,
        place: Place,
        environment: Environment<'a>,
        parts: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Problem> {
        let Value::Table(fields) = &item.value else { return Err(place.error("must be a table")) };
        let mut table =
            Self { place, fields, known: BTreeSet::new(), bad: None, environment, secrets: Vec::new() };
        let read = parts(&mut table);
        let unknown = fields.iter().find(|(key, _)| !table.known.contains(key.as_str()));
        match unknown.map(|(key, item)| table.unknown(key, item)).or(table.bad) {
            Some(bad) => Err(bad),
            None => Ok(read),
        }
    }

    /// Where the table is.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Says that something is wrong with the value of `key`.
    pub(super) fn refuse(&mut self, key: &str, what: impl Into<String>) {
        let place = self.fields.iter().find(|(name, _)| name == key);
        let place = place.map_or_else(|| self.at(key, None), |(_, item)| self.at(key, item.line));
        self.bad.get_or_insert_with(|| place.error(what));
    }

    /// A text; `None` if it is not there.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.value(key, "a text that is not empty", |value| match value {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// A text that must be there. Without it the table is refused, and what is returned is not used.
    pub(super) fn needed(&mut self, key: &'static str) -> String {
        let text = self.text(key);
        if text.is_none() && !self.fields.iter().any(|(name, _)| name == key) {
            let missing = || self.place.error(format!("`{key}` is missing: it must be given"));
            self.bad.get_or_insert_with(missing);
        }
        text.unwrap_or_default()
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.value(key, "true or false", |value| match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        })
    }

    /// A whole number within the bounds of `T`.
    pub(super) fn number<T: std::str::FromStr>(&mut self, key: &'static str) -> Option<T> {
        self.value(key, "a whole number, not below 0 and not too large", |value| match value {
            Value::Number(number) if decimal::is_plain(number) => number.parse().ok(),
            _ => None,
        })
    }

    /// An amount in base units: a whole number, or its digits as a text.
    pub(super) fn amount(&mut self, key: &'static str) -> Option<U256> {
        self.value(key, "a whole number of base units below 2^256, as a number or as a text", |value| {
            match value {
                Value::Number(digits) | Value::Text(digits)
                    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
                {
                    U256::from_str_radix(digits, 10).ok()
                }
                _ => None,
            }
        })
    }

    /// A decimal number, as a number or as a text.
    pub(super) fn decimal(&mut self, key: &'static str) -> Option<String> {
        self.value(key, "a decimal number such as \"0.15\"", |value| match value {
            Value::Number(number) => decimal::plain(number),
            Value::Text(text) => decimal::is_plain(text).then(|| text.clone()),
            _ => None,
        })
    }

    /// A name out of a list.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.value(key, &format!("one of {}", names.join(", ")), |value| match value {
            Value::Text(text) => choices.iter().find(|(name, _)| name == text).map(|(_, choice)| *choice),
            _ => None,
        })
    }

    /// Texts.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        self.value(key, "an array of texts", |value| match value {
            Value::List(items) => items.iter().map(as_text).collect(),
            _ => None,
        })
    }

    /// Addresses of nodes: texts in which `${NAME}` is replaced by the environment.
    pub(super) fn addresses(&mut self, key: &'static str) -> Option<Vec<String>> {
        let texts = self.texts(key)?;
        let expanded: Result<_, _> =
            texts.iter().map(|text| variables::expand(text, self.environment)).collect();
        match expanded {
            Ok(addresses) => {
                let addresses: Vec<String> = addresses;
                let with_variable = texts.iter().zip(&addresses).filter(|(text, _)| text.contains("${"));
                self.secrets.extend(with_variable.map(|(_, address)| address.clone()));
                Some(addresses)
            }
            Err(error) => {
                self.refuse(key, error);
                None
            }
        }
    }

    /// The addresses read so far that hold a variable.
    pub(super) fn secrets(&mut self) -> Vec<String> {
        std::mem::take(&mut self.secrets)
    }

    /// A table within this one.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        parts: impl FnOnce(&mut Table<'a>) -> T,
    ) -> Option<T> {
        self.known.insert(key);
        let (_, item) = self.fields.iter().find(|(name, _)| name == key)?;
        let place = self.at(key, item.line);
        let read = Table::read(item, place, self.environment, parts);
        self.kept(read)
    }

    /// An array of tables; empty if it is not there.
    pub(super) fn tables<T>(
        &mut self,
        key: &'static str,
        mut parts: impl FnMut(&mut Table<'a>) -> T,
    ) -> Vec<T> {
        self.known.insert(key);
        let Some((_, item)) = self.fields.iter().find(|(name, _)| name == key) else { return Vec::new() };
        let Value::List(items) = &item.value else {
            self.refuse(key, format!("must be an array of tables: write `[[{key}]]`"));
            return Vec::new();
        };
        let mut read = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut place = self.at(key, item.line);
            if item.line.is_none() {
                place.key = format!("{}[{index}]", place.key);
            }
            let part = Table::read(item, place, self.environment, &mut parts);
            read.extend(self.kept(part));
        }
        read
    }

    /// The parsed value; an error in it is an error of this table.
    fn kept<T>(&mut self, read: Result<T, Problem>) -> Option<T> {
        match read {
            Ok(part) => Some(part),
            Err(bad) => {
                self.bad.get_or_insert(bad);
                None
            }
        }
    }

    fn value<T>(
        &mut self,
        key: &'static str,
        must: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        self.known.insert(key);
        let (_, item) = self.fields.iter().find(|(name, _)| name == key)?;
        let value = read(&item.value);
        if value.is_none() {
            self.refuse(key, format!("must be {must}"));
        }
        value
    }

    fn at(&self, key: &str, line: Option<usize>) -> Place {
        let name =
            if self.place.key.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place.key) };
        Place { file: self.place.file.clone(), line: line.or(self.place.line), key: name }
    }

    fn unknown(&self, key: &str, item: &Item) -> Problem {
        let similarity = |known: &str| strsim::jaro_winkler(&key.replace('-', "_"), known);
        let nearest = self.known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
        let hint = nearest.map_or_else(String::new, |known| format!("; the nearest known one is `{known}`"));
        self.at(key, item.line).error(format!("there is no such key{hint}"))
    }
}

fn as_text(item: &Item) -> Option<String> {
    match &item.value {
        Value::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}
