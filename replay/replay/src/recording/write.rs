//! Writer of a recording: heights in order, then the state, then the summary.
//!
//! Until [`RecordingWriter::finish`] the heights are plain text in a `.partial` file, so an interrupted recording
//! continues after its last complete line. Finishing compresses, counts and removes the partial files; `recording.json`
//! is written last, so a directory with this file is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::block::{Height, Trace, block_line, items};
use super::lines::MAX_LINE;
use super::{BLOCKS_FILE, STATE_FILE, SUMMARY_FILE, Summary};
use crate::Error;

const BLOCKS_PARTIAL: &str = "blocks.ndjson.partial";
const STATE_PARTIAL: &str = "state.ndjson.partial";

/// A line of the state file.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A request to the REST gateway.
    Rest {
        /// `GET` or `POST`.
        method: &'a str,
        /// Path and query string, as sent.
        path: &'a str,
        /// The `x-cosmos-block-height` header.
        height: Option<u64>,
        /// The body of a `POST`.
        #[serde(skip_serializing_if = "Option::is_none")]
        body: Option<&'a RawValue>,
        /// The HTTP status of the reply.
        status: u16,
        /// The reply.
        answer: &'a RawValue,
    },
    /// A request to `CometBFT`.
    Cometbft {
        /// Method and parameters as a `GET` path, not percent-encoded.
        path: &'a str,
        /// The `result`.
        answer: &'a RawValue,
    },
    /// A JSON-RPC call.
    Eth {
        /// The method.
        method: &'a str,
        /// The parameters, an array.
        params: &'a RawValue,
        /// The `result`, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        /// The `error` otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RawValue>,
    },
    /// An `eth_call` without a sender.
    EthCall {
        /// The contract.
        to: &'a str,
        /// The calldata.
        data: &'a str,
        /// The height of the state.
        height: u64,
        /// The `result`, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        /// The `error` otherwise.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RawValue>,
    },
}

/// Writes a recording into a directory.
#[derive(Debug)]
pub struct RecordingWriter {
    dir: PathBuf,
    blocks: BufWriter<File>,
    state: BufWriter<File>,
    last: Option<Height>,
    queries: u64,
    evm: bool,
}

impl RecordingWriter {
    /// Opens a directory for writing, continuing an interrupted recording.
    ///
    /// `evm`: whether the heights have the EVM members. Fails if the directory already contains a complete recording.
    pub fn open(dir: &Path, evm: bool) -> Result<Self, Error> {
        fs::create_dir_all(dir).map_err(|e| Error::io("create", dir, e))?;
        let summary = dir.join(SUMMARY_FILE);
        if summary.exists() {
            return Err(Error::file(&summary, "there is a recording already; choose another directory"));
        }
        let path = dir.join(BLOCKS_PARTIAL);
        let (last, end) = last_whole_line(&path)?;
        let blocks = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|file| file.set_len(end).map(|()| file))
            .map_err(|e| Error::io("open", &path, e))?;
        let path = dir.join(STATE_PARTIAL);
        let state = File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        Ok(Self {
            dir: dir.to_path_buf(),
            blocks: BufWriter::new(blocks),
            state: BufWriter::new(state),
            last,
            queries: 0,
            evm,
        })
    }

    /// The height added last, by this writer or by the interrupted one.
    pub fn last(&self) -> Option<&Height> {
        self.last.as_ref()
    }

    /// Adds the next height.
    pub fn append(&mut self, height: &Height) -> Result<(), Error> {
        let path = self.dir.join(BLOCKS_PARTIAL);
        let next = self.last.as_ref().map(|last| last.height + 1);
        if let Some(next) = next.filter(|next| *next != height.height) {
            return Err(Error::file(&path, format!("height {} where {next} comes next", height.height)));
        }
        let line = block_line(height, self.evm);
        write_line(&mut self.blocks, &line).map_err(|e| Error::io("write", &path, e))?;
        self.last = Some(height.clone());
        Ok(())
    }

    /// Adds a reply about state.
    pub fn state(&mut self, line: &Line<'_>) -> Result<(), Error> {
        let path = self.dir.join(STATE_PARTIAL);
        let text = serde_json::to_vec(line).map_err(|e| Error::file(&path, e.to_string()))?;
        write_line(&mut self.state, &text).map_err(|e| Error::io("write", &path, e))?;
        self.queries += u64::from(matches!(line, Line::Rest { .. } | Line::EthCall { .. }));
        Ok(())
    }

    /// Compresses the written lines at a zstd level (1 to 22) and writes the summary. Its counts, heights and format
    /// are computed; those in `about` are ignored.
    pub fn finish(mut self, about: Summary, level: i32) -> Result<Summary, Error> {
        let (blocks, state) = (self.dir.join(BLOCKS_PARTIAL), self.dir.join(STATE_PARTIAL));
        self.blocks.flush().map_err(|e| Error::io("write", &blocks, e))?;
        self.state.flush().map_err(|e| Error::io("write", &state, e))?;
        let Summary { name, chain_id, vm, fee_denom, .. } = about;
        let mut summary = Summary::about(&name, &chain_id, &vm, &fee_denom);
        summary.state_queries = self.queries;
        compress(&blocks, &self.dir.join(BLOCKS_FILE), level, |line| {
            count(&Height::parse(line)?, &mut summary)
        })?;
        compress(&state, &self.dir.join(STATE_FILE), level, |_| Ok(()))?;
        if summary.first_height == 0 {
            return Err(Error::file(&blocks, "no height was recorded"));
        }
        let path = self.dir.join(SUMMARY_FILE);
        let mut text = serde_json::to_vec_pretty(&summary).map_err(|e| Error::file(&path, e.to_string()))?;
        text.push(b'\n');
        fs::write(&path, text).map_err(|e| Error::io("write", &path, e))?;
        for partial in [blocks, state] {
            fs::remove_file(&partial).map_err(|e| Error::io("remove", &partial, e))?;
        }
        Ok(summary)
    }
}

