//! The findings of an audit and the repair plan that follows from them.
//!
//! # Invariants
//!
//! Memory is bounded regardless of the damage; findings beyond the limits are counted, not stored.

use std::collections::BTreeMap;
use std::fmt;

use store::TableSpec;

use super::members::{self, Coded, value_or_nothing};

/// Findings of one kind, and notes, that are stored.
const MAX_KEPT: usize = 100;

/// The kind of a row that differs from the one that follows from other tables.
pub const DERIVED_ROW: &str = "derived row";

/// The kind of a log of NFTs that cannot be applied.
pub(crate) const NFT_LOG: &str = "NFT log";

/// The kind of an optional index whose rows cannot be derived.
pub(crate) const INDEX: &str = "optional index";

/// The kind of an undo record that cannot be applied. Only a rewind needs it.
pub const UNDO_RECORD: &str = "undo record";

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
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, table, key, stored, expected } = self;
        // A readable key: decimal for an 8-byte number, else hexadecimal.
        let key = <[u8; 8]>::try_from(key.as_slice())
            .map_or_else(|_| hex::encode(key), |number| u64::from_be_bytes(number).to_string());
        write!(f, "{kind}: table {}, key {key}: stored {stored}, expected {expected}", table.name)
    }
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
    /// Differences that are not damage, readable, in the order in which they were found.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        let count = self.counts.entry(finding.kind).or_default();
        *count += 1;
        if *count <= MAX_KEPT as u64 {
            self.findings.push(finding);
        }
    }

    /// Adds a finding about a stored or missing row.
    pub fn row(
        &mut self,
        kind: &'static str,
        (table, key, stored): (&'static TableSpec, &[u8], Option<&[u8]>),
        expected: impl Into<String>,
    ) {
        let (key, stored) = (key.to_vec(), value_or_nothing(stored));
        self.add(Finding { kind, table, key, stored, expected: expected.into() });
    }

    /// Adds a finding about a row by the members that differ.
    pub fn difference(
        &mut self,
        kind: &'static str,
        (table, key): (&'static TableSpec, &[u8]),
        values: (Coded<'_>, Coded<'_>),
    ) {
        let (stored, expected) = members::difference(table, key, values);
        self.add(Finding { kind, table, key: key.to_vec(), stored, expected });
    }

    /// Adds a note, unless it is there, or there are too many.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < MAX_KEPT && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds another report.
    pub fn merge(&mut self, other: Self) {
        let Self { findings, counts, checked, unchecked, notes } = other;
        for note in notes {
            self.note(note);
        }
        let counts =
            [(&mut self.counts, counts), (&mut self.checked, checked), (&mut self.unchecked, unchecked)];
        for (sums, added) in counts {
            for (name, n) in added {
                *sums.entry(name).or_default() += n;
            }
        }
        for finding in findings {
            if self.findings.iter().filter(|stored| stored.kind == finding.kind).count() < MAX_KEPT {
                self.findings.push(finding);
            }
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

    /// True if there is a finding of this kind.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.counts.contains_key(kind)
    }

    /// True if all findings are about derived rows.
    pub fn is_derivable(&self) -> bool {
        self.counts.keys().all(|kind| [DERIVED_ROW, UNDO_RECORD].contains(kind))
    }

    /// True if there is no finding.
    pub fn is_sound(&self) -> bool {
        self.counts.is_empty()
    }
}
