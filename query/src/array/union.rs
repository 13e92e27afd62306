//! Union of disjoint lists, as one array: binary search and selection by rank in sorted arrays.
//!
//! A place in the union is a *split*: for each list, the ordinal of its first entry behind the place. The split of a
//! sequence is found by a binary search in all lists side by side, one batched read a step; the split of a rank by
//! `Union::select`. So a page by offset costs what a page by cursor costs, at any depth.
//!
//! # Invariants
//!
//! * A split costs at most log2(n) + 1 reads for a list of n entries.
//! * A page reads at most `SURPLUS` times its rows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use store::list::ListRow;
use store::{Error, List, Snapshot};

use super::{Array, Run};

/// Rows read for a row of a page. The surplus rows of a few lists are cheaper than a search for the page's end in them.
const SURPLUS: u64 = 4;

/// Lists that are read in one batch, which bounds the memory for thousands of them.
const AT_ONCE: usize = 4096;

/// The ordinal, for each list, of its first entry behind a place.
type Split = Vec<u64>;

/// The union of disjoint lists, or the part of it within a run. Its length is the sum of theirs.
pub struct Union<'a, L: List> {
    snapshot: &'a dyn Snapshot,
    owners: Vec<L::Owner>,
    /// The visible part of each list; none is empty.
    parts: Vec<Range<u64>>,
    len: u64,
    /// Known splits with their places.
    splits: RefCell<Vec<(u64, Split)>>,
    /// The row of each list that was read last: the last steps of a search need the same one.
    rows: RefCell<Vec<ListRow>>,
}

impl<'a, L: List> Union<'a, L> {
    /// The union of the lists of `owners`, which must be disjoint.
    pub fn new(snapshot: &'a dyn Snapshot, owners: Vec<L::Owner>) -> Result<Self, Error> {
        let mut lens = Vec::with_capacity(owners.len());
        for owners in owners.chunks(AT_ONCE) {
            lens.extend(store::list::lens::<L>(snapshot, owners)?);
        }
        Ok(Self::of_parts(snapshot, owners.into_iter().zip(lens.into_iter().map(|len| 0..len))))
    }

    /// Restricts the union to the sequences of `run`.
    pub fn within(self, run: Run) -> Result<Self, Error> {
        let (start, end) = (self.split_at(run.first)?, self.split_at(run.first.saturating_add(run.len))?);
        let parts = start.into_iter().zip(end).map(|(start, end)| start..end);
        Ok(Self::of_parts(self.snapshot, self.owners.into_iter().zip(parts)))
    }

    /// The visible part of each list.
    pub fn into_parts(self) -> Vec<(L::Owner, Range<u64>)> {
        self.owners.into_iter().zip(self.parts).collect()
    }

    fn of_parts(snapshot: &'a dyn Snapshot, parts: impl Iterator<Item = (L::Owner, Range<u64>)>) -> Self {
        let (owners, parts): (Vec<_>, Vec<_>) = parts.filter(|(_, part)| !part.is_empty()).unzip();
        let len = parts.iter().map(width).sum();
        let starts = (0, parts.iter().map(|part| part.start).collect());
        let ends = (len, parts.iter().map(|part| part.end).collect());
        let rows = RefCell::new(vec![ListRow::default(); owners.len()]);
        Self { snapshot, owners, parts, len, splits: RefCell::new(vec![starts, ends]), rows }
    }

    /// The entries at `places`: indexes of different lists with ordinals.
    fn entries(&self, places: &[(usize, u64)]) -> Result<Vec<u64>, Error> {
        let mut entries = Vec::with_capacity(places.len());
        for places in places.chunks(AT_ONCE) {
            entries.extend(self.entries_at_once(places)?);
        }
        Ok(entries)
    }

