//! Calls to contracts, one or many in a request.
//!
//! # Invariants
//!
//! Only a contract's own rejection is [`Error::Refused`]; a failed call does not affect the others. A request goes to
//! one server, which processes it in order (go-ethereum `rpc/handler.go`).
//!
//! If the state must be exact ([`StateAt::exact`]), a request is `[eth_blockNumber, NUMBER, calls…, NUMBER,
//! eth_blockNumber]`, where `NUMBER` returns the height of the state it ran in. For its newest indexed height H a
//! minievm reads the state of H-1 until H is committed, then that of H, then that of H+1 if H+1 is committed before it
//! is indexed, and again that of H once H+1 is indexed. So the calls count only if both `NUMBER` return H and H+1 was
//! not indexed between the two `eth_blockNumber`. (Measured next to minievm v1.2.18: without the second condition 19 of
//! 4,892 requests had a reply of H+1, with it none of 4,448.)

use std::sync::Arc;

use bytes::Bytes;
use chain::{U256, excerpt};
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::error::{Error, RequestContext};
use crate::evm::{Evm, REVERTED, RpcRequest, classify, quantity};
use crate::pool::endpoint::{Endpoint, Request};
use crate::rest::gateway::is_transient_text;
use crate::rpc::{self, RpcError, RpcResponse};
use crate::state_at::StateAt;

/// Calls in one request. Servers take 1,000, and answer with no more than 25 MB (the defaults of `batch-request-limit`
/// and `batch-response-max-size` of minievm, of go-ethereum the same).
pub const BATCH: usize = 100;

/// Concurrent calls of a batch that a server does not accept.
const SINGLY: usize = 16;

/// Init code that returns the number of the block it runs in, as 32 bytes: NUMBER, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0,
/// RETURN. A call without a recipient runs it and needs no contract on the chain.
const NUMBER: &str = "0x4360005260206000f3";

/// A contract call from the zero address, with the node's gas limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractCall {
    /// The contract.
    pub to: [u8; 20],
    /// The calldata.
    pub data: Vec<u8>,
}

/// Outcome of one request.
type Outcome = Result<Bytes, Error>;

impl Evm {
    /// Return data of a contract call (`eth_call` from the zero address, with the node's gas limit) in the state
    /// after a height, `None` the latest. Empty where there is no contract.
    /// A contract's own rejection is [`Error::Refused`], whatever code the server gives it; nothing else is.
    pub async fn call(&self, to: [u8; 20], data: &[u8], height: Option<u64>) -> Result<Vec<u8>, Error> {
        let request = self.call_request(&ContractCall { to, data: data.to_vec() }, height);
        let read = async |endpoint: Arc<Endpoint>| {
            let outcome = request.send_with(&endpoint, classify_call_error).await;
            returned(outcome, || endpoint.context(&request.http))
        };
        self.pool.query(&request.http, read).await
    }

    /// Return data of `calls` in a state, in the same order: as [`Evm::call`], but [`BATCH`] in a request, and between
    /// two calls that return the state's height if it must be exact. If a server answers none of them, the next server
    /// is queried.
    pub async fn calls(&self, calls: &[ContractCall], state: &StateAt) -> Vec<Result<Vec<u8>, Error>> {
        let batches = calls.chunks(BATCH).map(|some| async move {
            let answers = self.batch(some, state).await;
            answers.unwrap_or_else(|error| vec![Err(error); some.len()])
        });
        join_all(batches).await.into_iter().flatten().collect()
    }

