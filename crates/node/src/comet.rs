//! CometBFT RPC client: blocks, block results and the application's query router.
//!
//! # Invariants
//!
//! * Blocks and results are returned as the bytes that the node sent.
//! * Errors of CometBFT 0.38 are classified by their texts, as listed in indexing.md §1.2.
//! * Missing results are [`Error::NotYet`] only near the tip of the endpoint that lacks them.

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::comet_rpc::{classify, parsed, result_of};
use crate::endpoint::{Call, Endpoint};
use crate::endpoint_head::EndpointState;
use crate::error::Error;
use crate::limits::Limits;
use crate::origin::{Answer, Origin};
use crate::pool::Pool;
use crate::rpc::{self, RpcResponse};
use crate::setup_error::SetupError;
use crate::status::{Status, status_call, status_of};
use crate::url::Url;

/// Asks one chain's CometBFT nodes.
pub struct Comet {
    pool: Pool,
    /// The chain that all endpoints must belong to, once it is set.
    chain: OnceLock<String>,
}

impl Comet {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("comet", urls, limits)?, chain: OnceLock::new() })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The chain that all endpoints must belong to; the first value stays.
    pub(crate) fn chain(&self) -> &OnceLock<String> {
        &self.chain
    }

    /// States of all endpoints, in configured order; every change wakes the receiver. Heights and hashes come from
    /// [`Comet::watch`] and from every requested status.
    pub fn heads(&self) -> watch::Receiver<Arc<[EndpointState]>> {
        self.pool.heads()
    }

    /// Current states of all endpoints.
    pub fn endpoints(&self) -> Arc<[EndpointState]> {
        self.pool.states()
    }

    /// The state of the next endpoint that answers and is not known to belong to another chain.
    pub async fn status(&self) -> Result<Status, Error> {
        let mut outcome = self.next_status().await;
        // Each attempt excludes one more endpoint of another chain.
        for _ in self.pool.members() {
            match outcome {
                Err(Error::WrongChain { .. }) => outcome = self.next_status().await,
                settled => return settled,
            }
        }
        outcome
    }

    async fn next_status(&self) -> Result<Status, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| status_of(&endpoint).await;
        let asked = Instant::now();
        let (status, origin) = self.pool.ask_whom(&status_call(), attempt).await?;
        if let Some(member) = self.pool.member(&origin) {
            self.observe(member, &status, asked)?;
        }
        Ok(status)
    }

    /// The `result` of `/block?height=`.
    pub async fn block(&self, height: u64) -> Result<Answer, Error> {
        let call = block_call(height);
        self.pool.ask_whom(&call, async |endpoint| block_of(&endpoint, &call).await).await.map(Answer::from)
    }

    /// As above from any other endpoint, to compare answers. None if there is no other endpoint of this chain that is
    /// more trustworthy; other endpoints under an ordered pause are [`Error::RateLimited`].
    pub async fn block_from_other(&self, height: u64, not: &Origin) -> Result<Option<Answer>, Error> {
        let call = block_call(height);
        let ask = self.pool.ask_others(&call, not, async |endpoint| block_of(&endpoint, &call).await);
        Ok(ask.await?.map(Answer::from))
    }

    /// The `result` of `/block_results?height=`.
    pub async fn block_results(&self, height: u64) -> Result<Answer, Error> {
        let call = results_call(height);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &call, height).await;
        self.pool.ask_whom(&call, attempt).await.map(Answer::from)
    }

    /// As above from one endpoint before the others: results must match the block of that endpoint.
    pub async fn block_results_by(&self, height: u64, first: &Origin) -> Result<Answer, Error> {
        let call = results_call(height);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &call, height).await;
        self.pool.ask_first(&call, first, attempt).await.map(Answer::from)
    }

    /// As above from any other endpoint, to compare answers. None if there is no other endpoint of this chain that is
    /// more trustworthy; other endpoints under an ordered pause are [`Error::RateLimited`].
    pub async fn results_from_other(&self, height: u64, not: &Origin) -> Result<Option<Answer>, Error> {
        let call = results_call(height);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &call, height).await;
        Ok(self.pool.ask_others(&call, not, attempt).await?.map(Answer::from))
    }

    /// Asks the application's query router (`/abci_query`) at its latest height. `path` is a gRPC method such
    /// as `/cosmos.auth.v1beta1.Query/Params`, `data_hex` the request message in hex. Gives the response
    /// message's bytes.
    ///
    /// A code that is not zero is [`Error::Refused`].
    pub async fn abci_query(&self, path: &str, data_hex: &str) -> Result<Vec<u8>, Error> {
        let quoted = utf8_percent_encode(path, NOT_IN_A_QUERY);
        let data = if data_hex.is_empty() { String::new() } else { format!("&data=0x{data_hex}") };
        let call = Call::get(&format!("abci_query {path}"), format!("/abci_query?path=%22{quoted}%22{data}"));
        self.pool.ask(&call, async |endpoint| abci_of(&endpoint, &call).await).await
    }
}

/// Characters that would end or change a query parameter.
const NOT_IN_A_QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

pub(crate) fn block_call(height: u64) -> Call {
    Call::get("block", format!("/block?height={height}")).about_block(height)
}

fn results_call(height: u64) -> Call {
    Call::get("block_results", format!("/block_results?height={height}")).about_block(height)
}

pub(crate) async fn block_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    #[derive(Deserialize)]
    struct Probe {
        block: Option<IgnoredAny>,
    }
    let result = result_of(endpoint, call).await?;
    // Where the meta of a block is missing the node says `"block":null` and no error. A header alone is longer
    // than this, so that real blocks are not parsed a second time.
    if result.len() < 1024 && parsed::<Probe>(endpoint, call, &result)?.block.is_none() {
        return Err(Error::Malformed { at: endpoint.site(call), reason: "the block is null".to_owned() });
    }
    Ok(result)
}

async fn results_of(endpoint: &Endpoint, call: &Call, height: u64) -> Result<Bytes, Error> {
    let error = match rpc::exchange(endpoint, call, None).await? {
        RpcResponse::Result(result) => return Ok(result),
        RpcResponse::Error(error) => error,
    };
    if !error.message.contains("could not find results for height") {
        return Err(classify(endpoint.site(call), error));
    }
    // The block of the tip is stored before it is executed; anywhere else the results are gone.
    let tip = status_of(endpoint).await?.latest_height;
    let at = endpoint.site(call);
    if height >= tip.saturating_sub(1) {
        Err(Error::NotYet { at, tip: Some(tip), said: error.message })
    } else {
        Err(Error::ResultsMissing { at, tip })
    }
}

async fn abci_of(endpoint: &Endpoint, call: &Call) -> Result<Vec<u8>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        #[serde(default)]
        code: u32,
        #[serde(default)]
        log: String,
        value: Option<String>,
    }
    let result = result_of(endpoint, call).await?;
    let Response { code, log, value } = parsed::<Answer>(endpoint, call, &result)?.response;
    if code != 0 {
        return Err(Error::Refused { at: endpoint.site(call), code: code.into(), said: log });
    }
    STANDARD.decode(value.unwrap_or_default()).map_err(|e| Error::Malformed {
        at: endpoint.site(call),
        reason: format!("the value is no base64: {e}"),
    })
}
