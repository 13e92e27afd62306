//! The JSON interface, and what a client may take of it.

use super::{Key, Scope};

pub(super) const LISTEN: Key = Key {
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

pub(super) const MAX_CONNECTIONS: Key = Key {
    name: "max_connections",
    flag: "max-connections",
    env: "CAIRN_MAX_CONNECTIONS",
    value: "NUMBER",
    many: false,
    default: Some("4096"),
    example: "",
    scope: Scope::Server,
    help: "Client connections held at once, 1 to 1000000; the next ones wait. Each needs a file descriptor. One address \
           gets an eighth of them, but no less than 16",
};

pub(super) const MAX_REQUESTS: Key = Key {
    name: "max_requests",
    flag: "max-requests",
    env: "CAIRN_MAX_REQUESTS",
    value: "NUMBER",
    many: false,
    default: Some("1024"),
    example: "",
    scope: Scope::Server,
    help: "Requests of all clients at once, 1 to 1000000; the next ones are refused with 503. Unread answers \
           count, so it bounds the memory for them. One client gets an eighth, but no less than 16; past that it gets 429",
};

pub(super) const RATE_LIMIT: Key = Key {
    name: "rate_limit",
    flag: "rate-limit",
    env: "CAIRN_RATE_LIMIT",
    value: "RATE",
    many: false,
    default: None,
    example: "50/s:200",
    scope: Scope::Server,
    help: "Requests a second of one client, past which it gets 429, as 50/s, or with more at once after a silence as \
           50/s:200; none if it is not given. A client is an IPv4 address or an IPv6 network of 64 bits",
};

pub(super) const TRUSTED_PROXIES: Key = Key {
    name: "trusted_proxies",
    flag: "trusted-proxies",
    env: "CAIRN_TRUSTED_PROXIES",
    value: "IP",
    many: true,
    default: None,
    example: "127.0.0.1",
    scope: Scope::Server,
    help: "Addresses of proxies in front: their requests count for the client in X-Forwarded-For, and their connections are \
           not counted. From others that header is ignored, and a proxy that is not named here is one client",
};

pub(super) const READY_LAG: Key = Key {
    name: "ready_lag",
    flag: "ready-lag",
    env: "CAIRN_READY_LAG",
    value: "BLOCKS",
    many: false,
    default: Some("50"),
    example: "",
    scope: Scope::Service,
    help: "How many blocks the index may be behind the node for /readyz to answer 200 and not 503. Not for `cairn query`: it \
           asks no node, and is ready while it keeps up with the database, even if no process writes it any more",
};

pub(super) const CORS: Key = Key {
    name: "cors",
    flag: "cors",
    env: "CAIRN_CORS",
    value: "ORIGIN",
    many: true,
    default: Some("*"),
    example: "",
    scope: Scope::Server,
    help: "Web pages that may read the answers: `*` for all, `none`, or origins such as https://app.example and \
           https://*.example.com",
};

pub(super) const EMPTY_CURSOR: Key = Key {
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
