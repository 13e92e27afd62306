//! Single EVM lookups: receipt, logs, balance, block time, and minievm's mapping of transaction hashes.
//!
//! # Invariants
//!
//! * `null` becomes `None` only where the server means "not found".
//! * A block range that the server finds too large is [`Error::Refused`]: a retry cannot help.

use std::sync::Arc;

use bytes::Bytes;
use chain::{Timestamp, U256};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::endpoint::Endpoint;
use crate::error::{Error, Site, excerpt};
use crate::evm::{Evm, RpcRequest, classify, quantity};
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
            let (service, call) = ("json-rpc", "eth_getLogs".into());
            let at = Site { service, host: "any address".into(), call, height: None };
            return Err(Error::InvalidRequest { at, reason: format!("the filter is no JSON: {e}") });
        }
        let request = self.request("eth_getLogs", &format!("[{filter_json}]"));
        let read = |result: Bytes| match result.first() {
            Some(b'[') => Ok(result),
            _ => Err(format!("{} is no list of logs", excerpt(&result))),
        };
        self.read(request, classify_logs_error, read).await
    }

    /// Balance of an account in the chain's own coin now, in its smallest unit.
    pub async fn balance(&self, address: [u8; 20]) -> Result<U256, Error> {
        let params = format!(r#"["0x{}","latest"]"#, hex::encode(address));
        let read = |result: Bytes| {
            let text: Option<&str> = serde_json::from_slice(&result).ok();
            let digits = text.and_then(|text| text.strip_prefix("0x")).filter(|digits| !digits.is_empty());
            let amount = digits.and_then(|digits| U256::from_str_radix(digits, 16).ok());
            amount.ok_or_else(|| format!("{} is no amount", excerpt(&result)))
        };
        self.read(self.request("eth_getBalance", &params), classify, read).await
    }

    /// The chain's EIP-155 id.
    pub async fn chain_id(&self) -> Result<u64, Error> {
        let read =
            |result: Bytes| quantity(&result).ok_or_else(|| format!("{} is no chain id", excerpt(&result)));
        self.read(self.request("eth_chainId", "[]"), classify, read).await
    }

    /// The time of a block, in whole seconds. None if the server does not have the block, or not yet.
    pub async fn block_time(&self, number: u64) -> Result<Option<Timestamp>, Error> {
        let params = format!(r#"["{number:#x}",false]"#);
        let request = self.request("eth_getBlockByNumber", &params).about(number);
        self.read(request, classify, |result| Block::read(&result)?.map(|block| block.time()).transpose())
            .await
    }

    /// The number of the last block that can no longer change. None if the server does not know the tag `finalized`,
    /// or has no such block.
    pub async fn finalized(&self) -> Result<Option<u64>, Error> {
        let request = self.request("eth_getBlockByNumber", r#"["finalized",false]"#);
        let read = |result: Bytes| Block::read(&result)?.map(|block| block.number()).transpose();
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

    /// The EVM hash of the transaction with a Cosmos hash (minievm's `cosmos_txHashByCosmosTxHash`). None if it is no
    /// EVM transaction, or not indexed yet.
    pub async fn eth_hashes(&self, cosmos_hash: [u8; 32]) -> Result<Option<[u8; 32]>, Error> {
        self.other_hash("cosmos_txHashByCosmosTxHash", &hex::encode_upper(cosmos_hash)).await
    }

    async fn other_hash(&self, method: &'static str, hash: &str) -> Result<Option<[u8; 32]>, Error> {
        let read = |result: Bytes| {
            let text: Option<String> =
                serde_json::from_slice(&result).map_err(|e| format!("{}: {e}", excerpt(&result)))?;
            let hash = text.as_deref().map(hash_of).transpose()?;
            // Go's zero value stands for "none" (minievm `jsonrpc/backend/cosmos.go`).
            Ok(hash.filter(|hash| *hash != [0; 32]))
        };
        self.read(self.request(method, &format!(r#"["0x{hash}"]"#)), classify, read).await
    }

    /// Sends a request and reads its result; the error of `read` is the reason in [`Error::Malformed`].
    async fn read<T>(
        &self,
        request: RpcRequest,
        classify: fn(Site, RpcError) -> Error,
        read: impl Fn(Bytes) -> Result<T, String>,
    ) -> Result<T, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = request.send_with(&endpoint, classify).await?;
            read(result).map_err(|reason| Error::Malformed { at: endpoint.site(&request.call), reason })
        };
        self.pool().ask(&request.call, attempt).await
    }
}

/// Members of an `eth_getBlockByNumber` result.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    number: &'a RawValue,
    #[serde(borrow)]
    timestamp: &'a RawValue,
}

impl<'a> Block<'a> {
    fn read(result: &'a [u8]) -> Result<Option<Self>, String> {
        serde_json::from_slice(result).map_err(|e| e.to_string())
    }

    fn number(&self) -> Result<u64, String> {
        let text = self.number.get();
        quantity(text.as_bytes()).ok_or_else(|| format!("number {}", excerpt(text.as_bytes())))
    }

    fn time(&self) -> Result<Timestamp, String> {
        const NANOS: i64 = 1_000_000_000;
        let text = self.timestamp.get();
        let seconds = quantity(text.as_bytes()).and_then(|seconds| i64::try_from(seconds).ok());
        let nanos = seconds.and_then(|seconds| seconds.checked_mul(NANOS));
        let nanos = nanos.ok_or_else(|| format!("timestamp {}", excerpt(text.as_bytes())))?;
        Ok(Timestamp::from_unix_nanos(nanos))
    }
}

fn known(result: Bytes) -> Option<Bytes> {
    (result[..] != *b"null").then_some(result)
}

/// Server texts for a range with too many blocks or logs, or an invalid range (go-ethereum `eth/filters`, minievm
/// `jsonrpc/namespaces/eth/filters`, and those of node providers).
const BAD_RANGES: [&str; 5] =
    ["block range", "invalid range", "returned more than", "response size", "unknown block"];

fn classify_logs_error(at: Site, error: RpcError) -> Error {
    let RpcError { code, message: said } = error;
    match classify(at, RpcError { code, message: said }) {
        Error::Faulty { at, code, said } if BAD_RANGES.iter().any(|text| said.contains(text)) => {
            Error::Refused { at, code, said }
        }
        other => other,
    }
}

/// go-ethereum before its first finalized block: `finalized block not found`.
fn classify_tag_error(at: Site, error: RpcError) -> Error {
    match classify(at, error) {
        Error::Faulty { at, code, said } if said.contains("not found") => Error::Refused { at, code, said },
        other => other,
    }
}
