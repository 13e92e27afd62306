//! The lines of a zstd-compressed NDJSON file, one at a time.
//!
//! Memory contains one line at a time, never the file; a line longer than [`MAX_LINE`] is an error, so a broken or
//! hostile file cannot exhaust memory.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use crate::Error;

/// Maximum bytes of a line: a thousand times a busy block.
pub(super) const MAX_LINE: u64 = 256 << 20;

/// Bytes of decompressed text read from zstd at a time.
const CHUNK: usize = 256 << 10;

/// Calls `each` with the text of every line (without its line end) until it returns an error.
///
/// The error of `each` is the reason; file and line number are added.
pub(super) fn for_each_line(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Error> {
    let file = File::open(path).map_err(|e| Error::io("open", path, e))?;
    let decoder = zstd::stream::read::Decoder::new(file).map_err(|e| Error::io("decompress", path, e))?;
    let mut text = BufReader::with_capacity(CHUNK, decoder);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut text)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|e| Error::line(path, number, format!("cannot decompress: {e}; is the file whole?")))?;
        if read == 0 {
            break;
        }
        if line.pop_if(|last| *last == b'\n').is_none() && line.len() as u64 == MAX_LINE {
            return Err(Error::line(path, number, format!("longer than {MAX_LINE} bytes")));
        }
        if line.is_empty() {
            return Err(Error::line(path, number, "empty line"));
        }
        each(&line).map_err(|message| Error::line(path, number, message))?;
    }
    Ok(())
}
