//! Pages of records by hash.

use http::StatusCode;
use query::v1::{Block, EvmTx};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::quantity;
use crate::listing::Listing;
use crate::target::{self, Target, encoded};

/// Newest blocks and EVM transactions among which a block is looked for by hash: the longest page of the API, which has no list by hash.
pub(super) const BLOCKS: &str = "1000";

/// The page of the Cosmos transaction with this hash.
pub(super) fn tx(explorer: &Explorer, hash: &str) -> Result<Option<String>, HttpError> {
    let found = exists(explorer, "/indexer/tx/v1/txs", hash)?;
    Ok(found.then(|| target::tx(&digits(hash).to_uppercase())))
}

/// The page of the EVM transaction with this hash: that of its Cosmos half, as long as that is known.
pub(super) fn evm_tx(explorer: &Explorer, hash: &str) -> Result<Option<String>, HttpError> {
    if let Some(cosmos) = explorer.cosmos_half(hash)? {
        return Ok(Some(target::tx(&cosmos)));
    }
    let found = explorer.is_evm() && exists(explorer, "/indexer/tx/v1/evm-txs", hash)?;
    Ok(found.then(|| target::evm_tx(&format!("0x{}", digits(hash).to_lowercase()))))
}

/// The page of the block with this hash, in `CometBFT`'s form or the EVM's, if it is one of the newest.
pub(super) fn block(explorer: &Explorer, hash: &str) -> Result<Option<String>, HttpError> {
    let wanted = digits(hash);
    let of = |list: &str| Target::new(list).with("pagination.limit", BLOCKS);
    let blocks = Listing::<Block>::first(explorer, of("/indexer/block/v1/blocks"))?;
    if let Some(found) = blocks.rows.iter().find(|block| block.hash.eq_ignore_ascii_case(wanted)) {
        return Ok(Some(target::block(found.height)));
    }
    if !explorer.is_evm() {
        return Ok(None);
    }
    // The EVM's hashes of blocks are in the receipts.
    let txs = Listing::<EvmTx>::first(explorer, of("/indexer/tx/v1/evm-txs"))?;
    let found = txs.rows.iter().find(|at| digits(&at.block_hash).eq_ignore_ascii_case(wanted));
    let height = found.and_then(|at| quantity(&at.block_number));
    Ok(height.map(target::block))
}

/// True for the 64 hex digits of a hash, with or without `0x`.
pub(crate) fn is_hash(text: &str) -> bool {
    let digits = digits(text);
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A hash without `0x`.
pub(crate) fn digits(hash: &str) -> &str {
    hash.strip_prefix("0x").or_else(|| hash.strip_prefix("0X")).unwrap_or(hash)
}

/// Whether the API has a record at `path/key`. A key that it rejects names no record.
pub(super) fn exists(explorer: &Explorer, path: &str, key: &str) -> Result<bool, HttpError> {
    match explorer.read::<Box<RawValue>>(&format!("{path}/{}", encoded(key))) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the API has holders of the ERC-20 at an address.
pub(super) fn has_holders(explorer: &Explorer, address: &str) -> Result<bool, HttpError> {
    let list = Target::new(format!("/indexer/richlist/v1/{}", encoded(address)));
    match Listing::<IgnoredAny>::first(explorer, list.with("pagination.limit", "1")) {
        Ok(holders) => Ok(!holders.rows.is_empty()),
        Err(error) if matches!(error.status(), StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => Ok(false),
        Err(error) => Err(error),
    }
}
