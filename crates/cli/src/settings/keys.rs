//! The list of all settings. Flags, environment variables, the configuration file, the help, `cairn config` and the
//! example file are derived from it.
//!
//! # Invariants
//! * Flag and variable are other spellings of the name.
//! * The setting accepts its own default and example.
//!
//! To add a setting: a constant in a submodule, a row in [`KEYS`], and a field in [`super::Settings`].

mod chain;
mod index;
mod process;
mod route;
mod server;

/// The commands that accept a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All that read settings.
    Log,
    /// Those that work on a data directory.
    Data,
    /// Those that ask a node.
    Node,
    /// Those that index or serve.
    Service,
    /// Those that serve, routes included.
    Server,
    /// Those that route.
    Route,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name in a configuration file; `section.name` stands in a section.
    pub(crate) name: &'static str,
    /// Its flag, without the dashes.
    pub(crate) flag: &'static str,
    /// Its environment variable.
    pub(crate) env: &'static str,
    /// Placeholder of the value in the help.
    pub(crate) value: &'static str,
    /// Whether it takes several values: flags repeat, all sources separate by comma, a file may use an array.
    pub(crate) many: bool,
    /// The default.
    pub(crate) default: Option<&'static str>,
    /// What the example file shows where there is no default.
    pub(crate) example: &'static str,
    /// The commands that have it.
    pub(crate) scope: Scope,
    /// Meaning, allowed values and unit.
    pub(crate) help: &'static str,
}

/// Every setting, in the order of the help and of the example file.
pub(crate) const KEYS: &[&Key] = &[
    &process::DATA,
    &server::LISTEN,
    &process::METRICS,
    &chain::CHAIN_ID,
    &chain::VM,
    &chain::COMET,
    &chain::REST,
    &chain::JSON_RPC,
    &chain::GRPC,
    &chain::PREFIX,
    &chain::START_HEIGHT,
    &index::INTERNAL_TXS,
    &index::RICH_LIST,
    &index::RECONCILE,
    &index::LOOK_AHEAD,
    &index::POLL,
    &index::VERIFY,
    &index::TRUSTED,
    &index::MAX_REWIND,
    &process::CACHE,
    &process::DISK_RESERVE,
    &server::MAX_CONNECTIONS,
    &server::MAX_REQUESTS,
    &server::RATE_LIMIT,
    &server::TRUSTED_PROXIES,
    &server::READY_LAG,
    &server::CORS,
    &process::LOG,
    &process::LOG_FORMAT,
    &server::EMPTY_CURSOR,
    &route::ROUTE_REGISTRY,
    &route::ROUTE_DATA,
    &route::ROUTE_LISTEN,
    &route::ROUTE_RETENTION,
    &route::ROUTE_TRACK_RATE,
    &route::ROUTE_UNSEEN_PER_CLIENT,
    &route::ROUTE_UNSEEN_PER_CHAIN,
];

/// The setting of this name in a configuration file.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().copied().find(|key| key.name == name)
}

/// Like [`find`], for names in the code.
#[expect(
    clippy::expect_used,
    reason = "a name in the code that is in no row is met by the first test that starts the program"
)]
pub(crate) fn known(name: &str) -> &'static Key {
    find(name).expect("every name that the code asks for has a row in KEYS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_and_variable_are_the_name_in_another_spelling() {
        for key in KEYS {
            assert_eq!(key.flag, key.name.replace(['_', '.'], "-"));
            assert_eq!(key.env, format!("CAIRN_{}", key.name.replace('.', "_").to_uppercase()));
        }
    }

    #[test]
    fn sections_stand_after_what_is_in_none() {
        // In TOML, what follows a section's heading is in the section.
        assert!(KEYS.is_sorted_by_key(|key| key.name.contains('.')));
    }
}
