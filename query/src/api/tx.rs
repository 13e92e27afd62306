//! Cosmos transactions.

use schema::keys::AccountKey;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs, Txs};
use store::Table as _;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag, block, candidates};
use crate::array::{Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::msg_sets;
use crate::params;
use crate::record;
use crate::v1::{CountTxsResponse, GetTxResponse, ListTxsResponse};

pub(super) const MSGS: Param = Param::query(
    "msgs",
    Type::TextsOf(params::TYPES),
    "Only transactions with a top-level message of one of these types, e.g. cosmos.bank.v1beta1.MsgSend; of any type \
     with `*`.",
);

const PAGES: Param = Param::Group(&params::pages(Space::Txs));

const TAG: Tag = Tag("Tx");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListTxsResponse>("/indexer/tx/v1/txs", "All transactions.", &[PAGES, MSGS], txs),
    TAG.list::<CountTxsResponse>("/indexer/tx/v1/txs/count", "How many transactions there are.", &[], count),
    TAG.list::<ListTxsResponse>(
        "/indexer/tx/v1/txs/by_account/{account}",
        "Transactions that involve an account.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            params::is_signer("Only transactions that the account signed."),
            PAGES,
            MSGS,
        ],
        by_account,
    ),
    TAG.list::<ListTxsResponse>(
        "/indexer/tx/v1/txs/by_height/{height}",
        "Transactions of a block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more."), PAGES, MSGS],
        by_height,
    ),
    TAG.record::<GetTxResponse>(
        "/indexer/tx/v1/txs/{tx_hash}",
        "One transaction.",
        &[Param::path_of("tx_hash", params::HASH, "Hex, with or without 0x.")],
        by_hash,
    ),
];

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = ListRequest::new(indexer, call, Space::Txs)?;
    match params::sets(call, request.snapshot())? {
        None => {
            let all = Run { first: 1, len: request.view.blocks()?.txs };
            request.records("txs", &all, record::records::<Txs>)
        }
        Some(sets) => {
            let union = msg_sets::union::<SetTxs>(request.snapshot(), sets)?;
            request.records("txs", &union, record::records::<Txs>)
        }
    }
}

fn count(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(format!(r#"{{"count":"{}"}}"#, indexer.view()?.blocks()?.txs)))
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let height = params::height(call)?;
    let request = ListRequest::new(indexer, call, Space::Txs)?;
    let block = block::at(&request.view, height)?;
    let run = block.map_or(Run::EMPTY, |block| Run { first: block.first_tx, len: block.txs });
    match params::sets(call, request.snapshot())? {
        None => request.records("txs", &run, record::records::<Txs>),
        Some(sets) => {
            let union = msg_sets::union::<SetTxs>(request.snapshot(), sets)?;
            let union = union.within(run).map_err(HttpError::internal)?;
            request.records("txs", &union, record::records::<Txs>)
        }
    }
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let owner = AccountKey(params::account(call, indexer)?);
    let request = ListRequest::new(indexer, call, Space::Txs)?;
    let (snapshot, role) = (request.snapshot(), params::role(call));
    match params::sets(call, snapshot)? {
        None => {
            let all = Stored::<AccountTxs>::all(snapshot, (owner, role)).map_err(HttpError::internal)?;
            request.records("txs", &all, record::records::<Txs>)
        }
        Some(sets) => {
            let sets = msg_sets::of_account(snapshot, (owner, role), sets)?;
            let owners = sets.into_iter().map(|set| (owner, role, set)).collect();
            let union = msg_sets::union::<AccountSetTxs>(snapshot, owners)?;
            request.records("txs", &union, record::records::<Txs>)
        }
    }
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let unknown =
        || HttpError::not_found(format!("[NOT_FOUND] transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let (_, mut body) = find(indexer, &indexer.view()?, &hash, RESPONSE_PREFIX)?.ok_or_else(unknown)?;
    body.push(b'}');
    Ok(Reply::json(body))
}

/// Sequence and record of the transaction `hash`, after `lead`, if there is one.
pub(crate) fn find(
    indexer: &Indexer,
    view: &View<'_>,
    hash: &[u8; 32],
    lead: &[u8],
) -> Result<Option<(u64, Vec<u8>)>, HttpError> {
    let candidates = candidates::<Txs>(view, hash)?;
    // A single candidate, the usual case, needs no check of its outcome.
    let several = candidates.len() > 1;
    let mut found = None;
    for at in candidates {
        let mut body = Vec::with_capacity(4096);
        body.extend_from_slice(lead);
        record::append_at::<Txs>(&mut body, view.snapshot(), &indexer.codec, at)?;
        let record = &body[lead.len()..];
        if !has_hash(record, hash) {
            continue;
        }
        // The same bytes may be in several blocks: the successful one is returned, else the last.
        if !several || succeeded(record)? {
            return Ok(Some((at.0, body)));
        }
        found = found.or(Some((at.0, body)));
    }
    Ok(found)
}

/// The beginning of the response.
const RESPONSE_PREFIX: &[u8] = br#"{"tx":"#;

/// True if a record, which begins with its hash, has the hash `hash`.
fn has_hash(record: &[u8], hash: &[u8; 32]) -> bool {
    let hex = record.strip_prefix(br#"{"txhash":""#).and_then(|rest| rest.get(..64));
    let found = hex.and_then(|hex| str::from_utf8(hex).ok()).map(chain::hash::parse_hash);
    matches!(found, Some(Ok(Some(found))) if found == *hash)
}

fn succeeded(record: &[u8]) -> Result<bool, HttpError> {
    #[derive(serde::Deserialize)]
    struct Outcome {
        code: u32,
    }
    let outcome: Outcome = serde_json::from_slice(record)
        .map_err(|error| HttpError::internal(format!("table `{}`: {error}", Txs::SPEC.name)))?;
    Ok(outcome.code == 0)
}
