//! Calls that need the state of the chain, a mempool or a trace: forwarded to a node, if its group is switched on.
//!
//! # Invariants
//! * A call of a group that is off is refused as an unknown method is: clients then use another way, or say so.
//! * A node of another chain gets no call.
//! * Parameters reach the node unchanged, and its result or error object the client.
//! * Time, size and number of the calls in flight have bounds of their own; a call that waits holds no thread.

use std::time::Duration;

use node::{Evm, Limits, RawReply, SetupError, Url};
use tokio::sync::OnceCell;
use web::http_error::HttpError;

use crate::rpc_error::{INTERNAL, RpcError};

/// Time for the reply of a node.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Calls in flight to all nodes.
const IN_FLIGHT: usize = 64;

/// Maximum bytes of a node's reply: those of the response to a batch.
const MAX_REPLY: usize = crate::server::MAX_RESPONSE;

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

/// Forwards the calls of some groups.
pub struct Forward {
    groups: Vec<Group>,
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
        Ok(Self { groups, node: Evm::new(nodes, limits)?, verified: OnceCell::new() })
    }

    /// True if calls of `group` are forwarded.
    pub(crate) fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// The result of a node of the chain with the EIP-155 id `chain_id`.
    pub(crate) async fn call(
        &self,
        chain_id: impl FnOnce() -> Result<u64, HttpError>,
        method: &'static str,
        params: Option<&str>,
    ) -> Result<Vec<u8>, RpcError> {
        if !self.verified.initialized() {
            self.node.expect_number(chain_id()?);
        }
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
