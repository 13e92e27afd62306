//! Requests to the recorded node, and the replies about state that every recording has.

use std::path::Path;

use bytes::Bytes;
use node::retry::{Backoff, until};
use node::{Endpoints, EvmBlock, Limits, Node, ReceiptFailures, Rest};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;
use crate::recording::{Height, Line, RecordingWriter, Trace, raw_txs};

/// Page size of transactions that every gateway accepts.
const PAGE: usize = 100;

const NODE_INFO: &str = "/cosmos/base/tendermint/v1beta1/node_info";
const EVM_PARAMS: &str = "/minievm/evm/v1/params";
/// Requested of every chain: "not found" answers show an indexer the kind of chain.
const STATE: [&str; 5] = [
    NODE_INFO,
    "/cosmos/auth/v1beta1/bech32",
    "/opinit/opchild/v1/validators?pagination.limit=1000",
    "/initia/mstaking/v1/validators?pagination.limit=1000",
    "/cosmos/staking/v1beta1/validators?pagination.limit=1000",
];
const DESCRIPTORS: &str = "/abci_query?path=\"/cosmos.reflection.v1.ReflectionService/FileDescriptors\"";
const ETH: [&str; 4] = ["eth_chainId", "net_version", "web3_clientVersion", "eth_blockNumber"];

/// The clients of the recorded node.
pub(super) struct Source {
    node: Node,
    pub(super) rest: Rest,
    /// The two other services, for requests that their own clients lack: raw JSON over HTTP.
    comet_json: Rest,
    evm_json: Option<Rest>,
}

impl Source {
    pub(super) fn new(endpoints: Endpoints, limits: Limits) -> Result<Self, Error> {
        let comet_json = Rest::new(endpoints.comet.clone(), limits)?;
        let patient = Limits { timeout: limits.trace_timeout, ..limits };
        let json_rpc = endpoints.json_rpc.clone();
        let evm_json = (!json_rpc.is_empty()).then(|| Rest::new(json_rpc, patient)).transpose()?;
        let rest = Rest::new(endpoints.rest.clone(), limits)?;
        Ok(Self { node: Node::new(endpoints, limits)?, rest, comet_json, evm_json })
    }

    /// Rejects another denomination of fees than the node's, before the heights are recorded.
    pub(super) async fn agrees_on_fees(&self, given: &str) -> Result<(), Error> {
        let asked = until(Backoff::default(), EVM_PARAMS, || self.rest.get(EVM_PARAMS, None)).await;
        // A node that cannot say it leaves the given one.
        let Ok(params) = asked else { return Ok(()) };
        let theirs = fee_denom(&params)?;
        if given.is_empty() || given == theirs {
            return Ok(());
        }
        let message =
            format!("the node's denomination of fees is `{theirs}`, not `{given}`: correct --fee-denom");
        Err(Error::Response { call: EVM_PARAMS.to_owned(), message })
    }

    /// Rejects continuation of a recording of other heights or of another chain.
    pub(super) async fn same_chain(
        &self,
        dir: &Path,
        last: &Height,
        from: u64,
        to: u64,
    ) -> Result<(), Error> {
        let height = last.height;
        if !(from..=to).contains(&height) {
            let message =
                format!("an interrupted recording ends at {height}, which is not in {from} to {to}");
            return Err(Error::file(dir, format!("{message}; choose another directory or range")));
        }
        let block = until(Backoff::default(), "block", || self.node.comet.block(height)).await?.bytes;
        if block == last.block {
            return Ok(());
        }
        let message = format!("the interrupted recording has another block {height} than this node");
        Err(Error::file(dir, format!("{message}; choose another directory")))
    }

    pub(super) async fn height(&self, height: u64, evm: bool) -> Result<Height, Error> {
        let comet = &self.node.comet;
        let block = until(Backoff::default(), "block", || comet.block(height)).await?.bytes;
        let block_results =
            until(Backoff::default(), "block_results", || comet.block_results(height)).await?.bytes;
        let txs = raw_txs(&block).map_err(|e| malformed("block", height, &e))?.len();
        let rest_txs = if txs == 0 { None } else { Some(self.rest_txs(height, txs).await?) };
        let mut recorded = Height {
            height,
            block,
            block_results,
            rest_txs,
            eth_block: None,
            eth_receipts: None,
            eth_trace: None,
        };
        if evm {
            self.add_evm(&mut recorded, txs).await?;
        }
        Ok(recorded)
    }

