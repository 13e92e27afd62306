//! What the pages need of contracts: their ABIs, what these explain, and their code and state, which a node has.

use futures_util::future::BoxFuture;
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

    /// True if calls that need the state of the chain are forwarded to a node.
    fn has_state(&self) -> bool;

    /// The results of calls of Ethereum's JSON-RPC to a node, in their order.
    fn state<'a>(
        &'a self,
        index: &'a Indexer,
        calls: Vec<StateCall>,
    ) -> BoxFuture<'a, Vec<Result<Value, CallError>>>;

    /// The functions of an ABI that only read: of each an object with `selector`, `shown`, and `inputs` with `name` and `type`.
    fn reads(&self, abi: &Value) -> Vec<Value>;

    /// The ABI of the functions that usual tokens and contracts have and that only read.
    fn usual_reads(&self) -> &Value;

    /// The input of a call of the function of `abi` with this selector, in hex.
    ///
    /// # Errors
    /// If an argument is none of its type, or there are too few or too many: the text says which.
    fn input(&self, abi: &Value, selector: &str, arguments: &[String]) -> Result<String, String>;

    /// What that function returned, each value with `name`, `type` and `value`; `None` if the data is something else.
    fn returned(&self, abi: &Value, selector: &str, output: &str) -> Option<Value>;
}

/// A method with its parameters.
pub type StateCall = (&'static str, Value);

/// Why a call gave no result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallError {
    /// The text of the node, or of this server.
    pub message: String,
    /// What the call reverted with, in hex; empty if it did not.
    pub data: String,
}
