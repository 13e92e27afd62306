//! The chain and its node: what is indexed, and from where.

use super::{Key, Scope};

pub(super) const CHAIN_ID: Key = Key {
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

pub(super) const VM: Key = Key {
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

pub(super) const COMET: Key = Key {
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

pub(super) const REST: Key = Key {
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

pub(super) const JSON_RPC: Key = Key {
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

pub(super) const GRPC: Key = Key {
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

pub(super) const PREFIX: Key = Key {
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

pub(super) const START_HEIGHT: Key = Key {
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
