//! Inputs of the explorer's pages: the contracts in the folder of the setting `abi`.

use etherscan::Contracts;
use query::Indexer;
use query::v1::InternalTx;
use serde_json::{Value, json};
use web::http_error::HttpError;

/// The known contracts; without the setting, only what standards explain.
pub(crate) struct Known(pub(crate) Option<Contracts>);

impl explorer::contracts::Contracts for Known {
    fn tx(&self, index: &Indexer, hash: &str) -> Result<Option<Value>, HttpError> {
        etherscan::decoded(index, self.0.as_ref(), hash)
    }

    fn contract(&self, address: &[u8; 20]) -> Option<Result<Value, String>> {
        match self.0.as_ref()?.get(address) {
            Ok(contract) => contract.map(|of| Ok(json!({ "name": of.name(), "abi": of.abi() }))),
            Err(error) => Some(Err(error.to_string())),
        }
    }

    fn calls(&self, calls: &[InternalTx]) -> Vec<Value> {
        etherscan::calls(self.0.as_ref(), calls)
    }
}
