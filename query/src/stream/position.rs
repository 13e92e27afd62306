//! Event ids: the position after a row, with a block locator as in Bitcoin's `getblocks`.
//!
//! An id is unpadded base64url of `2 | space | height | row | hash prefixes`: the height of the row's block and the row
//! (8 bytes each, BE), then the first 4 bytes of the hashes of the blocks at that height and 1, 2, 4 … 64 heights below;
//! near the beginning of the index, the last of them is its first block. The newest block that is stored with the same hash is the common one of two histories.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schema::Error;
use schema::block::hash_at;
use store::Snapshot;

use crate::cursor::Space;

/// Version of this encoding. Page cursors begin with 1.
const VERSION: u8 = 2;

/// Bytes before the hash prefixes.
const HEAD: usize = 18;

/// Heights of the locator's blocks, below that of the position.
const DISTANCES: [u64; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

/// The first bytes of a block's hash.
type HashPrefix = [u8; 4];

/// A position in a stream: just after a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Height of the block that has the row; 0 before the first block.
    pub(crate) height: u64,
    /// The last row before the position: a height or a sequence; 0 before the first.
    pub(crate) row: u64,
    /// The hashes of the blocks at [`locator_heights`].
    locator: [Option<HashPrefix>; DISTANCES.len()],
}

/// The stored history, compared with a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// It contains the position's block.
    Same,
    /// It ends before the position's block; the last common height, so far.
    Behind(u64),
    /// It has another block there; the last common height that is known.
    Fork(u64),
    /// It ends so far before the position's block that no block can be compared.
    FarBehind,
    /// It has none of the locator's blocks.
    Unknown,
}

impl Position {
    /// The position after `row`, which the block at `height` has.
    pub(crate) fn new(height: u64, row: u64, hashes: &mut Hashes<'_>) -> Result<Self, Error> {
        let mut locator = [None; DISTANCES.len()];
        for (prefix, height) in locator.iter_mut().zip(locator_heights(height, hashes.first)) {
            *prefix = hashes.at(height)?;
        }
        Ok(Self { height, row, locator })
    }

    /// Its text in a stream of `space`.
    pub(crate) fn encode(&self, space: Space) -> String {
        let mut bytes = vec![VERSION, space.tag()];
        bytes.extend_from_slice(&self.height.to_be_bytes());
        bytes.extend_from_slice(&self.row.to_be_bytes());
        bytes.extend(self.locator.iter().map_while(|prefix| *prefix).flatten());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position that `text` is; `None` if it is none of a stream of `space`.
    pub(crate) fn decode(space: Space, text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (head, hashes) = bytes.split_at_checked(HEAD)?;
        let (marks, numbers) = head.split_at(2);
        let (height, row) = numbers.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).ok();
        let (height, row) = (number(height)?, number(row)?);
        let (prefixes, rest) = hashes.as_chunks();
        let is_valid = marks == [VERSION, space.tag()]
            && rest.is_empty()
            && prefixes.len() <= DISTANCES.len()
            && prefixes.is_empty() == (height == 0);
        let mut locator = [None; DISTANCES.len()];
        for (place, prefix) in locator.iter_mut().zip(prefixes) {
            *place = Some(*prefix);
        }
        is_valid.then_some(Self { height, row, locator })
    }

    /// Compares it with the stored blocks, of which `head` is the last.
    pub(crate) fn base(&self, hashes: &mut Hashes<'_>, head: u64) -> Result<Base, Error> {
        if self.height == 0 {
            return Ok(Base::Same);
        }
        let (mut differs, mut compared) = (false, false);
        for (prefix, height) in self.locator.iter().zip(locator_heights(self.height, hashes.first)) {
            let Some(prefix) = prefix else { break };
            if height > head {
                continue;
            }
            compared = true;
            match hashes.at(height)? {
                Some(stored) if stored == *prefix && height == self.height => return Ok(Base::Same),
                Some(stored) if stored == *prefix && !differs && self.height > head => {
                    return Ok(Base::Behind(height));
                }
                Some(stored) if stored == *prefix => return Ok(Base::Fork(height)),
                Some(_) => differs = true,
                None => {}
            }
        }
        Ok(if compared { Base::Unknown } else { Base::FarBehind })
    }
}

