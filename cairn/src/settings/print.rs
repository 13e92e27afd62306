//! TOML output of the effective settings, and configuration files with every setting documented.
//!
//! # Invariants
//! * The output is a valid configuration file.
//! * Credentials and paths of URLs are masked, except in a file that is to be used ([`documented`]).

use clap::{Arg, ArgAction};

use super::args;
use super::values::{Values, env_of, flag_of};

/// Columns of the example's comments.
const WIDTH: usize = 100;

/// Example values of the settings that every deployment gives.
pub(super) const REQUIRED: &[(&str, &str)] = &[
    ("data", "/var/lib/cairn"),
    ("chain_id", "minimove-1"),
    ("vm", "move"),
    ("comet", "http://127.0.0.1:26657"),
    ("rest", "http://127.0.0.1:1317"),
];

/// Example values of the other settings without a default.
pub(super) const OPTIONAL: &[(&str, &str)] = &[
    ("chains", "rollup-1=/var/lib/rollup-1"),
    ("hosts", "one.example=rollup-1"),
    ("grpc_listen", "127.0.0.1:9095"),
    ("comet_listen", "127.0.0.1:26667"),
    ("evm_listen", "127.0.0.1:8546"),
    ("evm_forward", "state"),
    ("evm_forward_to", "http://127.0.0.1:8545"),
    ("otterscan", "/usr/share/otterscan"),
    ("evm_currency", "GAS"),
    ("abi", "/etc/cairn/abi"),
    ("sourcify", "https://sourcify.dev/server"),
    ("metrics", "127.0.0.1:9464"),
    ("otlp_endpoint", "http://127.0.0.1:4317"),
    ("json_rpc", "http://127.0.0.1:8545"),
    ("grpc", "http://127.0.0.1:9090"),
    ("prefix", "init"),
    ("start_height", "1"),
    ("trusted", "1:2D352275F6F4D7F8F5DA86DD8BB5988FF2C5FBAC58FF8C5374ACD85459F9184C"),
    ("rate_limit", "50/s:200"),
    ("trusted_proxies", "127.0.0.1"),
    ("bridge.l1", "https://rest.initia.xyz"),
    ("route.registry", "routing/registry/example"),
    ("route.data", "/var/lib/cairn-route"),
    ("route.price_feed", "https://api.coingecko.com/api/v3"),
];

/// The effective settings, each with its source.
pub(crate) fn effective(values: &Values) -> String {
    with_sections(|arg| match values.get(arg.get_id().as_str()) {
        Some(value) => format!("{} # {}\n", assignment(arg, masked(arg, &value.texts)), value.source),
        None => format!("# {} is not set\n", leaf(arg)),
    })
}

/// The names of the settings whose values differ, whatever their sources.
pub(crate) fn changed(before: &Values, after: &Values) -> Vec<String> {
    let texts = |values: &Values, name: &str| values.get(name).map(|value| value.texts.clone());
    let names = args().into_iter().map(|arg| arg.get_id().to_string());
    names.filter(|name| texts(before, name) != texts(after, name)).collect()
}

/// A configuration file with every setting: those that every deployment gives, and the others as comments.
pub(crate) fn example() -> String {
    let required = |name: &str| REQUIRED.iter().any(|(required, _)| *required == name);
    documented("A configuration of cairn: every setting, with its default where it has one.", |name| {
        required(name).then(|| vec![example_of(name)])
    })
}

/// A configuration file with every setting: those for which `set` has values, and the others as comments.
pub(crate) fn documented(title: &str, set: impl Fn(&str) -> Option<Vec<String>>) -> String {
    let intro = format!(
        "# {title}\n\
         # Use it by `cairn run --config FILE`. An environment variable comes before the file, and a flag before both.\n"
    );
    let body = with_sections(|arg| {
        let name = arg.get_id().as_str();
        let help = wrapped(&help_of(arg));
        let (sign, texts) = set(name).map_or_else(|| ("#", examples_of(name)), |texts| ("", texts));
        let (flag, env, value) = (flag_of(name), env_of(name), assignment(arg, texts.into_iter()));
        format!("\n{help}.\n# Flag --{flag}, variable {env}.\n{sign}{value}\n")
    });
    intro + &body
}

