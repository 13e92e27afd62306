//! The replies of a node: a pure function of a recording, the height of the tip, and a request.
//!
//! # Invariants
//!
//! A reply is the recorded text or is derived from it exactly.
//! - Any other request gets an error and is counted.
//! - Heights above the tip do not exist.

mod absent;
mod byzantine;
mod comet;
mod comet_reply;
mod comet_txs;
mod deviation;
mod envelope;
mod eth;
mod eth_reply;
mod ethereum;
mod ethereum_blocks;
mod executor;
mod gateway;
mod logs;
mod module_state;
mod move_views;
mod query;
mod rest;
mod rest_reply;
mod rest_txs;
mod search;
mod subscriptions;
mod work;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::counters::Counters;
use crate::recording::Recording;
pub use deviation::{Deviation, Deviations};
pub(crate) use subscriptions::Subscriptions;
pub(crate) use work::Work;

/// The three services of a node, and that of its bridge's executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// `CometBFT` RPC.
    Comet,
    /// The Cosmos REST gateway.
    Rest,
    /// The EVM's JSON-RPC.
    JsonRpc,
    /// The REST of the bridge's executor.
    Executor,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 4] = [Self::Comet, Self::Rest, Self::JsonRpc, Self::Executor];

    /// The name used on the command line and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Comet => "comet",
            Self::Rest => "rest",
            Self::JsonRpc => "json-rpc",
            Self::Executor => "executor",
        }
    }
}

/// The part of a recording that a request can access.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The recorded chain.
    pub recording: &'a Recording,
    /// The height of the tip; heights above it do not exist.
    pub shown: u64,
    /// Deviations from the replies of a correct node.
    pub deviations: Deviations,
    /// Heights whose state is not committed yet: the node answers from the state of the previous height.
    pub lagging: &'a [u64],
    /// Counters of calls and of requests without a recorded reply.
    pub counters: &'a Counters,
}

impl View<'_> {
    /// The last height whose transactions are executed, and so in the index.
    fn executed(&self) -> u64 {
        self.shown.saturating_sub(u64::from(self.deviations.has(Deviation::NoResults)))
    }

    /// The error of a node without an index of transactions.
    fn no_index(&self) -> Option<&'static str> {
        self.deviations.has(Deviation::NoIndex).then_some("transaction indexing is disabled")
    }

    /// Whether the transactions of a height are in the index.
    fn is_indexed(&self, height: u64) -> bool {
        height <= self.executed() && height >= self.deviations.get(Deviation::PrunedIndex).unwrap_or(0)
    }

    /// The first height that is not pruned; a node always has its tip.
    fn base(&self) -> u64 {
        self.recording.first().max(self.deviations.get(Deviation::Pruned).unwrap_or(0)).min(self.shown)
    }

    /// The height whose reply a request by height gets: another one if a cache confuses heights.
    fn answered(&self, height: u64) -> u64 {
        let (base, shown) = (self.base(), self.shown);
        let Some(random) =
            self.deviations.get(Deviation::OtherHeight).filter(|_| (base..=shown).contains(&height))
        else {
            return height;
        };
        let others = shown - base;
        let other = base + random.checked_rem(others).unwrap_or(0);
        if others > 0 && other >= height { other + 1 } else { other }
    }

    /// The height whose state answers a request about the state of `height`.
    fn state_of(&self, height: u64) -> u64 {
        if !self.lagging.contains(&height) {
            return height;
        }
        self.counters.lag();
        height.saturating_sub(1)
    }

    /// The error of the SDK for a pruned height; `None` if the height is not pruned.
    fn no_state(&self, height: u64) -> Option<String> {
        let pruned = self.deviations.get(Deviation::Pruned).is_some_and(|base| height < base.min(self.shown));
        let latest = self.shown;
        pruned.then(|| {
            format!("failed to load state at height {height}; version mismatch on immutable IAVL tree; version does not exist. Version has either been pruned, or is for a future block height (latest height: {latest})")
        })
    }
}

/// A reply: JSON, or the executor's plain text of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body; empty only for a method that is not allowed.
    pub body: Bytes,
}

impl HttpReply {
    pub(crate) fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into() }
    }
}

/// The hash of a transaction in base64, the encoding of nodes.
fn hash_of(raw: &str) -> Result<String, base64::DecodeError> {
    STANDARD.decode(raw).map(|bytes| hex::encode_upper(Sha256::digest(bytes)))
}

/// Answers a request to a service.
pub fn answer(service: Service, view: View<'_>, request: &Request<Bytes>) -> HttpReply {
    match service {
        Service::Comet => comet::answer(view, request),
        Service::Rest => rest::answer(view, request),
        Service::JsonRpc => eth::answer(view, request),
        Service::Executor => executor::answer(view, request),
    }
}
