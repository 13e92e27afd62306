//! Settings from the environment variables of rollytics, for a deployment that moves to cairn.
//!
//! # Invariants
//! * The variables count only where `VM_TYPE` is set, which rollytics requires: other programs use names such as
//!   `PORT` too.
//! * Every source of cairn comes before them, and they come before the defaults.

use clap::Arg;

use super::values::{Source, Value, Values, split};

/// Variable, setting, and the conversion of the value.
type Taken = (&'static str, &'static str, fn(&str) -> String);

/// The variables that stand for a setting by themselves.
const TAKEN: &[Taken] = &[
    ("CHAIN_ID", "chain_id", str::to_owned),
    ("VM_TYPE", "vm", str::to_owned),
    ("RPC_URL", "comet", str::to_owned),
    ("REST_URL", "rest", str::to_owned),
    ("JSON_RPC_URL", "json_rpc", str::to_owned),
    ("ACCOUNT_ADDRESS_PREFIX", "prefix", str::to_owned),
    ("START_HEIGHT", "start_height", start_height),
    ("INTERNAL_TX", "internal_txs", boolean),
    ("RICH_LIST", "rich_list", boolean),
    ("PORT", "listen", all_interfaces),
    ("LOG_LEVEL", "log", str::to_owned),
    ("LOG_FORMAT", "log_format", log_format),
];

/// The variables that a second one switches on, with the value where there is none.
const SWITCHED: &[(&str, Taken, &str)] = &[
    ("METRICS_ENABLED", ("METRICS_PORT", "metrics", all_interfaces), "9090"),
    ("CORS_ENABLED", ("CORS_ALLOW_ORIGINS", "cors", str::to_owned), "*"),
];

/// The guide to migration, whose second table names the variables without an equivalent.
const GUIDE: &str = include_str!("../../../docs/src/migration.md");

/// The value of a variable of this process; an empty one counts as unset, as in rollytics.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The settings of `known` that the variables stand for.
pub(super) fn values(known: &[Arg], variable: impl Fn(&str) -> Option<String>) -> Values {
    let mut values = Values::new();
    if variable("VM_TYPE").is_none() {
        return values;
    }
    let mut insert = |name: &str, setting: &str, text: &str| {
        if let Some(arg) = known.iter().find(|arg| arg.get_id() == setting) {
            let value = Value { texts: split(arg, text), source: Source::Environment(name.to_owned()) };
            values.insert(setting.to_owned(), value);
        }
    };
    for (name, setting, convert) in TAKEN {
        if let Some(text) = variable(name) {
            insert(name, setting, &convert(&text));
        }
    }
    for (switch, (name, setting, convert), default) in SWITCHED {
        match variable(switch).map(|text| boolean(&text)).as_deref() {
            Some("true") => insert(name, setting, &convert(variable(name).as_deref().unwrap_or(default))),
            Some(_) if *setting == "cors" => insert(switch, setting, "none"),
            _ => {}
        }
    }
    values
}

/// The variables in `values` with their settings, as `VARIABLE -> setting`.
pub(super) fn taken(values: &Values) -> Vec<String> {
    let is_own = |name: &str| name.starts_with("CAIRN_");
    let taken = values.iter().filter_map(|(setting, value)| match &value.source {
        Source::Environment(name) if !is_own(name) => Some(format!("{name} -> {setting}")),
        _ => None,
    });
    taken.collect()
}

/// Logs `taken`, and the variables that have no effect.
pub(crate) fn log(taken: &[String]) {
    if taken.is_empty() {
        return;
    }
    tracing::warn!(
        variables = taken.join(", "),
        "settings taken from variables of rollytics: set those of cairn"
    );
    let ignored: Vec<_> = ignored().filter(|name| variable(name).is_some()).collect();
    if !ignored.is_empty() {
        tracing::warn!(variables = ignored.join(", "), "variables of rollytics without effect: remove them");
    }
}

/// The variables without an equivalent.
fn ignored() -> impl Iterator<Item = &'static str> {
    let (_, table) = GUIDE.split_once("| variables | reason |\n").unwrap_or_default();
    let cells = table.lines().map_while(|row| row.strip_prefix('|')?.split('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
}

/// The height 0 is the genesis, whose first block is 1.
fn start_height(text: &str) -> String {
    if text.trim() == "0" { "1".to_owned() } else { text.trim().to_owned() }
}

/// `true` or `false` for the spellings of Go; other texts stay as they are, and the parser of the setting refuses them.
fn boolean(text: &str) -> String {
    let text = match text {
        "1" | "t" | "T" | "TRUE" | "True" => "true",
        "0" | "f" | "F" | "FALSE" | "False" => "false",
        other => other,
    };
    text.to_owned()
}

/// rollytics listens on all interfaces.
fn all_interfaces(port: &str) -> String {
    format!("0.0.0.0:{port}")
}

fn log_format(text: &str) -> String {
    if text == "plain" { "text".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(variables: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        };
        let values = values(&super::super::args(), variable);
        values.into_iter().map(|(name, value)| (name, value.texts)).collect()
    }

    #[test]
    fn variables_become_settings_in_the_spelling_of_cairn() {
        let found = of(&[
            ("VM_TYPE", "evm"),
            ("RPC_URL", "http://a:1, http://b:2"),
            ("START_HEIGHT", "0"),
            ("INTERNAL_TX", "1"),
            ("RICH_LIST", "FALSE"),
            ("PORT", "3000"),
            ("LOG_FORMAT", "plain"),
            ("METRICS_ENABLED", "true"),
            ("CORS_ENABLED", "true"),
            ("CORS_ALLOW_ORIGINS", "https://a.example,*.b.example"),
            ("DB_DSN", "postgres://me:hunter2@db/x"),
        ]);
        let expected: &[(&str, &[&str])] = &[
            ("vm", &["evm"]),
            ("comet", &["http://a:1", "http://b:2"]),
            ("start_height", &["1"]),
            ("internal_txs", &["true"]),
            ("rich_list", &["false"]),
            ("listen", &["0.0.0.0:3000"]),
            ("log_format", &["text"]),
            ("metrics", &["0.0.0.0:9090"]),
            ("cors", &["https://a.example", "*.b.example"]),
        ];
        let expected: BTreeMap<_, _> = expected
            .iter()
            .map(|(name, texts)| ((*name).to_owned(), texts.iter().map(|text| (*text).to_owned()).collect()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(of(&[("VM_TYPE", "evm"), ("CORS_ENABLED", "false")])["cors"], ["none"]);
    }

    #[test]
    fn variables_of_other_programs_are_not_taken() {
        assert!(of(&[("PORT", "3000"), ("LOG_LEVEL", "debug"), ("CHAIN_ID", "c")]).is_empty());
    }

    #[test]
    fn every_variable_is_in_the_guide_to_migration() {
        let switched = SWITCHED.iter().flat_map(|(switch, (name, ..), _)| [switch, name]);
        for name in TAKEN.iter().map(|(name, ..)| name).chain(switched) {
            assert!(GUIDE.contains(&format!("`{name}`")), "{name} is not in docs/src/migration.md");
        }
        let ignored: Vec<_> = ignored().collect();
        assert_eq!((ignored.len(), ignored[0], ignored[36]), (37, "DB_DSN", "ENVIRONMENT"));
    }
}