/// The last complete line of a partial file and its end; `(None, 0)` if there is none.
fn last_whole_line(path: &Path) -> Result<(Option<Height>, u64), Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((None, 0)),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let (mut last, mut end) = (None, 0);
    each_whole_line(path, file, |number, line| {
        let height = Height::parse(line).map_err(|message| Error::line(path, number, message))?;
        last = Some(height);
        end += line.len() as u64 + 1;
        Ok(())
    })?;
    Ok((last, end))
}

fn each_whole_line(
    path: &Path,
    file: File,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut text = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut bounded = (&mut text).take(MAX_LINE);
        bounded.read_until(b'\n', &mut line).map_err(|e| Error::io("read", path, e))?;
        if line.pop() != Some(b'\n') {
            break;
        }
        each(number, &line)?;
    }
    Ok(())
}

fn compress(
    from: &Path,
    to: &Path,
    level: i32,
    mut check: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), Error> {
    let source = File::open(from).map_err(|e| Error::io("open", from, e))?;
    let target = File::create(to).map_err(|e| Error::io("create", to, e))?;
    let mut encoder =
        zstd::stream::write::Encoder::new(target, level).map_err(|e| Error::io("compress", to, e))?;
    each_whole_line(from, source, |number, line| {
        check(line).map_err(|message| Error::line(from, number, message))?;
        write_line(&mut encoder, line).map_err(|e| Error::io("write", to, e))
    })?;
    let file = encoder.finish().map_err(|e| Error::io("write", to, e))?;
    file.sync_all().map_err(|e| Error::io("write", to, e))
}

/// Adds one height to the counts.
pub(super) fn count(height: &Height, summary: &mut Summary) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Frame {
        #[serde(default)]
        calls: Vec<Frame>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        result: Option<Frame>,
    }
    fn frames(frame: &Frame) -> u64 {
        1 + frame.calls.iter().map(frames).sum::<u64>()
    }
    let message = |e: serde_json::Error| e.to_string();
    if summary.first_height == 0 {
        summary.first_height = height.height;
    }
    summary.last_height = height.height;
    summary.txs += height.raw_txs().map_err(message)?.len() as u64;
    if let Some(receipts) = &height.eth_receipts {
        summary.evm_txs += items(receipts).map_err(message)?.len() as u64;
    }
    if let Some(Trace::Result(trace)) = &height.eth_trace {
        let entries: Vec<Entry> = serde_json::from_slice(trace).map_err(message)?;
        summary.trace_frames += entries.iter().filter_map(|e| e.result.as_ref()).map(frames).sum::<u64>();
    }
    Ok(())
}

/// Writes a line of JSON. If it has line ends, which no JSON string can contain, all white space between tokens is
/// removed.
fn write_line(out: &mut impl io::Write, line: &[u8]) -> io::Result<()> {
    if line.contains(&b'\n') || line.contains(&b'\r') {
        out.write_all(&without_white_space(line))?;
    } else {
        out.write_all(line)?;
    }
    out.write_all(b"\n")
}

fn without_white_space(json: &[u8]) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let mut out = Vec::with_capacity(json.len());
    for &byte in json {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        } else {
            in_string = byte == b'"';
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_removed_between_tokens_and_kept_in_strings() {
        let pretty = b"{\n  \"a b\": \"x \\\" y\\\\\",\r\n  \"c\": [1, 2]\n}";
        assert_eq!(without_white_space(pretty), br#"{"a b":"x \" y\\","c":[1,2]}"#);
    }
}
