//! JSON types that several endpoints share.

use messages::Msg;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// An object whose members the document does not fix.
pub(super) type Free = Map<String, Value>;

/// A Cosmos message in a response.
#[derive(Serialize, Clone, JsonSchema)]
#[schemars(inline)]
pub(super) struct WireMsg {
    /// Amino JSON in a string.
    msg: String,
    msg_type_url: &'static str,
}

impl From<Msg> for WireMsg {
    fn from(msg: Msg) -> Self {
        Self { msg: msg.msg, msg_type_url: msg.type_url }
    }
}
