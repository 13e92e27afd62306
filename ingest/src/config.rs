//! What an operator can set about the ingest.

use std::time::Duration;

use chain::Vm;

/// Heights between the node and the commit, by default: enough to keep a node busy, and with the largest blocks that
/// were recorded (2 MB of answers) some 100 MB.
pub const LOOK_AHEAD: usize = 32;

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
    /// How often the node is asked for its height once the index has caught up.
    pub poll: Duration,
}