    fn entries_at_once(&self, places: &[(usize, u64)]) -> Result<Vec<u64>, Error> {
        let mut rows = self.rows.borrow_mut();
        let known: Vec<_> = places.iter().map(|(list, ordinal)| rows[*list].get(*ordinal)).collect();
        let unknown: Vec<_> =
            places.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(place, _)| *place).collect();
        let mut read = Vec::new().into_iter();
        if !unknown.is_empty() {
            let places = unknown.iter().map(|(list, ordinal)| (&self.owners[*list], *ordinal));
            read = store::list::entries::<L>(self.snapshot, places)?.into_iter();
        }
        let mut entry = |((list, _), known): (&(usize, u64), Option<u64>)| {
            known.or_else(|| {
                let (entry, row) = read.next()?;
                rows[*list] = row;
                Some(entry)
            })
        };
        // There is one for each unknown place.
        Ok(places.iter().zip(known).filter_map(&mut entry).collect())
    }

    /// The split before the sequence `seq`.
    fn split_at(&self, seq: u64) -> Result<Split, Error> {
        let mut brackets = self.parts.clone();
        loop {
            let middles = middles(&brackets);
            if middles.is_empty() {
                return Ok(brackets.into_iter().map(|bracket| bracket.start).collect());
            }
            for ((list, middle), found) in middles.iter().zip(self.entries(&middles)?) {
                let bracket = &mut brackets[*list];
                if found < seq { bracket.start = middle + 1 } else { bracket.end = *middle }
            }
        }
    }

    fn known_split(&self, place: u64) -> Option<Split> {
        self.splits.borrow().iter().find(|(at, _)| *at == place).map(|(_, split)| split.clone())
    }

    /// The split before the row at `place`.
    fn split(&self, place: u64) -> Result<Split, Error> {
        match (self.known_split(place), self.parts.as_slice()) {
            (Some(split), _) => Ok(split),
            (None, [part]) => Ok(vec![part.start + place]),
            (None, _) => self.select(self.parts.clone(), place),
        }
    }

    /// The split behind the `rank` least entries of `brackets`, of which there are as many.
    ///
    /// The sorted middles of the brackets bound how many entries are less than each. Let `below` be the number of
    /// entries up to, and with, the middle of their bracket. None of these exceeds the greatest middle: if `rank` is
    /// less than `below`, the greatest middle and the upper half of its bracket are not among the `rank` least. Else
    /// the least middle and the lower half of its bracket are, because fewer than `below` entries precede it. Either
    /// halves a bracket, and needs one read: its new middle.
    fn select(&self, mut brackets: Vec<Range<u64>>, mut rank: u64) -> Result<Split, Error> {
        let open = middles(&brackets);
        let mut below: u64 = open.iter().map(|(list, middle)| middle + 1 - brackets[*list].start).sum();
        let mut entries: u64 = brackets.iter().map(width).sum();
        let mut by_value: BTreeSet<(u64, usize)> =
            self.entries(&open)?.into_iter().zip(open.iter().map(|(list, _)| *list)).collect();
        while rank > 0 && rank < entries {
            let upper = rank < below;
            let taken = if upper { by_value.pop_last() } else { by_value.pop_first() };
            // Entries are left, so a bracket is open.
            let Some((_, list)) = taken else { break };
            let bracket = &mut brackets[list];
            let middle = middle(bracket);
            let lower = middle + 1 - bracket.start;
            entries -= width(bracket);
            below -= lower;
            if upper {
                bracket.end = middle;
            } else {
                bracket.start = middle + 1;
                rank -= lower;
            }
            entries += width(bracket);
            if !bracket.is_empty() {
                let middle = self::middle(bracket);
                below += middle + 1 - bracket.start;
                by_value.extend(self.entries(&[(list, middle)])?.first().map(|found| (*found, list)));
            }
        }
        Ok(brackets.into_iter().map(|bracket| if rank == 0 { bracket.start } else { bracket.end }).collect())
    }
}

fn width(range: &Range<u64>) -> u64 {
    range.end - range.start
}

fn middle(bracket: &Range<u64>) -> u64 {
    bracket.start + width(bracket) / 2
}

/// The middles of the brackets that are not empty, with the indexes of their lists.
fn middles(brackets: &[Range<u64>]) -> Vec<(usize, u64)> {
    let open = brackets.iter().enumerate().filter(|(_, bracket)| !bracket.is_empty());
    open.map(|(list, bracket)| (list, middle(bracket))).collect()
}

