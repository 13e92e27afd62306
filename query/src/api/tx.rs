//! Cosmos transactions.

use schema::keys::{HashPrefix, Owner, Role, hash_prefix};
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, TxByHash, Txs};
use store::{Order, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param, Type};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::{block, list};
use crate::array::{Array, Run, Stored, Union};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params::{self, Paging};
use crate::record;

/// Maximum number of records with the same hash prefix that are read. The same bytes are never included more often, and
/// random collisions of two hashes do not occur.
const MAX_CANDIDATES: usize = 64;

const MSGS: Param = Param::query(
    "msgs",
    Type::Texts,
    "Only transactions with a top-level message of one of these types, e.g. cosmos.bank.v1beta1.MsgSend.",
);

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/txs",
        tag: "Tx",
        summary: "All transactions.",
        params: &[PAGINATION, MSGS],
        response: &TXS,
        handler: Handler::Now(txs),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/txs/count",
        tag: "Tx",
        summary: "How many transactions there are.",
        params: &[],
        response: &COUNT,
        handler: Handler::Now(count),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/txs/by_account/{account}",
        tag: "Tx",
        summary: "Transactions that involve an account.",
        params: &[
            Param::path("account", "Bech32 or hex."),
            Param::query_or(
                "is_signer",
                Type::Boolean,
                "false",
                "Only transactions that the account signed.",
            ),
            PAGINATION,
            MSGS,
        ],
        response: &TXS,
        handler: Handler::Now(by_account),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/txs/by_height/{height}",
        tag: "Tx",
        summary: "Transactions of a block.",
        params: &[Param::path("height", "A height, 1 or more."), PAGINATION, MSGS],
        response: &TXS,
        handler: Handler::Now(by_height),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/tx/v1/txs/{tx_hash}",
        tag: "Tx",
        summary: "One transaction.",
        params: &[Param::path("tx_hash", "Hex, with or without 0x.")],
        response: &TX_RESPONSE,
        handler: Handler::Now(by_hash),
        cache: Freshness::RECORD,
    },
];

static TX: Schema = Schema {
    name: "tx.Tx",
    doc: "A transaction.",
    fields: &[
        Field::new("txhash", Kind::String, "Upper-case hex."),
        Field::new("height", Kind::String, "Decimal."),
        Field::new("codespace", Kind::String, "Empty on success."),
        Field::new("code", Kind::Integer, "0 on success."),
        Field::new("data", Kind::String, "Upper-case hex."),
        Field::new("raw_log", Kind::String, "The error, on failure."),
        Field::new("logs", Kind::Array(&Kind::Free), "Empty since cosmos-sdk 0.50."),
        Field::new("info", Kind::String, ""),
        Field::new("gas_wanted", Kind::String, "Decimal."),
        Field::new("gas_used", Kind::String, "Decimal."),
        Field::new("tx", Kind::Free, "The transaction as the node's REST prints it, `@type` first."),
        Field::new("timestamp", Kind::String, "RFC 3339, UTC, nanoseconds without trailing zeros."),
        Field::new("events", Kind::Array(&Kind::Free), "In the order of the chain."),
    ],
};

