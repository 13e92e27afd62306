//! `/status`: how far an endpoint is, and of which chain.
//!
//! Holds: whoever asks for a status, what it says is known of the endpoint from then on; an endpoint of another chain
//! than the one that was said first is asked no more.

use std::sync::Arc;
use std::time::Duration;

use hex::FromHexError;
use serde::Deserialize;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::comet::{Comet, parsed, result_of};
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, excerpt};
use crate::member::Member;

/// What `/status` says.
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

impl Comet {
    /// The chain that all endpoints must belong to; the first word counts.
    pub(crate) fn expect_chain(&self, chain_id: &str) {
        self.chain().get_or_init(|| chain_id.to_owned());
    }

    /// Asks one endpoint for its status, whatever its standing, unless its server has ordered a pause.
    pub(crate) async fn look(&self, member: &Member) -> Result<Status, Error> {
        let attempt = async |endpoint: Arc<Endpoint>| status_of(&endpoint).await;
        let asked = Instant::now();
        let status = self.pool().put(member, &status_call(), &attempt).await?;
        self.observe(member, &status, asked)?;
        Ok(status)
    }

    /// Keeps what an endpoint says of itself, asked at a moment; an error if it is of another chain.
    pub(crate) fn observe(&self, member: &Member, status: &Status, asked: Instant) -> Result<(), Error> {
        let want = self.chain().get().unwrap_or(&status.chain_id);
        if !self.pool().belongs(member, want, &status.chain_id) {
            let at = member.endpoint.site(&status_call());
            return Err(Error::WrongChain {
                at,
                want: want.clone(),
                got: excerpt(status.chain_id.as_bytes()),
            });
        }
        let was_behind = {
            let mut record = member.record();
            let was_behind = record.known.catching_up;
            record.known.stated(status, asked);
            was_behind
        };
        tell_behind(member, was_behind, status);
        self.pool().publish();
        Ok(())
    }
}

/// Says once that a node is behind, and once that it no longer is.
fn tell_behind(member: &Member, was_behind: bool, status: &Status) {
    let (origin, height) = (&member.origin, status.latest_height);
    match (was_behind, status.catching_up) {
        (false, true) => warn!(
            "{origin}: the node is behind, it is fetching blocks and has got to {height}; if it does not get on, see \
             persistent_peers under [p2p] in its config.toml"
        ),
        (true, false) => info!("{origin}: the node has caught up, it is at {height}"),
        _ => {}
    }
}

/// The name of the call in messages.
const STATUS: &str = "status";

/// A node tells its status from memory: one that takes this long answers nothing else either.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn status_call() -> Call {
    Call::get(STATUS, "/status".to_owned())
}

/// Whether a call is that of the status.
pub(crate) fn is_status(call: &Call) -> bool {
    call.name == STATUS
}

#[derive(Deserialize)]
struct Said {
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
    let Said { node_info, sync_info } = parsed(endpoint, &call, &result)?;
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
