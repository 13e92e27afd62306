//! Texts of settings by name, each with its source, and configuration errors.
//!
//! # Invariants
//! * An error contains the source, the setting and the allowed values. It never repeats credentials of a URL.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use clap::{Arg, ArgAction};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
            Self::Environment(name) => write!(f, "{name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// Values by the name of their setting.
pub(crate) type Values = BTreeMap<String, Value>;

/// One or more texts and their source.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) texts: Vec<String>,
    pub(crate) source: Source,
}

/// An invalid setting. The program exits with the code of wrong usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Error(pub(crate) String);

/// The flag of a setting, without the dashes.
pub(super) fn flag_of(name: &str) -> String {
    name.replace(['_', '.'], "-")
}

/// The environment variable of a setting.
pub(super) fn env_of(name: &str) -> String {
    format!("CAIRN_{}", name.replace('.', "_").to_uppercase())
}

/// The error for a required setting that is not set.
pub(crate) fn missing(name: &str) -> Error {
    missing_by(name, &format!("--{}", flag_of(name)))
}

/// The same, of a command on which the flag has other names.
pub(crate) fn missing_by(name: &str, flag: &str) -> Error {
    Error(format!("`{name}` is not set: give {flag}, {} or `{name}` in the file", env_of(name)))
}

/// The error for the invalid value of `name`. `reason` repeats the value unless it is secret.
pub(crate) fn bad(values: &Values, name: &str, reason: impl fmt::Display) -> Error {
    match values.get(name).map(|value| &value.source) {
        Some(source @ (Source::Environment(_) | Source::Flag(_))) => Error(format!("{source}: {reason}")),
        Some(source) => Error(format!("{source}: `{name}`: {reason}")),
        None => Error(format!("`{name}`: {reason}")),
    }
}

/// The values in a text from a flag, a variable or the file, where commas separate the elements of a list.
pub(super) fn split(arg: &Arg, text: &str) -> Vec<String> {
    match arg.get_action() {
        ArgAction::Append => text.split(',').map(|part| part.trim().to_owned()).collect(),
        _ => vec![text.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_are_separated_by_commas() {
        let list = Arg::new("comet").action(ArgAction::Append);
        assert_eq!(split(&list, "a, b"), ["a", "b"]);
        assert_eq!(split(&Arg::new("log"), "info,ingest=debug"), ["info,ingest=debug"]);
    }

    #[test]
    fn an_invalid_value_is_reported_with_its_place() {
        let message = |source| {
            let value = Value { texts: vec!["x".to_owned()], source };
            bad(&Values::from([("look_ahead".to_owned(), value)]), "look_ahead", "bad").to_string()
        };
        let file = Source::File { path: "cairn.toml".into(), line: 3 };
        assert_eq!(message(file), "cairn.toml line 3: `look_ahead`: bad");
        assert_eq!(message(Source::Environment("CAIRN_LOOK_AHEAD".to_owned())), "CAIRN_LOOK_AHEAD: bad");
        assert_eq!(message(Source::Flag("look-ahead".to_owned())), "--look-ahead: bad");
    }
}
