//! Flags and environment variables of a command, as clap arguments derived from the table of settings.

use std::marker::PhantomData;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::file;
use super::keys::{KEYS, Key, Scope};
use super::value::{Error, Source, Value, Values};

const CONFIG: &str = "config";

/// A group of settings that a command accepts.
pub(crate) trait Group {
    /// The scopes of the group.
    const SCOPES: &'static [Scope];

    /// Flag aliases: name of the setting, alias.
    const ALIASES: &'static [(&'static str, &'static str)] = &[];
}

/// Settings of commands that only log.
#[derive(Clone, Debug)]
pub(crate) struct Log;

/// Settings of commands on a data directory.
#[derive(Clone, Debug)]
pub(crate) struct Data;

/// Settings of commands that query a node.
#[derive(Clone, Debug)]
pub(crate) struct Node;

/// Settings of `query`: all.
#[derive(Clone, Debug)]
pub(crate) struct Follower;

/// Settings of `run` and `ingest`: all.
#[derive(Clone, Debug)]
pub(crate) struct Service;

/// Settings of `route`.
#[derive(Clone, Debug)]
pub(crate) struct Router;

impl Group for Log {
    const SCOPES: &'static [Scope] = &[Scope::Log];
}

impl Group for Data {
    const SCOPES: &'static [Scope] = &[Scope::Log, Scope::Data];
}

impl Group for Node {
    const SCOPES: &'static [Scope] = &[Scope::Log, Scope::Node];
}

impl Group for Service {
    const SCOPES: &'static [Scope] =
        &[Scope::Log, Scope::Data, Scope::Node, Scope::Service, Scope::Server, Scope::Route];
}

impl Group for Router {
    const SCOPES: &'static [Scope] = &[Scope::Log, Scope::Server, Scope::Route];

    const ALIASES: &'static [(&'static str, &'static str)] =
        &[("route.registry", "registry"), ("route.data", "data"), ("route.listen", "listen")];
}

impl Group for Follower {
    const SCOPES: &'static [Scope] = Service::SCOPES;

    const ALIASES: &'static [(&'static str, &'static str)] = &[("data", "follow")];
}

/// The settings of group `G` from flags and environment, and the path of the configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Sources<G> {
    file: Option<PathBuf>,
    values: Values,
    group: PhantomData<G>,
}

impl<G> Sources<G> {
    /// Merges the sources: file < environment < flags.
    pub(crate) fn merged(self) -> Result<Values, Error> {
        let mut values = self.file.as_deref().map(file::read).transpose()?.unwrap_or_default();
        values.extend(self.values);
        Ok(values)
    }
}

impl<G: Group> Args for Sources<G> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .env("CAIRN_CONFIG")
            .hide_env_values(true)
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .help("Configuration file, TOML; environment and flags come before it");
        keys::<G>().fold(command.arg(config), |command, key| {
            let alias = G::ALIASES.iter().find(|(name, _)| *name == key.name);
            command.arg(match alias {
                Some((_, alias)) => arg(key).visible_alias(*alias),
                None => arg(key),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<G: Group> FromArgMatches for Sources<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Values::new();
        for key in keys::<G>() {
            let Some(raw) = matches.get_raw(key.name) else { continue };
            let text = |raw: &std::ffi::OsStr| {
                raw.to_str().map(str::to_owned).ok_or_else(|| {
                    clap::Error::raw(
                        ErrorKind::InvalidUtf8,
                        format!("--{}: the value is no UTF-8 text\n", key.flag),
                    )
                })
            };
            let texts = raw.map(text).collect::<Result<Vec<_>, _>>()?;
            let source = match matches.value_source(key.name) {
                Some(ValueSource::EnvVariable) => Source::Environment,
                _ => Source::Flag,
            };
            values.insert(key.name, Value::split(key, texts, source));
        }
        Ok(Self { file: matches.get_one::<PathBuf>(CONFIG).cloned(), values, group: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn keys<G: Group>() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().copied().filter(|key| G::SCOPES.contains(&key.scope))
}

fn arg(key: &'static Key) -> Arg {
    let default = key.default.map_or_else(String::new, |default| format!(" [default: {default}]"));
    Arg::new(key.name)
        .long(key.flag)
        .env(key.env)
        // An address may hold a password.
        .hide_env_values(true)
        .value_name(key.value)
        .value_parser(ValueParser::os_string())
        .action(if key.many { ArgAction::Append } else { ArgAction::Set })
        .help(format!("{}{default}", key.help))
}
