//! Single EVM lookups: receipt, logs, balance, block time, and minievm's mapping of transaction hashes.
//!
//! # Invariants
//!
//! * `null` becomes `None` only if the server means "not found".
//! * A block range that is too large for the server is [`Error::Refused`]: a retry cannot help.

use std::sync::Arc;

use bytes::Bytes;
use chain::{Timestamp, U256, excerpt};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Error, RequestContext};
use crate::evm::{Evm, RpcRequest, classify, quantity};
use crate::pool::endpoint::Endpoint;
use crate::rpc::RpcError;
use crate::tx_search_hit::hash_of;

impl Evm {
    /// The JSON of a transaction's receipt by its EVM hash. None if the server has none: not mined, not indexed yet or
    /// unknown.
    pub async fn receipt(&self, hash: [u8; 32]) -> Result<Option<Bytes>, Error> {
        let params = format!(r#"["0x{}"]"#, hex::encode(hash));
        self.read(self.request("eth_getTransactionReceipt", &params), classify, |result| Ok(known(result)))
            .await
    }

    /// The logs that a filter selects: a JSON array. `filter_json` is the filter object of `eth_getLogs`.
    ///
    /// A range that is too large for the server is [`Error::Refused`].
    pub async fn logs(&self, filter_json: &str) -> Result<Bytes, Error> {
        if let Err(e) = serde_json::from_str::<&RawValue>(filter_json) {
            let (service, method) = ("json-rpc", "eth_getLogs".into());
            let at = RequestContext { service, host: "any address".into(), method, height: None };
            return Err(Error::InvalidRequest { at, reason: format!("the filter is not JSON: {e}") });
        }
        let request = self.request("eth_getLogs", &format!("[{filter_json}]"));
        let read = |result: Bytes| match result.first() {
            Some(b'[') => Ok(result),
            _ => Err(format!("{} is not a list of logs", excerpt(&result))),
        };
        self.read(request, classify_logs_error, read).await
    }

    /// Current balance of an account in the chain's native coin, in its base units.
    pub async fn balance(&self, address: [u8; 20]) -> Result<U256, Error> {
        let params = format!(r#"["0x{}","latest"]"#, hex::encode(address));
        let read = |result: Bytes| {
            let text: Option<&str> = serde_json::from_slice(&result).ok();
            let digits = text.and_then(|text| text.strip_prefix("0x")).filter(|digits| !digits.is_empty());
            let amount = digits.and_then(|digits| U256::from_str_radix(digits, 16).ok());
            amount.ok_or_else(|| format!("{} is not an amount", excerpt(&result)))
        };
        self.read(self.request("eth_getBalance", &params), classify, read).await
    }

    /// The chain's EIP-155 id.
    pub async fn chain_id(&self) -> Result<u64, Error> {
        let read = |result: Bytes| {
            quantity(&result).ok_or_else(|| format!("{} is not a chain id", excerpt(&result)))
        };
        self.read(self.request("eth_chainId", "[]"), classify, read).await
    }

    /// The time of a block, in whole seconds. `None` if the server does not have the block, or not yet.
    pub async fn block_time(&self, number: u64) -> Result<Option<Timestamp>, Error> {
        let params = format!(r#"["{number:#x}",false]"#);
        let request = self.request("eth_getBlockByNumber", &params).about(number);
        let read = |result: Bytes| {
            let Some(seconds) = block_quantity(&result, "timestamp")? else { return Ok(None) };
            let nanos = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
            nanos.map(Timestamp::from_unix_nanos).map(Some).ok_or_else(|| format!("timestamp {seconds}"))
        };
        self.read(request, classify, read).await
    }

    /// The number of the last block that can no longer change. `None` if the server does not support the tag
    /// `finalized`, or has no such block.
    pub async fn finalized(&self) -> Result<Option<u64>, Error> {
        let request = self.request("eth_getBlockByNumber", r#"["finalized",false]"#);
        let read = |result: Bytes| block_quantity(&result, "number");
        match self.read(request, classify_tag_error, read).await {
            Err(Error::Refused { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    /// The Cosmos hash of the transaction with an EVM hash (minievm's `cosmos_cosmosTxHashByTxHash`). None if the
    /// node's EVM index does not have it, or not yet.
    pub async fn cosmos_hash(&self, eth_hash: [u8; 32]) -> Result<Option<[u8; 32]>, Error> {
        self.other_hash("cosmos_cosmosTxHashByTxHash", &hex::encode(eth_hash)).await
    }

    /// The EVM hash of the transaction with a Cosmos hash (minievm's `cosmos_txHashByCosmosTxHash`). `None` if it is
    /// not an EVM transaction, or not indexed yet.
    pub async fn eth_hashes(&self, cosmos_hash: [u8; 32]) -> Result<Option<[u8; 32]>, Error> {
        self.other_hash("cosmos_txHashByCosmosTxHash", &hex::encode_upper(cosmos_hash)).await
    }

    async fn other_hash(&self, method: &'static str, hash: &str) -> Result<Option<[u8; 32]>, Error> {
        let read = |result: Bytes| {
            let text: Option<String> =
                serde_json::from_slice(&result).map_err(|e| format!("{}: {e}", excerpt(&result)))?;
            let hash = text.as_deref().map(hash_of).transpose()?;
            // Go's zero value means "none" (minievm `jsonrpc/backend/cosmos.go`).
            Ok(hash.filter(|hash| *hash != [0; 32]))
        };
        self.read(self.request(method, &format!(r#"["0x{hash}"]"#)), classify, read).await
    }

    /// Sends a request and reads its result; the error of `read` is the reason in [`Error::Malformed`].
    async fn read<T>(
        &self,
        request: RpcRequest,
        classify: fn(RequestContext, RpcError) -> Error,
        read: impl Fn(Bytes) -> Result<T, String>,
    ) -> Result<T, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = request.send_with(&endpoint, classify).await?;
            read(result).map_err(|reason| endpoint.malformed(&request.http, reason))
        };
        self.pool.query(&request.http, attempt).await
    }
}

/// A quantity in the result of `eth_getBlockByNumber`; `None` if the result is null.
fn block_quantity(result: &[u8], member: &str) -> Result<Option<u64>, String> {
    let block: Value = serde_json::from_slice(result).map_err(|e| e.to_string())?;
    if block.is_null() {
        return Ok(None);
    }
    let value = block[member].to_string();
    quantity(value.as_bytes()).map(Some).ok_or_else(|| format!("{member} {}", excerpt(value)))
}

fn known(result: Bytes) -> Option<Bytes> {
    (result[..] != *b"null").then_some(result)
}

/// Server texts for a range with too many blocks or logs, or an invalid range (go-ethereum `eth/filters`, minievm
/// `jsonrpc/namespaces/eth/filters`, and those of node providers).
const BAD_RANGES: [&str; 5] =
    ["block range", "invalid range", "returned more than", "response size", "unknown block"];

fn classify_logs_error(at: RequestContext, error: RpcError) -> Error {
    let RpcError { code, message } = error;
    match classify(at, RpcError { code, message }) {
        Error::Faulty { at, code, message } if BAD_RANGES.iter().any(|text| message.contains(text)) => {
            Error::Refused { at, code, message }
        }
        other => other,
    }
}

/// go-ethereum before its first finalized block: `finalized block not found`.
fn classify_tag_error(at: RequestContext, error: RpcError) -> Error {
    match classify(at, error) {
        Error::Faulty { at, code, message } if message.contains("not found") => {
            Error::Refused { at, code, message }
        }
        other => other,
    }
}
