//! The parts of a recorded height, raw.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use replay::recording::Height;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::{bytes, fields};

/// A transaction with its result.
pub(crate) struct Found<'a> {
    pub(crate) raw: Vec<u8>,
    pub(crate) result: &'a str,
}

impl Found<'_> {
    /// The only signature.
    pub(crate) fn signature(&self) -> Vec<u8> {
        fields(&self.raw).map(|raw| bytes(&raw, 3).to_vec()).unwrap_or_default()
    }
}

/// The raw transactions; none if one is malformed.
pub(crate) fn raw_txs(height: &Height) -> Vec<Vec<u8>> {
    let txs = height.raw_txs().unwrap_or_default();
    txs.iter().map(|tx| STANDARD.decode(tx.as_bytes())).collect::<Result<_, _>>().unwrap_or_default()
}

/// The results of the transactions.
pub(crate) fn results(height: &Height) -> Vec<&RawValue> {
    #[derive(Deserialize)]
    struct Results<'a> {
        #[serde(borrow)]
        txs_results: Option<Vec<&'a RawValue>>,
    }
    let results: Option<Results<'_>> = serde_json::from_slice(&height.block_results).ok();
    results.and_then(|results| results.txs_results).unwrap_or_default()
}

/// The items of an array; none if it is malformed.
pub(crate) fn array(raw: &[u8]) -> Vec<&RawValue> {
    serde_json::from_slice(raw).unwrap_or_default()
}
