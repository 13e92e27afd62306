//! A forged block and its forged results, with the hashes that link them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chain::comet::proof::{data_hash, results_hash};
use chain::time::Timestamp;
use serde_json::Value;

use super::{Before, Fork};
use crate::edit::{get, list, put, text};
use crate::header::header_hash;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// A forged `/block`.
pub(super) struct Block {
    pub(super) text: Bytes,
    /// Upper-case hex.
    pub(super) hash: String,
    pub(super) time: Timestamp,
}

/// A forged `/block_results`.
pub(super) struct Results {
    pub(super) text: Bytes,
    /// `last_results_hash` of the next header, upper-case hex.
    pub(super) hash: String,
    /// `app_hash` of the next header.
    pub(super) app_hash: Vec<u8>,
}

pub(super) fn block(raw: &[u8], kept: &[bool], before: &Before, fork: Fork) -> Result<Block, String> {
    let mut json: Value = serde_json::from_slice(raw).map_err(|e| e.to_string())?;
    let txs = filtered(list(&json, "/block/data/txs")?, kept)?;
    let raw_txs = txs.iter().map(raw_tx).collect::<Result<Vec<_>, _>>()?;
    put(&mut json, "/block/header/data_hash", hex::encode_upper(data_hash(&raw_txs)))?;
    put(&mut json, "/block/data/txs", txs)?;
    let nanos = Timestamp::parse(text(&json, "/block/header/time")?).map_err(|e| e.to_string())?.unix_nanos();
    let time = Timestamp::from_unix_nanos(nanos.saturating_add(fork.delay_millis() * NANOS_PER_MILLI));
    put(&mut json, "/block/header/time", time.nanos())?;
    if let Some(hash) = &before.block {
        put(&mut json, "/block/header/last_block_id/hash", &**hash)?;
        put(&mut json, "/block/last_commit/block_id/hash", &**hash)?;
    }
    if let Some(hash) = &before.app {
        put(&mut json, "/block/header/app_hash", hex::encode_upper(hash))?;
    }
    if let Some(hash) = &before.results {
        put(&mut json, "/block/header/last_results_hash", &**hash)?;
    }
    let hash = hex::encode_upper(header_hash(get(&json, "/block/header")?)?);
    put(&mut json, "/block_id/hash", &*hash)?;
    Ok(Block { text: json.to_string().into(), hash, time })
}

pub(super) fn results(raw: &[u8], kept: &[bool], fork: Fork) -> Result<Results, String> {
    let mut json: Value = serde_json::from_slice(raw).map_err(|e| e.to_string())?;
    let results = filtered(list(&json, "/txs_results")?, kept)?;
    // A node prints empty results as null.
    put(&mut json, "/txs_results", if results.is_empty() { Value::Null } else { Value::Array(results) })?;
    let app_hash = STANDARD.decode(text(&json, "/app_hash")?).map_err(|e| format!("/app_hash: {e}"))?;
    let app_hash = fork.instead_of(&app_hash);
    put(&mut json, "/app_hash", STANDARD.encode(&app_hash))?;
    let text = Bytes::from(json.to_string());
    let answer = chain::comet::parse_results(&text).map_err(|e| e.to_string())?;
    let hash = results_hash(&answer.txs_results).map_err(|e| format!("/txs_results: {e}"))?;
    let hash = hex::encode_upper(hash);
    drop(answer);
    Ok(Results { text, hash, app_hash })
}

fn filtered(items: &[Value], kept: &[bool]) -> Result<Vec<Value>, String> {
    if items.len() != kept.len() {
        return Err(format!("{} results for {} transactions", items.len(), kept.len()));
    }
    Ok(items.iter().zip(kept).filter(|(_, kept)| **kept).map(|(item, _)| item.clone()).collect())
}

fn raw_tx(tx: &Value) -> Result<Vec<u8>, String> {
    let tx = tx.as_str().ok_or("a transaction is not text")?;
    STANDARD.decode(tx).map_err(|e| format!("a transaction is not base64: {e}"))
}
