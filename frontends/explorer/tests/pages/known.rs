//! The contracts in a folder, as the program gives them to the pages, with the state of a recorded chain.

use std::path::Path;

use etherscan::reading;
use explorer::contracts::{CallError, Contracts, StateCall};
use futures_util::future::BoxFuture;
use query::Indexer;
use query::v1::InternalTx;
use serde_json::{Value, json};
use web::http_error::HttpError;

pub(crate) struct Known {
    pub(crate) folder: etherscan::Contracts,
    /// Replies of the node to requests when it was recorded; `None` if no calls are forwarded.
    pub(crate) replies: Option<Vec<(String, Value, Value)>>,
}

impl Known {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: etherscan::Contracts::new(folder.to_owned()), replies: None }
    }

    /// With the state of the chain `evm-fees`.
    pub(crate) fn with_state(self) -> Self {
        let bytes = std::fs::read(testkit::recording("evm-fees").join("rpc-goldens.ndjson.zst")).unwrap();
        let mut decoder = zstd::stream::Decoder::new(&bytes[..]).unwrap();
        decoder.window_log_max(27).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
        let reply = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let method = line["method"].as_str()?;
            let is_state = ["eth_call", "eth_getCode", "eth_getStorageAt"].contains(&method);
            let body = serde_json::from_str(line["body"].as_str()?).ok()?;
            is_state.then(|| (method.to_owned(), in_lower_case(&line["params"]), body))
        };
        Self { replies: Some(text.lines().filter_map(reply).collect()), ..self }
    }

    fn reply(&self, (method, params): &StateCall) -> Result<Value, CallError> {
        let params = in_lower_case(params);
        let replies = self.replies.as_ref().unwrap();
        let found = replies.iter().find(|(of, with, _)| of == method && *with == params);
        let Some((_, _, body)) = found else {
            return Err(CallError { message: "not recorded".to_owned(), data: String::new() });
        };
        if body["error"].is_null() {
            return Ok(body["result"].clone());
        }
        let text = |member: &str| body["error"][member].as_str().unwrap_or_default().to_owned();
        Err(CallError { message: text("message"), data: text("data") })
    }
}

/// Addresses have several spellings.
fn in_lower_case(params: &Value) -> Value {
    serde_json::from_str(&params.to_string().to_lowercase()).unwrap()
}

impl Contracts for Known {
    fn tx(&self, index: &Indexer, hash: &str) -> Result<Option<Value>, HttpError> {
        etherscan::decoded(index, Some(&self.folder), hash)
    }

    fn contract(&self, address: &[u8; 20]) -> Option<Result<Value, String>> {
        let contract = self.folder.get(address).unwrap();
        contract.map(|of| Ok(json!({ "name": of.name(), "abi": of.abi() })))
    }

    fn calls(&self, calls: &[InternalTx]) -> Vec<Value> {
        etherscan::calls(Some(&self.folder), calls)
    }

    fn has_state(&self) -> bool {
        self.replies.is_some()
    }

    fn state<'a>(
        &'a self,
        _: &'a Indexer,
        calls: Vec<StateCall>,
    ) -> BoxFuture<'a, Vec<Result<Value, CallError>>> {
        Box::pin(async move { calls.iter().map(|call| self.reply(call)).collect() })
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
