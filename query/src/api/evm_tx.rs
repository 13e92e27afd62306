//! EVM transactions.

use chain::evm::Receipt;
use schema::evm_tx::{AccountEvmTxs, EvmTxs};
use schema::keys::{AccountKey, Role};
use schema::parties::{PARTIES, RecipientEvmTxs};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag, block, candidates, one};
use crate::array::{Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params;
use crate::record;
use crate::v1::{GetEvmTxResponse, ListEvmTxsResponse};

const PAGES: Param = Param::Group(&params::pages(Space::EvmTxs));

const TAG: Tag = Tag("EVM Tx");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListEvmTxsResponse>("/indexer/tx/v1/evm-txs", "All EVM transactions.", &[PAGES], txs),
    TAG.list::<ListEvmTxsResponse>(
        "/indexer/tx/v1/evm-txs/by_account/{account}",
        "EVM transactions that involve an account.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            params::is_signer("Only transactions that the account sent."),
            IS_RECIPIENT,
            PAGES,
        ],
        by_account,
    ),
    TAG.list::<ListEvmTxsResponse>(
        "/indexer/tx/v1/evm-txs/by_height/{height}",
        "EVM transactions of a block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more."), PAGES],
        by_height,
    ),
    TAG.record::<GetEvmTxResponse>(
        "/indexer/tx/v1/evm-txs/{tx_hash}",
        "One EVM transaction.",
        &[Param::path_of("tx_hash", params::HASH, "The EVM hash in hex, with or without 0x.")],
        by_hash,
    ),
];

const IS_RECIPIENT: Param = Param::query_or(
    "is_recipient",
    Type::Boolean,
    "false",
    "Only transactions that another account sent to this one, or that created it. Needs the optional index `parties`: 404 if \
     it is not stored, 503 while it is being built.",
);

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let request = ListRequest::new(indexer, call, Space::EvmTxs)?;
    let all = Run { first: 1, len: request.view.blocks()?.evm_txs };
    request.records("txs", &all, record::records::<EvmTxs>)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let owner = AccountKey(params::account(call, indexer)?);
    let request = ListRequest::new(indexer, call, Space::EvmTxs)?;
    if call.boolean("is_recipient", false) {
        request.view.require(&PARTIES)?;
        if params::role(call) == Role::Signer {
            // Another account has sent what this index lists.
            return request.records("txs", &Run::EMPTY, record::records::<EvmTxs>);
        }
        let all = Stored::<RecipientEvmTxs>::all(request.snapshot(), owner).map_err(HttpError::internal)?;
        return request.records("txs", &all, record::records::<EvmTxs>);
    }
    let list = (owner, params::role(call));
    let all = Stored::<AccountEvmTxs>::all(request.snapshot(), list).map_err(HttpError::internal)?;
    request.records("txs", &all, record::records::<EvmTxs>)
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let height = params::height(call)?;
    let request = ListRequest::new(indexer, call, Space::EvmTxs)?;
    let block = block::at(&request.view, height)?;
    let run = block.map_or(Run::EMPTY, |block| Run { first: block.first_evm_tx, len: block.evm_txs });
    request.records("txs", &run, record::records::<EvmTxs>)
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    indexer.evm_only()?;
    let unknown = || HttpError::not_found(format!("tx not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let (_, found) = find(indexer, &indexer.view()?, &hash)?.ok_or_else(unknown)?;
    Ok(one("tx", &found))
}

/// Sequence and record of the transaction `hash`, if there is one.
pub(crate) fn find(
    indexer: &Indexer,
    view: &View<'_>,
    hash: &[u8; 32],
) -> Result<Option<(u64, Vec<u8>)>, HttpError> {
    let mut candidate = Vec::new();
    for at in candidates::<EvmTxs>(view, hash)? {
        candidate.clear();
        record::append_at::<EvmTxs>(&mut candidate, view.snapshot(), &indexer.codec, at)?;
        if has_hash(&candidate, "transactionHash", hash) {
            return Ok(Some((at.0, candidate)));
        }
    }
    Ok(None)
}

/// The height in the record `seq`.
pub(crate) fn height(seq: u64, record: &[u8]) -> Result<u64, HttpError> {
    let receipt: Receipt<'_> = serde_json::from_slice(record).map_err(HttpError::internal)?;
    receipt
        .block_number()
        .ok_or_else(|| HttpError::internal(format!("EVM transaction {seq}: {:?}", receipt.block_number)))
}

/// True if the member `name` of a record is the hash `hash`. Searched from the end, because receipts have it there.
pub(super) fn has_hash(record: &[u8], name: &str, hash: &[u8; 32]) -> bool {
    let member = format!(r#""{name}":"0x{}""#, chain::hash::to_hex(hash));
    memchr::memmem::rfind(record, member.as_bytes()).is_some()
}
