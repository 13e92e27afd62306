//! The two halves of an EVM transaction, and what its receipt lacks, as Ethereum's JSON-RPC says it of the same index.

use chain::evm::dialect::Dialect;
use chain::hash::{Hash, parse_hash, to_hex};
use query::evm::Error;
use query::evm::history::CreationRow;
use serde::Deserialize;
use web::http_error::HttpError;

use crate::explorer::Explorer;

/// Members of `eth_getTransactionByHash` that a receipt lacks, in hex.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Signed {
    pub(crate) nonce: String,
    /// In wei.
    pub(crate) value: String,
    pub(crate) input: String,
    /// The limit.
    pub(crate) gas: String,
}

impl Explorer {
    /// The hash of the Cosmos transaction that an EVM transaction is a half of. `None` if it is not known: there is no such transaction, or
    /// its block is not shown yet.
    pub(crate) fn cosmos_half(&self, hash: &str) -> Result<Option<String>, HttpError> {
        let Some(hash) = self.evm_name(hash) else { return Ok(None) };
        let index = self.index()?;
        let found = known(index.state().evm(Dialect::Fixed)?.cosmos_hash(&hash))?;
        Ok(found.map(|hash| to_hex(&hash).to_uppercase()))
    }

    /// The hash of the EVM transaction that a Cosmos transaction is shown as. `None` if it is shown as none.
    pub(crate) fn evm_half(&self, hash: &str) -> Result<Option<String>, HttpError> {
        let Some(hash) = self.evm_name(hash) else { return Ok(None) };
        let index = self.index()?;
        let found = known(index.state().evm(Dialect::Fixed)?.evm_hash(&hash))?;
        Ok(found.map(|hash| format!("0x{}", to_hex(&hash))))
    }

    /// What an EVM transaction's sender signed. `None` if it is not known.
    pub(crate) fn evm_signed(&self, hash: &str) -> Result<Option<Signed>, HttpError> {
        let Some(hash) = self.evm_name(hash) else { return Ok(None) };
        let index = self.index()?;
        let found = known(index.state().evm(Dialect::Fixed)?.tx(&hash))?;
        found.map(|json| serde_json::from_slice(&json).map_err(HttpError::internal)).transpose()
    }

    /// How a contract was created. `None` if no transaction created it, or the index `contracts` is not stored.
    pub(crate) fn creation(&self, contract: [u8; 20]) -> Result<Option<CreationRow>, HttpError> {
        if !self.is_evm() {
            return Ok(None);
        }
        let index = self.index()?;
        known(index.state().evm(Dialect::Fixed)?.creation_of(contract))
    }

    /// The times of blocks, in seconds since 1970 UTC; `None` of blocks that are not shown.
    pub(crate) fn block_times(&self, heights: &[u64]) -> Result<Vec<Option<u64>>, HttpError> {
        let index = self.index()?;
        let view = index.state().evm(Dialect::Fixed)?;
        heights.iter().map(|height| known(view.timestamp(*height))).collect()
    }

    /// A hash, on a chain with an EVM.
    fn evm_name(&self, hash: &str) -> Option<Hash> {
        parse_hash(hash).ok().flatten().filter(|_| self.is_evm())
    }
}

/// What the index cannot tell is not known; a fault of it is an error.
fn known<T>(outcome: Result<Option<T>, Error>) -> Result<Option<T>, HttpError> {
    match outcome {
        Ok(found) => Ok(found),
        Err(Error::Failed(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
