//! The findings of an audit and the repair plan that follows from them.
//!
//! # Invariants
//!
//! Memory is bounded regardless of the damage; findings beyond the limits are counted, not stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use store::TableSpec;

use super::shown;
use crate::rich::Address;

/// Findings of one kind that are stored.
const KEPT: usize = 100;
/// Rows written in one round of repair; the next round finds the others.
const MAX_ROWS: usize = 100_000;
/// Heights that are compared with the chain because of findings.
const MAX_HEIGHTS: usize = 10_000;
/// Balances that are queried because of findings.
const MAX_BALANCES: usize = 10_000;
/// Bytes of a value that are shown.
const SHOWN_BYTES: usize = 60;

/// The repair of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The row is derived from others: it is written, or deleted.
    Row(Option<Vec<u8>>),
    /// The NFT tables are rebuilt from their log.
    Nfts,
    /// The blocks are indexed again from this height on.
    Index(u64),
    /// The rich list is built anew.
    RichList,
    /// The balance is queried from the contract.
    Balance(Address, Address),
    /// There is no automatic repair.
    None,
}

/// An inconsistency.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The kind of inconsistency, a constant text.
    pub kind: &'static str,
    /// The table.
    pub table: &'static TableSpec,
    /// The key of the row.
    pub key: Vec<u8>,
    /// The stored value, readable.
    pub stored: String,
    /// The expected value, readable.
    pub expected: String,
    /// The repair of the finding.
    pub remedy: Remedy,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, table, key, stored, expected, .. } = self;
        write!(f, "{kind}: table {}, key {}: stored {stored}, expected {expected}", table.name, shown(key))
    }
}

/// A row to write, or without a value to delete.
pub type Write = (&'static TableSpec, Vec<u8>, Option<Vec<u8>>);

/// The repair plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Rows to write or to delete.
    pub rows: Vec<Write>,
    /// Whether the NFT tables are to be rebuilt.
    pub nfts: bool,
    /// The lowest height that is to be indexed again.
    pub from: Option<u64>,
    /// Whether the rich list is to be built anew.
    pub rich_list: bool,
    /// Balances to query: contract and account.
    pub balances: BTreeSet<(Address, Address)>,
    /// Heights affected by findings: their rows are compared with the chain before any repair.
    pub suspects: BTreeSet<u64>,
}

/// All findings of one run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The stored findings, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// Number of findings of each kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Number of checked items by name.
    pub checked: BTreeMap<&'static str, u64>,
    /// Number of items by name that could not be compared because the node does not return them.
    pub unchecked: BTreeMap<&'static str, u64>,
    /// The repair plan.
    pub plan: Plan,
}

impl Report {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        match &finding.remedy {
            Remedy::Row(value) if self.plan.rows.len() < MAX_ROWS => {
                self.plan.rows.push((finding.table, finding.key.clone(), value.clone()));
            }
            Remedy::Nfts => self.plan.nfts = true,
            Remedy::Index(from) => {
                self.suspect(*from);
                self.plan.from = Some(self.plan.from.map_or(*from, |known| known.min(*from)));
            }
            Remedy::RichList => self.plan.rich_list = true,
            Remedy::Balance(contract, account) if self.plan.balances.len() < MAX_BALANCES => {
                self.plan.balances.insert((*contract, *account));
            }
            Remedy::Row(_) | Remedy::Balance(..) | Remedy::None => {}
        }
        let count = self.counts.entry(finding.kind).or_default();
        *count += 1;
        if *count <= KEPT as u64 {
            self.findings.push(finding);
        }
    }

    /// Adds a finding about a stored or missing row.
    pub fn row(
        &mut self,
        kind: &'static str,
        (table, key, stored): (&'static TableSpec, &[u8], Option<&[u8]>),
        expected: impl Into<String>,
        remedy: Remedy,
    ) {
        let (key, stored) = (key.to_vec(), stored.map_or_else(|| "nothing".to_owned(), bytes));
        self.add(Finding { kind, table, key, stored, expected: expected.into(), remedy });
    }

    /// Adds a height to compare with the chain.
    pub fn suspect(&mut self, height: u64) {
        if self.plan.suspects.len() < MAX_HEIGHTS {
            self.plan.suspects.insert(height);
        }
    }

    /// Counts checked items.
    pub fn checked(&mut self, what: &'static str, n: u64) {
        *self.checked.entry(what).or_default() += n;
    }

    /// Counts items that could not be compared.
    pub fn unchecked(&mut self, what: &'static str, n: u64) {
        *self.unchecked.entry(what).or_default() += n;
    }

    /// Number of findings.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.counts.is_empty()
    }
}

/// A readable value: text or hexadecimal, truncated if it is long.
pub fn bytes(value: &[u8]) -> String {
    // A short binary number may be valid text.
    const SHORT: usize = 8;
    let text = match std::str::from_utf8(value) {
        _ if value.is_empty() => return "an empty value".to_owned(),
        Ok(text) if value.len() > SHORT && !text.contains(char::is_control) => format!("`{text}`"),
        Ok(_) | Err(_) => hex::encode(value),
    };
    match text.char_indices().nth(2 * SHOWN_BYTES) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], value.len()),
        None => text,
    }
}
