//! Internal transactions: the call frames of EVM transactions.

use schema::internal_tx::{AccountCalls, CallsByHash, CallsByHeight};
use schema::keys::{HashPrefix, Owner, hash_prefix};
use store::{Message, Order};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::{evm_tx, list};
use crate::array::{Array, Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params::{self, Paging};
use crate::record;

/// Maximum number of transactions with the same hash prefix that are read.
const MAX_CANDIDATES: usize = 64;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-internal-txs",
        tag: "EVM Internal Tx",
        summary: "All call frames, each transaction's depth first.",
        params: &[PAGINATION],
        response: &INTERNAL_TXS,
        handler: Handler::Now(all),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-internal-txs/by_account/{account}",
        tag: "EVM Internal Tx",
        summary: "Call frames that an account calls or is called in.",
        params: &[Param::path("account", "Bech32 or hex."), PAGINATION],
        response: &INTERNAL_TXS,
        handler: Handler::Now(by_account),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-internal-txs/by_height/{height}",
        tag: "EVM Internal Tx",
        summary: "Call frames of a block.",
        params: &[Param::path("height", "A height, 1 or more."), PAGINATION],
        response: &INTERNAL_TXS,
        handler: Handler::Now(by_height),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/evm-internal-txs/{tx_hash}",
        tag: "EVM Internal Tx",
        summary: "Call frames of an EVM transaction.",
        params: &[Param::path("tx_hash", "The EVM hash in hex, with or without 0x."), PAGINATION],
        response: &INTERNAL_TXS,
        handler: Handler::Now(by_hash),
        cache: Freshness::RECORD,
    },
];

static INTERNAL_TX: Schema = Schema {
    name: "evm-internal-tx.EvmInternalTx",
    doc: "A call frame. Quantities are hex of whole bytes; 0x where the tracer gave none.",
    fields: &[
        Field::new("height", Kind::Integer, ""),
        Field::new("hash", Kind::String, "The EVM transaction."),
        Field::new("parent_index", Kind::Integer, "The calling frame; -1 for the first."),
        Field::new("index", Kind::Integer, "Its place in the transaction, depth first from 0."),
        Field::new("type", Kind::String, "CALL, STATICCALL, DELEGATECALL, CREATE and so on."),
        Field::new("from", Kind::String, ""),
        Field::new("to", Kind::String, "Empty if the frame has none."),
        Field::new("input", Kind::String, ""),
        Field::new("output", Kind::String, ""),
        Field::new("value", Kind::String, ""),
        Field::new("gas", Kind::String, ""),
        Field::new("gasUsed", Kind::String, ""),
    ],
};

static INTERNAL_TXS: Schema = Schema {
    name: "evm-internal-tx.EvmInternalTxsResponse",
    doc: "A page of call frames.",
    fields: &[
        Field::new("internal_txs", Kind::Array(&Kind::Object(&INTERNAL_TX)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
};

fn all(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let paging = Paging::of(call, Space::Calls)?;
    let view = indexer.view()?;
    let all = Run { first: 1, len: view.calls()?.calls };
    answer(indexer, &view, &paging, &all)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let owner = Owner(params::account(call, indexer)?);
    let paging = Paging::of(call, Space::Calls)?;
    let view = indexer.view()?;
    let all = Stored::<AccountCalls>::all(view.snapshot(), owner).map_err(Refusal::internal)?;
    answer(indexer, &view, &paging, &all)
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    let height = params::height(call)?;
    let paging = Paging::of(call, Space::Calls)?;
    let view = indexer.view()?;
    let row = store::table::read::<CallsByHeight>(view.snapshot(), &height).map_err(Refusal::internal)?;
    let run =
        row.map_or(Run { first: 1, len: 0 }, |Message(calls)| Run { first: calls.first, len: calls.count });
    answer(indexer, &view, &paging, &run)
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    indexer.evm_only()?;
    // In this order, because the deployed server validates the pagination first here.
    let paging = Paging::of(call, Space::Calls)?;
    let unknown = || Refusal::not_found(format!("transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let view = indexer.view()?;
    let prefix: HashPrefix = hash_prefix(&hash);
    let candidates = store::table::rows::<CallsByHash>(view.snapshot(), &prefix, Order::Desc, MAX_CANDIDATES)
        .map_err(Refusal::internal)?;
    let mut frame = Vec::new();
    for ((_, first), count) in candidates {
        frame.clear();
        record::calls(&mut frame, view.snapshot(), &indexer.codec, &[first])?;
        if has_hash(&frame, &hash) {
            return answer(indexer, &view, &paging, &Run { first, len: count });
        }
    }
    // Transactions of the chain's first block, and those that the node cannot trace, have no frames.
    evm_tx::find(indexer, &view, &hash)?.ok_or_else(unknown)?;
    answer(indexer, &view, &paging, &Run { first: 1, len: 0 })
}

/// Whether a frame's record, which contains its transaction's hash near its beginning, has the hash `hash`.
fn has_hash(frame: &[u8], hash: &[u8; 32]) -> bool {
    let member = format!(r#""hash":"0x{}""#, chain::hash::to_hex(hash));
    memchr::memmem::find(frame, member.as_bytes()).is_some()
}

fn answer(
    indexer: &Indexer,
    view: &View<'_>,
    paging: &Paging<u64>,
    array: &dyn Array<Row = u64>,
) -> Result<Reply, Refusal> {
    list(indexer, "internal_txs", array, paging, None, |out, seqs| {
        record::calls(out, view.snapshot(), &indexer.codec, seqs)
    })
}