/// The first sentence of a setting's help, without the full stop.
pub(crate) fn summary(name: &str) -> String {
    let help = args().iter().find(|arg| arg.get_id() == name).map(help_of).unwrap_or_default();
    help.split(". ").next().unwrap_or_default().to_owned()
}

fn help_of(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

/// An example of the value of a setting, or its default where there is no example.
pub(crate) fn example_of(name: &str) -> String {
    examples_of(name).into_iter().next().unwrap_or_default()
}

/// As [`example_of`], with all values of a default.
fn examples_of(name: &str) -> Vec<String> {
    if let Some((_, text)) = REQUIRED.iter().chain(OPTIONAL).find(|(named, _)| *named == name) {
        return vec![(*text).to_owned()];
    }
    let args = args();
    let default = args.iter().find(|arg| arg.get_id() == name).map(Arg::get_default_values);
    default.unwrap_or_default().iter().map(|text| text.to_string_lossy().into_owned()).collect()
}

/// The text of every setting, with a heading in front of each section.
fn with_sections(text_of: impl Fn(&Arg) -> String) -> String {
    let mut text = String::new();
    let mut section = None;
    for arg in args() {
        let own = arg.get_id().as_str().split_once('.').map(|(section, _)| section.to_owned());
        if let Some(name) = own.as_ref().filter(|_| own != section) {
            text.extend(["\n[", name, "]\n"]);
        }
        section = own;
        text += &text_of(&arg);
    }
    text
}

/// The setting's name inside its section.
fn leaf(arg: &Arg) -> &str {
    let name = arg.get_id().as_str();
    name.split_once('.').map_or(name, |(_, leaf)| leaf)
}

/// The values of a setting with masked addresses.
fn masked(arg: &Arg, texts: &[String]) -> impl Iterator<Item = String> {
    let is_url = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "URL"));
    texts.iter().map(move |text| if is_url { node::masked(text) } else { text.clone() })
}

fn assignment(arg: &Arg, texts: impl Iterator<Item = String>) -> String {
    let value = texts.map(|text| literal(&text)).collect::<Vec<_>>().join(", ");
    match arg.get_action() {
        ArgAction::Append => format!("{} = [{value}]", leaf(arg)),
        _ => format!("{} = {value}", leaf(arg)),
    }
}

/// `text` in TOML: bare where it is a number or a boolean in its only spelling, else a string.
fn literal(text: &str) -> String {
    let number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if number || text == "true" || text == "false" {
        return text.to_owned();
    }
    toml::Value::String(text.to_owned()).to_string()
}

/// `text` as comment lines of at most [`WIDTH`] columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => line.extend([" ", word]),
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::values::{Source, Value};
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
            assert_eq!(node::masked(address), text);
        }
        let texts = vec!["https://me:hunter2@node/hunter2".to_owned()];
        let value = Value { texts, source: Source::Flag("comet".to_owned()) };
        let text = effective(&Values::from([("comet".to_owned(), value)]));
        assert!(text.contains("comet = [\"https://***@node/***\"] # --comet\n"), "{text}");
    }

    #[test]
    fn numbers_are_bare_only_in_their_one_spelling() {
        assert_eq!(literal("32"), "32");
        assert_eq!(literal("007"), "\"007\"");
        assert_eq!(literal("true"), "true");
        assert_eq!(literal("a\"b"), "'a\"b'");
    }

    #[test]
    fn every_setting_has_an_example() {
        for arg in args() {
            let name = arg.get_id().as_str();
            assert!(!example_of(name).is_empty(), "{name} has no default and no example");
        }
    }
}
