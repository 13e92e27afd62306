//! JSON types that several endpoints share.

use messages::Msg;
use serde::Serialize;

/// A Cosmos message in a response.
#[derive(Serialize, Clone)]
pub(super) struct WireMsg {
    msg: String,
    msg_type_url: &'static str,
}

impl From<Msg> for WireMsg {
    fn from(msg: Msg) -> Self {
        Self { msg: msg.msg, msg_type_url: msg.type_url }
    }
}
