//! The list of all settings. Flags, environment variables, the configuration file, the help, `cairn config` and the
//! example file are derived from it.
//!
//! What must hold: flag and variable are the name in another spelling; a default and an example are values that the
//! setting accepts. To add a setting: a row here, and a field in [`super::Settings`].

/// Which commands have a setting.
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
    /// What the help calls the value.
    pub(crate) value: &'static str,
    /// Whether it takes several values: flags repeat, all sources separate by comma, a file may use an array.
    pub(crate) many: bool,
    /// The value if nobody gives one.
    pub(crate) default: Option<&'static str>,
    /// What the example file shows where there is no default.
    pub(crate) example: &'static str,
    /// The commands that have it.
    pub(crate) scope: Scope,
    /// What it means, which values are allowed, and their unit.
    pub(crate) help: &'static str,
}

const DATA: Key = Key {
    name: "data",
    flag: "data",
    env: "CAIRN_DATA",
    value: "DIR",
    many: false,
    default: None,
    example: "/var/lib/cairn",
    scope: Scope::Data,
    help: "Directory of the database, on a local disk; made if it does not exist. One process writes it, any number \
           of `cairn query` follow it",
};

const LISTEN: Key = Key {
    name: "listen",
    flag: "listen",
    env: "CAIRN_LISTEN",
    value: "ADDR",
    many: false,
    default: Some("127.0.0.1:8080"),
    example: "",
    scope: Scope::Service,
    help: "IP address and port that the JSON interface listens on; port 0 takes a free one",
};

const METRICS: Key = Key {
    name: "metrics",
    flag: "metrics",
    env: "CAIRN_METRICS",
    value: "ADDR",
    many: false,
    default: None,
    example: "127.0.0.1:9464",
    scope: Scope::Service,
    help: "IP address and port for metrics in Prometheus' text form, at /metrics; none if it is not given",
};

const CHAIN_ID: Key = Key {
    name: "chain_id",
    flag: "chain-id",
    env: "CAIRN_CHAIN_ID",
    value: "ID",
    many: false,
    default: None,
    example: "minimove-1",
    scope: Scope::Service,
    help: "The chain's id. A node or a database of another chain is refused",
};

const VM: Key = Key {
    name: "vm",
    flag: "vm",
    env: "CAIRN_VM",
    value: "VM",
    many: false,
    default: None,
    example: "move",
    scope: Scope::Service,
    help: "The chain's virtual machine: evm, move, wasm or none",
};

const COMET: Key = Key {
    name: "comet",
    flag: "comet",
    env: "CAIRN_COMET",
    value: "URL",
    many: true,
    default: None,
    example: "http://127.0.0.1:26657",
    scope: Scope::Node,
    help: "CometBFT RPC of the node, http:// or https://. Several addresses, in order of preference, take over from \
           each other; so it is for the other services",
};

const REST: Key = Key {
    name: "rest",
    flag: "rest",
    env: "CAIRN_REST",
    value: "URL",
    many: true,
    default: None,
    example: "http://127.0.0.1:1317",
    scope: Scope::Node,
    help: "Cosmos REST of the node",
};

const JSON_RPC: Key = Key {
    name: "json_rpc",
    flag: "json-rpc",
    env: "CAIRN_JSON_RPC",
    value: "URL",
    many: true,
    default: None,
    example: "http://127.0.0.1:8545",
    scope: Scope::Node,
    help: "EVM JSON-RPC of the node; needed with `vm = \"evm\"`. Internal transactions need its `debug` methods",
};

const GRPC: Key = Key {
    name: "grpc",
    flag: "grpc",
    env: "CAIRN_GRPC",
    value: "URL",
    many: true,
    default: None,
    example: "http://127.0.0.1:9090",
    scope: Scope::Service,
    help: "Cosmos gRPC of the node: a second way to the chain's protobuf descriptors",
};

const PREFIX: Key = Key {
    name: "prefix",
    flag: "prefix",
    env: "CAIRN_PREFIX",
    value: "TEXT",
    many: false,
    default: None,
    example: "init",
    scope: Scope::Service,
    help: "Human-readable part of account addresses; if it is not given, the node is asked for it",
};

