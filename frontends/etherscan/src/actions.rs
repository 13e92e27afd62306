//! The actions: one table, from which requests are dispatched and the table of the book is made.

use std::fmt::Write as _;

use evm_rpc::Group;

use crate::contracts::Contract;
use crate::form::Form;
use crate::holders::Follow;
use crate::node::{self, Print, Request};
use crate::outcome::{Failure, Outcome};
use crate::reads::Reads;
use crate::{account, block, contract, holders, logs, proxy_contract, status, token};

/// The text for another chain, as Etherscan has it.
pub(crate) const NO_CHAIN: &str = "Missing or unsupported chainid parameter (required for v2 api), please see \
                                   /v2/chainlist for the list of supported chainids";

/// An action of a module.
pub(crate) struct Action {
    module: &'static str,
    name: &'static str,
    /// What it needs, for the book.
    needs: &'static str,
    pub(crate) source: Source,
}

/// Where its result comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The index.
    Index(fn(&Reads<'_>) -> Outcome),
    /// What is known of the contract at `address`.
    Contract(fn(Option<&Contract>) -> Outcome),
    /// The index, and then a node about what was found.
    IndexAndNode(fn(&Reads<'_>) -> Result<Follow, Failure>),
    /// What is known of the contract that a request for a check of it names.
    Check(fn(&Form) -> Result<[u8; 20], Failure>, fn(&Form, Option<&Contract>) -> Outcome),
    /// A server of Sourcify: a verification begins.
    Verify,
    /// The same: how it went.
    Verification,
    /// Ethereum's JSON-RPC, and with it a node for some methods: for all, if there is a group that must be forwarded.
    Node(Option<Group>, Request, Print),
}

const fn index(
    module: &'static str,
    name: &'static str,
    needs: &'static str,
    read: fn(&Reads<'_>) -> Outcome,
) -> Action {
    Action { module, name, needs, source: Source::Index(read) }
}

const fn of_contract(name: &'static str, needs: &'static str, source: Source) -> Action {
    Action { module: "contract", name, needs, source }
}

const fn index_and_node(
    module: &'static str,
    name: &'static str,
    read: fn(&Reads<'_>) -> Result<Follow, Failure>,
) -> Action {
    let needs = "`rich_list`, `internal_txs`, `state` in `evm_forward`";
    Action { module, name, needs, source: Source::IndexAndNode(read) }
}

const STATE: &str = "`state` in `evm_forward`";

const fn node(module: &'static str, name: &'static str, request: Request, print: Print) -> Action {
    Action { module, name, needs: STATE, source: Source::Node(Some(Group::State), request, print) }
}

/// An action of module `proxy`, which has the name of its method, with its parameters.
macro_rules! proxy {
    ($action:literal, $method:literal, $needs:expr, $names:expr) => {
        Action {
            module: "proxy",
            name: $action,
            needs: $needs,
            source: Source::Node(None, |form| node::proxied($method, &$names, form), node::bare),
        }
    };
}

const BLOCKS: &str = "index `blocks`";

const HELD: &str = "`rich_list`, `internal_txs`";

/// All actions.
const ACTIONS: &[Action] = &[
    index("account", "addresstokenbalance", HELD, holders::addresstokenbalance),
    node("account", "balance", node::balance_of_one, node::one_number),
    node("account", "balancemulti", node::balance_of_several, node::balances),
    index("account", "getminedblocks", "", account::getminedblocks),
    index_and_node("account", "listaccounts", holders::listaccounts),
    index("account", "token1155tx", "index `logs`", account::token1155tx),
    node("account", "tokenbalance", node::token_balance, node::one_number),
    index("account", "tokenlist", HELD, holders::tokenlist),
    index("account", "tokennfttx", "index `logs`", account::tokennfttx),
    index("account", "tokentx", "index `logs`", account::tokentx),
    index("account", "txlist", "index `parties`", account::txlist),
    index("account", "txlistinternal", "`internal_txs`", account::txlistinternal),
    index("block", "getblockcountdown", "", block::getblockcountdown),
    index("block", "getblocknobytime", "", status::getblocknobytime),
    index("block", "getblockreward", "", block::getblockreward),
    of_contract(
        "checkproxyverification",
        "`abi` or `sourcify`",
        Source::Check(proxy_contract::of_guid, proxy_contract::checkproxyverification),
    ),
    of_contract("checkverifystatus", "`sourcify`", Source::Verification),
    of_contract("getabi", "`abi` or `sourcify`", Source::Contract(contract::getabi)),
    index("contract", "getcontractcreation", "index `contracts`", contract::getcontractcreation),
    of_contract("getsourcecode", "`abi` or `sourcify`", Source::Contract(contract::getsourcecode)),
    index(
        "contract",
        "listcontracts",
        "index `contracts`, or `abi` with `filter=verified`",
        contract::listcontracts,
    ),
    index("contract", "verifyproxycontract", "", proxy_contract::verifyproxycontract),
    of_contract("verifysourcecode", "`sourcify`", Source::Verify),
    index("getapilimit", "getapilimit", "", status::getapilimit),
    index("logs", "getlogs", "index `logs`", logs::get_logs),
    proxy!("eth_blocknumber", "eth_blockNumber", "", []),
    proxy!("eth_call", "eth_call", STATE, ["call", "tag"]),
    proxy!("eth_estimategas", "eth_estimateGas", STATE, ["call"]),
    proxy!("eth_gasprice", "eth_gasPrice", STATE, []),
    proxy!("eth_getblockbynumber", "eth_getBlockByNumber", BLOCKS, ["tag", "boolean"]),
    proxy!("eth_getblocktransactioncountbynumber", "eth_getBlockTransactionCountByNumber", "", ["tag"]),
    proxy!("eth_getcode", "eth_getCode", STATE, ["address", "tag"]),
    proxy!("eth_getstorageat", "eth_getStorageAt", STATE, ["address", "position", "tag"]),
    proxy!(
        "eth_gettransactionbyblocknumberandindex",
        "eth_getTransactionByBlockNumberAndIndex",
        "",
        ["tag", "index"]
    ),
    proxy!("eth_gettransactionbyhash", "eth_getTransactionByHash", "", ["txhash"]),
    proxy!("eth_gettransactioncount", "eth_getTransactionCount", STATE, ["address", "tag"]),
    proxy!("eth_gettransactionreceipt", "eth_getTransactionReceipt", "", ["txhash"]),
    proxy!("eth_getunclebyblocknumberandindex", "eth_getUncleByBlockNumberAndIndex", "", ["tag", "index"]),
    proxy!("eth_sendrawtransaction", "eth_sendRawTransaction", "`send` in `evm_forward`", ["hex"]),
    index_and_node("stats", "ethsupply", holders::ethsupply),
    node("stats", "tokensupply", node::token_supply, node::one_number),
    index("token", "gettoken", "index `tokens`", token::gettoken),
    index("token", "tokeninfo", "index `tokens`", token::tokeninfo),
    index("token", "gettokenholders", "`rich_list`", holders::gettokenholders),
    index("token", "tokenholdercount", "`rich_list`", holders::tokenholdercount),
    index("token", "tokenholderlist", "`rich_list`", holders::tokenholderlist),
    index("transaction", "getstatus", "", status::getstatus),
    index("transaction", "gettxreceiptstatus", "", status::gettxreceiptstatus),
];

/// The action that a request names.
pub(crate) fn find(form: &Form) -> Result<&'static Action, Failure> {
    let name = |name: &str| form.get(name).map(str::to_ascii_lowercase).unwrap_or_default();
    let (module, action) = (name("module"), name("action"));
    let missing = |text: &str| Failure::Text(text.to_owned());
    if !ACTIONS.iter().any(|known| known.module == module) {
        return Err(missing("Error! Missing Or invalid Module name"));
    }
    let found = ACTIONS.iter().find(|known| known.module == module && known.name == action);
    found.ok_or_else(|| missing("Error! Missing Or invalid Action name"))
}

/// The table of the book: a row for each action.
pub fn table() -> String {
    let mut table = "| module | action | needs |\n|---|---|---|\n".to_owned();
    for Action { module, name, needs, .. } in ACTIONS {
        // Writing to a text does not fail.
        let _ = writeln!(table, "| `{module}` | `{name}` | {needs} |");
    }
    table
}