    /// All transactions of a block in the gateway's JSON; the node omits those that do not decode.
    async fn rest_txs(&self, height: u64, total: usize) -> Result<Bytes, Error> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            txs: Vec<&'a RawValue>,
        }
        let mut all = vec![b'['];
        for offset in (0..total).step_by(PAGE) {
            let path = format!(
                "/cosmos/tx/v1beta1/txs/block/{height}?pagination.limit={PAGE}&pagination.offset={offset}"
            );
            let answer = until(Backoff::default(), "transactions", || self.rest.get(&path, None)).await?;
            let page: Page<'_> = serde_json::from_slice(&answer).map_err(|e| malformed("txs", height, &e))?;
            for tx in page.txs {
                if all.len() > 1 {
                    all.push(b',');
                }
                all.extend_from_slice(tx.get().as_bytes());
            }
        }
        all.push(b']');
        Ok(all.into())
    }

    async fn add_evm(&self, recorded: &mut Height, txs: usize) -> Result<(), Error> {
        let height = recorded.height;
        let evm = self.node.evm.as_ref().ok_or_else(|| no_json_rpc("eth_getBlockReceipts"))?;
        // If the receipts are not null, the index has the height, and so the block and the trace.
        let failures = ReceiptFailures::default();
        let request = || evm.receipts_or_block(height, 0, &failures);
        recorded.eth_receipts = match until(Backoff::default(), "receipts", request).await? {
            EvmBlock::Receipts(receipts) => Some(receipts.bytes),
            // Played as a node that refuses them.
            EvmBlock::Hashes { .. } => None,
        };
        let params = format!(r#"["{height:#x}",false]"#);
        recorded.eth_block = match self.eth("eth_getBlockByNumber", &params).await? {
            Trace::Result(block) => Some(block),
            Trace::Error(error) => return Err(answered("eth_getBlockByNumber", height, &error)),
        };
        if txs > 0 {
            let params = format!(r#"["{height:#x}",{{"tracer":"callTracer"}}]"#);
            recorded.eth_trace = Some(self.eth("debug_traceBlockByNumber", &params).await?);
        }
        Ok(())
    }

    /// The raw outcome of a JSON-RPC call.
    async fn eth(&self, method: &str, params: &str) -> Result<Trace, Error> {
        let client = self.evm_json.as_ref().ok_or_else(|| no_json_rpc(method))?;
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let answer = until(Backoff::default(), method, || client.post("", &body, None)).await?;
        opened(method, &answer)
    }

    /// Requests and writes the replies about state; returns the fee denomination of an EVM chain.
    pub(super) async fn state(
        &self,
        writer: &mut RecordingWriter,
        to: u64,
        evm: bool,
    ) -> Result<Option<String>, Error> {
        for path in STATE {
            self.rest_state(writer, path).await?;
        }
        let validators = format!("/validators?height={to}&page=1&per_page=100");
        for path in ["/status", "/abci_info", validators.as_str(), DESCRIPTORS] {
            self.comet_state(writer, path).await?;
        }
        if !evm {
            return Ok(None);
        }
        let no_params = raw("params", b"[]")?;
        for method in ETH {
            match self.eth(method, "[]").await? {
                Trace::Result(result) => {
                    let (params, result) = (no_params, Some(raw(method, &result)?));
                    writer.state(&Line::Eth { method, params, result, error: None })?;
                }
                Trace::Error(error) => return Err(answered(method, to, &error)),
            }
        }
        let Some(params) = self.rest_state(writer, EVM_PARAMS).await? else { return Ok(None) };
        fee_denom(&params).map(Some)
    }

    /// Writes a REST reply, including "not found"; returns it if it is a success.
    async fn rest_state(&self, writer: &mut RecordingWriter, path: &str) -> Result<Option<Bytes>, Error> {
        let (status, body) = match until(Backoff::default(), path, || self.rest.get(path, None)).await {
            Ok(body) => (200, body),
            Err(error) => match refusal(error)? {
                Some(refusal) => refusal,
                None => return Ok(None),
            },
        };
        let (method, answer) = ("GET", raw(path, &body)?);
        writer.state(&Line::Rest { method, path, height: None, body: None, status, answer })?;
        Ok((status == 200).then_some(body))
    }

    async fn comet_state(&self, writer: &mut RecordingWriter, path: &str) -> Result<(), Error> {
        let encoded = path.replace('"', "%22");
        let answer = until(Backoff::default(), path, || self.comet_json.get(&encoded, None)).await?;
        match opened(path, &answer)? {
            Trace::Result(result) => writer.state(&Line::Cometbft { path, answer: raw(path, &result)? }),
            Trace::Error(error) => Err(Error::Response { call: path.to_owned(), message: lossy(&error) }),
        }
    }
}

/// The denomination of fees in minievm's parameters.
fn fee_denom(params: &[u8]) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Reply {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        fee_denom: String,
    }
    let answer: Result<Reply, _> = serde_json::from_slice(params);
    let malformed =
        |e: serde_json::Error| Error::Response { call: EVM_PARAMS.to_owned(), message: e.to_string() };
    Ok(answer.map_err(malformed)?.params.fee_denom)
}

