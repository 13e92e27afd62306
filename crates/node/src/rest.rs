//! Cosmos REST client (the SDK's grpc-gateway).
//!
//! # Invariants
//!
//! A reply is returned as the bytes that the node sent, checked to be complete JSON.

mod accounts;
pub(crate) mod bridge_state;
pub(crate) mod gateway;
pub(crate) mod ibc_state;
pub(crate) mod module_queries;
pub(crate) mod move_views;
pub(crate) mod opinit_executor;
mod pagination;
pub(crate) mod validators;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::json::text_at;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pool::endpoint::{Endpoint, Request};
use crate::rest::accounts::sequence_of;
use crate::rest::gateway::answer_of;
use crate::setup_error::SetupError;
use crate::state_at::StateAt;
use crate::url::Url;

/// Queries one chain's REST servers.
pub struct Rest {
    pub(crate) pool: Pool,
}

/// Version information of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// The chain id.
    pub chain_id: String,
    /// The application, for example `minievm`.
    pub app_name: String,
    /// The application's version as reported, for example `v1.2.18`.
    pub app_version: String,
}

/// Path of the node's version information.
pub(crate) const NODE_INFO: &str = "/cosmos/base/tendermint/v1beta1/node_info";

impl Rest {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("rest", urls, limits)? })
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.pool.members().len()
    }

    /// The JSON answer to a GET. `path_and_query` begins with `/` and is percent-encoded; `state` selects the state of
    /// a state query.
    pub async fn get(&self, path_and_query: &str, state: impl Into<StateAt>) -> Result<Bytes, Error> {
        self.query(Request::get(path_and_query, path_and_query.to_owned()).in_state(state)).await
    }

    /// The JSON answer to a POST of the JSON text `body`.
    pub async fn post(&self, path: &str, body: &str, height: Option<u64>) -> Result<Bytes, Error> {
        self.query(Request::post(path, path.to_owned(), body.to_owned()).in_state(height)).await
    }

    /// `/cosmos/base/tendermint/v1beta1/node_info`.
    pub async fn node_info(&self) -> Result<NodeInfo, Error> {
        let read = |answer: Value| {
            let text = |pointer| text_at(&answer, pointer).map(str::to_owned);
            let (app_name, app_version) =
                (text("/application_version/name")?, text("/application_version/version")?);
            Ok(NodeInfo { chain_id: text("/default_node_info/network")?, app_name, app_version })
        };
        self.query_for(Request::get(NODE_INFO, NODE_INFO.to_owned()), read).await
    }

    /// The prefix of the chain's account addresses, for example `init`.
    pub async fn bech32_prefix(&self) -> Result<String, Error> {
        self.text_at("/cosmos/auth/v1beta1/bech32", "/bech32_prefix").await
    }

    /// The node's JSON of one transaction (`{"body":…,"auth_info":…,"signatures":[…]}`), decoded by the node.
    /// [`Error::Refused`] if the node cannot decode it.
    pub async fn decode_tx(&self, raw: &[u8]) -> Result<Bytes, Error> {
        #[derive(Deserialize)]
        struct Reply<'a> {
            #[serde(borrow)]
            tx: &'a RawValue,
        }
        let path = "/cosmos/tx/v1beta1/decode";
        let body = format!(r#"{{"tx_bytes":"{}"}}"#, STANDARD.encode(raw));
        let request = Request::post(path, path.to_owned(), body);
        let read = async |endpoint: Arc<Endpoint>| {
            let answer = json_of(&endpoint, &request).await?;
            let tx = endpoint.parse::<Reply<'_>>(&request, &answer)?.tx;
            Ok(answer.slice_ref(tx.get().as_bytes()))
        };
        self.pool.query(&request, read).await
    }

    async fn query(&self, request: Request) -> Result<Bytes, Error> {
        self.pool.query(&request, async |endpoint: Arc<Endpoint>| json_of(&endpoint, &request).await).await
    }

    /// The text at a JSON pointer of the reply to a GET.
    pub(crate) async fn text_at(&self, path: &str, pointer: &str) -> Result<String, Error> {
        let read = |answer: Value| text_at(&answer, pointer).map(str::to_owned);
        self.query_for(Request::get(path, path.to_owned()), read).await
    }

    /// A reply of a known shape, which `read` may reject with a reason. After a reply of another shape the next
    /// endpoint is queried.
    pub(crate) async fn query_for<A: DeserializeOwned, T>(
        &self,
        request: Request,
        read: impl Fn(A) -> Result<T, String>,
    ) -> Result<T, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| {
            let answer = json_of(&endpoint, &request).await?;
            let answer = endpoint.parse(&request, &answer)?;
            read(answer).map_err(|reason| endpoint.malformed(&request, reason))
        };
        self.pool.query(&request, attempt).await
    }
}

pub(crate) async fn json_of(endpoint: &Endpoint, request: &Request) -> Result<Bytes, Error> {
    if let Some(probe) = &request.probe {
        let next = sequence_of(endpoint, &probe.address, request.state_height).await?;
        probe.pass(next, endpoint.context(request))?;
    }
    answer_of(endpoint, request).await
}
