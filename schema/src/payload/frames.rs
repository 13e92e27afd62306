//! Chunks of call frames: several records in one payload.

use std::ops::Range;

use super::{put_varint, take_varint};

/// A chunk of call frames: | n (varint) | n lengths (varint each) | the frames' JSON, one after the other |
#[derive(Debug, Default)]
pub struct Frames {
    lengths: Vec<u64>,
    json: Vec<u8>,
}

impl Frames {
    /// Adds the frame that `write` appends.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.json.len();
        write(&mut self.json);
        self.lengths.push((self.json.len() - start) as u64);
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// True if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Bytes of the frames so far.
    pub fn json_bytes(&self) -> usize {
        self.json.len()
    }

    /// Returns the chunk's bytes and empties it.
    pub fn take(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.json.len() + 2 * self.lengths.len() + 2);
        put_varint(self.lengths.len() as u64, &mut out);
        for length in self.lengths.drain(..) {
            put_varint(length, &mut out);
        }
        out.append(&mut self.json);
        out
    }

    /// The byte ranges of the frames in a chunk; `None` if the bytes are not a chunk.
    pub fn ranges(chunk: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut rest = chunk;
        let n = usize::try_from(take_varint(&mut rest)?).ok()?;
        if n > rest.len() {
            return None;
        }
        let lengths: Vec<usize> =
            (0..n).map(|_| usize::try_from(take_varint(&mut rest)?).ok()).collect::<Option<_>>()?;
        let mut at = chunk.len() - rest.len();
        let mut ranges = Vec::with_capacity(n);
        for length in lengths {
            let end = at.checked_add(length).filter(|end| *end <= chunk.len())?;
            ranges.push(at..end);
            at = end;
        }
        (at == chunk.len()).then_some(ranges)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_decompressed_unchanged(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..40)) {
            let mut chunk = Frames::default();
            for frame in &frames { chunk.push(|out| out.extend_from_slice(frame)); }
            let bytes = chunk.take();
            let ranges = Frames::ranges(&bytes).unwrap();
            prop_assert_eq!(ranges.into_iter().map(|range| bytes[range].to_vec()).collect::<Vec<_>>(), frames);
            prop_assert!(Frames::ranges(&[bytes.as_slice(), b"x"].concat()).is_none());
        }
    }
}
