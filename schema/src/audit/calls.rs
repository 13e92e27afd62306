//! Check of call frames against their indexes by height and by hash.

use serde::Deserialize;
use serde::de::IgnoredAny;
use store::{Bounds, Key as _, Message, Table, Value as _};

use super::{Ground, Remedy, Report};
use crate::Error;
use crate::internal_tx::{BlockCalls, Calls, CallsByHash, CallsByHeight};
use crate::keys::{HashPrefix, hash_prefix};
use crate::meta::{self, CallLane, Meta};
use crate::payload::Frames;

/// What a frame says of itself.
#[derive(Deserialize)]
struct Frame {
    height: u64,
    hash: String,
    #[serde(rename = "index")]
    _index: IgnoredAny,
}

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let mut walk = Walk {
        ground,
        report,
        next: 1,
        height: ground.identity.start_height,
        whole: true,
        block: None,
        tx: None,
    };
    let (mut heights, mut hashes) = (0, 0);
    store::for_each_row(ground.snapshot, Calls::SPEC, Bounds::all(), |key, value| {
        let (block, tx) = walk.chunk(key, value)?;
        heights += block;
        hashes += tx;
        Ok::<(), Error>(())
    })?;
    heights += walk.close_block()?;
    hashes += walk.close_tx()?;
    let (next, last, whole) = (walk.next, ground.last_call(), walk.whole);
    if next != last + 1 {
        let key = meta::key::<CallLane>().to_bytes();
        let stored = format!("{:?}", ground.calls);
        let row = (Meta::SPEC, key.as_slice(), Some(stored.as_bytes()));
        let remedy = Remedy::Index(ground.heights.of_call(next.min(last + 1).saturating_sub(1)));
        report.row("lane of internal transactions", row, format!("{} frames", next - 1), remedy);
    }
    report.checked("call frames", next - 1);
    if !whole {
        // What is missing or unreadable has its places; they come again with it.
        return Ok(());
    }
    strays::<CallsByHeight>(ground, heights, report)?;
    strays::<CallsByHash>(ground, hashes, report)
}

/// Frames of one block, or of one transaction, so far.
struct Group<K> {
    key: K,
    first: u64,
    count: u64,
}

struct Walk<'r, 'g> {
    ground: &'r Ground<'g>,
    report: &'r mut Report,
    next: u64,
    /// Of the last frame.
    height: u64,
    /// Every chunk so far is there and can be read.
    whole: bool,
    block: Option<Group<u64>>,
    tx: Option<Group<HashPrefix>>,
}

impl Walk<'_, '_> {
    /// One chunk; gives how many rows by height and by hash were found for what it ends.
    fn chunk(&mut self, key: &[u8], value: &[u8]) -> Result<(u64, u64), Error> {
        let Some(seq) = u64::from_bytes(key) else { return Ok((0, 0)) };
        let row = (Calls::SPEC, key, Some(value));
        if seq != self.next {
            let expected = format!("frames from {} on", self.next);
            self.whole = false;
            self.report.row("sequence of call frames", row, expected, Remedy::Index(self.height));
        }
        let mut found = (0, 0);
        let frames = self.frames(seq, value);
        match frames {
            Err(reason) => {
                self.whole = false;
                self.report.row("record of call frames", row, reason, Remedy::Index(self.height));
                self.next = seq + 1;
            }
            Ok(frames) => {
                for (seq, (height, hash)) in (seq..).zip(frames) {
                    found.0 += self.block_frame(height, seq)?;
                    found.1 += self.tx_frame(hash, seq)?;
                    self.height = self.height.max(height);
                    self.next = seq + 1;
                }
            }
        }
        Ok(found)
    }

    /// Height and hash of each frame of a chunk.
    fn frames(&self, seq: u64, payload: &[u8]) -> Result<Vec<(u64, HashPrefix)>, String> {
        let mut chunk = Vec::new();
        let codec = &self.ground.codec;
        codec.decode_into(Calls::SPEC, seq, payload, &mut chunk).map_err(|error| error.to_string())?;
        let ranges =
            Frames::ranges(&chunk).filter(|ranges| !ranges.is_empty()).ok_or("frames with their lengths")?;
        let frame = |range: std::ops::Range<usize>| {
            let frame: Frame =
                serde_json::from_slice(&chunk[range]).map_err(|error| format!("a frame: {error}"))?;
            let digits = frame.hash.strip_prefix("0x").unwrap_or_default();
            let hash = hex::decode(digits).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok());
            Ok((frame.height, hash_prefix(&hash.ok_or("a frame with its transaction's hash")?)))
        };
        ranges.into_iter().map(frame).collect()
    }

    fn block_frame(&mut self, height: u64, seq: u64) -> Result<u64, Error> {
        if let Some(group) = self.block.as_mut().filter(|group| group.key == height) {
            group.count += 1;
            return Ok(0);
        }
        let found = self.close_block()?;
        self.block = Some(Group { key: height, first: seq, count: 1 });
        Ok(found)
    }

    fn tx_frame(&mut self, hash: HashPrefix, seq: u64) -> Result<u64, Error> {
        if let Some(group) = self.tx.as_mut().filter(|group| group.key == hash) {
            group.count += 1;
            return Ok(0);
        }
        let found = self.close_tx()?;
        self.tx = Some(Group { key: hash, first: seq, count: 1 });
        Ok(found)
    }

    fn close_block(&mut self) -> Result<u64, Error> {
        let Some(Group { key, first, count }) = self.block.take() else { return Ok(0) };
        let mut expected = Vec::new();
        Message(BlockCalls { first, count }).encode(&mut expected);
        self.group::<CallsByHeight>(&key.to_bytes(), &expected, key)
    }

    fn close_tx(&mut self) -> Result<u64, Error> {
        let Some(Group { key, first, count }) = self.tx.take() else { return Ok(0) };
        let mut expected = Vec::new();
        count.encode(&mut expected);
        self.group::<CallsByHash>(&(key, first).to_bytes(), &expected, self.height)
    }

    fn group<T: Table>(&mut self, key: &[u8], expected: &[u8], height: u64) -> Result<u64, Error> {
        let stored = self.ground.snapshot.get(T::SPEC, key)?;
        if stored.as_deref() != Some(expected) {
            self.report.suspect(height);
            let row = (T::SPEC, key, stored.as_deref());
            let words = super::report::bytes(expected);
            self.report.row("place of call frames", row, words, Remedy::Row(Some(expected.to_vec())));
        }
        Ok(u64::from(stored.is_some()))
    }
}

/// Rows for which there are no frames: all that are more than those `found`.
fn strays<T: Table>(ground: &Ground<'_>, found: u64, report: &mut Report) -> Result<(), Error> {
    let mut rows = 0;
    store::for_each_row(ground.snapshot, T::SPEC, Bounds::all(), |_, _| {
        rows += 1;
        Ok::<(), Error>(())
    })?;
    if rows == found {
        return Ok(());
    }
    // Which they are only the frames tell: all of them are looked at again with the chain.
    let from = ground.identity.start_height;
    let row = (T::SPEC, &[][..], None);
    report.row("stray place of call frames", row, format!("{found} rows, not {rows}"), Remedy::Index(from));
    Ok(())
}
