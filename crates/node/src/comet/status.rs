//! `/status` and block events: the height and chain that a CometBFT endpoint reports.

use std::time::Duration;

use serde_json::Value;

use crate::comet::reply::result_of;
use crate::error::Error;
use crate::json::{hash_at, number_at, text_at};
use crate::pool::endpoint::{Endpoint, Request};

/// Content of `/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `node_info.network`.
    pub chain_id: String,
    /// CometBFT's version.
    pub node_version: String,
    /// Height of the last block that is stored; its results may be one step behind.
    pub latest_height: u64,
    /// Its hash. None before the first block.
    pub latest_hash: Option<[u8; 32]>,
    /// Height of the oldest block that is stored.
    pub earliest_height: u64,
    /// True while the node fetches old blocks.
    pub catching_up: bool,
}

/// Block header of a websocket event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBlock {
    pub(crate) chain_id: String,
    pub(crate) height: u64,
    pub(crate) parent: Option<[u8; 32]>,
}

/// Name of the call in messages.
const STATUS: &str = "status";

/// Time limit: a node serves its status from memory, so a slower one serves no other request either.
const MAX_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn status_request() -> Request {
    Request::get(STATUS, "/status".to_owned())
}

/// True if the call is `/status`.
pub(crate) fn is_status(request: &Request) -> bool {
    request.name == STATUS
}

pub(crate) async fn status_of(endpoint: &Endpoint) -> Result<Status, Error> {
    let request = status_request().within(MAX_WAIT.min(endpoint.limits().timeout));
    let status = endpoint.parse(&request, &result_of(endpoint, &request).await?)?;
    Status::read(&status).map_err(|reason| endpoint.malformed(&request, reason))
}

impl Status {
    fn read(status: &Value) -> Result<Self, String> {
        let catching_up = status.pointer("/sync_info/catching_up").and_then(Value::as_bool);
        Ok(Self {
            chain_id: text_at(status, "/node_info/network")?.to_owned(),
            node_version: text_at(status, "/node_info/version")?.to_owned(),
            latest_height: number_at(status, "/sync_info/latest_block_height")?,
            latest_hash: hash_at(status, "/sync_info/latest_block_hash")?,
            earliest_height: number_at(status, "/sync_info/earliest_block_height")?,
            catching_up: catching_up.ok_or("there is no boolean at /sync_info/catching_up")?,
        })
    }
}

impl NewBlock {
    /// Reads the data of a `NewBlockHeader` event.
    pub(crate) fn read(data: &Value) -> Result<Self, String> {
        Ok(Self {
            chain_id: text_at(data, "/value/header/chain_id")?.to_owned(),
            height: number_at(data, "/value/header/height")?,
            parent: hash_at(data, "/value/header/last_block_id/hash")?,
        })
    }
}
