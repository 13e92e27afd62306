//! The methods: one table, from which calls are dispatched and the table of the book is made.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "a method of `Reads` is of one lifetime, and the table has functions of all"
)]

use std::fmt::Write as _;

use query::evm::Side;
use query::evm::history::Standard;

use crate::Dialect;
use crate::forward::Group;
use crate::ots::{code_params, has_code};
use crate::ots2;
use crate::params::{Type, Value};
use crate::reads::{Outcome, Reads, sha3};

/// The result of a call, from the index.
pub(crate) type Read = fn(&Reads<'_>, &[Value]) -> Outcome;

/// A method.
pub struct Method {
    /// As in `method`.
    pub name: &'static str,
    pub(crate) params: &'static [Type],
    pub(crate) source: Source,
}

impl Method {
    /// True if a node executes transactions for it.
    pub(crate) fn executes(&self) -> bool {
        let is_call = matches!(self.name, "eth_call" | "eth_createAccessList" | "eth_estimateGas");
        is_call || matches!(self.source, Source::Node(Group::Trace))
    }

    /// The method of a node that is called in its place, if it is another one.
    pub(crate) fn instead(&self) -> Option<&'static Instead> {
        match self.source {
            Source::Either(_, _, instead) => Some(instead),
            _ => None,
        }
    }

    /// True if its result is that of a node.
    pub const fn is_forwarded(&self) -> bool {
        matches!(self.source, Source::Node(_))
    }
}

/// Where the result of a method comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The index; in one dialect only, if one is named.
    Index(Read, Option<Dialect>),
    /// A node, if the group is forwarded.
    Node(Group),
    /// Another method of a node, if the group is forwarded, else the index, which knows less.
    Either(Read, Group, &'static Instead),
    /// The index, as messages over WebSocket.
    Subscription,
    /// The index, as what a client polls, if filters are switched on.
    Filter,
}

/// A method of a node in place of another one.
pub(crate) struct Instead {
    pub(crate) name: &'static str,
    /// Its parameters, as JSON.
    pub(crate) params: fn(&[Value]) -> String,
    /// The result that follows from its result.
    pub(crate) result: fn(Vec<u8>) -> Vec<u8>,
}

const fn index(name: &'static str, params: &'static [Type], read: Read) -> Method {
    Method { name, params, source: Source::Index(read, None) }
}

const fn node(name: &'static str, group: Group) -> Method {
    Method { name, params: &[], source: Source::Node(group) }
}

const fn filter(name: &'static str, params: &'static [Type]) -> Method {
    Method { name, params, source: Source::Filter }
}

const fn subscription(name: &'static str) -> Method {
    Method { name, params: &[], source: Source::Subscription }
}