const START_HEIGHT: Key = Key {
    name: "start_height",
    flag: "start-height",
    env: "CAIRN_START_HEIGHT",
    value: "HEIGHT",
    many: false,
    default: None,
    example: "1",
    scope: Scope::Service,
    help: "First height to index, 1 or more; if it is not given, the first that the node has. Fixed once the database \
           is made",
};

const INTERNAL_TXS: Key = Key {
    name: "internal_txs",
    flag: "internal-txs",
    env: "CAIRN_INTERNAL_TXS",
    value: "BOOL",
    many: false,
    default: Some("true"),
    example: "",
    scope: Scope::Service,
    help: "Whether to index internal transactions on an EVM chain: true or false",
};

const RICH_LIST: Key = Key {
    name: "rich_list",
    flag: "rich-list",
    env: "CAIRN_RICH_LIST",
    value: "BOOL",
    many: false,
    default: Some("true"),
    example: "",
    scope: Scope::Service,
    help: "Whether to keep the holders of every ERC-20 on an EVM chain, by amount: true or false. Needs `rest`, and a \
           node that has the state of the first height",
};

const RECONCILE: Key = Key {
    name: "reconcile",
    flag: "reconcile",
    env: "CAIRN_RECONCILE",
    value: "TIME",
    many: false,
    default: Some("60s"),
    example: "",
    scope: Scope::Service,
    help: "How often some holders of an ERC-20 are compared with what its contract says, 1s to 1440m, or 0s for never; a \
           token that differs is asked about whole",
};

const LOOK_AHEAD: Key = Key {
    name: "look_ahead",
    flag: "look-ahead",
    env: "CAIRN_LOOK_AHEAD",
    value: "HEIGHTS",
    many: false,
    default: Some("32"),
    example: "",
    scope: Scope::Service,
    help: "Heights that are fetched at once while catching up, 1 to 1024: more keep a distant node busy and take more \
           memory",
};

const POLL: Key = Key {
    name: "poll",
    flag: "poll",
    env: "CAIRN_POLL",
    value: "TIME",
    many: false,
    default: Some("250ms"),
    example: "",
    scope: Scope::Service,
    help: "How often the node is asked for a new block once all are indexed, 10ms to 60s",
};

const CACHE: Key = Key {
    name: "cache",
    flag: "cache",
    env: "CAIRN_CACHE",
    value: "BYTES",
    many: false,
    default: Some("256MiB"),
    example: "",
    scope: Scope::Service,
    help: "Memory for blocks of the database, 8MiB or more: a number of bytes, or of KiB, MiB or GiB",
};

const DISK_RESERVE: Key = Key {
    name: "disk_reserve",
    flag: "disk-reserve",
    env: "CAIRN_DISK_RESERVE",
    value: "BYTES",
    many: false,
    default: Some("512MiB"),
    example: "",
    scope: Scope::Service,
    help: "Bytes of the file system that are left free: below it nothing more is indexed, what is there is served, and \
           indexing goes on as soon as there is room",
};

const MAX_CONNECTIONS: Key = Key {
    name: "max_connections",
    flag: "max-connections",
    env: "CAIRN_MAX_CONNECTIONS",
    value: "NUMBER",
    many: false,
    default: Some("4096"),
    example: "",
    scope: Scope::Service,
    help: "Client connections held at once, 1 to 1000000; the next ones wait. Each needs a file descriptor",
};

const MAX_REQUESTS: Key = Key {
    name: "max_requests",
    flag: "max-requests",
    env: "CAIRN_MAX_REQUESTS",
    value: "NUMBER",
    many: false,
    default: Some("1024"),
    example: "",
    scope: Scope::Service,
    help: "Requests of all clients at once, 1 to 1000000; the next ones are refused with 503. Answers that nobody takes yet \
           count, so it bounds the memory for them",
};

const RATE_LIMIT: Key = Key {
    name: "rate_limit",
    flag: "rate-limit",
    env: "CAIRN_RATE_LIMIT",
    value: "RATE",
    many: false,
    default: None,
    example: "50/s:200",
    scope: Scope::Service,
    help: "Requests a second of one client, past which it gets 429, as 50/s, or with more at once after a silence as \
           50/s:200; none if it is not given. A client is an IPv4 address or an IPv6 network of 64 bits",
};

