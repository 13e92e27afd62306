//! Insertion into and removal from a set, within a transaction.

use std::ops::Bound;

use super::{
    levels::Levels,
    skip_list::{LEVELS, RANK, SkipList, span, varint},
};
use crate::{error::Error, table::corrupt, txn::Txn};

/// A set with its counts and nodes, and the transaction that changes them.
pub(super) struct Change<'c, 's> {
    pub(super) set: &'c SkipList,
    pub(super) levels: &'c mut Levels,
    pub(super) txn: &'c mut Txn<'s>,
}

impl Change<'_, '_> {
    /// Inserts `item`, or replaces its value. Returns true if it was new.
    pub(super) fn insert(&mut self, item: &[u8], value: Vec<u8>) -> Result<bool, Error> {
        let row_key = self.set.row_key(item);
        let is_new =
            self.levels.meta.len == 0 || crate::Snapshot::get(self.txn, self.set.spec, &row_key)?.is_none();
        self.txn.write_raw(self.set.spec, row_key, Some(value));
        if !is_new {
            return Ok(false);
        }
        let len = self.levels.meta.len.checked_add(1);
        self.levels.meta.len = len.ok_or_else(|| corrupt(RANK, &self.set.owner, "too many items"))?;
        let height = self.set.height(item);
        for level in 1..=LEVELS {
            let is_empty = self.levels.meta.nodes[level - 1] == 0;
            if level <= height {
                let own = self.items_since_node(level, item)?;
                if !is_empty {
                    self.change_next(level, item, |span| (span + 1).checked_sub(own))?;
                }
                self.set_node(level, item, Some(own))?;
                self.levels.meta.nodes[level - 1] += 1;
            } else if !is_empty {
                self.change_next(level, item, |span| span.checked_add(1))?;
            }
        }
        Ok(true)
    }

    /// Removes `item`. Returns true if it was present.
    pub(super) fn remove(&mut self, item: &[u8]) -> Result<bool, Error> {
        let row_key = self.set.row_key(item);
        if crate::Snapshot::get(self.txn, self.set.spec, &row_key)?.is_none() {
            return Ok(false);
        }
        let height = self.set.height(item);
        for level in 1..=LEVELS {
            let nodes = self.levels.meta.nodes[level - 1];
            let mut freed = 0;
            if level <= height {
                let span = self.set_node(level, item, None)?;
                freed = span.ok_or_else(|| inconsistent(&self.set.rank_key(level, item)))?;
                self.levels.meta.nodes[level - 1] =
                    nodes.checked_sub(1).ok_or_else(|| inconsistent(&row_key))?;
            }
            if nodes > 0 {
                self.change_next(level, item, |span| (span + freed).checked_sub(1))?;
            }
        }
        let len = self.levels.meta.len.checked_sub(1);
        self.levels.meta.len = len.ok_or_else(|| inconsistent(&self.set.owner))?;
        self.txn.write_raw(self.set.spec, row_key, None);
        Ok(true)
    }

    /// Changes the span of the first node after `item` on `level`, if there is one.
    fn change_next(
        &mut self,
        level: usize,
        item: &[u8],
        change: impl FnOnce(u64) -> Option<u64>,
    ) -> Result<(), Error> {
        if self.levels.holds(level) {
            if let Some(span) = self.levels.next_span(level, item) {
                *span = change(*span).ok_or_else(|| inconsistent(&self.set.rank_key(level, item)))?;
            }
        } else if let Some((key, span)) = self.set.next_node(self.txn, level, item)? {
            let span = change(span).ok_or_else(|| inconsistent(&key))?;
            self.txn.write_raw(RANK, key, Some(varint(span)));
        }
        Ok(())
    }

    /// Sets or removes the node of `item` on `level`. Returns its span before.
    fn set_node(&mut self, level: usize, item: &[u8], new: Option<u64>) -> Result<Option<u64>, Error> {
        if self.levels.holds(level) {
            return Ok(self.levels.set_node(level, item, new));
        }
        let key = self.set.rank_key(level, item);
        let before = crate::Snapshot::get(self.txn, RANK, &key)?;
        let before = before.map(|value| span(&key, &value)).transpose()?;
        self.txn.write_raw(RANK, key, new.map(varint));
        Ok(before)
    }

    /// Items from the node before `item` on `level` up to, and without, `item`, which has its node on the levels below
    /// and is not counted yet by those above.
    fn items_since_node(&self, level: usize, item: &[u8]) -> Result<u64, Error> {
        let lower = match self.levels.level(level) {
            Some(nodes) => nodes
                .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(item)))
                .next_back()
                .map_or(Vec::new(), |(node, _)| node.to_vec()),
            None => self.set.node_before(self.txn, level, item)?,
        };
        if level == 1 {
            return self.set.count(self.txn, &lower, item);
        }
        if let Some(nodes) = self.levels.level(level - 1) {
            let between = nodes
                .range::<[u8], _>((Bound::Unbounded, Bound::Included(item)))
                .rev()
                .take_while(|(node, _)| node.as_ref() > lower.as_slice());
            return Ok(between.map(|(_, span)| span).sum());
        }
        let (mut lower, mut items) = (lower, 0);
        self.set.walk(self.txn, level - 1, &mut lower, &mut items, |node, _| node <= item)?;
        Ok(items)
    }
}

fn inconsistent(key: &[u8]) -> Error {
    corrupt(RANK, key, "a set's counts do not fit its items")
}
