//! Sorted arrays over stored lists: length, random access and binary search.
//!
//! An endpoint selects an array, and [`crate::page`] paginates it. This module contains the arrays of sequences;
//! [`set`] those of ranked sets and of rows in memory; [`map_rows`] an adapter that converts rows.
//!
//! # Invariants
//!
//! Rows are distinct and ascending; [`crate::page`] reverses them for descending pages.

pub mod map_rows;
pub mod set;

use std::cell::RefCell;
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

/// A stored list of one owner, or a contiguous part of it.
pub struct Stored<'a, L: List> {
    snapshot: &'a dyn Snapshot,
    owner: L::Owner,
    /// Length of the whole list.
    whole: u64,
    /// The visible part.
    part: Range<u64>,
}

impl<'a, L: List> Stored<'a, L> {
    /// All of `owner`'s list.
    pub fn all(snapshot: &'a dyn Snapshot, owner: L::Owner) -> Result<Self, Error> {
        let whole = store::list::len::<L>(snapshot, &owner)?;
        Ok(Self { snapshot, owner, whole, part: 0..whole })
    }

    /// Restricts the array to the sequences of `run`.
    pub fn within(mut self, run: Run) -> Result<Self, Error> {
        let at = |seq| store::list::position::<L>(self.snapshot, &self.owner, self.whole, seq);
        self.part = at(run.first)?..at(run.first.saturating_add(run.len))?;
        Ok(self)
    }
}

impl<L: List> Array for Stored<'_, L> {
    type Row = u64;

    fn len(&self) -> u64 {
        self.part.end - self.part.start
    }

    fn position(&self, seq: &u64) -> Result<u64, Error> {
        let at = store::list::position::<L>(self.snapshot, &self.owner, self.whole, *seq)?;
        Ok(at.clamp(self.part.start, self.part.end) - self.part.start)
    }

    fn upper_bound(&self, seq: &u64) -> Result<u64, Error> {
        self.position(&seq.saturating_add(1))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let range = self.part.start + range.start..self.part.start + range.end;
        store::list::slice::<L>(self.snapshot, &self.owner, range)
    }
}

/// The union of disjoint arrays, merged by sequence. Its length is the sum of theirs; a page reads at most a page of
/// each.
pub struct Union<'a> {
    parts: Vec<Box<dyn Array<Row = u64> + 'a>>,
    len: u64,
    /// Cache of splits: for a position in the union, the number of sequences of each part before it.
    splits: RefCell<Vec<(u64, Vec<u64>)>>,
}

impl<'a> Union<'a> {
    /// The union of `parts`, which must be disjoint.
    pub fn of(parts: Vec<Box<dyn Array<Row = u64> + 'a>>) -> Self {
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let ends: Vec<u64> = parts.iter().map(|part| part.len()).collect();
        let len = ends.iter().sum();
        let splits = RefCell::new(vec![(0, vec![0; parts.len()]), (len, ends)]);
        Self { parts, len, splits }
    }

    /// Number of sequences of each part before `seq`.
    fn split_at_seq(&self, seq: u64) -> Result<Vec<u64>, Error> {
        self.parts.iter().map(|part| part.position(&seq)).collect()
    }

    fn cached_split(&self, place: u64) -> Option<Vec<u64>> {
        self.splits.borrow().iter().find(|(at, _)| *at == place).map(|(_, split)| split.clone())
    }

    /// Number of sequences of each part among the first `place` of the union, by binary search over sequences.
    fn split(&self, place: u64) -> Result<Vec<u64>, Error> {
        if let Some(split) = self.cached_split(place) {
            return Ok(split);
        }
        let (mut low, mut high) = (0, self.end_seq()?);
        while low < high {
            let middle = low + (high - low) / 2;
            let before: u64 = self.split_at_seq(middle)?.iter().sum();
            if before < place { low = middle + 1 } else { high = middle }
        }
        self.split_at_seq(low)
    }

    /// One more than the greatest sequence.
    fn end_seq(&self) -> Result<u64, Error> {
        let mut end = 0;
        for part in &self.parts {
            let last = part.slice(part.len() - 1..part.len())?;
            end = end.max(last.last().map_or(0, |seq| seq.saturating_add(1)));
        }
        Ok(end)
    }
}

impl Array for Union<'_> {
    type Row = u64;

    fn len(&self) -> u64 {
        self.len
    }

    fn position(&self, seq: &u64) -> Result<u64, Error> {
        let split = self.split_at_seq(*seq)?;
        let place = split.iter().sum();
        self.splits.borrow_mut().push((place, split));
        Ok(place)
    }

    fn upper_bound(&self, seq: &u64) -> Result<u64, Error> {
        self.position(&seq.saturating_add(1))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let n = range.end - range.start;
        // Merges from the end of the range whose split is cached.
        let backward = self.cached_split(range.start).is_none() && self.cached_split(range.end).is_some();
        let mut merged = Vec::new();
        if backward {
            for (part, end) in self.parts.iter().zip(self.split(range.end)?) {
                merged.extend(part.slice(end.saturating_sub(n)..end)?);
            }
            merged.sort_unstable();
            let surplus = merged.len().saturating_sub(usize::try_from(n).unwrap_or(usize::MAX));
            merged.drain(..surplus);
        } else {
            for (part, start) in self.parts.iter().zip(self.split(range.start)?) {
                merged.extend(part.slice(start..start.saturating_add(n).min(part.len()))?);
            }
            merged.sort_unstable();
            merged.truncate(usize::try_from(n).unwrap_or(usize::MAX));
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An array in memory, the model.
    struct Plain(Vec<u64>);

    impl Array for Plain {
        type Row = u64;

        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn position(&self, seq: &u64) -> Result<u64, Error> {
            Ok(self.0.partition_point(|have| have < seq) as u64)
        }

        fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
            Ok(self.0[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()].to_vec())
        }
    }

    proptest! {
        #[test]
        fn a_union_is_the_sorted_whole_of_its_parts(
            seqs in prop::collection::btree_map(1_u64..300, 0_usize..5, 0..120),
            (a, b) in (0_u64..140, 0_u64..140),
            seq in 0_u64..310,
            position_first in any::<bool>(),
        ) {
            let mut parts = vec![Vec::new(); 5];
            for (seq, part) in &seqs { parts[*part].push(*seq); }
            let whole = Plain(seqs.keys().copied().collect());
            let part = |seqs| Box::new(Plain(seqs)) as Box<dyn Array<Row = u64>>;
            let union = Union::of(parts.into_iter().map(part).collect());
            prop_assert_eq!(union.len(), whole.len());
            if position_first { prop_assert_eq!(union.position(&seq).unwrap(), whole.position(&seq).unwrap()); }
            let (a, b) = (a.min(b).min(whole.len()), a.max(b).min(whole.len()));
            prop_assert_eq!(union.slice(a..b).unwrap(), whole.slice(a..b).unwrap());
            let place = whole.position(&seq).unwrap();
            prop_assert_eq!(union.position(&seq).unwrap(), place);
            prop_assert_eq!(union.slice(place..whole.len()).unwrap(), whole.slice(place..whole.len()).unwrap());
            prop_assert_eq!(union.slice(a.min(place)..place).unwrap(), whole.slice(a.min(place)..place).unwrap());
        }
    }
}
