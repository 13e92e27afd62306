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

use crate::optional::Fetched;
use crate::rounds::{Failure, Rounds, send};

/// Pause between rounds.
const POLL: Duration = Duration::from_secs(5);

/// Bridges of a round; the next round has the next ones.
const ROUND: usize = 16;

/// Bytes of a reply, at most: the module allows some kilobytes of metadata.
const MAX_REPLY: usize = 64 << 10;

/// Asks the node of a layer one.
pub(crate) struct SettingsSource {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
}

impl SettingsSource {
    /// Runs for ever.
    pub(crate) async fn run(self) -> Infallible {
        let Some(rest) = &self.node.rest else { return std::future::pending().await };
        let (mut rounds, mut after) = (Rounds::new("settings of bridges", POLL), 0);
        loop {
            let outcome = self.round(rest, &mut after).await;
            rounds
                .pause(outcome, |error| {
                    tracing::warn!(error, "settings of bridges are old until the node replies");
                })
                .await;
        }
    }

    /// Asks about the bridges after `after`, and sends the replies that differ from the stored ones.
    async fn round(&self, rest: &Rest, after: &mut u64) -> Result<(), Failure> {
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
        if !replies.is_empty() {
            send(&self.found, Fetched::Bridges(replies)).await;
        }
        failure.map_or(Ok(()), Err)
    }

    /// The reply about a bridge, unless it is stored.
    async fn reply(&self, rest: &Rest, bridge: u64) -> Result<Option<Vec<u8>>, Failure> {
        let reply = rest.get(&format!("/opinit/ophost/v1/bridges/{bridge}"), None).await?;
        if reply.len() > MAX_REPLY {
            let reason =
                format!("the reply about bridge {bridge} has {} bytes, more than {MAX_REPLY}", reply.len());
            return Err(Failure::Reply(reason));
        }
        let stored = ophost::bridge_reply(&*self.store.snapshot()?, bridge)?;
        Ok((stored.as_deref() != Some(&reply[..])).then(|| reply.to_vec()))
    }
}