const TRUSTED_PROXIES: Key = Key {
    name: "trusted_proxies",
    flag: "trusted-proxies",
    env: "CAIRN_TRUSTED_PROXIES",
    value: "IP",
    many: true,
    default: None,
    example: "127.0.0.1",
    scope: Scope::Service,
    help: "Addresses of proxies in front: with `rate_limit`, their requests count for whom X-Forwarded-For names. Of others \
           that header is not read",
};

const READY_LAG: Key = Key {
    name: "ready_lag",
    flag: "ready-lag",
    env: "CAIRN_READY_LAG",
    value: "BLOCKS",
    many: false,
    default: Some("50"),
    example: "",
    scope: Scope::Service,
    help: "How many blocks the index may be behind the node for /readyz to answer 200 and not 503. `cairn query`, which \
           asks no node, is ready while it keeps up with the database",
};

const CORS: Key = Key {
    name: "cors",
    flag: "cors",
    env: "CAIRN_CORS",
    value: "ORIGIN",
    many: true,
    default: Some("*"),
    example: "",
    scope: Scope::Service,
    help: "Web pages that may read the answers: `*` for all, `none`, or origins such as https://app.example and \
           https://*.example.com",
};

const EMPTY_CURSOR: Key = Key {
    name: "pagination.empty_cursor",
    flag: "pagination-empty-cursor",
    env: "CAIRN_PAGINATION_EMPTY_CURSOR",
    value: "FORM",
    many: false,
    default: Some("null"),
    example: "",
    scope: Scope::Service,
    help: "How a page says that there is no next or previous one: `null` as deployed servers do, or `string` for an \
           empty string as the published interface words it",
};

const ROUTE_REGISTRY: Key = Key {
    name: "route.registry",
    flag: "route-registry",
    env: "CAIRN_ROUTE_REGISTRY",
    value: "DIR",
    many: false,
    default: None,
    example: "registry/example",
    scope: Scope::Service,
    help: "Directory of a registry of chains and assets: `cairn run` then plans and follows transfers as well, as `cairn \
           route` does. Read again on SIGHUP",
};

const ROUTE_DATA: Key = Key {
    name: "route.data",
    flag: "route-data",
    env: "CAIRN_ROUTE_DATA",
    value: "DIR",
    many: false,
    default: None,
    example: "/var/lib/cairn-route",
    scope: Scope::Service,
    help: "Directory of the database of tracked transfers; needed with `route.registry`",
};

const ROUTE_LISTEN: Key = Key {
    name: "route.listen",
    flag: "route-listen",
    env: "CAIRN_ROUTE_LISTEN",
    value: "ADDR",
    many: false,
    default: Some("127.0.0.1:8081"),
    example: "",
    scope: Scope::Service,
    help: "IP address and port that the routing interface listens on; port 0 takes a free one",
};

const LOG: Key = Key {
    name: "log",
    flag: "log",
    env: "CAIRN_LOG",
    value: "FILTER",
    many: false,
    default: Some("info"),
    example: "",
    scope: Scope::Log,
    help: "What is logged: error, warn, info, debug or trace, also by part, as in `info,ingest=debug`",
};

const LOG_FORMAT: Key = Key {
    name: "log_format",
    flag: "log-format",
    env: "CAIRN_LOG_FORMAT",
    value: "FORMAT",
    many: false,
    default: Some("text"),
    example: "",
    scope: Scope::Log,
    help: "How it is logged, on standard error: text or json",
};

/// Every setting, in the order of the help and of the example file.
pub(crate) const KEYS: &[&Key] = &[
    &DATA,
    &LISTEN,
    &METRICS,
    &CHAIN_ID,
    &VM,
    &COMET,
    &REST,
    &JSON_RPC,
    &GRPC,
    &PREFIX,
    &START_HEIGHT,
    &INTERNAL_TXS,
    &RICH_LIST,
    &RECONCILE,
    &LOOK_AHEAD,
    &POLL,
    &CACHE,
    &DISK_RESERVE,
    &MAX_CONNECTIONS,
    &MAX_REQUESTS,
    &RATE_LIMIT,
    &TRUSTED_PROXIES,
    &READY_LAG,
    &CORS,
    &LOG,
    &LOG_FORMAT,
    &EMPTY_CURSOR,
    &ROUTE_REGISTRY,
    &ROUTE_DATA,
    &ROUTE_LISTEN,
];

/// The setting of this name in a configuration file.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().copied().find(|key| key.name == name)
}

/// Like [`find`], for the names that the code itself uses.
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
