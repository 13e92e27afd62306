//! Indexable skip list of one owner as rows: their form, and search by rank.

use std::ops::Range;

use twox_hash::XxHash3_64;

use crate::{
    engine::{Bounds, Order, RowCursor, Snapshot, prefix_end},
    error::Error,
    key::successor,
    spec::{Access, TableSpec},
    table::corrupt,
    value::{put_varint, take_varint},
};

/// Lengths and skip-list nodes of all ranked sets. Every database with ranked sets needs it.
pub const RANK: &TableSpec = &TableSpec { name: "rank", tag: 0x05, access: Access::Ranked };

/// Number of levels above the items. With one item in 64 on each next level, 16 million items fill four.
pub(super) const LEVELS: usize = 4;

/// Rows per read of a walk, which takes about 32 rows on each level.
const CHUNK: usize = 64;

/// The set of one owner.
pub(super) struct SkipList {
    pub(super) spec: &'static TableSpec,
    pub(super) owner: Vec<u8>,
    promotion_bits: u32,
}

/// Length and node counts of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SetMeta {
    pub(super) len: u64,
    /// Nodes on levels 1, 2, 3, 4.
    pub(super) nodes: [u64; LEVELS],
}

impl SetMeta {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8);
        put_varint(self.len, &mut out);
        self.nodes.iter().for_each(|nodes| put_varint(*nodes, &mut out));
        out
    }

    /// The levels that have nodes, highest first.
    fn levels(&self) -> impl Iterator<Item = usize> {
        (1..=LEVELS).rev().filter(|level| self.nodes[level - 1] > 0)
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut meta = Self { len: take_varint(&mut bytes)?, ..Self::default() };
        for nodes in &mut meta.nodes {
            *nodes = take_varint(&mut bytes)?;
        }
        bytes.is_empty().then_some(meta)
    }
}

/// Height of the node of the item whose row has this key: the trailing zeros of a hash, so one in 2^`bits` has each
/// next level.
fn height(row_key: &[u8], bits: u32) -> usize {
    let zeros = XxHash3_64::oneshot(row_key).trailing_zeros();
    usize::try_from(zeros / bits).unwrap_or(LEVELS).min(LEVELS)
}

impl SkipList {
    pub(super) fn new(spec: &'static TableSpec, owner: Vec<u8>, promotion_bits: u32) -> Self {
        Self { spec, owner, promotion_bits }
    }

    /// Identifies the set in the table `rank`: tag and owner.
    pub(super) fn set_key(&self) -> Vec<u8> {
        [&[self.spec.tag][..], &self.owner].concat()
    }

    /// Key of a row in `rank`: level 0 holds the [`SetMeta`].
    pub(super) fn rank_key(&self, level: usize, item: &[u8]) -> Vec<u8> {
        rank_key(&self.set_key(), level, item)
    }

    /// Height of the node of `item`.
    pub(super) fn height(&self, item: &[u8]) -> usize {
        height(&self.row_key(item), self.promotion_bits)
    }

    /// The key of an item's own row.
    pub(super) fn row_key(&self, item: &[u8]) -> Vec<u8> {
        [self.owner.as_slice(), item].concat()
    }

    pub(super) fn meta(&self, snapshot: &dyn Snapshot) -> Result<SetMeta, Error> {
        let key = self.rank_key(0, &[]);
        match snapshot.get(RANK, &key)? {
            None => Ok(SetMeta::default()),
            Some(value) => SetMeta::decode(&value).ok_or_else(|| corrupt(RANK, &key, "not a set's counts")),
        }
    }

    /// Number of items before `item`.
    pub(super) fn rank(&self, snapshot: &dyn Snapshot, meta: &SetMeta, item: &[u8]) -> Result<u64, Error> {
        let (mut rank, mut lower) = (0_u64, Vec::new());
        for level in meta.levels() {
            let upto = |node: &[u8], _| node <= item;
            self.walk(snapshot, level, &mut lower, &mut rank, upto)?;
        }
        let (start, end) = (self.row_key(&lower), self.row_key(item));
        Ok(rank + count(snapshot, self.spec, &start, &end)?)
    }

    /// Calls `visit` with key and value of the rows at `ranks`, which is not empty.
    pub(super) fn slice(
        &self,
        snapshot: &dyn Snapshot,
        meta: &SetMeta,
        ranks: Range<u64>,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let (mut rank, mut lower) = (0_u64, Vec::new());
        for level in meta.levels() {
            let upto = |_: &[u8], rank| rank <= ranks.start;
            self.walk(snapshot, level, &mut lower, &mut rank, upto)?;
        }
        let start = self.row_key(&lower);
        let end = prefix_end(&self.owner);
        let bounds = Bounds { start: &start, end: end.as_deref() };
        let limit = usize::try_from(ranks.end - rank).unwrap_or(usize::MAX);
        snapshot.visit(self.spec, bounds, Order::Asc, limit, &mut |key, value| {
            if rank >= ranks.start {
                visit(key, value);
            }
            rank += 1;
        })?;
        if rank < ranks.end {
            return Err(corrupt(self.spec, &start, "there are fewer items than the set's count says"));
        }
        Ok(())
    }

