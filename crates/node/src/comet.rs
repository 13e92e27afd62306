//! CometBFT RPC client: blocks, block results and the application's query router.
//!
//! # Invariants
//!
//! * Blocks and results are returned as the bytes that the node sent.
//! * Errors of CometBFT 0.38 are classified by their texts.
//! * Missing results are [`Error::NotYet`] only near the tip of the endpoint that lacks them.

mod broadcast;
mod heads;
pub(crate) mod reply;
pub(crate) mod status;
mod subscription;
mod validator_set;
mod websocket;

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::comet::reply::{classify, result_of};
use crate::comet::status::{Status, status_of, status_request};
use crate::error::Error;
use crate::limits::Limits;
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::endpoint_state::EndpointState;
use crate::pool::origin::{Origin, Reply};
use crate::pool::{Pool, PooledEndpoint};
use crate::rpc::{self, RpcResponse};
use crate::setup_error::SetupError;
use crate::url::Url;

/// Queries one chain's CometBFT nodes.
pub struct Comet {
    pub(crate) pool: Pool,
    /// The required chain of all endpoints, once it is set.
    pub(crate) chain: OnceLock<String>,
}

impl Comet {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("comet", urls, limits)?, chain: OnceLock::new() })
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
        let requested = Instant::now();
        let attempt = async |endpoint: Arc<Endpoint>| status_of(&endpoint).await;
        let (status, origin) = self.pool.query_with_origin(&status_request(), attempt).await?;
        if let Some(member) = self.pool.member(&origin) {
            self.record_status(member, &status, requested)?;
        }
        Ok(status)
    }

    /// Sets the chain that all endpoints must belong to, unless it is set.
    pub(crate) fn expect_chain(&self, chain_id: &str) {
        self.chain.get_or_init(|| chain_id.to_owned());
    }

    /// Queries one endpoint for its status, even if it is failing or distrusted, unless its server ordered a pause.
    pub(crate) async fn fetch_status(&self, member: &PooledEndpoint) -> Result<Status, Error> {
        let requested = Instant::now();
        let attempt = async |endpoint: Arc<Endpoint>| status_of(&endpoint).await;
        let status = self.pool.send(member, &status_request(), &attempt).await?;
        self.record_status(member, &status, requested)?;
        Ok(status)
    }

    /// Records a status that was sent at `requested`. Fails if it is of another chain. Logs once that a node is
    /// syncing, and once that it has caught up.
    fn record_status(
        &self,
        member: &PooledEndpoint,
        status: &Status,
        requested: Instant,
    ) -> Result<(), Error> {
        let want = self.chain.get().unwrap_or(&status.chain_id);
        self.pool.check_chain_id(member, &status_request(), want, &status.chain_id)?;
        let was_catching_up = member.stats().on_status(status, requested, Instant::now());
        let (endpoint, height) = (&member.origin, status.latest_height);
        match (was_catching_up, status.catching_up) {
            (false, true) => warn!(
                %endpoint,
                height,
                "the node is behind and fetches blocks; without progress, see persistent_peers under [p2p] in its \
                 config.toml"
            ),
            (true, false) => info!(%endpoint, height, "the node has caught up"),
            _ => {}
        }
        self.pool.publish();
        Ok(())
    }

    /// The version of the application, as it names it (`/abci_info`).
    pub async fn app_version(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Info {
            response: Response,
        }
        #[derive(Deserialize)]
        struct Response {
            #[serde(default)]
            version: String,
        }
        let request = Request::get("abci_info", "/abci_info".to_owned());
        let attempt = async |endpoint: Arc<Endpoint>| {
            let info: Info = endpoint.parse(&request, &result_of(&endpoint, &request).await?)?;
            Ok(info.response.version)
        };
        self.pool.query(&request, attempt).await
    }

    /// Records a provably false reply of an endpoint; `reason` is the proof. The endpoint is logged, counted, and not
    /// queried while there is another: for a minute, each later time twice as long, up to an hour. If all are
    /// distrusted, all are queried, those with the fewest false replies first.
    pub fn distrust(&self, origin: &Origin, reason: &str) {
        self.pool.distrust(origin, reason);
    }

    /// The `result` of `/block?height=`.
    pub async fn block(&self, height: u64) -> Result<Reply, Error> {
        let request = block_request(height);
        self.pool
            .query_with_origin(&request, async |endpoint: Arc<Endpoint>| block_of(&endpoint, &request).await)
            .await
            .map(Reply::from)
    }

    /// As above from any other endpoint, to compare answers. `None` if no other endpoint of this chain is more
    /// trustworthy; other endpoints under an ordered pause are [`Error::RateLimited`].
    pub async fn block_from_other(&self, height: u64, not: &Origin) -> Result<Option<Reply>, Error> {
        let request = block_request(height);
        let query = self
            .pool
            .query_others(&request, not, async |endpoint: Arc<Endpoint>| block_of(&endpoint, &request).await);
        Ok(query.await?.map(Reply::from))
    }

    /// As above from one endpoint before the others.
    pub async fn block_by(&self, height: u64, first: &Origin) -> Result<Reply, Error> {
        let request = block_request(height);
        let query = self.pool.query_first(&request, first, async |endpoint: Arc<Endpoint>| {
            block_of(&endpoint, &request).await
        });
        query.await.map(Reply::from)
    }

    /// As above from every endpoint that may be queried, concurrently. Distrusted endpoints are excluded while there is
    /// another, and endpoints under an ordered pause always.
    pub async fn block_from_all(&self, height: u64) -> Vec<(Origin, Result<Bytes, Error>)> {
        let request = block_request(height);
        self.pool
            .query_all(&request, async |endpoint: Arc<Endpoint>| block_of(&endpoint, &request).await)
            .await
    }

    /// The `result` of `/block_results?height=`.
    pub async fn block_results(&self, height: u64) -> Result<Reply, Error> {
        let request = results_request(height);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &request, height).await;
        self.pool.query_with_origin(&request, attempt).await.map(Reply::from)
    }

    /// As above from one endpoint before the others: results must match the block of that endpoint.
    pub async fn block_results_by(&self, height: u64, first: &Origin) -> Result<Reply, Error> {
        self.block_results_expecting(height, first, 0).await
    }

    /// As above; a reply of up to `expects` bytes is of usual size.
    pub async fn block_results_expecting(
        &self,
        height: u64,
        first: &Origin,
        expects: usize,
    ) -> Result<Reply, Error> {
        let request = results_request(height).expecting(expects);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &request, height).await;
        self.pool.query_first(&request, first, attempt).await.map(Reply::from)
    }

    /// As above from any other endpoint, to compare answers. `None` if no other endpoint of this chain is more
    /// trustworthy; other endpoints under an ordered pause are [`Error::RateLimited`].
    pub async fn results_from_other(&self, height: u64, not: &Origin) -> Result<Option<Reply>, Error> {
        let request = results_request(height);
        let attempt = async |endpoint: Arc<Endpoint>| results_of(&endpoint, &request, height).await;
        Ok(self.pool.query_others(&request, not, attempt).await?.map(Reply::from))
    }

    /// Queries the application's query router (`/abci_query`) at its latest height. `path` is a gRPC method such as
    /// `/cosmos.auth.v1beta1.Query/Params`, `data_hex` the request message in hex. Returns the bytes of the response
    /// message.
    ///
    /// A nonzero code is [`Error::Refused`].
    pub async fn abci_query(&self, path: &str, data_hex: &str) -> Result<Vec<u8>, Error> {
        let quoted = utf8_percent_encode(path, NOT_IN_A_QUERY);
        let data = if data_hex.is_empty() { String::new() } else { format!("&data=0x{data_hex}") };
        let request =
            Request::get(&format!("abci_query {path}"), format!("/abci_query?path=%22{quoted}%22{data}"));
        self.pool.query(&request, async |endpoint: Arc<Endpoint>| abci_of(&endpoint, &request).await).await
    }
}

