//! Internal transactions: the call frames of EVM transactions.

use schema::internal_tx::{self, AccountCalls, Calls};
use schema::keys::AccountKey;
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag, block, evm_tx};
use crate::array::{Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params;
use crate::record;
use crate::v1::ListInternalTxsResponse;

const PAGES: Param = Param::Group(&params::pages(Space::Calls));

const TAG: Tag = Tag("EVM Internal Tx");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListInternalTxsResponse>(
        "/indexer/tx/v1/evm-internal-txs",
        "All call frames, each transaction's depth first.",
        &[PAGES],
        all,
    ),
    TAG.list::<ListInternalTxsResponse>(
        "/indexer/tx/v1/evm-internal-txs/by_account/{account}",
        "Call frames that an account calls or is called in.",
        &[Param::path_of("account", params::ADDRESS, "Bech32 or hex."), PAGES],
        by_account,
    ),
    TAG.list::<ListInternalTxsResponse>(
        "/indexer/tx/v1/evm-internal-txs/by_height/{height}",
        "Call frames of a block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more."), PAGES],
        by_height,
    ),
    TAG.record::<ListInternalTxsResponse>(
        "/indexer/tx/v1/evm-internal-txs/{tx_hash}",
        "Call frames of an EVM transaction.",
        &[Param::path_of("tx_hash", params::HASH, "The EVM hash in hex, with or without 0x."), PAGES],
        by_hash,
    ),
];

fn all(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let request = ListRequest::new(indexer, call, Space::Calls)?;
    let all = Run { first: 1, len: request.view.calls()?.calls };
    request.records("internal_txs", &all, record::records::<Calls>)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let owner = AccountKey(params::account(call, indexer)?);
    let request = ListRequest::new(indexer, call, Space::Calls)?;
    let all = Stored::<AccountCalls>::all(request.snapshot(), owner).map_err(HttpError::internal)?;
    request.records("internal_txs", &all, record::records::<Calls>)
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let height = params::height(call)?;
    let request = ListRequest::new(indexer, call, Space::Calls)?;
    let row = internal_tx::of_block(request.snapshot(), height).map_err(HttpError::internal)?;
    let run = row.map_or(Run::EMPTY, |calls| Run { first: calls.first, len: calls.count() });
    request.records("internal_txs", &run, record::records::<Calls>)
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    // In this order, because the deployed server validates the pagination first here.
    let request = ListRequest::new(indexer, call, Space::Calls)?;
    let unknown = || HttpError::not_found(format!("transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let (seq, record) = evm_tx::find(indexer, &request.view, &hash)?.ok_or_else(unknown)?;
    let run = frames(indexer, &request.view, &hash, (seq, &record))?;
    request.records("internal_txs", &run, record::records::<Calls>)
}

/// The frames of the EVM transaction `hash` with this sequence and record; none if the node could not trace it.
pub(crate) fn frames(
    indexer: &Indexer,
    view: &View<'_>,
    hash: &[u8; 32],
    (seq, record): (u64, &[u8]),
) -> Result<Run, HttpError> {
    let height = evm_tx::height(seq, record)?;
    let calls = internal_tx::of_block(view.snapshot(), height).map_err(HttpError::internal)?;
    let (Some(block), Some(calls)) = (block::at(view, height)?, calls) else {
        return Ok(Run::EMPTY);
    };
    let (place, traced) = (seq.saturating_sub(block.first_evm_tx), calls.counts.len() as u64);
    let untraced = block.evm_txs.saturating_sub(traced);
    // Each transaction before this one that the node could not trace moves its frames one place down.
    for place in (place.saturating_sub(untraced)..traced.min(place + 1)).rev() {
        let (before, from) = calls.counts.split_at(usize::try_from(place).unwrap_or(usize::MAX));
        let run = Run { first: calls.first + before.iter().sum::<u64>(), len: from[0] };
        let frame = record::one::<Calls>(view.snapshot(), &indexer.codec, run.first, u64::MAX)?;
        if frame.is_ok_and(|frame| evm_tx::has_hash(&frame, "hash", hash)) {
            return Ok(run);
        }
    }
    Ok(Run::EMPTY)
}
