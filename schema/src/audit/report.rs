//! What was found, and how it is healed.
//!
//! What must hold: memory is bounded, whatever the damage; what is not kept is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use store::TableSpec;

use super::shown;
use crate::rich::Address;

/// Findings of one kind that are kept in full.
const KEPT: usize = 100;
/// Rows that are written in one round of healing; the next round finds the others.
const MAX_ROWS: usize = 100_000;
/// Heights that are looked at because of findings.
const MAX_HEIGHTS: usize = 10_000;
/// Balances that are asked for because of findings.
const MAX_BALANCES: usize = 10_000;
/// Bytes of a value that are shown.
const SHOWN_BYTES: usize = 60;

/// How a finding is healed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The row follows from others: it is written, or deleted.
    Row(Option<Vec<u8>>),
    /// The tables of NFTs are made anew from their log.
    Nfts,
    /// Only the chain knows: it is indexed again from this height on.
    Index(u64),
    /// The rich list is made anew.
    RichList,
    /// The balance is what the contract says.
    Balance(Address, Address),
    /// Nothing here can heal it.
    None,
}

/// Something that is not as it must be.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What is wrong, in a few words that are the same for all of its kind.
    pub kind: &'static str,
    /// The table.
    pub table: &'static TableSpec,
    /// The key of the row.
    pub key: Vec<u8>,
    /// What is stored, as a reader knows it.
    pub stored: String,
    /// What belongs there.
    pub expected: String,
    /// How it is healed.
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

/// What healing has to do.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Rows to write or to delete.
    pub rows: Vec<Write>,
    /// Whether the tables of NFTs are to be made anew.
    pub nfts: bool,
    /// The lowest height that is to be indexed again.
    pub from: Option<u64>,
    /// Whether the rich list is to be made anew.
    pub rich_list: bool,
    /// Balances to ask for: contract and account.
    pub balances: BTreeSet<(Address, Address)>,
    /// Heights that findings are about: what is stored of them is compared with the chain before anything is healed.
    pub suspects: BTreeSet<u64>,
}

/// All findings of one run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Those that are kept, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// How many there are of each kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// What was looked at, by what it is called.
    pub checked: BTreeMap<&'static str, u64>,
    /// What could not be compared because the node does not say, by what it is called.
    pub unchecked: BTreeMap<&'static str, u64>,
    /// How all of it is healed.
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

    /// Adds a finding about a row as it is stored.
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

    /// Names a height to look at.
    pub fn suspect(&mut self, height: u64) {
        if self.plan.suspects.len() < MAX_HEIGHTS {
            self.plan.suspects.insert(height);
        }
    }

    /// Counts what was looked at.
    pub fn checked(&mut self, what: &'static str, n: u64) {
        *self.checked.entry(what).or_default() += n;
    }

    /// Counts what could not be compared.
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

/// A stored value as a reader knows it: its text, or hexadecimal; cut where it is long.
pub fn bytes(value: &[u8]) -> String {
    // A number of a few bytes may look like a text.
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
