//! EVM JSON-RPC client: receipts and call traces of blocks.
//!
//! # Invariants
//!
//! * Every request has a unique id, and only the response with that id is accepted.
//! * `result` is returned as the bytes that the node sent.
//! * `null` for a block means "not indexed yet", never "empty block".

pub(crate) mod calls;
pub(crate) mod forward;
mod lookups;
pub(crate) mod receipts;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chain::excerpt;

use crate::error::{Error, RequestContext};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::origin::{Origin, Reply};
use crate::rpc::{self, RpcError, RpcResponse};
use crate::setup_error::SetupError;
use crate::url::Url;

/// Queries one chain's EVM servers.
pub struct Evm {
    pub(crate) pool: Pool,
    /// The required EIP-155 id of all endpoints, once it is decided.
    pub(crate) chain: OnceLock<u64>,
    next_id: AtomicU64,
    trace_timeout: Duration,
}

const CALL_TRACER: &str = r#"{"tracer":"callTracer"}"#;

impl Evm {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        let pool = Pool::new("json-rpc", urls, limits)?;
        let (chain, next_id) = (OnceLock::new(), AtomicU64::new(1));
        Ok(Self { pool, chain, next_id, trace_timeout: limits.trace_timeout })
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.pool.members().len()
    }

    /// The last height in the node's EVM index, which follows the chain asynchronously.
    pub async fn block_number(&self) -> Result<u64, Error> {
        let request = self.request("eth_blockNumber", "[]");
        let read = async |endpoint: Arc<Endpoint>| {
            let result = request.send(&endpoint).await?;
            quantity(&result).ok_or_else(|| {
                let reason = format!("{} is not a height", excerpt(&result));
                endpoint.malformed(&request.http, reason)
            })
        };
        self.pool.query(&request.http, read).await
    }

    /// The receipts of a block: a JSON array. A block that is not indexed yet is [`Error::NotYet`].
    ///
    /// `[]` may also mean that the node's EVM index is pruned (trap): if receipts are expected, query
    /// [`Evm::block_exists`].
    pub async fn block_receipts(&self, height: u64) -> Result<Reply, Error> {
        self.query(self.receipts_request(height)).await
    }

    /// As above; a reply of up to `expects` bytes is of usual size.
    pub(crate) async fn block_receipts_expecting(&self, height: u64, expects: usize) -> Result<Reply, Error> {
        let request = self.receipts_request(height);
        self.query(RpcRequest { http: request.http.expecting(expects), ..request }).await
    }

    /// As above from any other endpoint, to compare answers. `None` if no other endpoint of this chain is more
    /// trustworthy; other endpoints under an ordered pause are [`Error::RateLimited`].
    pub async fn receipts_from_other(&self, height: u64, not: &Origin) -> Result<Option<Reply>, Error> {
        let request = self.receipts_request(height);
        let read = async |endpoint: Arc<Endpoint>| request.send_expecting_block(&endpoint).await;
        Ok(self.pool.query_others(&request.http, not, read).await?.map(Reply::from))
    }

    fn receipts_request(&self, height: u64) -> RpcRequest {
        let params = format!(r#"["{height:#x}"]"#);
        let request = self.request("eth_getBlockReceipts", &params);
        RpcRequest { http: request.http.about_block(height), ..request }
    }

    /// The block of the node's EVM index with the hashes of its transactions: a JSON object. `None` if it is pruned or
    /// not indexed yet.
    pub async fn block(&self, height: u64) -> Result<Option<Reply>, Error> {
        let params = format!(r#"["{height:#x}",false]"#);
        let request = self.request("eth_getBlockByNumber", &params).about(height);
        let read = async |endpoint: Arc<Endpoint>| request.send(&endpoint).await;
        let (bytes, origin) = self.pool.query_with_origin(&request.http, read).await?;
        Ok((bytes[..] != *b"null").then_some(Reply { bytes, origin }))
    }

    /// True if the node's EVM index has the block: false if it is pruned or not indexed yet.
    pub async fn block_exists(&self, height: u64) -> Result<bool, Error> {
        Ok(self.block(height).await?.is_some())
    }

    /// The call traces of a block: a JSON array with one entry per transaction, each with a `result` or an
    /// `error`. Height 1 is [`Error::Untraceable`].
    pub async fn trace_block(&self, height: u64) -> Result<Reply, Error> {
        self.trace_block_expecting(height, 0).await
    }

    /// As above; a reply of up to `expects` bytes is of usual size.
    pub async fn trace_block_expecting(&self, height: u64, expects: usize) -> Result<Reply, Error> {
        let params = format!(r#"["{height:#x}",{CALL_TRACER}]"#);
        let request = self.request("debug_traceBlockByNumber", &params).about(height);
        let request = RpcRequest { http: request.http.expecting(expects), ..request };
        self.query(request.within(self.trace_timeout)).await
    }

    /// The call trace of one transaction by its EVM hash: the JSON object of its outermost frame.
    pub async fn trace_tx(&self, hash: [u8; 32]) -> Result<Bytes, Error> {
        let params = format!(r#"["0x{}",{CALL_TRACER}]"#, hex::encode(hash));
        let request = self.request("debug_traceTransaction", &params).within(self.trace_timeout);
        self.query(request).await.map(|answer| answer.bytes)
    }

    async fn query(&self, request: RpcRequest) -> Result<Reply, Error> {
        let read = async |endpoint: Arc<Endpoint>| request.send_expecting_block(&endpoint).await;
        self.pool.query_with_origin(&request.http, read).await.map(Reply::from)
    }

    pub(crate) fn request(&self, method: &'static str, params: &str) -> RpcRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        RpcRequest { id, http: Request::post(method, String::new(), body) }
    }
}

/// A numbered call.
pub(crate) struct RpcRequest {
    pub(crate) id: u64,
    pub(crate) http: Request,
}

impl RpcRequest {
    pub(crate) fn about(self, height: u64) -> Self {
        Self { http: self.http.about(height), ..self }
    }

    fn within(self, timeout: Duration) -> Self {
        Self { http: self.http.within(timeout), ..self }
    }

    async fn send(&self, endpoint: &Endpoint) -> Result<Bytes, Error> {
        self.send_with(endpoint, classify).await
    }

    /// For results that exist once the block is indexed: `null` is [`Error::NotYet`].
    async fn send_expecting_block(&self, endpoint: &Endpoint) -> Result<Bytes, Error> {
        let result = self.send(endpoint).await?;
        if result[..] == *b"null" {
            let message = "null, its EVM index has not got there; is indexer-disable = true under [evm] in its \
                        app.toml, or json-rpc.enable-indexer = false where it has that key?";
            let message = message.to_owned();
            return Err(Error::NotYet { at: endpoint.context(&self.http), tip: None, message });
        }
        Ok(result)
    }

    pub(crate) async fn send_with(
        &self,
        endpoint: &Endpoint,
        classify: fn(RequestContext, RpcError) -> Error,
    ) -> Result<Bytes, Error> {
        match rpc::exchange(endpoint, &self.http, Some(self.id)).await? {
            RpcResponse::Result(result) => Ok(result),
            RpcResponse::Error(error) => Err(classify(endpoint.context(&self.http), error)),
        }
    }
}

/// A hex quantity in JSON: `"0x1a"`.
pub(crate) fn quantity(json: &[u8]) -> Option<u64> {
    let text: String = serde_json::from_slice(json).ok()?;
    let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Code of a revert (go-ethereum `internal/ethapi/errors.go`).
pub(crate) const REVERTED: i64 = 3;

/// Classifies an EVM server's error, by text first (minievm `jsonrpc/backend/tracer.go`), then by code.
pub(crate) fn classify(at: RequestContext, error: RpcError) -> Error {
    let RpcError { code, message } = error;
    // At any other height it would be the reply to another request.
    if message.contains("genesis is not traceable") && at.height.is_none_or(|height| height <= 1) {
        return Error::Untraceable { at };
    }
    let is_absent = |what: &str| message.contains(what) && message.contains("not found");
    // Only transactions of indexed blocks are traced.
    if is_absent("block #") || at.method.starts_with("debug_") && is_absent("transaction") {
        return Error::NotYet { at, tip: None, message };
    }
    if let Some(error) = crate::rest::gateway::state_is_missing(&at, &message) {
        return error;
    }
    match code {
        rpc::METHOD_MISSING => {
            let debug = at.method.starts_with("debug_");
            let advice = if debug { ADD_DEBUG } else { "is this the address of the EVM's JSON-RPC?" };
            Error::MethodMissing { at, message, advice }
        }
        rpc::INVALID_PARAMS | rpc::INVALID_REQUEST | REVERTED => Error::Refused { at, code, message },
        _ => Error::Faulty { at, code, message },
    }
}

const ADD_DEBUG: &str = "debug namespace missing, add `debug` to json-rpc.apis in app.toml (json-rpc.api of cosmos/evm and ethermint)";
