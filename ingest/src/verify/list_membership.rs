//! List membership: each sequence of the sampled heights must be in exactly the lists that its block puts it in.
//!
//! Memory grows with the sampled sequences; each list's table is scanned once.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use schema::audit::{Ground, Remedy, Report};
use schema::evm_tx::AccountEvmTxs;
use schema::internal_tx::AccountCalls;
use schema::tx::{AccountSetTxs, AccountTxs, SetTxs};
use store::value::Value as _;
use store::{Bounds, List, Snapshot, TableSpec};

use crate::Error;

/// The kind of sequences in a list.
#[derive(Clone, Copy)]
enum Of {
    Txs,
    EvmTxs,
    Calls,
}

const LISTS: [(&TableSpec, Of); 5] = [
    (<AccountTxs as List>::SPEC, Of::Txs),
    (<AccountSetTxs as List>::SPEC, Of::Txs),
    (<SetTxs as List>::SPEC, Of::Txs),
    (<AccountEvmTxs as List>::SPEC, Of::EvmTxs),
    (<AccountCalls as List>::SPEC, Of::Calls),
];

/// The sequences of a height.
pub(super) struct Sequences {
    pub(super) txs: RangeInclusive<u64>,
    pub(super) evm_txs: RangeInclusive<u64>,
    /// None if call frames are not compared.
    pub(super) calls: Option<RangeInclusive<u64>>,
}

/// The expected entries of lists.
#[derive(Default)]
pub(super) struct Members {
    heights: Vec<Sequences>,
    /// Tag of the list, owner, sequence.
    expected: HashSet<(u8, Vec<u8>, u64)>,
}

impl Members {
    /// Adds the entries of a height; heights come in ascending order.
    pub(super) fn add(&mut self, made: &dyn Snapshot, sequences: Sequences) -> Result<(), Error> {
        for (spec, _) in LISTS {
            store::for_each_row(made, spec, Bounds::all(), |key, value| {
                if let (Some((owner, _)), Some(seq)) = (key.split_last_chunk::<8>(), u64::decode(value)) {
                    self.expected.insert((spec.tag, owner.to_vec(), seq));
                }
                Ok::<(), Error>(())
            })?;
        }
        self.heights.push(sequences);
        Ok(())
    }

    /// Compares them with the stored lists.
    pub(super) fn compare(mut self, ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
        report.checked("places in lists", self.expected.len() as u64);
        for (spec, of) in LISTS {
            store::for_each_row(ground.snapshot, spec, Bounds::all(), |key, value| {
                // Malformed rows are findings of the audit.
                let (Some((owner, _)), Some(seq)) = (key.split_last_chunk::<8>(), u64::decode(value)) else {
                    return Ok(());
                };
                if self.is_sampled(of, seq) && !self.expected.remove(&(spec.tag, owner.to_vec(), seq)) {
                    let expected = format!("no {seq}: its block does not put it there");
                    let remedy = Remedy::Index(height(ground, of, seq));
                    report.row("stray entry of a list", (spec, key, Some(value)), expected, remedy);
                }
                Ok::<(), Error>(())
            })?;
        }
        let mut missing: Vec<_> = self.expected.into_iter().collect();
        missing.sort_unstable();
        for (tag, owner, seq) in missing {
            let Some((spec, of)) = LISTS.into_iter().find(|(spec, _)| spec.tag == tag) else { continue };
            let remedy = Remedy::Index(height(ground, of, seq));
            report.row(
                "missing entry of a list",
                (spec, &owner, None),
                format!("{seq} in this list"),
                remedy,
            );
        }
        Ok(())
    }

    fn is_sampled(&self, of: Of, seq: u64) -> bool {
        let range = |height: &Sequences| match of {
            Of::Txs => Some(height.txs.clone()),
            Of::EvmTxs => Some(height.evm_txs.clone()),
            Of::Calls => height.calls.clone(),
        };
        // Heights without call frames sort by their place: they hold nothing.
        let ends_below = |height: &Sequences| range(height).is_none_or(|range| *range.end() < seq);
        if matches!(of, Of::Calls) {
            return self.heights.iter().any(|height| range(height).is_some_and(|range| range.contains(&seq)));
        }
        let at = self.heights.partition_point(ends_below);
        self.heights.get(at).and_then(range).is_some_and(|range| range.contains(&seq))
    }
}

fn height(ground: &Ground<'_>, of: Of, seq: u64) -> u64 {
    match of {
        Of::Txs => ground.heights.of_tx(seq),
        Of::EvmTxs => ground.heights.of_evm_tx(seq),
        Of::Calls => ground.heights.of_call(seq),
    }
}
