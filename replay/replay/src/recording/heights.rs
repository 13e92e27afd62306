//! The recorded heights of a chain: their text, or each compressed by itself.
//!
//! A chain that is played once in order needs the text of few heights at a time, so an extended recording, which is
//! played next to programs whose memory is measured, has them compressed (`evm-load`: 194 MB of text).

use super::block::{Height, block_line};

/// zstd level of a height: the fastest that finds repetitions within it.
const LEVEL: i32 = 1;

/// Heights in order, without gaps.
#[derive(Debug)]
pub(super) enum Heights {
    Text(Vec<Height>),
    /// Each a line of `blocks.ndjson`.
    Compressed(Vec<Box<[u8]>>),
}

impl Heights {
    /// The same heights, compressed.
    pub(super) fn compressed(self) -> std::io::Result<Self> {
        let Self::Text(heights) = self else { return Ok(self) };
        let compress = |height: Height| zstd::bulk::compress(&block_line(&height, true), LEVEL);
        let lines = heights.into_iter().map(|height| Ok(compress(height)?.into_boxed_slice()));
        Ok(Self::Compressed(lines.collect::<std::io::Result<_>>()?))
    }

    /// The heights, if they are not compressed.
    pub(super) fn text(&self) -> &[Height] {
        match self {
            Self::Text(heights) => heights,
            Self::Compressed(_) => &[],
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(heights) => heights.len(),
            Self::Compressed(lines) => lines.len(),
        }
    }

    /// A copy of a height, by its number from 0.
    pub(super) fn get(&self, index: usize) -> Option<Height> {
        match self {
            Self::Text(heights) => heights.get(index).cloned(),
            Self::Compressed(lines) => {
                let line = zstd::decode_all(&**lines.get(index)?).ok()?;
                Height::parse(&line).ok()
            }
        }
    }

    /// Copies of all heights, each made when it is reached.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Height> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}
