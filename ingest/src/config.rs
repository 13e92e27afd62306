//! Settings of the ingest.

use std::time::Duration;

use chain::Vm;
use chain::evm::flavour::Flavour;
use node::Url;
use schema::index::Index;
use schema::undo::Horizon;

/// Default of `look_ahead`: enough to keep a node busy, and with the largest recorded blocks (2 MB of replies) some 100
/// MB. Of larger blocks fewer are fetched at once (`source/room.rs`).
pub const LOOK_AHEAD: usize = 32;

/// Default of `max_rewind`: hours of most rollups, and seconds of work.
pub const MAX_REWIND: u64 = 10_000;

/// Default of `believe_after`: time to repair a node that follows another history.
pub const BELIEVE_AFTER: Duration = Duration::from_mins(10);

/// Settings of the ingest.
#[derive(Clone, Debug)]
pub struct Config {
    /// The chain; an endpoint of another one is refused.
    pub chain_id: String,
    /// Its virtual machine.
    pub vm: Vm,
    /// The software of its EVM; if absent, the one that its messages name.
    pub evm: Option<Flavour>,
    /// Human-readable part of account addresses; queried from the node if absent.
    pub prefix: Option<String>,
    /// The first height to index; if absent, the first that the node has.
    pub start_height: Option<u64>,
    /// Enables the index of internal transactions, on a chain that has them.
    pub internal_txs: bool,
    /// Enables the rich list, on a chain that has ERC-20s.
    pub rich_list: bool,
    /// The optional indexes that are written.
    pub indexes: Vec<&'static Index>,
    /// What is asked of the layer one for the optional index `bridge`; nothing if absent.
    pub bridge: Option<Bridge>,
    /// Pause between two samples of the rich list against the contracts; none are taken if absent.
    pub reconcile_every: Option<Duration>,
    /// Heights that are fetched at once, in each lane.
    pub look_ahead: usize,
    /// Poll interval of the node's height without a subscription.
    pub poll: Duration,
    /// The checks of the node's replies before a commit.
    pub verify: Verify,
    /// Time for which mismatching receipts are fetched again before they are accepted; after several mismatching
    /// heights in a row, receipts are accepted at once.
    pub believe_after: Duration,
    /// Bound of an automatic rewind; beyond it the ingest stops with an error.
    pub max_rewind: u64,
    /// What the undo log keeps: no rewind goes beyond it.
    pub undo: Horizon,
    /// Pause before a restart after an error of the node, for a daemon: the node may be repaired meanwhile. Without it
    /// the ingest stops with the error.
    pub keep_trying: Option<Duration>,
}

/// The layer one of a rollup.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// Its REST, by one or more addresses.
    pub l1: Vec<Url>,
    /// Pause between two requests for its newest outputs.
    pub poll: Duration,
}

/// The checks of the node's replies before a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Only that the parent of each block is its predecessor.
    Off,
    /// Hashes: headers, parents, transactions, results, and EVM receipts as far as the results bind
    /// them.
    #[default]
    Hashes,
    /// The same, and that two thirds of the validators' power have signed each block.
    Signatures {
        /// A trusted height and its block's hash, to start the light client from; the first fetched block if absent.
        trusted: Option<(u64, [u8; 32])>,
    },
}

impl Verify {
    /// The name in the settings.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Hashes => "hashes",
            Self::Signatures { .. } => "signatures",
        }
    }
}
