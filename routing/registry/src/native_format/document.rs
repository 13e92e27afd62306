//! Serde deserialization of a TOML or JSON file, with errors that name line, key, value and accepted values.
//!
//! # Invariants
//!
//! * A key occurs once per table.
//! * No error quotes a line of the file or a node address, which may contain a secret.
//! * An error is one line.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::draft::Located;
use crate::problem::{LoadError, Place};

/// A file whose syntax is valid.
pub(super) struct Document<'a> {
    file: &'a Arc<str>,
    text: &'a str,
    /// The values of a TOML file with their spans; JSON has no spans.
    toml: Option<DeValue<'a>>,
    /// Offset of each line.
    lines: Vec<usize>,
}

/// A step of a path: into a table.
pub(super) fn key(name: &str) -> Segment {
    Segment::Map { key: name.to_owned() }
}

/// A step of a path: into an array.
pub(super) fn index(index: usize) -> Segment {
    Segment::Seq { index }
}

impl<'a> Document<'a> {
    /// Parses a file as JSON if its name ends with `.json`, else as TOML.
    pub(super) fn parse(file: &'a Arc<str>, text: &'a str) -> Result<Self, LoadError> {
        let bad = |reason: String| LoadError::Syntax { file: file.to_string(), reason };
        if file.ends_with(".json") {
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
                .map_err(|error| bad(error.to_string()))?;
            return Ok(Self { file, text, toml: None, lines: Vec::new() });
        }
        let lines: Vec<_> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        // The parser's own message quotes the line.
        let reason = |error: toml::de::Error| match error.span().and_then(|span| text.get(..span.start)) {
            None => error.message().to_owned(),
            Some(before) => {
                let column = 1 + before.rsplit('\n').next().map_or(0, |start| start.chars().count());
                format!("line {}, column {column}: {}", line_at(&lines, before.len()), error.message())
            }
        };
        let toml = DeTable::parse(text).map_err(|error| bad(one_line(&reason(error))))?;
        Ok(Self { file, text, toml: Some(DeValue::Table(toml.into_inner())), lines })
    }

    /// Deserializes the file.
    pub(super) fn deserialize<T: DeserializeOwned>(&self) -> Result<T, LoadError> {
        let (path, line, message) = if let Some(DeValue::Table(table)) = self.toml.clone() {
            let toml = toml::Deserializer::from(Spanned::new(0..self.text.len(), table));
            match serde_path_to_error::deserialize(toml) {
                Ok(tables) => return Ok(tables),
                Err(error) => (error.path().clone(), None, error.inner().message().to_owned()),
            }
        } else {
            match serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(self.text)) {
                Ok(tables) => return Ok(tables),
                Err(error) => (error.path().clone(), Some(error.inner().line()), error.inner().to_string()),
            }
        };
        let path: Vec<_> = path.iter().cloned().collect();
        // The message of a JSON error ends with the line number.
        let message =
            line.and_then(|_| message.rsplit_once(" at line ")).map_or(&*message, |(message, _)| message);
        let place = self.place(&path);
        let place = Place { line: place.line.or(line), key: one_line(&place.key), ..place };
        Err(place.error(one_line(&explain(&path, message))).into())
    }

    /// Sets the places of the parts in the array `name` of the table at `path`.
    pub(super) fn locate<T>(&self, path: &[Segment], name: &str, parts: &mut [Located<T>]) {
        for (number, part) in parts.iter_mut().enumerate() {
            part.place = self.place(&[path, &[key(name), index(number)]].concat());
        }
    }

    /// The place of a value. The key has no array indexes if the line already identifies the element.
    pub(super) fn place(&self, path: &[Segment]) -> Place {
        let (mut name, mut line, mut value) = (String::new(), None, self.toml.as_ref());
        for segment in path {
            let inner = match segment {
                Segment::Seq { index } => {
                    if self.toml.is_none() {
                        name.extend(["[", &index.to_string(), "]"]);
                    }
                    value.and_then(|value| value.get(*index))
                }
                Segment::Map { key } => {
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(key);
                    value.and_then(|value| value.get(key.as_str()))
                }
                Segment::Enum { .. } | Segment::Unknown => continue,
            };
            value = inner.map(Spanned::get_ref);
            line = inner.map(|inner| line_at(&self.lines, inner.span().start)).or(line);
        }
        Place { line, ..Place::new(self.file, name) }
    }
}

/// The line of an offset, from 1.
fn line_at(lines: &[usize], offset: usize) -> usize {
    lines.partition_point(|&begin| begin <= offset)
}

/// Rewrites a message of serde: `unknown field`, `missing field`, `invalid type` and the like.
fn explain(path: &[Segment], message: &str) -> String {
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{field} is missing: it must be given");
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        return format!("the key {field} is there twice");
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    if found.starts_with("unknown field ") {
        let key = match path.last() {
            Some(Segment::Map { key }) => key.replace('-', "_"),
            _ => String::new(),
        };
        let similarity = |known: &&str| strsim::jaro_winkler(&key, known);
        let known = expected.split('`').skip(1).step_by(2);
        let nearest = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b))).unwrap_or_default();
        return format!("there is no such key; the nearest known one is `{nearest}`");
    }
    let found = ["invalid type: ", "invalid value: ", "unknown variant "]
        .into_iter()
        .find_map(|prefix| found.strip_prefix(prefix));
    let Some(found) = found else { return message.to_owned() };
    let accepted = match expected {
        "a string" => "a text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => format!("a whole number from 0 to {}", u64::MAX),
        "a sequence" if found == "map" => match path {
            [Segment::Map { key }] => format!("an array of tables: write `[[{key}]]`"),
            _ => "an array".to_owned(),
        },
        "a sequence" => "an array".to_owned(),
        _ if expected.starts_with("struct ") => "a table".to_owned(),
        _ => expected.replace('`', ""),
    };
    // A node address may contain a key or a password.
    if path.iter().any(|segment| matches!(segment, Segment::Map { key } if key == "endpoints")) {
        return format!("must be {accepted}");
    }
    format!("must be {accepted}, not {found}")
}

/// A text of the file within a message: without control characters, and bounded.
fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 400;
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_mistake_is_named_and_not_repeated() {
        let line = "headers = { authorization = \"Bearer hunter2\"";
        let refused =
            |name: &str, text: &str| Document::parse(&name.into(), text).map(|_| ()).unwrap_err().to_string();
        for text in [format!("# ä\n[node]\n{line}\n"), format!("# ä\nx = 1\n{line} }} x\n")] {
            let message = refused("nodes.toml", &text);
            assert!(message.starts_with("nodes.toml cannot be parsed: line 3, column "), "{message}");
            assert!(!message.contains("hunter2") && !message.contains('\n'), "{message}");
        }
        let message = refused("nodes.json", "{\n\"authorization\": \"Bearer hunter2\" x");
        assert!(message.contains("line 2 column") && !message.contains("hunter2"), "{message}");
    }
}