/// The heights of the blocks of the locator at `height`, descending, in an index whose first block is at `first`.
fn locator_heights(height: u64, first: u64) -> impl Iterator<Item = u64> {
    let mut last = None;
    let heights = DISTANCES.into_iter().map(move |distance| height.saturating_sub(distance).max(first));
    heights.filter(move |height| last.replace(*height) != Some(*height))
}

/// Hash prefixes of the blocks of a snapshot, each read once.
pub(crate) struct Hashes<'a> {
    snapshot: &'a dyn Snapshot,
    /// Height of the first block.
    first: u64,
    known: BTreeMap<u64, Option<HashPrefix>>,
}

impl<'a> Hashes<'a> {
    pub(crate) fn new(snapshot: &'a dyn Snapshot, first: u64) -> Self {
        Self { snapshot, first, known: BTreeMap::new() }
    }

    /// The prefix of the block at `height`; `None` if it is not indexed.
    fn at(&mut self, height: u64) -> Result<Option<HashPrefix>, Error> {
        if let Some(known) = self.known.get(&height) {
            return Ok(*known);
        }
        let prefix = hash_at(self.snapshot, height)?.map(|[a, b, c, d, ..]| [a, b, c, d]);
        self.known.insert(height, prefix);
        Ok(prefix)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::{MemStore, Store as _};

    use super::*;

    /// The position at `height` in a history of which the block at each height has the hash prefix `hash`.
    fn position(height: u64, hash: impl Fn(u64) -> u32) -> Position {
        let mut locator = [None; DISTANCES.len()];
        for (prefix, height) in locator.iter_mut().zip(locator_heights(height, 1)) {
            *prefix = Some(hash(height).to_be_bytes());
        }
        Position { height, row: height, locator }
    }

    proptest! {
        #[test]
        fn the_base_is_the_newest_common_block_of_the_locator(
            height in 1_u64..200, fork in 0_u64..200, head in 1_u64..200,
        ) {
            let store = MemStore::new();
            let snapshot = store.snapshot().unwrap();
            // Blocks above `fork` differ.
            let (old, new) = (|height| height, |height| if height > fork { 1000 + height } else { height });
            let as_hash = |height: u64| u32::try_from(height).unwrap();
            let sent = position(height, |height| as_hash(old(height)));
            let known = (0..=300_u64).map(|height| {
                let is_stored = height > 0 && height <= head;
                (height, is_stored.then(|| as_hash(new(height)).to_be_bytes()))
            });
            let mut hashes = Hashes { snapshot: &*snapshot, first: 1, known: known.collect() };
            let of_locator = || locator_heights(height, 1);
            let common = of_locator().find(|at| *at <= head && *at <= fork);
            let expected = match common {
                Some(at) if at == height => Base::Same,
                // Every block that can be compared is common.
                Some(at) if height > head && of_locator().filter(|at| *at <= head).all(|at| at <= fork) => Base::Behind(at),
                Some(at) => Base::Fork(at),
                None if of_locator().any(|at| at <= head) => Base::Unknown,
                None => Base::FarBehind,
            };
            prop_assert_eq!(sent.base(&mut hashes, head).unwrap(), expected);
            let text = sent.encode(Space::Txs);
            prop_assert_eq!(Position::decode(Space::Txs, &text), Some(sent));
            prop_assert_eq!(Position::decode(Space::Blocks, &text), None);
        }

        #[test]
        fn any_text_is_a_position_or_none(text: String, bytes: Vec<u8>) {
            let _: (_, _) = (
                Position::decode(Space::Txs, &text),
                Position::decode(Space::Txs, &URL_SAFE_NO_PAD.encode([&[VERSION, 2], &bytes[..]].concat())),
            );
        }
    }

    #[test]
    fn the_bytes_of_an_id_do_not_change() {
        let text = "AgEAAAAAAAAAAgAAAAAAAAACAAAAAgAAAAE";
        let id = position(2, |height| u32::try_from(height).unwrap());
        assert_eq!(id.encode(Space::Blocks), text);
        assert_eq!(Position::decode(Space::Blocks, text), Some(id));
        for broken in ["", "AgE", &text[..text.len() - 1], "AQEAAAAAAAAAAgAAAAAAAAACAAAAAgAAAAE", "!"] {
            assert_eq!(Position::decode(Space::Blocks, broken), None, "{broken}");
        }
    }
}
