//! Client of Sourcify's API (docs.sourcify.dev, version 2): verified contracts by chain and address.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use crate::error::Error;
use crate::limits::Limits;
use crate::pool::Pool;
use crate::pool::endpoint::{Endpoint, Request};
use crate::setup_error::SetupError;
use crate::url::Url;

/// What is asked of a contract: all that is shown, and not its bytecode.
const FIELDS: &str = "abi,compilation,sources,metadata,deployment,proxyResolution";

/// Queries one server.
pub struct Sourcify {
    pool: Pool,
}

impl Sourcify {
    /// A client of the server at a base address, such as `https://sourcify.dev/server`.
    pub fn new(url: Url, limits: Limits) -> Result<Self, SetupError> {
        Ok(Self { pool: Pool::new("sourcify", vec![url], limits)? })
    }

    /// The contract at an address of the chain with this EIP-155 id, as JSON; `None` if it is not verified.
    pub async fn contract(&self, chain_id: u64, address: &[u8; 20]) -> Result<Option<Bytes>, Error> {
        let path = format!("/v2/contract/{chain_id}/0x{}?fields={FIELDS}", hex::encode(address));
        let request = Request::get("v2/contract", path);
        self.pool
            .query(&request, async |endpoint: Arc<Endpoint>| contract_of(&endpoint, &request).await)
            .await
    }

    /// Begins the verification of a contract; `input` is the JSON of the request. The status of the reply, and its JSON.
    pub async fn verify(
        &self,
        chain_id: u64,
        address: &[u8; 20],
        input: String,
    ) -> Result<(StatusCode, Bytes), Error> {
        let path = format!("/v2/verify/{chain_id}/0x{}", hex::encode(address));
        self.reply(&Request::post("v2/verify", path, input)).await
    }

    /// The state of a verification, whose id has letters, digits and hyphens only.
    pub async fn verification(&self, id: &str) -> Result<(StatusCode, Bytes), Error> {
        self.reply(&Request::get("v2/verify", format!("/v2/verify/{id}"))).await
    }

    async fn reply(&self, request: &Request) -> Result<(StatusCode, Bytes), Error> {
        let send = async |endpoint: Arc<Endpoint>| {
            let response = endpoint.send(request).await?;
            Ok((response.status(), endpoint.json(request, response)?))
        };
        self.pool.query(request, send).await
    }
}

async fn contract_of(endpoint: &Endpoint, request: &Request) -> Result<Option<Bytes>, Error> {
    let response = endpoint.send(request).await?;
    match response.status() {
        StatusCode::NOT_FOUND => Ok(None),
        status if status.is_success() => endpoint.json(request, response).map(Some),
        _ => Err(endpoint.unreadable(request, &response, "not a reply of Sourcify's API")),
    }
}
