//! The routing service beside the index.

use super::{Key, Scope};

pub(super) const ROUTE_REGISTRY: Key = Key {
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

pub(super) const ROUTE_DATA: Key = Key {
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

pub(super) const ROUTE_LISTEN: Key = Key {
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
