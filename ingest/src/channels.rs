//! Asks the node for channels of IBC of which events do not say all, for the optional index `packets`: those that were opened before its
//! first block are only named by packets, and no event says the ordering of one without packets.
//!
//! The lane's writer writes the replies. A node that does not reply delays nothing: until it does, they are known in part.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use node::{ChannelState, Node, Rest};
use schema::packets::{self, Channel, ChannelStage};
use store::Store;
use tokio::sync::mpsc;

use crate::optional::Fetched;
use crate::rounds::{Failure, Rounds, send};

/// Pause between looks for new channels.
const POLL: Duration = Duration::from_secs(5);

/// Channels that are looked at: most chains have some hundred.
const MAX_CHANNELS: usize = 10_000;

/// Asks the node for channels.
pub(crate) struct ChannelSource {
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
}

impl ChannelSource {
    /// Runs for ever.
    pub(crate) async fn run(self) -> Infallible {
        let Some(rest) = &self.node.rest else { return std::future::pending().await };
        let mut rounds = Rounds::new("channels", POLL);
        loop {
            let outcome = self.round(rest).await;
            rounds
                .pause(outcome, |error| {
                    tracing::warn!(error, "channels are known in part until the node replies");
                })
                .await;
        }
    }

    /// Asks for each channel that is known in part. One that fails delays no other.
    async fn round(&self, rest: &Rest) -> Result<(), Failure> {
        let unknown = packets::unknown_channels(&*self.store.snapshot()?, MAX_CHANNELS)?;
        let mut failure = None;
        for end in unknown {
            match rest.channel(&end.port, &end.channel).await.map_err(Failure::from).and_then(read) {
                Ok(channel) => send(&self.found, Fetched::Channel(end, channel)).await,
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

/// The row of a channel of the node.
fn read(of: ChannelState) -> Result<Channel, Failure> {
    let state = match &*of.state {
        "STATE_INIT" => ChannelStage::Init,
        "STATE_TRYOPEN" => ChannelStage::TryOpen,
        // While an open channel is upgraded, it has other names.
        "STATE_OPEN" | "STATE_FLUSHING" | "STATE_FLUSHCOMPLETE" => ChannelStage::Open,
        "STATE_CLOSED" => ChannelStage::Closed,
        other => return Err(Failure::Reply(format!("a channel has the unknown state {other}"))),
    };
    Ok(Channel {
        counterparty_port: of.counterparty.port_id,
        counterparty_channel: of.counterparty.channel_id,
        connection: of.connection_hops.into_iter().next().unwrap_or_default(),
        ordering: of.ordering,
        version: of.version,
        state: state.into(),
    })
}
