//! The chains of a scenario, the largest first.

use crate::inputs::{Data, Scenario};

/// Seconds of a year.
const YEAR: f64 = 365.25 * 86_400.0;

/// One chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chain {
    pub(crate) txs: f64,
    pub(crate) txs_per_s: f64,
    pub(crate) blocks_per_s: f64,
    pub(crate) requests_per_s: f64,
}

/// The chains of `scenario`: sizes and loads follow Zipf's law.
pub(crate) fn chains(scenario: &Scenario, data: &Data) -> Vec<Chain> {
    let weights: Vec<f64> =
        (1..=scenario.chains).map(|rank| f64::from(rank).powf(-scenario.chain_zipf)).collect();
    let sum: f64 = weights.iter().sum();
    let txs = scenario.rows / data.rows_per_tx;
    let of = |weight: &f64| {
        let share = weight / sum;
        let txs_per_s = share * txs / (scenario.years * YEAR);
        Chain {
            txs: share * txs,
            txs_per_s,
            blocks_per_s: txs_per_s.clamp(scenario.min_blocks_per_s, scenario.max_blocks_per_s),
            requests_per_s: share * scenario.requests_per_s,
        }
    };
    weights.iter().map(of).collect()
}

/// Consecutive chains of similar size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Group {
    /// Position of the largest one.
    pub(crate) first: usize,
    pub(crate) number: f64,
    pub(crate) mean: Chain,
}

/// All chains in groups: one each of the largest, then a tenth more each time.
pub(crate) fn groups(chains: &[Chain]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut first = 0;
    while first < chains.len() {
        let length = (first / 10 + 1).min(chains.len() - first);
        let group = &chains[first..first + length];
        let number: f64 = group.iter().map(|_| 1.0).sum();
        let mean = |of: fn(&Chain) -> f64| group.iter().map(of).sum::<f64>() / number;
        let mean = Chain {
            txs: mean(|chain| chain.txs),
            txs_per_s: mean(|chain| chain.txs_per_s),
            blocks_per_s: mean(|chain| chain.blocks_per_s),
            requests_per_s: mean(|chain| chain.requests_per_s),
        };
        groups.push(Group { first, number, mean });
        first += length;
    }
    groups
}