impl<L: List> Array for Union<'_, L> {
    type Row = u64;

    fn len(&self) -> u64 {
        self.len
    }

    fn position(&self, seq: &u64) -> Result<u64, Error> {
        let split = self.split_at(*seq)?;
        let place = split.iter().zip(&self.parts).map(|(at, part)| at - part.start).sum();
        self.splits.borrow_mut().push((place, split));
        Ok(place)
    }

    fn upper_bound(&self, seq: &u64) -> Result<u64, Error> {
        self.position(&seq.saturating_add(1))
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let n = width(&range);
        // Merges from the end of the range whose split is known.
        let backward = self.known_split(range.start).is_none() && self.known_split(range.end).is_some();
        let split = self.split(if backward { range.end } else { range.start })?;
        let near = |(part, at): (&Range<u64>, u64)| {
            if backward {
                part.start.max(at.saturating_sub(n))..at
            } else {
                at..part.end.min(at.saturating_add(n))
            }
        };
        let mut near: Vec<Range<u64>> = self.parts.iter().zip(split).map(near).collect();
        let rows = near.iter().map(width).sum::<u64>();
        if rows > n.saturating_mul(SURPLUS) {
            let cut = self.select(near.clone(), if backward { rows - n } else { n })?;
            for (near, cut) in near.iter_mut().zip(cut) {
                if backward { near.start = cut } else { near.end = cut }
            }
        }
        let mut merged = Vec::new();
        for (owner, near) in self.owners.iter().zip(near) {
            merged.extend(store::list::slice::<L>(self.snapshot, owner, near)?);
        }
        merged.sort_unstable();
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        if backward {
            merged.drain(..merged.len().saturating_sub(n));
        } else {
            merged.truncate(n);
        }
        Ok(merged)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;
    use store::{Access, Bounds, Counts, Durability, MemStore, Order, Row, Store, TableSpec, Txn};

    use super::*;

    struct Lists;

    impl List for Lists {
        const SPEC: &'static TableSpec = &TableSpec { name: "lists", tag: 0x20, access: Access::Scan };
        type Owner = u32;
    }

    /// The lists with these entries.
    fn stored(lists: &[Vec<u64>]) -> MemStore {
        let store = MemStore::new();
        let snapshot = store.snapshot().unwrap();
        let mut counts = Counts::new(8);
        let mut txn = Txn::new(&*snapshot, &mut counts);
        for (owner, list) in (0..).zip(lists) {
            for seq in list {
                txn.push::<Lists>(&owner, *seq).unwrap();
            }
        }
        let (batch, _) = txn.finish();
        drop(snapshot);
        store.commit(batch, Durability::Buffered).unwrap();
        store
    }

    /// Owners of the lists, and one without a list.
    fn owners(lists: &[Vec<u64>]) -> Vec<u32> {
        (0..=u32::try_from(lists.len()).unwrap()).collect()
    }

    /// A snapshot that counts the rows that are read.
    struct Counting<'a>(&'a dyn Snapshot, AtomicU64);

    impl Snapshot for Counting<'_> {
        fn get(&self, table: &'static TableSpec, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.get(table, key)
        }

        fn scan(
            &self,
            table: &'static TableSpec,
            bounds: Bounds<'_>,
            order: Order,
            limit: usize,
        ) -> Result<Vec<Row>, Error> {
            let rows = self.0.scan(table, bounds, order, limit)?;
            self.1.fetch_add(rows.len() as u64, Ordering::Relaxed);
            Ok(rows)
        }
    }

    /// Each sequence is in one of 12 lists; their sizes differ by orders of magnitude.
    fn lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let list = prop_oneof![8 => 0_usize..2, 4 => 2_usize..5, 1 => 5_usize..12];
        prop::collection::btree_map(1_u64..400, list, 0..160).prop_map(|seqs| {
            let mut lists = vec![Vec::new(); 12];
            for (seq, list) in seqs {
                lists[list].push(seq);
            }
            lists
        })
    }

    proptest! {
        #[test]
        fn a_union_is_the_sorted_whole_of_its_lists(
            lists in lists(),
            (first, len) in prop_oneof![Just((0, 1000)), (0_u64..400, 0_u64..100)],
            (a, b) in (0_usize..170, prop_oneof![0_usize..5, 0_usize..170]),
            seq in 0_u64..410,
            position_first in any::<bool>(),
        ) {
            let store = stored(&lists);
            let snapshot = store.snapshot().unwrap();
            let mut whole: Vec<u64> = lists.concat();
            whole.retain(|seq| (first..first + len).contains(seq));
            whole.sort_unstable();
            let union = Union::<Lists>::new(&*snapshot, owners(&lists)).unwrap();
            let union = union.within(Run { first, len }).unwrap();
            prop_assert_eq!(union.len(), whole.len() as u64);
            let place = whole.partition_point(|have| *have < seq);
            if position_first { prop_assert_eq!(union.position(&seq).unwrap(), place as u64); }
            let a = a.min(whole.len());
            let b = (a + b).min(whole.len());
            for (a, b) in [(a, b), (place, b.max(place)), (a.min(place), place)] {
                prop_assert_eq!(union.slice(a as u64..b as u64).unwrap(), &whole[a..b]);
                prop_assert_eq!(union.position(&seq).unwrap(), place as u64);
            }
        }
    }

    /// The greatest number of rows that a page of `n` at offsets, and at cursors, of the union of `lists` reads.
    fn reads(lists: &[Vec<u64>], n: u64) -> (u64, u64) {
        let store = stored(lists);
        let snapshot = store.snapshot().unwrap();
        let last = lists.iter().map(Vec::len).sum::<usize>() as u64 - n;
        let (mut by_offset, mut by_cursor) = (0, 0);
        for place in (0..=20).map(|twentieth| last * twentieth / 20) {
            let counting = Counting(&*snapshot, AtomicU64::new(0));
            let union = Union::<Lists>::new(&counting, owners(lists)).unwrap();
            let page = union.slice(place..place + n).unwrap();
            by_offset = by_offset.max(counting.1.swap(0, Ordering::Relaxed));
            let union = Union::<Lists>::new(&counting, owners(lists)).unwrap();
            let at = union.position(&page[0]).unwrap();
            assert_eq!((at, union.slice(at..at + n).unwrap()), (place, page));
            by_cursor = by_cursor.max(counting.1.into_inner());
        }
        (by_offset, by_cursor)
    }

    #[test]
    fn a_page_by_offset_reads_no_more_than_one_by_cursor_however_many_lists_there_are() {
        // Lists of consecutive sequences, interleaved ones, and thousands of one entry each next to two long ones.
        let consecutive = |lists: u64| (0..lists).map(|n| (n * 999 + 1..(n + 1) * 999).collect()).collect();
        let interleaved = |lists: u64| {
            (0..lists).map(|n| (0..30_000 / lists).map(|i| i * lists + n + 1).collect()).collect()
        };
        let mut rare: Vec<Vec<u64>> = (0..3000).map(|n| vec![n * 10 + 1]).collect();
        rare.extend([3, 7].map(|digit| (0..3000).map(|n| n * 10 + digit).collect()));
        for lists in [consecutive(2), consecutive(30), interleaved(2), interleaved(3), interleaved(100), rare]
        {
            for n in [1, 100] {
                let (by_offset, by_cursor) = reads(&lists, n);
                println!("{} lists, {n} rows: {by_offset} by offset, {by_cursor} by cursor", lists.len());
                assert!(by_offset <= by_cursor + 2 * n, "{by_offset} by offset, {by_cursor} by cursor");
                let searches: u64 = lists.iter().map(|list| u64::from(list.len().ilog2()) + 2).sum();
                assert!(by_offset <= 2 * searches + SURPLUS * n + 1, "{by_offset}: {} lists", lists.len());
            }
        }
    }
}
