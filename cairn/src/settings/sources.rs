//! Flags, environment variables and the file of a command, merged.

use std::env;
use std::path::{Path, PathBuf};

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::parse::path;
use super::values::{Error, Source, Value, Values, env_of, flag_of, split};
use super::{Settings, args, file, rollytics};

const CONFIG: &str = "config";
const CONFIG_VARIABLE: &str = "CAIRN_CONFIG";

/// Variables that no setting has: the file's, and those of the build, which images of the program may still have.
const OTHER_VARIABLES: [&str; 3] = [CONFIG_VARIABLE, "CAIRN_COMMIT", "CAIRN_BUILD_COMMIT"];

/// Groups of settings as bits; a command accepts the settings of its groups as flags.
pub(crate) type Groups = u8;

/// Settings of the log.
pub(crate) const LOG: Groups = 1;
/// The data directory.
pub(crate) const DATA: Groups = 2;
/// The node's endpoints.
pub(crate) const NODE: Groups = 4;
/// Settings of an indexer and its interface.
const INDEX: Groups = 8;
/// Settings of every server.
const SERVER: Groups = 16;
/// Settings of the routing service.
const ROUTE: Groups = 32;
/// Not a group: marks the aliases of `cairn query`.
const FOLLOW: Groups = 64;
/// The address of the indexer's interface.
pub(crate) const LISTEN: Groups = 128;
/// All settings.
pub(crate) const SERVICE: Groups = LOG | DATA | NODE | LISTEN | INDEX | SERVER | ROUTE;
/// All settings, for `cairn query`.
pub(crate) const FOLLOWER: Groups = SERVICE | FOLLOW;
/// Settings of `cairn route`.
pub(crate) const ROUTER: Groups = LOG | SERVER | ROUTE;

fn group_of(name: &str) -> Groups {
    match name {
        "log" | "log_format" => LOG,
        "data" => DATA,
        "listen" => LISTEN,
        "comet" | "rest" | "json_rpc" => NODE,
        "metrics"
        | "otlp_endpoint"
        | "disk_reserve"
        | "max_connections"
        | "max_requests"
        | "max_response_memory"
        | "rate_limit"
        | "trusted_proxies"
        | "cors"
        | "explorer"
        | "nft_media" => SERVER,
        name if name.starts_with("route.") => ROUTE,
        _ => INDEX,
    }
}

/// The heading of a setting in the help.
fn heading_of(name: &str) -> &'static str {
    match name {
        "chain_id" | "vm" | "evm" | "comet" | "rest" | "json_rpc" | "grpc" | "prefix" | "start_height" => {
            "Node"
        }
        "data" | "internal_txs" | "rich_list" | "reconcile" | "look_ahead" | "poll" | "verify"
        | "trusted" | "max_rewind" | "undo_horizon" | "undo_bytes" | "index" | "bridge.l1"
        | "bridge.poll" | "cache" | "disk_reserve" => "Index",
        "max_connections" | "max_requests" | "max_streams" | "max_client_streams" | "rate_limit"
        | "trusted_proxies" => "Limits",
        name if name.starts_with("route.") => "Routing",
        _ => "Serving",
    }
}

/// True for the settings in the short help of a command with the groups `G`: most deployments give no others.
fn is_essential<const G: Groups>(name: &str) -> bool {
    let alone = G & INDEX == 0 && G & SERVER == 0;
    let always = [
        "data",
        "listen",
        "chain_id",
        "vm",
        "comet",
        "rest",
        "json_rpc",
        "log",
        "route.registry",
        "route.data",
        "route.listen",
    ];
    alone || always.contains(&name) || (G == FOLLOWER && ["chains", "hosts"].contains(&name))
}

/// The settings of groups `G` from flags and environment, and the path of the configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Sources<const G: Groups> {
    file: Option<PathBuf>,
    values: Values,
}

impl<const G: Groups> Sources<G> {
    /// The file at `path` as the only source.
    pub(crate) fn of_file(path: &Path) -> Self {
        Self { file: Some(path.to_owned()), values: Values::new() }
    }

    /// The path of the configuration file, if it is given.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The settings from flags and environment only.
    pub(crate) fn given(&self) -> &Values {
        &self.values
    }

    /// Merges the sources: defaults < variables of rollytics < file < environment < flags.
    pub(crate) fn merged(&self) -> Result<Values, Error> {
        let args: Vec<_> = args().into_iter().map(with_aliases::<G>).collect();
        let mut values = defaults(&args);
        let foreign = rollytics::values(&args, rollytics::variable).into_iter();
        values.extend(foreign.filter(|(name, _)| group_of(name) & G != 0));
        if let Some(path) = &self.file {
            values.extend(file::read(path, &args)?);
        }
        values.extend(self.values.clone());
        Ok(values)
    }

    /// The effective settings.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        Settings::new(&self.merged()?)
    }
}

/// The variables of this process that begin as those of cairn and belong to no setting, each with the nearest one.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown_among(names)
}

