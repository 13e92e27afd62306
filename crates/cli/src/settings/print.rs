//! TOML output of the effective settings and of the documented example file.
//!
//! # Invariants
//! * The output is a valid configuration file.
//! * Credentials and paths of URLs are masked.

use std::fmt::Write as _;

use super::keys::{KEYS, Key};
use super::value::{Source, Value, Values};

/// Columns of the example's comments.
const WIDTH: usize = 100;

/// The effective settings, each with its source.
pub(crate) fn effective(values: &Values) -> String {
    let line = |key: &Key| match (values.get(key.name), key.default) {
        (Some(value), _) => {
            format!("{} # {}", assignment(key, &shown(key, value)), place(key, &value.source))
        }
        (None, Some(default)) => format!("{} # default", assignment(key, &[default.to_owned()])),
        (None, None) => format!("# {} is not set", leaf(key)),
    };
    with_sections(|text, key| line_into(text, &line(key)))
}

/// The names of the settings that differ, whichever source gives them.
pub(crate) fn changed(before: &Values, after: &Values) -> Vec<&'static str> {
    let texts = |values: &Values, key: &Key| {
        let default = || key.default.map(|default| vec![default.to_owned()]);
        values.get(key.name).map(|value| value.texts.clone()).or_else(default)
    };
    KEYS.iter().filter(|key| texts(before, key) != texts(after, key)).map(|key| key.name).collect()
}

/// A configuration file with every setting: those that every operator gives, and the others as comments.
pub(crate) fn example() -> String {
    let intro = "# A configuration of cairn: every setting, with its default where it has one.\n\
                 # Use it by `cairn run --config FILE`. An environment variable comes before the file, and a flag before both.\n";
    let body = with_sections(|text, key| {
        line_into(text, "");
        for line in wrapped(&format!("{}.", key.help)) {
            line_into(text, &format!("# {line}"));
        }
        line_into(text, &format!("# Flag --{}, variable {}.", key.flag, key.env));
        let value = assignment(key, &[key.default.unwrap_or(key.example).to_owned()]);
        let asked = matches!(key.name, "data" | "chain_id" | "vm" | "comet" | "rest");
        line_into(text, &if asked { value } else { format!("#{value}") });
    });
    format!("{intro}{body}")
}

/// Writes every setting, with a heading in front of each section.
fn with_sections(write: impl Fn(&mut String, &Key)) -> String {
    let mut text = String::new();
    let mut section = None;
    for key in KEYS {
        let own = key.name.split_once('.').map(|(section, _)| section);
        if let Some(name) = own
            && own != section
        {
            line_into(&mut text, &format!("\n[{name}]"));
        }
        section = own;
        write(&mut text, key);
    }
    text
}

fn line_into(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// The setting's name inside its section.
fn leaf(key: &Key) -> &'static str {
    key.name.split_once('.').map_or(key.name, |(_, leaf)| leaf)
}

fn assignment(key: &Key, texts: &[String]) -> String {
    let literals: Vec<_> = texts.iter().map(|text| literal(text)).collect();
    let value = literals.join(", ");
    if key.many { format!("{} = [{value}]", leaf(key)) } else { format!("{} = {value}", leaf(key)) }
}

/// `text` in TOML: bare where it is a number or a boolean in its only spelling, else a string.
fn literal(text: &str) -> String {
    let number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if number || text == "true" || text == "false" {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}

fn place(key: &Key, source: &Source) -> String {
    match source {
        Source::Default => "default".to_owned(),
        Source::File { path, line } => format!("{} line {line}", path.display()),
        Source::Environment => key.env.to_owned(),
        Source::Flag => format!("--{}", key.flag),
    }
}

fn shown(key: &Key, value: &Value) -> Vec<String> {
    let shown = |text: &String| if key.value == "URL" { masked(text) } else { text.clone() };
    value.texts.iter().map(shown).collect()
}

/// An address with `***` for its credentials and for its path, in which providers put keys.
fn masked(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let (place, path) = rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
    let mut text = String::new();
    if !scheme.is_empty() {
        text.push_str(scheme);
        text.push_str("://");
    }
    match place.rsplit_once('@') {
        Some((_, host)) => text.extend(["***@", host]),
        None => text.push_str(place),
    }
    if path.len() > 1 {
        text.push_str("/***");
    }
    text
}

/// `text` in lines of at most [`WIDTH`] columns with the comment sign.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() + 3 <= WIDTH => {
                // Writing to a string cannot fail.
                write!(line, " {word}").unwrap_or_default();
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::keys::known;
    use super::*;

    #[test]
    fn credentials_and_paths_of_addresses_are_not_printed() {
        let cases = [
            ("http://node:26657", "http://node:26657"),
            ("http://node:26657/", "http://node:26657"),
            ("https://me:hunter2@node/key", "https://***@node/***"),
            ("https://node/v1/hunter2", "https://node/***"),
            ("https://node?key=hunter2", "https://node/***"),
        ];
        for (address, text) in cases {
            assert_eq!(masked(address), text);
        }
        let key = known("comet");
        let value = Value::split(key, ["https://me:hunter2@node/hunter2".to_owned()], Source::Flag);
        let text = effective(&Values::from([(key.name, value)]));
        assert!(text.contains("comet = [\"https://***@node/***\"] # --comet\n"), "{text}");
    }

    #[test]
    fn numbers_are_bare_only_in_their_one_spelling() {
        assert_eq!(literal("32"), "32");
        assert_eq!(literal("007"), "\"007\"");
        assert_eq!(literal("true"), "true");
        assert_eq!(literal("a\"b"), "'a\"b'");
    }
}
