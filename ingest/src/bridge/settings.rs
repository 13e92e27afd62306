//! Asks the node of a layer one for the settings of its bridges, for the optional index `bridge`: the finalization period, and whether a
//! bridge is disabled, change without an event.
//!
//! The lane's writer writes the replies as they are. On other chains there are no bridges, so nothing is asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use node::{Node, Rest};
use schema::ophost;
use store::Store;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::optional::Fetched;

/// Pause between rounds.
const POLL: Duration = Duration::from_secs(5);

/// Bridges of a round; the next round has the next ones.
const ROUND: usize = 16;

/// Bytes of a reply, at most: the module allows some kilobytes of metadata.
const MAX_REPLY: usize = 64 << 10;

/// Time without a reply before a log line about it, and between two of these.
const REMINDER: Duration = Duration::from_mins(1);

/// Asks the node of a layer one.
pub(crate) struct SettingsSource {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
}

/// Why a bridge was not asked about.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Node(#[from] node::Error),
    #[error(transparent)]
    Schema(#[from] schema::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the reply about bridge {bridge} has {bytes} bytes, more than {MAX_REPLY}")]
    TooLarge { bridge: u64, bytes: usize },
}

impl SettingsSource {
    /// Runs for ever.
    pub(crate) async fn run(self) -> Infallible {
        let Some(rest) = &self.node.rest else { return std::future::pending().await };
        let (mut after, mut failing) = (0, None);
        loop {
            match self.round(rest, &mut after).await {
                Ok(replies) => {
                    failing = None;
                    if !replies.is_empty() && self.found.send(Fetched::Bridges(replies)).await.is_err() {
                        // The block lane has ended.
                        return std::future::pending().await;
                    }
                }
                Err(error) => {
                    let since = failing.get_or_insert_with(Instant::now);
                    if since.elapsed() >= REMINDER {
                        *since = Instant::now();
                        tracing::warn!(%error, "settings of bridges are old until the node replies");
                    }
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The replies about the bridges after `after` that differ from the stored ones.
    async fn round(&self, rest: &Rest, after: &mut u64) -> Result<Vec<(u64, Vec<u8>)>, Failure> {
        let bridges = ophost::bridges_after(&*self.store.snapshot()?, *after, ROUND)?;
        // Before the requests: a bridge that fails delays no other.
        *after = if bridges.len() < ROUND { 0 } else { bridges.last().copied().unwrap_or_default() };
        let (mut replies, mut failure) = (Vec::new(), None);
        for bridge in bridges {
            match self.reply(rest, bridge).await {
                Ok(Some(reply)) => replies.push((bridge, reply)),
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if replies.is_empty() => Err(error),
            _ => Ok(replies),
        }
    }

    /// The reply about a bridge, unless it is stored.
    async fn reply(&self, rest: &Rest, bridge: u64) -> Result<Option<Vec<u8>>, Failure> {
        let reply = rest.get(&format!("/opinit/ophost/v1/bridges/{bridge}"), None).await?;
        if reply.len() > MAX_REPLY {
            return Err(Failure::TooLarge { bridge, bytes: reply.len() });
        }
        let stored = ophost::bridge_reply(&*self.store.snapshot()?, bridge)?;
        Ok((stored.as_deref() != Some(&reply[..])).then(|| reply.to_vec()))
    }
}