pub(super) static TXS: Schema = Schema {
    name: "tx.TxsResponse",
    doc: "A page of transactions.",
    fields: &[
        Field::new("txs", Kind::Array(&Kind::Object(&TX)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
};

static TX_RESPONSE: Schema = Schema {
    name: "tx.TxResponse",
    doc: "One transaction.",
    fields: &[Field::new("tx", Kind::Object(&TX), "")],
};

static COUNT: Schema = Schema {
    name: "tx.CountResponse",
    doc: "How many transactions there are.",
    fields: &[Field::new("count", Kind::String, "Decimal.")],
};

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let paging = Paging::of(call, Space::Txs)?;
    let view = indexer.view()?;
    let all = Run { first: 1, len: view.blocks()?.txs };
    within(indexer, &view, call, &paging, all)
}

fn count(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(format!(r#"{{"count":"{}"}}"#, indexer.view()?.blocks()?.txs)))
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let height = params::height(call)?;
    let paging = Paging::of(call, Space::Txs)?;
    let view = indexer.view()?;
    let of_block = block::at(&view, height)?.map(|block| Run { first: block.first_tx, len: block.txs });
    within(indexer, &view, call, &paging, of_block.unwrap_or(Run { first: 1, len: 0 }))
}

/// The transactions of `run` that pass the filter.
fn within(
    indexer: &Indexer,
    view: &View<'_>,
    call: &Call<'_>,
    paging: &Paging<u64>,
    run: Run,
) -> Result<Reply, Refusal> {
    let Some(sets) = params::sets(call, view.snapshot())? else {
        return answer(indexer, view, paging, &run);
    };
    let part = |set: u32| -> Result<Box<dyn Array<Row = u64> + '_>, store::Error> {
        Ok(Box::new(Stored::<SetTxs>::all(view.snapshot(), set)?.within(run)?))
    };
    let parts = sets.into_iter().map(part).collect::<Result<_, _>>().map_err(Refusal::internal)?;
    answer(indexer, view, paging, &Union::of(parts))
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let owner = Owner(params::account(call, indexer)?);
    let paging = Paging::of(call, Space::Txs)?;
    let view = indexer.view()?;
    let role = if call.boolean("is_signer", false) { Role::Signer } else { Role::Involved };
    let Some(sets) = params::sets(call, view.snapshot())? else {
        let all = Stored::<AccountTxs>::all(view.snapshot(), (owner, role)).map_err(Refusal::internal)?;
        return answer(indexer, &view, &paging, &all);
    };
    let part = |set: u32| -> Result<Box<dyn Array<Row = u64> + '_>, store::Error> {
        Ok(Box::new(Stored::<AccountSetTxs>::all(view.snapshot(), (owner, role, set))?))
    };
    let parts = sets.into_iter().map(part).collect::<Result<_, _>>().map_err(Refusal::internal)?;
    answer(indexer, &view, &paging, &Union::of(parts))
}

/// A page of the transactions in `array`.
pub(super) fn answer(
    indexer: &Indexer,
    view: &View<'_>,
    paging: &Paging<u64>,
    array: &dyn Array<Row = u64>,
) -> Result<Reply, Refusal> {
    list(indexer, "txs", array, paging, None, |out, seqs| {
        record::txs(out, view.snapshot(), &indexer.codec, seqs)
    })
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let unknown =
        || Refusal::not_found(format!("[NOT_FOUND] transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let view = indexer.view()?;
    let prefix: HashPrefix = hash_prefix(&hash);
    let candidates = store::table::rows::<TxByHash>(view.snapshot(), &prefix, Order::Desc, MAX_CANDIDATES)
        .map_err(Refusal::internal)?;
    // A single candidate, the usual case, needs no check of its outcome.
    let several = candidates.len() > 1;
    let mut found: Option<Vec<u8>> = None;
    for ((_, seq), ()) in candidates {
        let mut body = Vec::with_capacity(4096);
        body.extend_from_slice(LEAD);
        record::txs(&mut body, view.snapshot(), &indexer.codec, &[seq])?;
        let record = &body[LEAD.len()..];
        if !has_hash(record, &hash) {
            continue;
        }
        // The same bytes may be in several blocks: the successful one is returned, else the last (indexing.md
        // T21).
        if !several || succeeded(record)? {
            found = Some(body);
            break;
        }
        found = found.or(Some(body));
    }
    let mut body = found.ok_or_else(unknown)?;
    body.push(b'}');
    Ok(Reply::json(body))
}

/// The beginning of the response, so that the record is decompressed directly behind it.
const LEAD: &[u8] = br#"{"tx":"#;

/// Whether a record, which begins with its hash, has the hash `hash`.
fn has_hash(record: &[u8], hash: &[u8; 32]) -> bool {
    let hex = record.strip_prefix(br#"{"txhash":""#).and_then(|rest| rest.get(..64));
    hex.is_some_and(|hex| hex.eq_ignore_ascii_case(chain::hash::to_hex(hash).as_bytes()))
}

fn succeeded(record: &[u8]) -> Result<bool, Refusal> {
    #[derive(serde::Deserialize)]
    struct Outcome {
        code: u32,
    }
    let outcome: Outcome = serde_json::from_slice(record)
        .map_err(|error| Refusal::internal(format!("table `{}`: {error}", Txs::SPEC.name)))?;
    Ok(outcome.code == 0)
}
