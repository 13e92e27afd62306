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
    scope: Scope::Route,
    help: "Directory of a registry: chains, assets, channels, bridges. `cairn route` needs it, and with it `cairn run` plans \
           and follows transfers as well. Read again on SIGHUP",
};

pub(super) const ROUTE_DATA: Key = Key {
    name: "route.data",
    flag: "route-data",
    env: "CAIRN_ROUTE_DATA",
    value: "DIR",
    many: false,
    default: None,
    example: "/var/lib/cairn-route",
    scope: Scope::Route,
    help: "Directory of the database of tracked transfers, made if it does not exist; `cairn run` needs it with \
           `route.registry`, for `cairn route` it is cairn-route if it is not given",
};

pub(super) const ROUTE_LISTEN: Key = Key {
    name: "route.listen",
    flag: "route-listen",
    env: "CAIRN_ROUTE_LISTEN",
    value: "ADDR",
    many: false,
    default: Some("127.0.0.1:8081"),
    example: "",
    scope: Scope::Route,
    help: "IP address and port that the routing interface listens on; port 0 takes a free one",
};