    async fn batch(
        &self,
        calls: &[ContractCall],
        state: &StateAt,
    ) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        let exact = state.height.filter(|_| state.exact);
        let mut requests: Vec<RpcRequest> = Vec::new();
        if let Some(height) = exact {
            requests.extend([self.request("eth_blockNumber", "[]"), self.number_request(height)]);
        }
        requests.extend(calls.iter().map(|call| self.call_request(call, state.height)));
        if let Some(height) = exact {
            requests.extend([self.number_request(height), self.request("eth_blockNumber", "[]")]);
        }
        let ends = if exact.is_some() { 2 } else { 0 };
        let batch = batch_of(&requests, state.height);
        let attempt = async |endpoint: Arc<Endpoint>| {
            let outcomes = send_all(&endpoint, &batch, &requests, ends).await?;
            if let Some(height) = exact {
                ran_at(height, &outcomes, endpoint.context(&batch))?;
            }
            let count = calls.len();
            let outcomes = outcomes.into_iter().zip(&requests).skip(ends).take(count);
            let answers: Vec<_> = outcomes
                .map(|(outcome, request)| returned(outcome, || endpoint.context(&request.http)))
                .collect();
            let failed = |answer: &Result<_, Error>| matches!(answer, Err(error) if !is_no(error));
            match answers.first() {
                Some(Err(error)) if answers.iter().all(failed) => Err(error.clone()),
                _ => Ok(answers),
            }
        };
        self.pool.query(&batch, attempt).await
    }

    /// Whether the node runs calls in the state of `height` now: one that names no contract. A pruned state is not its fault.
    pub async fn runs_calls(&self, height: u64) -> bool {
        let request = self.number_request(height);
        let read = async |endpoint: Arc<Endpoint>| request.send_with(&endpoint, classify_call_error).await;
        self.pool.query(&request.http, read).await.map_or_else(|error| error.is_pruned(), |_| true)
    }

    fn number_request(&self, height: u64) -> RpcRequest {
        let params = format!(r#"[{{"data":"{NUMBER}"}},"{}"]"#, tag(Some(height)));
        let mut request = self.request("eth_call", &params);
        request.http.height = Some(height);
        request
    }

    fn call_request(&self, call: &ContractCall, height: Option<u64>) -> RpcRequest {
        let (to, data) = (hex::encode(call.to), hex::encode(&call.data));
        let params = format!(r#"[{{"to":"0x{to}","data":"0x{data}"}},"{}"]"#, tag(height));
        let mut request = self.request("eth_call", &params);
        request.http.height = height;
        request
    }
}

fn is_no(error: &Error) -> bool {
    matches!(error, Error::Refused { .. })
}

fn tag(height: Option<u64>) -> String {
    height.map_or_else(|| "latest".to_owned(), |height| format!("{height:#x}"))
}

/// Checks that the calls between the first two and the last two outcomes ran in the state of `height`.
fn ran_at(height: u64, outcomes: &[Outcome], at: RequestContext) -> Result<(), Error> {
    let answer = |outcome: &Outcome| outcome.clone().map_err(not_by_a_contract);
    let state = |outcome| {
        let number = returned(answer(outcome), || at.clone())?;
        Ok(U256::try_from_be_slice(&number).and_then(|number| u64::try_from(number).ok()))
    };
    let index = |outcome| Ok(quantity(&answer(outcome)?));
    let [index_before, first, .., last, index_after] = outcomes else { return Ok(()) };
    let (first, last) = (state(first)?, state(last)?);
    let (before, after) = (index(index_before)?, index(index_after)?);
    let is_settled = before.is_some_and(|before| before > height) || after == Some(height);
    if (first, last, is_settled) == (Some(height), Some(height), true) {
        return Ok(());
    }
    let shown =
        |height: Option<u64>| height.map_or_else(|| "unknown".to_owned(), |height| height.to_string());
    let message = format!(
        "contracts may not be read from the state of height {height}: it is {} before and {} after, with the index at \
         {} and {}",
        shown(first),
        shown(last),
        shown(before),
        shown(after),
    );
    Err(Error::NotYet { at, tip: None, message })
}

/// Sends all requests as one batch, or a single request by itself.
fn batch_of(requests: &[RpcRequest], height: Option<u64>) -> Request {
    let bodies = requests.iter().filter_map(|request| request.http.body.as_deref());
    let bodies = bodies.collect::<Vec<_>>().join(&b","[..]);
    let body = if requests.len() == 1 { bodies } else { [&b"["[..], &bodies, b"]"].concat() };
    Request { height, body: Some(body.into()), ..Request::get("eth_call", String::new()) }
}

/// Outcomes of all requests at one server, in the same order. A server that rejects the batch gets the requests singly:
/// the first alone, the others only if it is answered. The first and the last `ends` are sent in order, before and
/// after the others.
async fn send_all(
    endpoint: &Endpoint,
    batch: &Request,
    requests: &[RpcRequest],
    ends: usize,
) -> Result<Vec<Outcome>, Error> {
    if let [only] = requests {
        return Ok(vec![only.send_with(endpoint, classify_call_error).await]);
    }
    let ids: Vec<u64> = requests.iter().map(|request| request.id).collect();
    let responses = match endpoint.send(batch).await {
        Ok(response) => rpc::decode_batch(response.body(), &ids),
        Err(Error::TooLarge { .. }) => None,
        Err(error) => return Err(error),
    };
    if let Some(responses) = responses {
        let outcome = |(responses, request): (Option<RpcResponse>, &RpcRequest)| match responses {
            Some(RpcResponse::Result(result)) => Ok(result),
            Some(RpcResponse::Error(error)) => {
                Err(classify_call_error(endpoint.context(&request.http), error))
            }
            None => {
                let reason = "the answer to the batch lacks this call".to_owned();
                Err(endpoint.malformed(&request.http, reason))
            }
        };
        return Ok(responses.into_iter().zip(requests).map(outcome).collect());
    }
    let mut outcomes = Vec::with_capacity(requests.len());
    let last = requests.len() - ends;
    for request in &requests[..ends.max(1)] {
        let outcome = request.send_with(endpoint, classify_call_error).await;
        if let Err(error) = &outcome
            && !is_no(error)
        {
            return Err(error.clone());
        }
        outcomes.push(outcome);
    }
    let others: Vec<_> = requests[ends.max(1)..last]
        .iter()
        .map(|request| request.send_with(endpoint, classify_call_error))
        .collect();
    outcomes.extend(futures_util::stream::iter(others).buffered(SINGLY).collect::<Vec<_>>().await);
    for request in &requests[last..] {
        outcomes.push(request.send_with(endpoint, classify_call_error).await);
    }
    Ok(outcomes)
}

/// The bytes that a call returned.
fn returned(outcome: Outcome, at: impl FnOnce() -> RequestContext) -> Result<Vec<u8>, Error> {
    let result = outcome?;
    bytes(&result).ok_or_else(|| {
        let reason = format!("{} is not bytes in hex", excerpt(&result));
        Error::Malformed { at: at(), reason }
    })
}

/// Bytes in hex in JSON: `"0x01ff"`.
fn bytes(json: &[u8]) -> Option<Vec<u8>> {
    let text: &str = serde_json::from_slice(json).ok()?;
    hex::decode(text.strip_prefix("0x")?).ok()
}

/// Texts of deterministic failures of EVM execution (minievm `x/evm/types/errors.go`; go-ethereum `core/vm/errors.go`).
/// Servers report these with the code of an internal failure.
const ENDS_OF_CALLS: [&str; 10] = [
    "EVMCall failed",
    "out of gas",
    "invalid opcode",
    "invalid jump destination",
    "stack underflow",
    "stack limit reached",
    "max call depth exceeded",
    "write protection",
    "return data out of bounds",
    "gas uint64 overflow",
];

/// Classifies an error of `eth_call`.
fn classify_call_error(at: RequestContext, error: RpcError) -> Error {
    let RpcError { code, message } = error;
    // First, because a revert's text is arbitrary: the contract may write that a block is not found.
    if code == REVERTED || is_revert(&message) {
        return Error::Refused { at, code, message };
    }
    match classify(at, RpcError { code, message }) {
        Error::Faulty { at, code, message }
            if ENDS_OF_CALLS.iter().any(|end| message.contains(end)) && !is_transient_text(&message) =>
        {
            Error::Refused { at, code, message }
        }
        other => not_by_a_contract(other),
    }
}

/// Rejection of the request by a gateway or another kind of server: no contract was called.
fn not_by_a_contract(error: Error) -> Error {
    match error {
        Error::Refused { at, code, message } => Error::Faulty { at, code, message },
        other => other,
    }
}

/// minievm writes `revert: {reason}: Reverted` or `Reverted`, go-ethereum `execution reverted: {reason}`.
fn is_revert(message: &str) -> bool {
    message.starts_with("revert: ")
        || message.starts_with("execution reverted")
        || message.ends_with("Reverted")
}
