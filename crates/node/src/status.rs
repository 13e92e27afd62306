//! `/status` and block events: the height and chain that a CometBFT endpoint reports.

use std::time::Duration;

use hex::FromHexError;
use serde::Deserialize;

use crate::comet_rpc::{parsed, result_of};
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, excerpt};

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
    /// Whether the node is still fetching old blocks.
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

/// Time limit: a node serves its status from memory, so one that takes longer does not serve anything else either.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn status_call() -> Call {
    Call::get(STATUS, "/status".to_owned())
}

/// Whether the call is `/status`.
pub(crate) fn is_status(call: &Call) -> bool {
    call.name == STATUS
}

#[derive(Deserialize)]
struct StatusResult {
    node_info: NodeInfo,
    sync_info: SyncInfo,
}

#[derive(Deserialize)]
struct NodeInfo {
    network: String,
    version: String,
}

#[derive(Deserialize)]
struct SyncInfo {
    latest_block_height: String,
    #[serde(default)]
    latest_block_hash: String,
    earliest_block_height: String,
    catching_up: bool,
}

pub(crate) async fn status_of(endpoint: &Endpoint) -> Result<Status, Error> {
    let call = status_call().within(PATIENCE.min(endpoint.limits().timeout));
    let result = result_of(endpoint, &call).await?;
    let StatusResult { node_info, sync_info } = parsed(endpoint, &call, &result)?;
    let bad = |reason: String| Error::Malformed { at: endpoint.site(&call), reason };
    let height = |name: &str, text: &str| {
        text.parse().map_err(|_| bad(format!("{name} `{}` is no height", excerpt(text.as_bytes()))))
    };
    let hash = &sync_info.latest_block_hash;
    let bad_hash = |_| bad(format!("latest_block_hash `{}` is no hash", excerpt(hash.as_bytes())));
    Ok(Status {
        chain_id: node_info.network,
        node_version: node_info.version,
        latest_height: height("latest_block_height", &sync_info.latest_block_height)?,
        latest_hash: hash_or_none(hash).map_err(bad_hash)?,
        earliest_height: height("earliest_block_height", &sync_info.earliest_block_height)?,
        catching_up: sync_info.catching_up,
    })
}

/// A hash in hex; empty where there is none yet.
pub(crate) fn hash_or_none(text: &str) -> Result<Option<[u8; 32]>, FromHexError> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).map(|()| Some(hash))
}
