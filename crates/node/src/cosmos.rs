//! Cosmos REST client (the SDK's grpc-gateway).
//!
//! # Invariants
//!
//! An answer is returned as the bytes that the node sent, checked to be whole JSON.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::accounts::sequence_of;
use crate::endpoint::{Call, Endpoint};
use crate::error::Error;
use crate::gateway::{answer_of, malformed};
use crate::limits::Limits;
use crate::pool::Pool;
use crate::setup_error::SetupError;
use crate::state_at::StateAt;
use crate::url::Url;

/// Asks one chain's REST servers.
pub struct Rest {
    pool: Pool,
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

impl Rest {
    /// A client over one or more addresses of the same chain.
    pub fn new(urls: Vec<Url>, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("rest", urls, limits)? })
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The JSON answer to a GET. `path_and_query` begins with `/` and is percent-encoded; `state` is what a
    /// state query reads.
    pub async fn get(&self, path_and_query: &str, state: impl Into<StateAt>) -> Result<Bytes, Error> {
        self.ask(Call::get(path_and_query, path_and_query.to_owned()).in_state(state)).await
    }

    /// The JSON answer to a POST of the JSON text `body`.
    pub async fn post(&self, path: &str, body: &str, height: Option<u64>) -> Result<Bytes, Error> {
        self.ask(Call::post(path, path.to_owned(), body.to_owned()).in_state(height)).await
    }

    /// `/cosmos/base/tendermint/v1beta1/node_info`.
    pub async fn node_info(&self) -> Result<NodeInfo, Error> {
        #[derive(Deserialize)]
        struct Answer {
            default_node_info: Default,
            application_version: Application,
        }
        #[derive(Deserialize)]
        struct Default {
            network: String,
        }
        #[derive(Deserialize)]
        struct Application {
            name: String,
            version: String,
        }
        let path = "/cosmos/base/tendermint/v1beta1/node_info";
        let read = |answer: Answer| NodeInfo {
            chain_id: answer.default_node_info.network,
            app_name: answer.application_version.name,
            app_version: answer.application_version.version,
        };
        self.ask_for(Call::get(path, path.to_owned()), read).await
    }

    /// The prefix of the chain's account addresses, for example `init`.
    pub async fn bech32_prefix(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Answer {
            bech32_prefix: String,
        }
        let path = "/cosmos/auth/v1beta1/bech32";
        self.ask_for(Call::get(path, path.to_owned()), |answer: Answer| answer.bech32_prefix).await
    }

    /// The node's JSON of one transaction (`{"body":…,"auth_info":…,"signatures":[…]}`), decoded by the node.
    /// [`Error::Refused`] if the node cannot decode it.
    pub async fn decode_tx(&self, raw: &[u8]) -> Result<Bytes, Error> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            tx: &'a RawValue,
        }
        let path = "/cosmos/tx/v1beta1/decode";
        let body = format!(r#"{{"tx_bytes":"{}"}}"#, STANDARD.encode(raw));
        let call = Call::post(path, path.to_owned(), body);
        let read = async |endpoint: Arc<Endpoint>| {
            let answer = json_of(&endpoint, &call).await?;
            let tx = serde_json::from_slice::<Answer<'_>>(&answer)
                .map_err(|e| malformed(&endpoint, &call, &e))?
                .tx;
            Ok(answer.slice_ref(tx.get().as_bytes()))
        };
        self.pool.ask(&call, read).await
    }

    async fn ask(&self, call: Call) -> Result<Bytes, Error> {
        self.pool.ask(&call, async |endpoint: Arc<Endpoint>| json_of(&endpoint, &call).await).await
    }

    /// An answer of a known shape; another shape is a reason to ask the next endpoint.
    pub(crate) async fn ask_for<A, T>(&self, call: Call, read: impl Fn(A) -> T) -> Result<T, Error>
    where
        A: for<'de> Deserialize<'de>,
    {
        self.ask_for_valid(call, |answer| Ok(read(answer))).await
    }

    /// As [`Rest::ask_for`], with a `read` that may also reject the content; its error is the reason.
    pub(crate) async fn ask_for_valid<A, T>(
        &self,
        call: Call,
        read: impl Fn(A) -> Result<T, String>,
    ) -> Result<T, Error>
    where
        A: for<'de> Deserialize<'de>,
    {
        let attempt = async |endpoint: Arc<Endpoint>| {
            let answer = json_of(&endpoint, &call).await?;
            let answer = serde_json::from_slice(&answer).map_err(|e| malformed(&endpoint, &call, &e))?;
            read(answer).map_err(|reason| Error::Malformed { at: endpoint.site(&call), reason })
        };
        self.pool.ask(&call, attempt).await
    }
}

pub(crate) async fn json_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    if let Some(probe) = &call.probe {
        let next = sequence_of(endpoint, &probe.address, call.state_height).await?;
        probe.pass(next, endpoint.site(call))?;
    }
    answer_of(endpoint, call).await
}
