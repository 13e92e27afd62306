//! Several stored lists as one ascending sequence, each entry once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use store::list::{self, ListRow};
use store::{Error, List, Snapshot};

/// Lists whose rows are read in one batch, which bounds the memory for thousands of them.
const AT_ONCE: usize = 1024;

/// The entries of a part of each list. Lists may overlap.
pub(super) struct Merge<'a, L: List> {
    snapshot: &'a dyn Snapshot,
    cursors: Vec<Cursor<L::Owner>>,
    /// The next entry of each list that has one, with the list's place.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    last: Option<u64>,
}

struct Cursor<O> {
    owner: O,
    /// Ordinals of the entries behind the head.
    rest: Range<u64>,
    row: ListRow,
}

impl<'a, L: List> Merge<'a, L> {
    /// The entries of each owner's list at these ordinals.
    pub(super) fn new(snapshot: &'a dyn Snapshot, parts: Vec<(L::Owner, Range<u64>)>) -> Result<Self, Error> {
        let parts: Vec<_> = parts.into_iter().filter(|(_, part)| !part.is_empty()).collect();
        let (mut cursors, mut heads) =
            (Vec::with_capacity(parts.len()), BinaryHeap::with_capacity(parts.len()));
        let mut parts = parts.into_iter().peekable();
        while parts.peek().is_some() {
            let some: Vec<_> = parts.by_ref().take(AT_ONCE).collect();
            let read = list::entries::<L>(snapshot, some.iter().map(|(owner, part)| (owner, part.start)))?;
            for ((owner, part), (entry, row)) in some.into_iter().zip(read) {
                heads.push(Reverse((entry, cursors.len())));
                cursors.push(Cursor { owner, rest: part.start + 1..part.end, row });
            }
        }
        Ok(Self { snapshot, cursors, heads, last: None })
    }

    /// The next entry.
    pub(super) fn next(&mut self) -> Result<Option<u64>, Error> {
        self.seek(self.last.map_or(0, |last| last.saturating_add(1)))
    }

    /// The next entry that is `low` or more. It is read again by a `seek` to it, and by no `next`.
    pub(super) fn seek(&mut self, low: u64) -> Result<Option<u64>, Error> {
        while let Some(&Reverse((entry, place))) = self.heads.peek() {
            if entry >= low {
                self.last = Some(entry);
                return Ok(Some(entry));
            }
            self.heads.pop();
            if let Some(entry) = self.advance(place, low)? {
                self.heads.push(Reverse((entry, place)));
            }
        }
        Ok(None)
    }

    /// Moves a list to its first entry from `low` on.
    fn advance(&mut self, place: usize, low: u64) -> Result<Option<u64>, Error> {
        let cursor = &mut self.cursors[place];
        while !cursor.rest.is_empty() {
            let at = cursor.rest.start;
            let Some(entry) = cursor.row.get(at) else {
                // The next row often has it; else it is searched for.
                let read = list::entries::<L>(self.snapshot, std::iter::once((&cursor.owner, at)))?;
                let Some((_, row)) = read.into_iter().next() else { break };
                let last = cursor.rest.end.min((at / list::ROW + 1) * list::ROW) - 1;
                let is_behind = row.get(last).is_some_and(|last| last < low);
                cursor.row = row;
                if is_behind {
                    let found = list::position::<L>(self.snapshot, &cursor.owner, cursor.rest.end, low)?;
                    cursor.rest.start = found.max(at);
                }
                continue;
            };
            cursor.rest.start += 1;
            if entry >= low {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}
