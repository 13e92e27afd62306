//! The configuration file: TOML with the settings' names.
//!
//! # Invariants
//! * An unknown key is an error with file, line and the most similar known key.
//! * A value of any TOML type is converted to the text of a flag, so that the same code parses both.
//! * No error repeats a line of the file, which may contain a password.

use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::values::{Error, Source, Value, Values, split};

/// The settings of the file at `path`; `known` are all existing settings.
pub(super) fn read(path: &Path, known: &[Arg]) -> Result<Values, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error(format!("{}: {error}", path.display())))?;
    parse(path, &text, known)
}

fn parse(path: &Path, text: &str, known: &[Arg]) -> Result<Values, Error> {
    let document = DeTable::parse(text)
        .map_err(|error| Error(format!("{}: {}", path.display(), syntax(text, &error))))?
        .into_inner();
    let mut values = Values::new();
    for (key, value) in entries(document, known) {
        let line = 1 + text[..key.span().start].matches('\n').count();
        let source = Source::File { path: path.to_owned(), line };
        let name = key.into_inner();
        let bad = |reason: String| Error(format!("{source}: `{name}`: {reason}"));
        let arg = known.iter().find(|arg| arg.get_id() == &name).ok_or_else(|| bad(unknown(&name, known)))?;
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let texts = match value {
            // Each element is one value; commas do not split it.
            DeValue::Array(items) if is_list => {
                items.into_iter().map(|item| scalar(item.into_inner())).collect::<Option<_>>()
            }
            value => scalar(value).map(|text| split(arg, &text)),
        };
        let accepted =
            if is_list { "a text or an array of texts" } else { "a text, a number or true or false" };
        let texts = texts.ok_or_else(|| bad(format!("the value must be {accepted}")))?;
        values.insert(name, Value { texts, source });
    }
    Ok(values)
}

/// The keys of the file with their positions; those of a section as `section.key`.
fn entries<'a>(document: DeTable<'a>, known: &[Arg]) -> Vec<(Spanned<String>, DeValue<'a>)> {
    let mut entries = Vec::new();
    for (key, value) in document {
        let prefix = format!("{}.", key.get_ref());
        match value.into_inner() {
            DeValue::Table(section) if known.iter().any(|arg| arg.get_id().as_str().starts_with(&prefix)) => {
                let name = |key: &Spanned<_>| Spanned::new(key.span(), format!("{prefix}{}", key.get_ref()));
                entries.extend(section.into_iter().map(|(key, value)| (name(&key), value.into_inner())));
            }
            value => entries.push((Spanned::new(key.span(), key.get_ref().to_string()), value)),
        }
    }
    entries
}

/// The reason why `name` is not a setting, with the most similar one.
pub(super) fn unknown(name: &str, known: &[Arg]) -> String {
    let similarity = |arg: &&Arg| strsim::jaro_winkler(&name.replace('-', "_"), arg.get_id().as_str());
    let nearest = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let hint = nearest.map(|arg| format!("; the nearest known one is `{}`", arg.get_id()));
    format!("there is no such setting{}", hint.unwrap_or_default())
}

/// Message and position. The error's own `Display` would repeat the line.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return message.to_owned();
    };
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.rsplit('\n').next().map_or(0, |start| start.chars().count());
    format!("line {line}, column {column}: {message}")
}

/// The value as the text of a flag.
fn scalar(value: DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.into_owned()),
        DeValue::Integer(number) => Some(integer(&number)),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Converts to decimal; a number that is too large stays as it is, and the parser of the setting rejects it.
fn integer(number: &DeInteger<'_>) -> String {
    let decimal = i128::from_str_radix(number.as_str(), number.radix());
    decimal.map_or_else(|_| number.to_string(), |number| number.to_string())
}
#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, name: &str) -> Vec<String> {
        parse("cairn.toml".as_ref(), text, &super::super::args()).unwrap()[name].texts.clone()
    }

    fn refused(text: &str) -> String {
        parse("cairn.toml".as_ref(), text, &super::super::args()).unwrap_err().to_string()
    }

    #[test]
    fn values_of_every_type_become_the_text_of_a_flag() {
        assert_eq!(texts("poll = \"2s\"", "poll"), ["2s"]);
        assert_eq!(texts("start_height = 0x1_0", "start_height"), ["16"]);
        assert_eq!(texts("internal_txs = false", "internal_txs"), ["false"]);
        assert_eq!(texts("comet = \"a,b\"", "comet"), ["a", "b"]);
        assert_eq!(texts("comet = [\"a\", \"b\"]", "comet"), ["a", "b"]);
        assert_eq!(texts("[pagination]\nempty_cursor = \"null\"", "pagination.empty_cursor"), ["null"]);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line_and_the_nearest_known_one() {
        assert_eq!(
            refused("data = \"d\"\n\nchain-id = \"x\""),
            "cairn.toml line 3: `chain-id`: there is no such setting; the nearest known one is `chain_id`"
        );
        assert!(refused("[pagination]\nempty_curser = \"\"").contains("line 2: `pagination.empty_curser`"));
        assert!(refused("[pagination]\nempty_curser = \"\"").ends_with("`pagination.empty_cursor`"));
        assert!(
            refused("[paginations]\nempty_cursor = \"\"").starts_with("cairn.toml line 1: `paginations`")
        );
        assert!(refused("[pagination.empty_cursor]\nx = 1").starts_with("cairn.toml line 1: "));
    }

    #[test]
    fn a_value_of_a_wrong_shape_is_refused() {
        assert!(refused("data = [\"d\"]").contains("must be a text, a number or true or false"));
        assert!(refused("comet = [[\"d\"]]").contains("must be a text or an array of texts"));
        assert!(refused("data = ").contains("line 1"));
        assert_eq!(refused("data = \"a\"\ndata = \"b\""), "cairn.toml: line 2, column 1: duplicate key");
    }

    #[test]
    fn an_invalid_line_is_reported_by_number_and_not_repeated() {
        for line in [
            "comet = [\"https://me:hunter2@node\"",
            "comet = \"https://me:hunter2@node",
            "comet = https://me:hunter2@node",
            "comet = \"a\" \"https://me:hunter2@node\"",
            "rest = \"https://me:hunter2@node\"",
        ] {
            let message = refused(&format!("# ä\nrest = \"a\"\n{line}\n"));
            assert!(
                message.starts_with("cairn.toml: line 3, column ") || message.contains("line 4"),
                "{message}"
            );
            assert!(!message.contains("hunter2") && !message.contains('\n'), "{message}");
        }
    }
}