/// All methods that are known, in the order of their names.
pub const METHODS: &[Method] = &[
    index("cosmos_cosmosTxHashByTxHash", &[Type::Hash], |reads, args| reads.cosmos_hash(args)),
    index("cosmos_txHashByCosmosTxHash", &[Type::CosmosHash], |reads, args| reads.evm_hash(args)),
    node("debug_storageRangeAt", Group::Trace),
    node("debug_traceBlockByHash", Group::Trace),
    node("debug_traceBlockByNumber", Group::Trace),
    node("debug_traceCall", Group::Trace),
    node("debug_traceTransaction", Group::Trace),
    index("erigon_getHeaderByNumber", &[Type::AnyBlock], |reads, args| reads.header(args)),
    Method {
        name: "eth_accounts",
        params: &[],
        source: Source::Index(|_, _| Ok(b"[]".to_vec()), Some(Dialect::Fixed)),
    },
    index("eth_blockNumber", &[], |reads, _| Ok(reads.block_number())),
    node("eth_call", Group::State),
    index("eth_chainId", &[], |reads, _| Ok(reads.chain_id()?)),
    node("eth_createAccessList", Group::State),
    node("eth_estimateGas", Group::State),
    node("eth_feeHistory", Group::State),
    node("eth_gasPrice", Group::State),
    node("eth_getBalance", Group::State),
    index("eth_getBlockByHash", &[Type::Hash, Type::Bool], |reads, args| reads.block(args)),
    index("eth_getBlockByNumber", &[Type::Block, Type::Bool], |reads, args| reads.block(args)),
    index("eth_getBlockReceipts", &[Type::BlockOrHash], |reads, args| reads.block_receipts(args)),
    index("eth_getBlockTransactionCountByHash", &[Type::Hash], |reads, args| reads.count(args)),
    index("eth_getBlockTransactionCountByNumber", &[Type::Block], |reads, args| reads.count(args)),
    node("eth_getCode", Group::State),
    filter("eth_getFilterChanges", &[Type::Id]),
    filter("eth_getFilterLogs", &[Type::Id]),
    index("eth_getLogs", &[Type::LogQuery], |reads, args| reads.logs(args)),
    index("eth_getRawTransactionByBlockHashAndIndex", &[Type::Hash, Type::Index], |reads, args| {
        reads.raw_at(args)
    }),
    index("eth_getRawTransactionByHash", &[Type::Hash], |reads, args| reads.raw(args)),
    node("eth_getStorageAt", Group::State),
    index("eth_getTransactionByBlockHashAndIndex", &[Type::Hash, Type::Index], |reads, args| {
        reads.transaction_at(args)
    }),
    index("eth_getTransactionByBlockNumberAndIndex", &[Type::Block, Type::Index], |reads, args| {
        reads.transaction_at(args)
    }),
    index("eth_getTransactionByHash", &[Type::Hash], |reads, args| reads.transaction(args)),
    node("eth_getTransactionCount", Group::State),
    index("eth_getTransactionReceipt", &[Type::Hash], |reads, args| reads.receipt(args)),
    index("eth_getUncleByBlockHashAndIndex", &[Type::Hash, Type::Index], |_, _| Ok(b"null".to_vec())),
    index("eth_getUncleByBlockNumberAndIndex", &[Type::Block, Type::Index], |_, _| Ok(b"null".to_vec())),
    index("eth_getUncleCountByBlockHash", &[Type::Hash], |_, _| Ok(br#""0x0""#.to_vec())),
    index("eth_getUncleCountByBlockNumber", &[Type::Block], |_, _| Ok(br#""0x0""#.to_vec())),
    index("eth_hashrate", &[], |_, _| Ok(br#""0x0""#.to_vec())),
    node("eth_maxPriorityFeePerGas", Group::State),
    index("eth_mining", &[], |_, _| Ok(b"false".to_vec())),
    filter("eth_newBlockFilter", &[]),
    filter("eth_newFilter", &[Type::LogQuery]),
    filter("eth_newPendingTransactionFilter", &[]),
    node("eth_pendingTransactions", Group::Pending),
    node("eth_sendRawTransaction", Group::Send),
    node("eth_sendRawTransactionSync", Group::Send),
    subscription("eth_subscribe"),
    index("eth_syncing", &[], |reads, _| Ok(reads.syncing())),
    filter("eth_uninstallFilter", &[Type::Id]),
    subscription("eth_unsubscribe"),
    index("net_listening", &[], |_, _| Ok(b"true".to_vec())),
    index("net_peerCount", &[], |_, _| Ok(br#""0x0""#.to_vec())),
    index("net_version", &[], |reads, _| Ok(reads.net_version())),
    index("ots2_getAddressAttributes", &[Type::Address], |reads, args| reads.address_attributes(args)),
    index("ots2_getAllContractsCount", &[], |reads, _| reads.created_contracts()),
    index("ots2_getAllContractsList", PAGE, |reads, args| reads.created_contract_list(args)),
    index("ots2_getBlocksRewardedCount", &[Type::Address], |_, _| Ok(b"0".to_vec())),
    index("ots2_getBlocksRewardedList", SEARCH, |_, _| Ok(ots2::none())),
    index("ots2_getERC1155Count", &[], |reads, _| reads.token_contracts(Standard::Erc1155)),
    index("ots2_getERC1155List", PAGE, |reads, args| reads.token_contract_list(Standard::Erc1155, args)),
    index("ots2_getERC20Count", &[], |reads, _| reads.token_contracts(Standard::Erc20)),
    index("ots2_getERC20Holdings", &[Type::Address], |reads, args| reads.holdings(args)),
    index("ots2_getERC20List", PAGE, |reads, args| reads.token_contract_list(Standard::Erc20, args)),
    index("ots2_getERC20TransferCount", &[Type::Address], |reads, args| {
        reads.transferring_txs(Standard::Erc20, args)
    }),
    index("ots2_getERC20TransferList", SEARCH, |reads, args| reads.transferring_list(Standard::Erc20, args)),
    index("ots2_getERC721Count", &[], |reads, _| reads.token_contracts(Standard::Erc721)),
    index("ots2_getERC721List", PAGE, |reads, args| reads.token_contract_list(Standard::Erc721, args)),
    index("ots2_getERC721TransferCount", &[Type::Address], |reads, args| {
        reads.transferring_txs(Standard::Erc721, args)
    }),
    index("ots2_getERC721TransferList", SEARCH, |reads, args| {
        reads.transferring_list(Standard::Erc721, args)
    }),
    index("ots2_getWithdrawalsCount", &[Type::Address], |_, _| Ok(b"0".to_vec())),
    index("ots2_getWithdrawalsList", SEARCH, |_, _| Ok(ots2::none())),
    index("ots_getApiLevel", &[], |_, _| Ok(API_LEVEL.to_vec())),
    index("ots_getBlockDetails", &[Type::AnyBlock], |reads, args| reads.block_details(args)),
    index("ots_getBlockDetailsByHash", &[Type::Hash], |reads, args| reads.block_details(args)),
    index("ots_getBlockTransactions", &[Type::AnyBlock, Type::Number, Type::Number], |reads, args| {
        reads.block_page(args)
    }),
    index("ots_getContractCreator", &[Type::Address], |reads, args| reads.contract_creator(args)),
    index("ots_getHeaderByNumber", &[Type::AnyBlock], |reads, args| reads.header(args)),
    index("ots_getInternalOperations", &[Type::Hash], |reads, args| reads.internal_operations(args)),
    index("ots_getTransactionBySenderAndNonce", &[Type::Address, Type::Number], |reads, args| {
        reads.by_nonce(args)
    }),
    index("ots_getTransactionError", &[Type::Hash], |reads, args| reads.revert_data(args)),
    Method {
        name: "ots_hasCode",
        params: &[Type::Address, Type::AnyBlockOrNone],
        source: Source::Either(|reads, args| reads.has_code(args), Group::State, &CODE),
    },
    index("ots_searchTransactionsAfter", SEARCH, |reads, args| reads.search(Side::After, args)),
    index("ots_searchTransactionsBefore", SEARCH, |reads, args| reads.search(Side::Before, args)),
    index("ots_traceTransaction", &[Type::Hash], |reads, args| reads.trace(args)),
    index("rpc_modules", &[], |_, _| Ok(MODULES.as_bytes().to_vec())),
    node("txpool_content", Group::Pending),
    node("txpool_contentFrom", Group::Pending),
    node("txpool_inspect", Group::Pending),
    node("txpool_status", Group::Pending),
    index("web3_clientVersion", &[], |reads, _| Ok(reads.client_version())),
    index("web3_sha3", &[Type::Bytes], |_, args| sha3(args)),
];

/// The level of Otterscan's methods here.
const API_LEVEL: &[u8] = b"8";

/// An account, a height and the size of a page.
const SEARCH: &[Type] = &[Type::Address, Type::Number, Type::Number];

/// The place of the first row and the number of rows.
const PAGE: &[Type] = &[Type::Number, Type::Number];

/// A contract is an account with code.
const CODE: Instead = Instead { name: "eth_getCode", params: code_params, result: has_code };

/// The prefixes of the methods, with the versions that all nodes report.
const MODULES: &str =
    r#"{"cosmos":"1.0","debug":"1.0","eth":"1.0","net":"1.0","rpc":"1.0","txpool":"1.0","web3":"1.0"}"#;

/// The method with this name.
pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.binary_search_by(|method| method.name.cmp(name)).ok().map(|place| &METHODS[place])
}

/// The table of the book: a row for each method.
pub fn table() -> String {
    let mut table = "| method | result |\n|---|---|\n".to_owned();
    for Method { name, source, .. } in METHODS {
        let result = match source {
            Source::Index(_, None) => "index".to_owned(),
            Source::Index(_, Some(_)) => "index, with `evm_replies = \"fixed\"`".to_owned(),
            Source::Node(group) => format!("node, with `{}` in `evm_forward`", group.name()),
            Source::Either(_, group, _) => format!("index; node, with `{}` in `evm_forward`", group.name()),
            Source::Subscription => "index, over WebSocket".to_owned(),
            Source::Filter => "index, with `evm_filters`".to_owned(),
        };
        // Writing to a text does not fail.
        let _ = writeln!(table, "| `{name}` | {result} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_are_in_the_order_of_their_names() {
        assert!(METHODS.is_sorted_by(|one, next| one.name < next.name));
    }
}