fn unknown_among(names: impl Iterator<Item = String>) -> Vec<String> {
    let args = args();
    let unknown = names.filter(|name| !OTHER_VARIABLES.contains(&name.as_str())).filter_map(|name| {
        let setting = name.strip_prefix("CAIRN_")?.to_lowercase();
        let is_known = args.iter().any(|arg| arg.get_env().is_some_and(|known| known == name.as_str()));
        (!is_known).then(|| format!("{name}: {}", file::unknown(&setting, &args)))
    });
    let mut unknown: Vec<_> = unknown.collect();
    unknown.sort();
    unknown
}

/// The settings that are not in `values` have their defaults.
pub(crate) fn over_defaults(values: &Values) -> Values {
    let mut all = defaults(&args());
    all.extend(values.clone());
    all
}

/// `texts` as if the flag of the setting `name` had given them.
pub(crate) fn of_flag(name: &str, texts: Vec<String>) -> Value {
    Value { texts, source: Source::Flag(flag_of(name)) }
}

/// The values in `text`, where commas separate those of a list.
pub(crate) fn texts_of(name: &str, text: &str) -> Vec<String> {
    args().iter().find(|arg| arg.get_id() == name).map(|arg| split(arg, text)).unwrap_or_default()
}

fn defaults(args: &[Arg]) -> Values {
    let mut values = Values::new();
    for arg in args {
        let texts: Vec<_> =
            arg.get_default_values().iter().map(|text| text.to_string_lossy().into()).collect();
        if !texts.is_empty() {
            values.insert(arg.get_id().to_string(), Value { texts, source: Source::Default });
        }
    }
    values
}

/// The argument with its other names, and its default, in a command.
fn with_aliases<const G: Groups>(arg: Arg) -> Arg {
    match (arg.get_id().as_str(), G) {
        ("data", FOLLOWER) => arg.visible_alias("follow"),
        ("route.registry", ROUTER) => arg.visible_alias("registry"),
        ("route.data", ROUTER) => arg.visible_alias("data").default_value("cairn-route"),
        ("route.listen", ROUTER) => arg.visible_alias("listen"),
        _ => arg,
    }
}

/// The arguments of the groups. Their values are parsed after the sources are merged.
fn accepted<const G: Groups>() -> impl Iterator<Item = Arg> {
    let own = args().into_iter().filter(|arg| group_of(arg.get_id().as_str()) & G != 0);
    own.map(|arg| with_aliases::<G>(arg).value_parser(ValueParser::os_string())).map(with_help::<G>)
}

/// The argument under its heading; the short help has its first sentence, or lacks it.
fn with_help<const G: Groups>(arg: Arg) -> Arg {
    let name = arg.get_id().as_str();
    let (heading, is_essential) = (heading_of(name), is_essential::<G>(name));
    let whole = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let first = whole.split(". ").next().unwrap_or_default().to_owned();
    arg.help_heading(heading).hide_short_help(!is_essential).help(first).long_help(whole)
}

impl<const G: Groups> Args for Sources<G> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .env(CONFIG_VARIABLE)
            .hide_env_values(true)
            .value_name("FILE")
            .value_parser(path)
            .help("Configuration file, TOML; environment and flags come before it");
        command.arg(config).args(accepted::<G>())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const G: Groups> FromArgMatches for Sources<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Values::new();
        for arg in accepted::<G>() {
            let name = arg.get_id().as_str();
            let source = match matches.value_source(name) {
                Some(ValueSource::CommandLine) => Source::Flag(flag_of(name)),
                Some(ValueSource::EnvVariable) => Source::Environment(env_of(name)),
                _ => continue,
            };
            let mut texts = Vec::new();
            for raw in matches.get_raw(name).into_iter().flatten() {
                let text = raw.to_str().ok_or_else(|| {
                    clap::Error::raw(
                        ErrorKind::InvalidUtf8,
                        format!("{source}: the value is not UTF-8 text\n"),
                    )
                })?;
                texts.extend(split(&arg, text));
            }
            values.insert(name.to_owned(), Value { texts, source });
        }
        Ok(Self { file: matches.get_one::<PathBuf>(CONFIG).cloned(), values })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_no_setting_is_reported_with_the_nearest_one() {
        let of = |names: &[&str]| unknown_among(names.iter().map(|name| (*name).to_owned()));
        let known = args().into_iter().map(|arg| arg.get_env().unwrap().to_str().unwrap().to_owned());
        assert_eq!(unknown_among(known), [""; 0]);
        assert_eq!(of(&["CAIRN_CONFIG", "CAIRN_COMMIT", "HOME", "MYCAIRN_X", "cairn_poll"]), [""; 0]);
        assert_eq!(
            of(&["CAIRN_LOOKAHEAD", "CAIRN_COMETS", "CAIRN_ROUTE_REGISTRI"]),
            [
                "CAIRN_COMETS: there is no such setting; the nearest known one is `comet`",
                "CAIRN_LOOKAHEAD: there is no such setting; the nearest known one is `look_ahead`",
                "CAIRN_ROUTE_REGISTRI: there is no such setting; the nearest known one is `route.registry`",
            ]
        );
    }
}
