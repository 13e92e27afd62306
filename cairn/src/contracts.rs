//! Inputs of the explorer's pages: the contracts in the folder of the setting `abi`, and the state of contracts, which a node has.

use etherscan::{Contracts, reading};
use evm_rpc::{Dialect, Forward, Group};
use explorer::contracts::{CallError, StateCall};
use futures_util::future::{BoxFuture, join_all};
use query::Indexer;
use query::v1::InternalTx;
use serde_json::{Value, json};
use web::http_error::HttpError;

/// The known contracts; without the setting, only what standards explain.
pub(crate) struct Known {
    pub(crate) contracts: Option<Contracts>,
    /// What the operator forwards to a node.
    pub(crate) forward: Option<Forward>,
}

impl Known {
    async fn call(&self, index: &Indexer, (method, params): StateCall) -> Result<Value, CallError> {
        let failed = |message: &str| CallError { message: message.to_owned(), data: String::new() };
        let Some(forward) = self.forward.as_ref().filter(|_| self.forwards()) else {
            return Err(failed("it needs `state` in the setting `evm_forward`"));
        };
        let view = || {
            let view = index.evm(Dialect::Fixed)?;
            Ok((view.chain_id()?, view.head()))
        };
        match forward.call_json(view, method, &params.to_string()).await {
            Ok(result) => serde_json::from_slice(&result).map_err(|error| failed(&error.to_string())),
            Err(object) => {
                let error: Value = serde_json::from_slice(&object).unwrap_or_default();
                let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
                Err(CallError { message: text("message"), data: text("data") })
            }
        }
    }

    fn forwards(&self) -> bool {
        self.forward.as_ref().is_some_and(|forward| forward.has(Group::State))
    }
}

impl explorer::contracts::Contracts for Known {
    fn tx(&self, index: &Indexer, hash: &str) -> Result<Option<Value>, HttpError> {
        etherscan::decoded(index, self.contracts.as_ref(), hash)
    }

    fn contract(&self, address: &[u8; 20]) -> Option<Result<Value, String>> {
        match self.contracts.as_ref()?.get(address) {
            Ok(contract) => contract.map(|of| Ok(json!({ "name": of.name(), "abi": of.abi() }))),
            Err(error) => Some(Err(error.to_string())),
        }
    }

    fn calls(&self, calls: &[InternalTx]) -> Vec<Value> {
        etherscan::calls(self.contracts.as_ref(), calls)
    }

    fn has_state(&self) -> bool {
        self.forwards()
    }

    fn state<'a>(
        &'a self,
        index: &'a Indexer,
        calls: Vec<StateCall>,
    ) -> BoxFuture<'a, Vec<Result<Value, CallError>>> {
        Box::pin(join_all(calls.into_iter().map(move |call| self.call(index, call))))
    }

    fn reads(&self, abi: &Value) -> Vec<Value> {
        reading::functions(abi)
    }

    fn usual_reads(&self) -> &Value {
        reading::usual()
    }

    fn input(&self, abi: &Value, selector: &str, arguments: &[String]) -> Result<String, String> {
        reading::input(abi, selector, arguments)
    }

    fn returned(&self, abi: &Value, selector: &str, output: &str) -> Option<Value> {
        reading::returned(abi, selector, output)
    }
}
