//! The events of channels and connections.

use serde::Deserialize;

use super::{End, Found};
use crate::comet::Event;
use crate::serde_lenient::JsonText;

/// The state of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelState {
    /// This chain has proposed it.
    Init,
    /// This chain has agreed to it.
    TryOpen,
    /// Packets may pass.
    Open,
    /// None may any more.
    Closed,
}

/// A channel was opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelEvent {
    /// Its end on this chain.
    pub end: End,
    /// Its other end; the channel is empty while it is not known.
    pub counterparty: End,
    /// The connection on this chain.
    pub connection: String,
    /// The version that the applications agree on; empty if the event and its message have none.
    pub version: String,
    /// Like that of a packet; empty if the event and its message have none.
    pub ordering: String,
    /// Its state from now on.
    pub state: ChannelState,
}

/// The members of the messages of the handshake that events lack.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Handshake<'a> {
    channel: Channel<'a>,
    counterparty_version: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Channel<'a> {
    ordering: JsonText<'a>,
}

/// What an event says of a channel. `message` gives the JSON of the event's message.
pub(super) fn channel<'a>(
    event: &Event<'_>,
    message: impl FnOnce() -> Option<&'a str>,
) -> Option<ChannelEvent> {
    let state = match &*event.kind {
        "channel_open_init" => ChannelState::Init,
        "channel_open_try" => ChannelState::TryOpen,
        "channel_open_ack" | "channel_open_confirm" => ChannelState::Open,
        "channel_close_init" | "channel_close_confirm" | "channel_close" => ChannelState::Closed,
        _ => return None,
    };
    let text = |key: &str| event.value(key).map_or_else(String::new, |text| (**text).to_owned());
    let end = End { port: text("port_id"), channel: text("channel_id") };
    let handshake: Handshake<'_> =
        message().and_then(|message| serde_json::from_str(message).ok()).unwrap_or_default();
    let version = match &*event.kind {
        // The other chain may have chosen it. In the message of a try it is what the other chain has proposed.
        "channel_open_ack" => (*handshake.counterparty_version).to_owned(),
        _ => text("version"),
    };
    let ordering = Some(text("channel_ordering")).filter(|ordering| !ordering.is_empty());
    (!end.channel.is_empty()).then(|| ChannelEvent {
        end,
        counterparty: End { port: text("counterparty_port_id"), channel: text("counterparty_channel_id") },
        connection: text("connection_id"),
        version,
        ordering: ordering.unwrap_or_else(|| (*handshake.channel.ordering).to_owned()),
        state,
    })
}

/// The connection that an event makes.
pub(super) fn connection(event: &Event<'_>) -> Option<Found> {
    if !event.kind.starts_with("connection_open_") {
        return None;
    }
    let text = |key: &str| event.value(key).map(|text| (**text).to_owned()).filter(|text| !text.is_empty());
    Some(Found::Connection { connection: text("connection_id")?, client: text("client_id")? })
}
