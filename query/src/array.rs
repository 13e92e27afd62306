//! Sorted arrays over stored lists: length, random access and binary search.
//!
//! An endpoint selects an array, and [`crate::page`] paginates it. This module contains runs of sequences and stored
//! lists; [`union`] the union of lists; [`set`] ranked sets and rows in memory; [`map_rows`] an adapter that converts
//! rows.
//!
//! # Invariants
//!
//! Rows are distinct and ascending; [`crate::page`] reverses them for descending pages.

pub mod map_rows;
pub mod set;
pub mod union;

use std::ops::Range;

use store::{Error, Key, List, Snapshot};

/// An ascending array of distinct rows in one snapshot. Rows compare as their keys' bytes do.
pub trait Array {
    /// The type of its rows.
    type Row: Key;

    /// Number of rows.
    fn len(&self) -> u64;

    /// True if it has no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of rows before `row` (its lower bound); `row` itself may be absent.
    fn position(&self, row: &Self::Row) -> Result<u64, Error>;

    /// Number of rows up to and including `row` (its upper bound); `row` itself may be absent.
    fn upper_bound(&self, row: &Self::Row) -> Result<u64, Error> {
        let at = self.position(row)?;
        let here = self.slice(at..at.saturating_add(1).min(self.len()))?;
        Ok(at + u64::from(here.first().is_some_and(|here| here.to_bytes() == row.to_bytes())))
    }

    /// The rows at `range`, which must lie within the array.
    fn slice(&self, range: Range<u64>) -> Result<Vec<Self::Row>, Error>;
}

/// A range of consecutive sequences: all of them, or those of a block.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The first sequence.
    pub first: u64,
    /// Number of sequences.
    pub len: u64,
}

impl Run {
    /// No sequences.
    pub const EMPTY: Self = Self { first: 1, len: 0 };
}

impl Array for Run {
    type Row = u64;

    fn len(&self) -> u64 {
        self.len
    }

    fn position(&self, seq: &u64) -> Result<u64, Error> {
        Ok(seq.saturating_sub(self.first).min(self.len))
    }

    fn upper_bound(&self, seq: &u64) -> Result<u64, Error> {
        self.position(&seq.saturating_add(1))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        Ok((self.first + range.start..self.first + range.end).collect())
    }
}

/// A stored list of one owner.
pub struct Stored<'a, L: List> {
    snapshot: &'a dyn Snapshot,
    owner: L::Owner,
    len: u64,
}

impl<'a, L: List> Stored<'a, L> {
    /// All of `owner`'s list.
    pub fn all(snapshot: &'a dyn Snapshot, owner: L::Owner) -> Result<Self, Error> {
        let len = store::list::len::<L>(snapshot, &owner)?;
        Ok(Self { snapshot, owner, len })
    }
}

impl<L: List> Array for Stored<'_, L> {
    type Row = u64;

    fn len(&self) -> u64 {
        self.len
    }

    fn position(&self, seq: &u64) -> Result<u64, Error> {
        store::list::position::<L>(self.snapshot, &self.owner, self.len, *seq)
    }

    fn upper_bound(&self, seq: &u64) -> Result<u64, Error> {
        self.position(&seq.saturating_add(1))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        store::list::slice::<L>(self.snapshot, &self.owner, range)
    }
}
