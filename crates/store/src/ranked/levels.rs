//! Counts and nodes of a set in the memory of its writer.
//!
//! Every insertion changes the span of one node on each level. With the nodes in memory it reads nothing but the row of
//! its item, and a commit writes each changed node once.
//!
//! # Invariants
//!
//! A level is in memory with all of its nodes, or not at all: one with more than [`LEVEL_NODES`] is not loaded, and the
//! writer reads single nodes of it from the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::skip_list::{LEVELS, SetMeta, SkipList, rank_key, varint};
use crate::{engine::Snapshot, error::Error};

/// Nodes of one level that are held in memory: those of two million items. Few in tests, to cover both ways.
const LEVEL_NODES: u64 = if cfg!(test) { 4 } else { 1 << 15 };

/// Weight of a set without nodes. A node weighs 1, about 100 bytes.
const SET_WEIGHT: usize = 4;

/// The level in a node's key, and the longest span.
const NODE_BYTES: usize = 1 + 10;

/// The level in the key of the counts, and the longest counts.
const COUNTS_BYTES: usize = 1 + 10 * (1 + LEVELS);

/// Spans by item.
type Nodes = BTreeMap<Box<[u8]>, u64>;

/// Counts and nodes of one set, with changes that are not committed yet.
#[derive(Debug)]
pub(crate) struct Levels {
    pub(super) meta: SetMeta,
    /// The counts in the store.
    stored: SetMeta,
    /// Levels 1, 2, 3, 4; `None` if the level is not in memory.
    nodes: [Option<Nodes>; LEVELS],
    /// The items whose nodes differ from the store, by level.
    changed: [BTreeSet<Box<[u8]>>; LEVELS],
    /// Bytes of the keys in `changed`.
    changed_bytes: usize,
}

impl Levels {
    /// Reads the set from `snapshot`; no more than `room` nodes.
    pub(super) fn load(set: &SkipList, snapshot: &dyn Snapshot, mut room: usize) -> Result<Self, Error> {
        let meta = set.meta(snapshot)?;
        let mut nodes = [const { None }; LEVELS];
        // From the highest, which is read most and has the fewest nodes.
        for level in (1..=LEVELS).rev() {
            let stored = meta.nodes[level - 1];
            if let Some(left) = usize::try_from(stored).ok().and_then(|stored| room.checked_sub(stored))
                && stored <= LEVEL_NODES
            {
                room = left;
                let read = match stored {
                    0 => Nodes::new(),
                    _ => set.nodes(snapshot, level).collect::<Result<_, _>>()?,
                };
                nodes[level - 1] = Some(read);
            }
        }
        let changed = [const { BTreeSet::new() }; LEVELS];
        Ok(Self { stored: meta.clone(), meta, nodes, changed, changed_bytes: 0 })
    }

    /// The nodes of `level`, if they are in memory.
    pub(super) fn level(&self, level: usize) -> Option<&Nodes> {
        self.nodes[level - 1].as_ref()
    }

    /// True if the nodes of `level` are in memory.
    pub(super) fn holds(&self, level: usize) -> bool {
        self.level(level).is_some()
    }

    /// The span of the first node after `item` on a level in memory, to be changed.
    pub(super) fn next_span(&mut self, level: usize, item: &[u8]) -> Option<&mut u64> {
        let after = (Bound::Excluded(item), Bound::Unbounded);
        let (next, span) = self.nodes[level - 1].as_mut()?.range_mut::<[u8], _>(after).next()?;
        if !self.changed[level - 1].contains(next) {
            self.changed_bytes += next.len();
            self.changed[level - 1].insert(next.clone());
        }
        Some(span)
    }

    /// Sets or removes the node of `item` on a level in memory. Returns its span before.
    pub(super) fn set_node(&mut self, level: usize, item: &[u8], span: Option<u64>) -> Option<u64> {
        let nodes = self.nodes[level - 1].as_mut()?;
        self.changed_bytes += item.len();
        self.changed[level - 1].insert(item.into());
        match span {
            Some(span) => nodes.insert(item.into(), span),
            None => nodes.remove(item),
        }
    }

    /// The changed rows of the set `set_key`, which counts them as stored: key and new value, `None` to delete.
    pub(crate) fn take_changes(&mut self, set_key: &[u8]) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut rows = Vec::new();
        self.changed_bytes = 0;
        if self.meta != self.stored {
            let value = (self.meta != SetMeta::default()).then(|| self.meta.encode());
            rows.push((rank_key(set_key, 0, &[]), value));
            self.stored = self.meta.clone();
        }
        for (level, (changed, nodes)) in (1..).zip(self.changed.iter_mut().zip(&self.nodes)) {
            for item in std::mem::take(changed) {
                let span = nodes.as_ref().and_then(|nodes| nodes.get(&item));
                rows.push((rank_key(set_key, level, &item), span.map(|span| varint(*span))));
            }
        }
        rows
    }

    /// Bytes of the rows that differ from the store, at least.
    pub(super) fn changed_bytes(&self, set_key: &[u8]) -> usize {
        let nodes: usize = self.changed.iter().map(BTreeSet::len).sum();
        let counts = if self.meta == self.stored { 0 } else { set_key.len() + COUNTS_BYTES };
        counts + self.changed_bytes + nodes * (set_key.len() + NODE_BYTES)
    }

    /// Size in memory; a node weighs 1.
    pub(crate) fn weight(&self) -> usize {
        SET_WEIGHT + self.nodes.iter().flatten().map(BTreeMap::len).sum::<usize>()
    }
}
