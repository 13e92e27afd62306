//! The routing service beside the index.

use super::{Key, Scope};

pub(super) const ROUTE_REGISTRY: Key = Key {
    name: "route.registry",
    flag: "route-registry",
    env: "CAIRN_ROUTE_REGISTRY",
    value: "DIR",
    many: false,
    default: None,
    example: "routing/registry/example",
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

pub(super) const ROUTE_RETENTION: Key = Key {
    name: "route.retention",
    flag: "route-retention",
    env: "CAIRN_ROUTE_RETENTION",
    value: "TIME",
    many: false,
    default: Some("30d"),
    example: "",
    scope: Scope::Route,
    help: "How long a tracked transfer is kept after its last change, once it is over: 1h to 3650d",
};

pub(super) const ROUTE_TRACK_RATE: Key = Key {
    name: "route.track_rate",
    flag: "route-track-rate",
    env: "CAIRN_ROUTE_TRACK_RATE",
    value: "RATE",
    many: false,
    default: Some("5/s:50"),
    example: "",
    scope: Scope::Route,
    help: "Requests a second of one client to /v2/tx/track, past which it gets 429, in the form of `rate_limit`, beside which \
           it holds; `off` for as many as it likes",
};

pub(super) const ROUTE_UNSEEN_PER_CLIENT: Key = Key {
    name: "route.unseen_per_client",
    flag: "route-unseen-per-client",
    env: "CAIRN_ROUTE_UNSEEN_PER_CLIENT",
    value: "MAX",
    many: false,
    default: Some("100"),
    example: "",
    scope: Scope::Route,
    help: "Registered transactions of one client that no node has seen, 1 to 1000000, past which it gets 429. They are deleted \
           an hour after they were given up, which is 5 minutes after registration, or after 24 hours where no node answers",
};

pub(super) const ROUTE_UNSEEN_PER_CHAIN: Key = Key {
    name: "route.unseen_per_chain",
    flag: "route-unseen-per-chain",
    env: "CAIRN_ROUTE_UNSEEN_PER_CHAIN",
    value: "MAX",
    many: false,
    default: Some("10000"),
    example: "",
    scope: Scope::Route,
    help: "The same for all clients together on one chain. Past it, one that was given up makes room, and if there is none the \
           answer is 429",
};