    /// Walks `level` from the node `lower` on, as long as `go_on(node, items before it)` is true: `lower` becomes the
    /// last such node, `rank` the number of items before it.
    pub(super) fn walk(
        &self,
        snapshot: &dyn Snapshot,
        level: usize,
        lower: &mut Vec<u8>,
        rank: &mut u64,
        mut go_on: impl FnMut(&[u8], u64) -> bool,
    ) -> Result<(), Error> {
        let prefix = self.rank_key(level, &[]);
        let end = prefix_end(&prefix);
        loop {
            // Starts after the node itself; no item is a prefix of another.
            let start = successor(&self.rank_key(level, lower));
            let bounds = Bounds { start: &start, end: end.as_deref() };
            let nodes = snapshot.scan(RANK, bounds, Order::Asc, CHUNK)?;
            for (key, value) in &nodes {
                let node = &key[prefix.len()..];
                let before = *rank + span(key, value)?;
                if !go_on(node, before) {
                    return Ok(());
                }
                *rank = before;
                node.clone_into(lower);
            }
            if nodes.len() < CHUNK {
                return Ok(());
            }
        }
    }

    /// The first node after `item` on `level`: the key of its row, and its span.
    pub(super) fn next_node(
        &self,
        snapshot: &dyn Snapshot,
        level: usize,
        item: &[u8],
    ) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let start = successor(&self.rank_key(level, item));
        let end = prefix_end(&self.rank_key(level, &[]));
        let bounds = Bounds { start: &start, end: end.as_deref() };
        let next = snapshot.scan(RANK, bounds, Order::Asc, 1)?.pop();
        next.map(|(key, value)| span(&key, &value).map(|span| (key, span))).transpose()
    }

    /// The item of the last node before `item` on `level`; empty if there is none.
    pub(super) fn node_before(
        &self,
        snapshot: &dyn Snapshot,
        level: usize,
        item: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let (prefix, end) = (self.rank_key(level, &[]), self.rank_key(level, item));
        let bounds = Bounds { start: &prefix, end: Some(&end) };
        let before = snapshot.scan(RANK, bounds, Order::Desc, 1)?.pop();
        Ok(before.map_or(Vec::new(), |(key, _)| key[prefix.len()..].to_vec()))
    }

    /// Number of items from the item `lower` on, or from the first if it is empty, and before `item`.
    pub(super) fn count(&self, snapshot: &dyn Snapshot, lower: &[u8], item: &[u8]) -> Result<u64, Error> {
        count(snapshot, self.spec, &self.row_key(lower), &self.row_key(item))
    }

    /// All nodes of `level`.
    pub(super) fn nodes<'a>(
        &self,
        snapshot: &'a dyn Snapshot,
        level: usize,
    ) -> impl Iterator<Item = Result<(Box<[u8]>, u64), Error>> + 'a {
        let prefix = self.rank_key(level, &[]);
        let (end, length) = (prefix_end(&prefix), prefix.len());
        let bounds = Bounds { start: &prefix, end: end.as_deref() };
        RowCursor::new(snapshot, RANK, bounds, Order::Asc).map(move |row| {
            let (key, value) = row?;
            Ok((key[length..].into(), span(&key, &value)?))
        })
    }
}

/// Number of rows from `start` on and before `end`.
fn count(snapshot: &dyn Snapshot, spec: &'static TableSpec, start: &[u8], end: &[u8]) -> Result<u64, Error> {
    let mut rows = RowCursor::new(snapshot, spec, Bounds { start, end: Some(end) }, Order::Asc);
    rows.try_fold(0, |rows, row| row.map(|_| rows + 1))
}

/// Key of a row of the set `set_key` in the table `rank`.
pub(super) fn rank_key(set_key: &[u8], level: usize, item: &[u8]) -> Vec<u8> {
    let level = u8::try_from(level).unwrap_or(u8::MAX);
    [set_key, &[level], item].concat()
}

/// The value of a node's row.
pub(super) fn varint(number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(2);
    put_varint(number, &mut out);
    out
}

pub(super) fn span(key: &[u8], mut value: &[u8]) -> Result<u64, Error> {
    let span = take_varint(&mut value).filter(|_| value.is_empty());
    span.ok_or_else(|| corrupt(RANK, key, "the value is not a varint"))
}
