//! The configuration file: TOML with the settings' names.
//!
//! # Invariants
//! * An unknown key is an error with file, line and the most similar known key.
//! * A value of any TOML type is converted to the text of a flag, so that the same code parses both.
//! * No error repeats a line of the file, which may contain a password.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::keys::{self, KEYS};
use super::value::{Error, Source, Value, Values};

/// The settings of the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Values, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::File { path: path.to_owned(), reason: error.to_string() })?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Values, Error> {
    let bad = |error: toml::de::Error| Error::File { path: path.to_owned(), reason: syntax(text, &error) };
    let document = DeTable::parse(text).map_err(bad)?;
    let mut reader = Reader { path, text, values: Values::new() };
    reader.table("", document.get_ref())?;
    Ok(reader.values)
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

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    values: Values,
}

impl Reader<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) -> Result<(), Error> {
        for (key, value) in table {
            let name = format!("{section}{}", key.get_ref());
            let line = self.line(key.span().start);
            if let DeValue::Table(inner) = value.get_ref()
                && section.is_empty()
                && KEYS.iter().any(|key| key.name.starts_with(&format!("{name}.")))
            {
                self.table(&format!("{name}."), inner)?;
                continue;
            }
            let Some(key) = keys::find(&name) else { return Err(self.unknown(&name, line)) };
            let source = Source::File { path: self.path.to_owned(), line };
            let value = match value.get_ref() {
                // Each element is one value; commas do not split it.
                DeValue::Array(items) if key.many => {
                    let texts = items.iter().map(scalar).collect::<Option<_>>();
                    Value { texts: texts.ok_or_else(|| self.shape(&name, line))?, source }
                }
                _ => Value::split(key, [scalar(value).ok_or_else(|| self.shape(&name, line))?], source),
            };
            self.values.insert(key.name, value);
        }
        Ok(())
    }

    fn unknown(&self, name: &str, line: usize) -> Error {
        let similarity = |known: &str| strsim::jaro_winkler(&name.replace('-', "_"), known);
        let nearest = KEYS.iter().max_by(|a, b| similarity(a.name).total_cmp(&similarity(b.name)));
        let hint =
            nearest.map_or_else(String::new, |key| format!("; the nearest known one is `{}`", key.name));
        self.bad(name, line, &format!("there is no such setting{hint}"))
    }

    fn shape(&self, name: &str, line: usize) -> Error {
        let many = keys::find(name).is_some_and(|key| key.many);
        let wanted = if many { "a text or an array of texts" } else { "a text, a number or true or false" };
        self.bad(name, line, &format!("the value must be {wanted}"))
    }

    fn bad(&self, name: &str, line: usize, reason: &str) -> Error {
        Error::Bad {
            place: format!("{} line {line}: `{name}`", self.path.display()),
            reason: reason.to_owned(),
        }
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }
}

/// The value as the text of a flag.
fn scalar(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(integer(number)),
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
        parse("cairn.toml".as_ref(), text).unwrap()[name].texts.clone()
    }

    fn refused(text: &str) -> String {
        parse("cairn.toml".as_ref(), text).unwrap_err().to_string()
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
    fn a_line_with_a_mistake_is_named_and_not_repeated() {
        for line in [
            "comet = [\"https://me:hunter2@node\"",
            "comet = \"https://me:hunter2@node",
            "comet = https://me:hunter2@node",
            "comet = \"a\" \"https://me:hunter2@node\"",
            "rest = \"https://me:hunter2@node\"",
        ] {
            let said = refused(&format!("# ä\nrest = \"a\"\n{line}\n"));
            assert!(said.starts_with("cairn.toml: line 3, column ") || said.contains("line 4"), "{said}");
            assert!(!said.contains("hunter2") && !said.contains('\n'), "{said}");
        }
    }
}
