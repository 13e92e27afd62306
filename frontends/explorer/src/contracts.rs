//! What the pages need of contracts: their ABIs, and what these explain.

use query::Indexer;
use query::v1::InternalTx;
use serde_json::Value;
use web::http_error::HttpError;

/// The known contracts.
pub trait Contracts: Send + Sync {
    /// What is known of the call and the logs of an EVM transaction with this hash, as `/indexer/evm/v1/decoded/{hash}` says it; `None` if
    /// there is no such transaction.
    ///
    /// # Errors
    /// If the index cannot be read.
    fn tx(&self, index: &Indexer, hash: &str) -> Result<Option<Value>, HttpError>;

    /// What is known of the contract at an address: an object with `name` and `abi`, or why its file cannot be used. `None` if nothing is
    /// known.
    fn contract(&self, address: &[u8; 20]) -> Option<Result<Value, String>>;

    /// What is known of the calls of one transaction: of each an object with the members `function`, `guess` and `error`, which has
    /// `error`, `arguments` and `guess`.
    fn calls(&self, calls: &[InternalTx]) -> Vec<Value>;
}
