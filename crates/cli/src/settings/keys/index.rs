//! How the chain is indexed.

use super::{Key, Scope};

pub(super) const INTERNAL_TXS: Key = Key {
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

pub(super) const RICH_LIST: Key = Key {
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

pub(super) const RECONCILE: Key = Key {
    name: "reconcile",
    flag: "reconcile",
    env: "CAIRN_RECONCILE",
    value: "TIME",
    many: false,
    default: Some("60s"),
    example: "",
    scope: Scope::Service,
    help: "How often some holders of an ERC-20 are compared with the answers of its contract, 1s to 1440m, or 0s for never; a \
           token that differs is asked about whole",
};

pub(super) const LOOK_AHEAD: Key = Key {
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

pub(super) const POLL: Key = Key {
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

pub(super) const VERIFY: Key = Key {
    name: "verify",
    flag: "verify",
    env: "CAIRN_VERIFY",
    value: "WHAT",
    many: false,
    default: Some("hashes"),
    example: "",
    scope: Scope::Service,
    help: "What of the node's answers is checked before it is committed: off (parents only), hashes (headers, transactions, results \
           and receipts against each other), or signatures (the validators' too)",
};

pub(super) const TRUSTED: Key = Key {
    name: "trusted",
    flag: "trusted",
    env: "CAIRN_TRUSTED",
    value: "HEIGHT:HASH",
    many: false,
    default: None,
    example: "1:2D352275F6F4D7F8F5DA86DD8BB5988FF2C5FBAC58FF8C5374ACD85459F9184C",
    scope: Scope::Service,
    help: "With `verify = signatures`: a trusted block, from which on the validators are trusted; by default the first \
           block that is fetched",
};

pub(super) const MAX_REWIND: Key = Key {
    name: "max_rewind",
    flag: "max-rewind",
    env: "CAIRN_MAX_REWIND",
    value: "BLOCKS",
    many: false,
    default: Some("10000"),
    example: "",
    scope: Scope::Service,
    help: "Maximum number of blocks that are rolled back if the node follows another history; beyond it the \
           program stops with an error",
};
