//! Storage, metrics and logs of the process.

use super::{Key, Scope};

pub(super) const DATA: Key = Key {
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

pub(super) const CACHE: Key = Key {
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

pub(super) const DISK_RESERVE: Key = Key {
    name: "disk_reserve",
    flag: "disk-reserve",
    env: "CAIRN_DISK_RESERVE",
    value: "BYTES",
    many: false,
    default: Some("512MiB"),
    example: "",
    scope: Scope::Server,
    help: "Bytes of the file system that are left free: below it nothing more is indexed and no transfer is followed, what is \
           there is served, and both continue as soon as there is room",
};

pub(super) const METRICS: Key = Key {
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

pub(super) const LOG: Key = Key {
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

pub(super) const LOG_FORMAT: Key = Key {
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
