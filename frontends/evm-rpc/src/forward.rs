//! Calls that need the state of the chain, a mempool or a trace: forwarded to a node, if its group is switched on.
//!
//! # Invariants
//! * A call of a group that is off is refused as an unknown method is: clients then use another way, or say so.
//! * A node of another chain gets no call.
//! * Parameters reach the node unchanged, but for the block with [`ForwardAt::Index`], and its result or error object the client.
//! * Time, size and number of the calls in flight have bounds of their own; a call that waits holds no thread.

use std::time::Duration;

use node::{Evm, Limits, RawReply, SetupError, Url};
use serde_json::value::RawValue;
use tokio::sync::OnceCell;
use web::http_error::HttpError;

use crate::rpc_error::{INTERNAL, RpcError};

/// Time for the reply of a node.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Calls in flight to all nodes.
const IN_FLIGHT: usize = 64;

/// Maximum bytes of a node's reply: those of the response to a batch.
const MAX_REPLY: usize = crate::calls::MAX_RESPONSE;

/// Calls that are forwarded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Calls and reads of state: balances, code, storage, nonces, fees.
    State,
    /// Signed transactions.
    Send,
    /// Traces, for which a node executes transactions again.
    Trace,
    /// The mempool.
    Pending,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::State, Self::Send, Self::Trace, Self::Pending];

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Send => "send",
            Self::Trace => "trace",
            Self::Pending => "pending",
        }
    }
}

/// The block of a forwarded call that names none, or the latest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardAt {
    /// The last one of the node.
    #[default]
    Node,
    /// The last one of the index.
    Index,
}

/// The place of the block among the parameters of a method, and whether it may be left out.
fn place_of_block(method: &str) -> Option<(usize, bool)> {
    match method {
        "debug_traceBlockByNumber" => Some((0, false)),
        "debug_traceCall" | "eth_feeHistory" => Some((1, false)),
        "eth_call"
        | "eth_createAccessList"
        | "eth_estimateGas"
        | "eth_getBalance"
        | "eth_getCode"
        | "eth_getTransactionCount" => Some((1, true)),
        "eth_getStorageAt" => Some((2, true)),
        _ => None,
    }
}

/// The parameters of a call with the block `head` in place of the latest one; `None` if that changes nothing. `pending` is of the
/// mempool, which only the node has.
fn at_head(method: &str, params: Option<&str>, head: u64) -> Option<String> {
    let (place, may_lack) = place_of_block(method)?;
    let mut list: Vec<&RawValue> = params.map(serde_json::from_str).transpose().ok()?.unwrap_or_default();
    let block = serde_json::value::to_raw_value(&format!("{head:#x}")).ok()?;
    match list.get(place).map(|json| json.get()) {
        Some(r#""latest""# | r#""safe""# | r#""finalized""# | "null") => list[place] = &block,
        None if may_lack && list.len() == place => list.push(&block),
        _ => return None,
    }
    serde_json::to_string(&list).ok()
}

/// Forwards the calls of some groups.
pub struct Forward {
    groups: Vec<Group>,
    at: ForwardAt,
    node: Evm,
    /// Set once the nodes are of the chain.
    verified: OnceCell<()>,
}

impl Forward {
    /// Forwards the calls of `groups` to the first of `nodes` that replies.
    ///
    /// # Errors
    /// If there is no address, or a client for one cannot be made.
    pub fn new(groups: Vec<Group>, nodes: Vec<Url>) -> Result<Self, SetupError> {
        let limits = Limits {
            timeout: TIMEOUT,
            trace_timeout: TIMEOUT,
            body: MAX_REPLY,
            in_flight: IN_FLIGHT,
            ..Limits::default()
        };
        let (at, verified) = (ForwardAt::default(), OnceCell::new());
        Ok(Self { groups, at, node: Evm::new(nodes, limits)?, verified })
    }

    /// Sets the block of calls that name none, or the latest one.
    #[must_use]
    pub fn at(self, at: ForwardAt) -> Self {
        Self { at, ..self }
    }

    /// True if calls of `group` are forwarded.
    pub fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// The result of a node of the chain whose EIP-155 id and last indexed height `view` returns, or its error, both as JSON.
    ///
    /// # Errors
    /// The error object of JSON-RPC: that of the node, or one of this server if no node replies.
    pub async fn call_json(
        &self,
        view: impl Fn() -> Result<(u64, u64), HttpError>,
        method: &'static str,
        params: &str,
    ) -> Result<Vec<u8>, Vec<u8>> {
        self.call(view, method, Some(params)).await.map_err(|error| {
            let mut object = Vec::new();
            error.write(&mut object);
            object
        })
    }

    /// As [`Self::call_json`], with the error as a value.
    pub(crate) async fn call(
        &self,
        view: impl Fn() -> Result<(u64, u64), HttpError>,
        method: &'static str,
        params: Option<&str>,
    ) -> Result<Vec<u8>, RpcError> {
        if !self.verified.initialized() {
            self.node.expect_number(view()?.0);
        }
        let at_head = match self.at {
            ForwardAt::Index => at_head(method, params, view()?.1),
            ForwardAt::Node => None,
        };
        let params = at_head.as_deref().or(params);
        let reply = async {
            let verify = || self.node.verify_chain(None, "the index");
            self.verified.get_or_try_init(verify).await?;
            self.node.forward(method, params.unwrap_or("[]")).await
        };
        match reply.await {
            Ok(RawReply::Result(result)) => Ok(result.to_vec()),
            Ok(RawReply::Error(object)) => Err(RpcError::Forwarded(object)),
            Err(error) => {
                tracing::debug!(method, %error, "a call could not be forwarded");
                Err(RpcError::new(INTERNAL, "upstream unavailable"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_block_or_none_is_replaced_and_any_other_parameter_stays() {
        fn at(method: &str, params: Option<&str>) -> Option<String> {
            at_head(method, params, 16)
        }
        let call = r#"{"to":"0x1"}"#;
        for (method, given, sent) in [
            ("eth_call", format!(r#"[{call}, "latest"]"#), format!(r#"[{call},"0x10"]"#)),
            ("eth_call", format!("[{call}]"), format!(r#"[{call},"0x10"]"#)),
            (
                "eth_call",
                format!(r#"[{call},null,{{"0x1":{{}}}}]"#),
                format!(r#"[{call},"0x10",{{"0x1":{{}}}}]"#),
            ),
            ("eth_getStorageAt", r#"["0x1","0x0"]"#.to_owned(), r#"["0x1","0x0","0x10"]"#.to_owned()),
            ("eth_feeHistory", r#"["0x4","latest",[50]]"#.to_owned(), r#"["0x4","0x10",[50]]"#.to_owned()),
            ("debug_traceBlockByNumber", r#"["latest"]"#.to_owned(), r#"["0x10"]"#.to_owned()),
        ] {
            assert_eq!(at(method, Some(&given)), Some(sent), "{method} {given}");
        }
        for (method, given) in [
            ("eth_call", r#"[{},"0x5"]"#),
            ("eth_call", r#"[{},{"blockHash":"0x1"}]"#),
            ("eth_getTransactionCount", r#"["0x1","pending"]"#),
            ("eth_feeHistory", r#"["0x4"]"#),
            ("eth_gasPrice", "[]"),
            ("eth_call", "[]"),
            ("eth_call", "{}"),
            ("debug_traceTransaction", r#"["latest"]"#),
        ] {
            assert_eq!(at(method, Some(given)), None, "{method} {given}");
        }
        assert_eq!(at("eth_call", None), None, "the error is the node's");
    }
}
