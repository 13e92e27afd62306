//! Raw values of settings with their source, and configuration errors.
//!
//! # Invariants
//! * The same code parses values of every source.
//! * An error names the source, the setting and the allowed values. It never repeats credentials of a URL.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::keys::Key;

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment,
    Flag,
}

/// Values by the name of their setting.
pub(crate) type Values = BTreeMap<&'static str, Value>;

/// One or more texts and their source.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) texts: Vec<String>,
    pub(crate) source: Source,
}

/// An invalid setting. The program exits with the code of wrong usage.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{place}: {reason}")]
    Bad { place: String, reason: String },
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("`{name}` is not set: give --{flag}, {env} or `{name}` in the file")]
    Missing { name: &'static str, flag: &'static str, env: &'static str },
}

impl Value {
    /// A value from flags or the environment, where lists are separated by commas.
    pub(crate) fn split(key: &Key, texts: impl IntoIterator<Item = String>, source: Source) -> Self {
        let mut parts = Vec::new();
        for text in texts {
            if key.many {
                parts.extend(text.split(',').map(|part| part.trim().to_owned()));
            } else {
                parts.push(text);
            }
        }
        Self { texts: parts, source }
    }

    /// Every text, parsed.
    pub(crate) fn parse_all<T: FromStr<Err: fmt::Display>>(&self, key: &Key) -> Result<Vec<T>, Error> {
        let parse = |text: &String| text.parse().map_err(|error: T::Err| self.bad(key, error.to_string()));
        self.texts.iter().map(parse).collect()
    }

    /// The one text, parsed.
    pub(crate) fn parse<T: FromStr<Err: fmt::Display>>(&self, key: &Key) -> Result<T, Error> {
        match <[T; 1]>::try_from(self.parse_all(key)?) {
            Ok([value]) => Ok(value),
            Err(values) => Err(self.bad(key, format!("one value is needed, not {}", values.len()))),
        }
    }

    /// The error for an invalid value. `reason` repeats the value unless it is secret.
    pub(crate) fn bad(&self, key: &Key, reason: String) -> Error {
        Error::Bad { place: self.place(key), reason }
    }

    fn place(&self, key: &Key) -> String {
        match &self.source {
            Source::Default => format!("the default of `{}`", key.name),
            Source::File { path, line } => format!("{} line {line}: `{}`", path.display(), key.name),
            Source::Environment => format!("environment variable {}", key.env),
            Source::Flag => format!("--{}", key.flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::known;
    use super::*;

    #[test]
    fn several_values_are_separated_by_commas_and_repetition() {
        let key = known("comet");
        let value = Value::split(key, ["a, b".to_owned(), "c".to_owned()], Source::Flag);
        assert_eq!(value.texts, ["a", "b", "c"]);
        let one = Value::split(known("log"), ["info,ingest=debug".to_owned()], Source::Flag);
        assert_eq!(one.texts, ["info,ingest=debug"]);
    }

    #[test]
    fn a_bad_value_is_named_with_its_place() {
        let key = known("look_ahead");
        let said = |source| {
            let value = Value { texts: vec!["x".to_owned()], source };
            value.parse::<u64>(key).unwrap_err().to_string()
        };
        let file = Source::File { path: "cairn.toml".into(), line: 3 };
        assert!(said(file).starts_with("cairn.toml line 3: `look_ahead`: "));
        assert!(said(Source::Environment).starts_with("environment variable CAIRN_LOOK_AHEAD: "));
        assert!(said(Source::Flag).starts_with("--look-ahead: "));
    }
}