/// Status and body of a definite refusal in the gateway's own form (its `details` are always empty for these requests);
/// none if the node is a replay node without a recorded reply.
fn refusal(error: node::Error) -> Result<Option<(u16, Bytes)>, Error> {
    let (code, message) = match error {
        node::Error::MethodMissing { message, .. } if message.starts_with("not recorded: ") => {
            return Ok(None);
        }
        node::Error::MethodMissing { message, .. } if message == "Not Found" => (5, message),
        node::Error::MethodMissing { message, .. } => (12, message),
        node::Error::Refused { code, message, .. } => (code, message),
        other => return Err(other.into()),
    };
    // grpc-gateway's HTTPStatusFromCode.
    let status = match code {
        3 | 9 | 11 => 400,
        5 => 404,
        7 => 403,
        12 => 501,
        16 => 401,
        _ => 500,
    };
    let body = serde_json::json!({ "code": code, "message": message, "details": [] });
    Ok(Some((status, Bytes::from(body.to_string()))))
}

/// The result or error of a JSON-RPC envelope.
fn opened(call: &str, answer: &Bytes) -> Result<Trace, Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(borrow, default)]
        error: Option<&'a RawValue>,
    }
    let bad = |message: String| Error::Response { call: call.to_owned(), message };
    let envelope: Envelope<'_> = serde_json::from_slice(answer).map_err(|e| bad(e.to_string()))?;
    let slice = |raw: &RawValue| answer.slice_ref(raw.get().as_bytes());
    match (envelope.result, envelope.error) {
        (Some(result), None) => Ok(Trace::Result(slice(result))),
        (None, Some(error)) => Ok(Trace::Error(slice(error))),
        _ => Err(bad("neither a result nor an error, or both".to_owned())),
    }
}

fn raw<'a>(call: &str, json: &'a [u8]) -> Result<&'a RawValue, Error> {
    serde_json::from_slice(json)
        .map_err(|e| Error::Response { call: call.to_owned(), message: e.to_string() })
}

fn lossy(json: &[u8]) -> String {
    String::from_utf8_lossy(json).into_owned()
}

fn malformed(call: &str, height: u64, error: &serde_json::Error) -> Error {
    Error::Response { call: format!("{call} at height {height}"), message: error.to_string() }
}

fn answered(call: &str, height: u64, error: &[u8]) -> Error {
    Error::Response { call: format!("{call} at height {height}"), message: lossy(error) }
}

fn no_json_rpc(call: &str) -> Error {
    let message = "this is an EVM chain; give the address of its JSON-RPC".to_owned();
    Error::Response { call: call.to_owned(), message }
}