/// Characters that would end or change a query parameter.
const NOT_IN_A_QUERY: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'&').add(b'+').add(b'<').add(b'>');

fn block_request(height: u64) -> Request {
    Request::get("block", format!("/block?height={height}")).about_block(height)
}

fn results_request(height: u64) -> Request {
    Request::get("block_results", format!("/block_results?height={height}")).about_block(height)
}

async fn block_of(endpoint: &Endpoint, request: &Request) -> Result<Bytes, Error> {
    #[derive(Deserialize)]
    struct Probe {
        block: Option<IgnoredAny>,
    }
    let result = result_of(endpoint, request).await?;
    // If the meta of a block is missing, the node returns `"block":null` and no error. A header alone is longer than
    // this, so real blocks are not parsed a second time.
    if result.len() < 1024 && endpoint.parse::<Probe>(request, &result)?.block.is_none() {
        return Err(endpoint.malformed(request, "the block is null"));
    }
    Ok(result)
}

async fn results_of(endpoint: &Endpoint, request: &Request, height: u64) -> Result<Bytes, Error> {
    let message = match stored_results(endpoint, request).await? {
        Ok(result) => return Ok(result),
        Err(message) => message,
    };
    // The node stores the tip's block before it executes it; at any other height missing results are lost.
    let tip = status_of(endpoint).await?.latest_height;
    if height >= tip.saturating_sub(1) {
        return Err(Error::NotYet { at: endpoint.context(request), tip: Some(tip), message });
    }
    // The tip may have moved between the two replies, so only results that are missing after the status are lost.
    let results = stored_results(endpoint, request).await?;
    results.map_err(|_| Error::ResultsMissing { at: endpoint.context(request), tip })
}

/// The results, or the node's text if it does not have them.
async fn stored_results(endpoint: &Endpoint, request: &Request) -> Result<Result<Bytes, String>, Error> {
    match rpc::exchange(endpoint, request, None).await? {
        RpcResponse::Result(result) => Ok(Ok(result)),
        RpcResponse::Error(error) if error.message.contains("could not find results for height") => {
            Ok(Err(error.message))
        }
        RpcResponse::Error(error) => Err(classify(endpoint.context(request), error)),
    }
}

async fn abci_of(endpoint: &Endpoint, request: &Request) -> Result<Vec<u8>, Error> {
    #[derive(Deserialize)]
    struct Reply {
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
    let result = result_of(endpoint, request).await?;
    let Response { code, log, value } = endpoint.parse::<Reply>(request, &result)?.response;
    if code != 0 {
        return Err(Error::Refused { at: endpoint.context(request), code: code.into(), message: log });
    }
    let value = STANDARD.decode(value.unwrap_or_default());
    value.map_err(|e| endpoint.malformed(request, format!("the value is not base64: {e}")))
}
