//! EVM transactions.

use schema::evm_tx::{AccountEvmTxs, EvmTxByHash};
use schema::keys::{HashPrefix, Owner, Role, hash_prefix};
use store::Order;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param, Type};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::{block, list, one};
use crate::array::{Array, Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params::{self, Paging};
use crate::record;

/// Maximum number of records with the same hash prefix that are read.
const MAX_CANDIDATES: usize = 64;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-txs",
        tag: "EVM Tx",
        summary: "All EVM transactions.",
        params: &[PAGINATION],
        response: &EVM_TXS,
        handler: Handler::Now(txs),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-txs/by_account/{account}",
        tag: "EVM Tx",
        summary: "EVM transactions that involve an account.",
        params: &[
            Param::path("account", "Bech32 or hex."),
            Param::query_or("is_signer", Type::Boolean, "false", "Only transactions that the account sent."),
            PAGINATION,
        ],
        response: &EVM_TXS,
        handler: Handler::Now(by_account),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-txs/by_height/{height}",
        tag: "EVM Tx",
        summary: "EVM transactions of a block.",
        params: &[Param::path("height", "A height, 1 or more."), PAGINATION],
        response: &EVM_TXS,
        handler: Handler::Now(by_height),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-txs/{tx_hash}",
        tag: "EVM Tx",
        summary: "One EVM transaction.",
        params: &[Param::path("tx_hash", "The EVM hash in hex, with or without 0x.")],
        response: &EVM_TX_RESPONSE,
        handler: Handler::Now(by_hash),
        cache: Freshness::RECORD,
    },
];

static LOG: Schema = Schema {
    name: "evm-tx.EvmLog",
    doc: "A log of an EVM transaction.",
    fields: &[
        Field::new("address", Kind::String, ""),
        Field::new("topics", Kind::Array(&Kind::String), ""),
        Field::new("data", Kind::String, ""),
        Field::new("blockNumber", Kind::String, ""),
        Field::new("transactionHash", Kind::String, ""),
        Field::new("transactionIndex", Kind::String, ""),
        Field::new("blockHash", Kind::String, ""),
        Field::new("logIndex", Kind::String, ""),
        Field::new("removed", Kind::Boolean, ""),
    ],
};

static EVM_TX: Schema = Schema {
    name: "evm-tx.EvmTx",
    doc: "An EVM transaction: its receipt. Quantities are hex as the node prints them.",
    fields: &[
        Field::new("blockHash", Kind::String, "Of the EVM block, which is not the block's own hash."),
        Field::new("blockNumber", Kind::String, ""),
        Field::nullable("contractAddress", Kind::String, "The created contract."),
        Field::new("cumulativeGasUsed", Kind::String, ""),
        Field::new("effectiveGasPrice", Kind::String, ""),
        Field::new("from", Kind::String, "The zero address for a Cosmos transaction with EVM logs."),
        Field::new("gasUsed", Kind::String, ""),
        Field::new("logs", Kind::Array(&Kind::Object(&LOG)), ""),
        Field::new("logsBloom", Kind::String, ""),
        Field::new("status", Kind::String, "0x1 on success, 0x0 on failure."),
        Field::new("to", Kind::String, "Empty for a creation."),
        Field::new("transactionHash", Kind::String, ""),
        Field::new("transactionIndex", Kind::String, ""),
        Field::new("type", Kind::String, ""),
    ],
};

static EVM_TXS: Schema = Schema {
    name: "evm-tx.EvmTxsResponse",
    doc: "A page of EVM transactions.",
    fields: &[
        Field::new("txs", Kind::Array(&Kind::Object(&EVM_TX)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
};

static EVM_TX_RESPONSE: Schema = Schema {
    name: "evm-tx.EvmTxResponse",
    doc: "One EVM transaction.",
    fields: &[Field::new("tx", Kind::Object(&EVM_TX), "")],
};

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let paging = Paging::of(call, Space::EvmTxs)?;
    let view = indexer.view()?;
    let all = Run { first: 1, len: view.blocks()?.evm_txs };
    answer(indexer, &view, &paging, &all)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let owner = Owner(params::account(call, indexer)?);
    let paging = Paging::of(call, Space::EvmTxs)?;
    let view = indexer.view()?;
    let role = if call.boolean("is_signer", false) { Role::Signer } else { Role::Involved };
    let all = Stored::<AccountEvmTxs>::all(view.snapshot(), (owner, role)).map_err(Refusal::internal)?;
    answer(indexer, &view, &paging, &all)
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let height = params::height(call)?;
    let paging = Paging::of(call, Space::EvmTxs)?;
    let view = indexer.view()?;
    let of_block =
        block::at(&view, height)?.map(|block| Run { first: block.first_evm_tx, len: block.evm_txs });
    answer(indexer, &view, &paging, &of_block.unwrap_or(Run { first: 1, len: 0 }))
}

fn answer(
    indexer: &Indexer,
    view: &View<'_>,
    paging: &Paging<u64>,
    array: &dyn Array<Row = u64>,
) -> Result<Reply, Refusal> {
    list(indexer, "txs", array, paging, None, |out, seqs| {
        record::evm_txs(out, view.snapshot(), &indexer.codec, seqs)
    })
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let unknown = || Refusal::not_found(format!("tx not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let found = find(indexer, &indexer.view()?, &hash)?.ok_or_else(unknown)?;
    one("tx", |out| {
        out.extend_from_slice(&found);
        Ok(())
    })
}

/// The record of the transaction `hash`, if there is one.
pub(super) fn find(indexer: &Indexer, view: &View<'_>, hash: &[u8; 32]) -> Result<Option<Vec<u8>>, Refusal> {
    let prefix: HashPrefix = hash_prefix(hash);
    let candidates = store::table::rows::<EvmTxByHash>(view.snapshot(), &prefix, Order::Desc, MAX_CANDIDATES)
        .map_err(Refusal::internal)?;
    let mut candidate = Vec::new();
    for ((_, seq), ()) in candidates {
        candidate.clear();
        record::evm_txs(&mut candidate, view.snapshot(), &indexer.codec, &[seq])?;
        if has_hash(&candidate, hash) {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}

/// Whether a record, which contains its hash near its end, has the hash `hash`.
fn has_hash(record: &[u8], hash: &[u8; 32]) -> bool {
    let member = format!(r#""transactionHash":"0x{}""#, chain::hash::to_hex(hash));
    memchr::memmem::rfind(record, member.as_bytes()).is_some()
}
