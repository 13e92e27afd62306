//! State selection for queries: the height to read, and the proof that a reply is of that height.
//!
//! A node may announce a height before its state is committed, and then answers queries about it from the state of
//! the height before, without an error. A minievm answers queries about the newest height of its EVM index from the
//! latest committed state (`jsonrpc/backend`, `getQueryCtxWithHeight`), which may also be that of the next height.
//! Contract calls are therefore framed by calls that return the height of their state ([`StateAt::exact`]), and a
//! REST query is sent after a [`Probe`] to the same server.
//!
//! # Invariants
//!
//! A reply from a server without proof that it reads the right state is [`Error::NotYet`].

use crate::error::{Error, RequestContext};

/// A transaction of the height, by its signer and sequence: states before it have no higher sequence for the account
/// than the transaction's own, states after it do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The signer in bech32.
    pub address: String,
    /// The transaction's sequence.
    pub sequence: u64,
}

/// A state of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateAt {
    /// After this height; the latest if absent.
    pub height: Option<u64>,
    /// True if contract calls count only from a server that proves to read the state of exactly this height.
    pub exact: bool,
    /// Test that the state must pass before a REST query; `None` if every server is known to have the state.
    pub probe: Option<Probe>,
}

impl From<Option<u64>> for StateAt {
    fn from(height: Option<u64>) -> Self {
        Self { height, exact: false, probe: None }
    }
}

impl Probe {
    /// True if a state in which the account's next sequence is `next` comes after the transaction.
    pub(crate) fn pass(&self, next: u64, at: RequestContext) -> Result<(), Error> {
        if next > self.sequence {
            return Ok(());
        }
        let (address, due) = (&self.address, self.sequence.saturating_add(1));
        let message = format!("the state is of a lower height: {address} has sequence {next}, not {due}");
        Err(Error::NotYet { at, tip: None, message })
    }
}
