//! What an operator can set about the ingest.

use std::time::Duration;

use chain::Vm;

/// Heights between the node and the commit, by default: enough to keep a node busy, and with the largest blocks that
/// were recorded (2 MB of answers) some 100 MB.
pub const LOOK_AHEAD: usize = 32;

/// How many blocks may be taken back by themselves, by default: hours of most rollups, and seconds of work where records
/// of undoing are there.
pub const MAX_REWIND: u64 = 10_000;

/// For how long receipts are doubted, by default: as long as it may take to mend a node that has strayed.
pub const BELIEVE_AFTER: Duration = Duration::from_mins(10);

/// Settings of the ingest.
#[derive(Clone, Debug)]
pub struct Config {
    /// The chain; an endpoint of another one is refused.
    pub chain_id: String,
    /// Its virtual machine.
    pub vm: Vm,
    /// Human-readable part of account addresses; asked from the node if absent.
    pub prefix: Option<String>,
    /// The first height to index; if absent, the first that the node has.
    pub start_height: Option<u64>,
    /// Whether to index internal transactions, on a chain that has them.
    pub internal_txs: bool,
    /// Whether to keep a rich list, on a chain that has ERC-20s.
    pub rich_list: bool,
    /// Pause between two samples of the rich list against the contracts; none are taken if absent.
    pub reconcile_every: Option<Duration>,
    /// Heights that are fetched at once, in each lane.
    pub look_ahead: usize,
    /// How often the node is asked for its height where it does not tell it by itself.
    pub poll: Duration,
    /// What of the node's answers is checked before it is committed.
    pub verify: Verify,
    /// For how long receipts are asked for again that do not follow from their transactions, before they are taken as they
    /// are; if several heights in a row have none that do, those of later heights are taken at once.
    pub believe_after: Duration,
    /// How many blocks are taken back, at most, where the chain turns out to have another history; beyond, the ingest
    /// stops with the reason.
    pub max_rewind: u64,
    /// Pause before what the node cannot answer is tried again, for a daemon, whose node may be mended while it runs; if
    /// absent, the ingest stops with the reason.
    pub keep_trying: Option<Duration>,
}

/// What of the node's answers is checked before it is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// That each block names the one before as its parent, and no more.
    Off,
    /// What hashes prove (`indexing.md` §17): headers, parents, transactions, results, and EVM receipts as far as the
    /// results bind them.
    #[default]
    Hashes,
    /// The same, and that two thirds of the validators' power have signed each block.
    Signatures {
        /// A height and its block's hash, known from elsewhere, for the validators to be believed; the first block that
        /// comes if absent.
        trusted: Option<(u64, [u8; 32])>,
    },
}
