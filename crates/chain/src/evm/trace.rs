//! EVM internal transactions: the call trees of `debug_traceBlockByNumber`, flattened, and the JSON made of them.
//!
//! Frames are numbered depth-first in pre-order: on a minievm from the synthetic frame 0 that it puts around every
//! transaction, elsewhere from the transaction's own call. Call trees nest up to a thousand deep, beyond the recursion limit of serde, so a loop reads the tree
//! member by member, in time and memory linear in the answer. Texts are borrowed from the answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::address::{Account, AccountSet};
use crate::hash::{Hash, parse_hash};
use crate::json::{push_hex_lower, push_member, push_number};
use crate::serde_lenient::JsonText;

/// Deepest nesting that is read. The EVM stops at 1,024 calls; Cosmos messages called from contracts add a few.
pub const MAX_DEPTH: usize = 8_192;

/// The trace of one transaction.
#[derive(Debug)]
pub struct TxTrace<'a> {
    /// The Ethereum hash.
    pub hash: Hash,
    /// The frames in pre-order; empty if there is an error.
    pub frames: Vec<Frame<'a>>,
    /// The error of tracing this transaction, such as `execution timeout`; the others of the block may be fine.
    pub error: Option<JsonText<'a>>,
}

/// One call. Hex members are `0x` and hex digits, or empty if the tracer gave none.
#[derive(Debug, Clone, Default)]
pub struct Frame<'a> {
    /// The calling frame; −1 for frame 0.
    pub parent_index: i64,
    /// Position in pre-order, from 0.
    pub index: u64,
    /// `CALL`, `CREATE`, …
    pub kind: JsonText<'a>,
    /// The caller.
    pub from: JsonText<'a>,
    /// The called or created address; empty for a failed creation.
    pub to: JsonText<'a>,
    /// The call data.
    pub input: JsonText<'a>,
    /// The returned data.
    pub output: JsonText<'a>,
    /// The value sent; not given for static calls and for frame 0.
    pub value: JsonText<'a>,
    /// The gas given.
    pub gas: JsonText<'a>,
    /// The gas used.
    pub gas_used: JsonText<'a>,
    /// Why it failed; empty if it did not.
    pub error: JsonText<'a>,
}

/// Why a trace cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is not a list of traces.
    #[error("the answer of debug_traceBlockByNumber is not a list of traces: {0}")]
    Shape(#[source] serde_json::Error),
    /// The answer is `null`.
    #[error("the node has no traces of the block yet: ask again")]
    NotReady,
    /// An entry has neither frames nor an error.
    #[error("the trace of {hash} has neither a result nor an error")]
    Empty {
        /// The transaction.
        hash: String,
    },
    /// A hash is not 32 bytes of hex.
    #[error("{text:?} is not the hash of an ethereum transaction")]
    BadHash {
        /// Its value.
        text: String,
    },
    /// A call tree is malformed.
    #[error("the trace of {hash} is malformed at byte {at}: expected {expected}")]
    Malformed {
        /// The transaction.
        hash: String,
        /// The position in its `result`.
        at: usize,
        /// The expected token.
        expected: &'static str,
    },
    /// A call tree nests too deep.
    #[error("the trace of {hash} nests deeper than {MAX_DEPTH} calls")]
    TooDeep {
        /// The transaction.
        hash: String,
    },
    /// `from` or `to` of a frame is not an address.
    #[error("{text:?} in frame {index} of a trace is not an address")]
    BadAddress {
        /// The frame.
        index: u64,
        /// Its value.
        text: String,
    },
}

/// Reads the `result` of `debug_traceBlockByNumber` with the call tracer.
pub fn parse_traces(answer: &[u8]) -> Result<Vec<TxTrace<'_>>, Error> {
    parse_traces_of(answer, &[])
}

/// The same for the transactions with these hashes: a trace that names none is of the transaction in its place.
pub fn parse_traces_of<'a>(answer: &'a [u8], hashes: &[Hash]) -> Result<Vec<TxTrace<'a>>, Error> {
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_slice(answer).map_err(Error::Shape)?;
    let places = hashes.iter().map(Some).chain(std::iter::repeat(None));
    entries.ok_or(Error::NotReady)?.into_iter().zip(places).map(trace).collect()
}

/// Reads one call tree: the `result` of `debug_traceTransaction`, or of one entry of a block's traces.
pub fn parse_frames<'a>(hash: &Hash, tree: &'a str) -> Result<Vec<Frame<'a>>, Error> {
    TreeParser { text: tree, at: 0, frames: Vec::new(), open: Vec::new() }.run().map_err(|error| {
        let hash = hash_text(hash);
        match error {
            TreeError::TooDeep => Error::TooDeep { hash },
            TreeError::Expected { at, expected } => Error::Malformed { hash, at, expected },
        }
    })
}

impl Frame<'_> {
    /// Adds the accounts under which the call is listed: `from` and `to`.
    pub fn accounts(&self, out: &mut AccountSet) -> Result<(), Error> {
        for text in [&self.from, &self.to].into_iter().filter(|text| !text.is_empty()) {
            let bad = || Error::BadAddress { index: self.index, text: text.to_string() };
            out.insert(Account::from_hex_literal(text).ok_or_else(bad)?);
        }
        Ok(())
    }
}

/// Appends the JSON of an internal transaction, with the members of the deployed server in its order.
///
/// Quantities are shown as bytes, so with an even number of digits, and as `0x` if absent. The output of frame 0 is
/// never shown, as on the deployed server: it is that of minievm's own frame.
pub fn write_internal_tx(out: &mut Vec<u8>, height: u64, hash: &Hash, frame: &Frame<'_>) {
    let output = if frame.index == 0 { "" } else { &*frame.output };
    write_call(out, height, hash, frame, output);
}

/// The same with this output.
pub fn write_call(out: &mut Vec<u8>, height: u64, hash: &Hash, frame: &Frame<'_>, output: &str) {
    out.extend_from_slice(br#"{"height":"#);
    push_number(out, height);
    out.extend_from_slice(br#","hash":"0x"#);
    push_hex_lower(out, hash);
    out.extend_from_slice(br#"","parent_index":"#);
    push_number(out, frame.parent_index);
    out.extend_from_slice(br#","index":"#);
    push_number(out, frame.index);
    push_member(out, r#","type":"#, &frame.kind);
    push_address(out, r#","from":"#, &frame.from);
    push_address(out, r#","to":"#, &frame.to);
    push_bytes(out, r#","input":"#, &frame.input);
    push_bytes(out, r#","output":"#, output);
    push_bytes(out, r#","value":"#, &frame.value);
    push_bytes(out, r#","gas":"#, &frame.gas);
    push_bytes(out, r#","gasUsed":"#, &frame.gas_used);
    out.push(b'}');
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Entry<'a> {
    #[serde(default)]
    tx_hash: JsonText<'a>,
    result: Option<&'a RawValue>,
    error: Option<JsonText<'a>>,
}

fn trace<'a>((entry, place): (Entry<'a>, Option<&Hash>)) -> Result<TxTrace<'a>, Error> {
    let named = parse_hash(&entry.tx_hash).ok().flatten();
    let by_place = place.copied().filter(|_| entry.tx_hash.is_empty());
    let Some(hash) = named.or(by_place) else {
        return Err(Error::BadHash { text: entry.tx_hash.to_string() });
    };
    let error = entry.error.filter(|error| !error.is_empty());
    let frames = match entry.result {
        _ if error.is_some() => Vec::new(),
        Some(tree) => parse_frames(&hash, tree.get())?,
        None => return Err(Error::Empty { hash: hash_text(&hash) }),
    };
    Ok(TxTrace { hash, frames, error })
}

enum TreeError {
    Expected { at: usize, expected: &'static str },
    TooDeep,
}

/// A parser of one call tree.
struct TreeParser<'a> {
    text: &'a str,
    at: usize,
    frames: Vec<Frame<'a>>,
    /// The open frames, outermost first, as positions in `frames`.
    open: Vec<usize>,
}

impl<'a> TreeParser<'a> {
    fn run(mut self) -> Result<Vec<Frame<'a>>, TreeError> {
        self.open_frame()?;
        while let Some(&frame) = self.open.last() {
            match self.next_byte() {
                Some(b'"') => self.member(frame)?,
                Some(b',') => self.at += 1,
                Some(b'}') => self.close_frame()?,
                _ => return Err(self.expected("a member of a frame")),
            }
        }
        match self.next_byte() {
            None => Ok(self.frames),
            Some(_) => Err(self.expected("the end")),
        }
    }

    fn open_frame(&mut self) -> Result<(), TreeError> {
        self.take(b'{', "a frame")?;
        if self.open.len() == MAX_DEPTH {
            return Err(TreeError::TooDeep);
        }
        let index = self.frames.len();
        let parent_index = self.open.last().map_or(-1, |&parent| parent.try_into().unwrap_or(i64::MAX));
        self.open.push(index);
        let index = index.try_into().unwrap_or(u64::MAX);
        self.frames.push(Frame { parent_index, index, ..Frame::default() });
        Ok(())
    }

    /// Steps out of a frame: into its next sibling, or over the end of its parent's list of calls.
    fn close_frame(&mut self) -> Result<(), TreeError> {
        self.take(b'}', "the end of a frame")?;
        self.open.pop();
        if self.open.is_empty() {
            return Ok(());
        }
        match self.next_byte() {
            Some(b',') => {
                self.at += 1;
                self.open_frame()
            }
            _ => self.take(b']', "the end of calls"),
        }
    }

    fn member(&mut self, frame: usize) -> Result<(), TreeError> {
        let key: JsonText<'a> = self.value("a key")?;
        self.take(b':', "a colon")?;
        if key == "calls" && self.next_byte() == Some(b'[') {
            self.at += 1;
            return if self.next_byte() == Some(b']') {
                self.at += 1;
                Ok(())
            } else {
                self.open_frame()
            };
        }
        let Some((member, is_hex)) = member_of(&mut self.frames[frame], &key) else {
            return self.value::<serde::de::IgnoredAny>("a value").map(drop);
        };
        let at = self.at;
        let text: JsonText<'a> = value_at(self.text, &mut self.at, "a string")?;
        if is_hex && !is_hex_or_empty(&text) {
            return Err(TreeError::Expected { at, expected: "0x and hex digits" });
        }
        *member = text;
        Ok(())
    }

    fn value<T: Deserialize<'a>>(&mut self, expected: &'static str) -> Result<T, TreeError> {
        value_at(self.text, &mut self.at, expected)
    }

    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), TreeError> {
        if self.next_byte() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not white space, without consuming it.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += space;
        rest.get(space).copied()
    }

    fn expected(&self, expected: &'static str) -> TreeError {
        TreeError::Expected { at: self.at, expected }
    }
}

/// Reads one JSON value that is not a call tree; serde skips unknown ones without recursion.
fn value_at<'a, T: Deserialize<'a>>(
    text: &'a str,
    at: &mut usize,
    expected: &'static str,
) -> Result<T, TreeError> {
    let mut values = serde_json::Deserializer::from_str(&text[*at..]).into_iter::<T>();
    let value = values.next();
    let end = values.byte_offset();
    match value {
        Some(Ok(value)) => {
            *at += end;
            Ok(value)
        }
        _ => Err(TreeError::Expected { at: *at, expected }),
    }
}

/// The target of a member, and whether it must be hex.
fn member_of<'f, 'a>(frame: &'f mut Frame<'a>, key: &str) -> Option<(&'f mut JsonText<'a>, bool)> {
    Some(match key {
        "type" => (&mut frame.kind, false),
        "from" => (&mut frame.from, true),
        "to" => (&mut frame.to, true),
        "input" => (&mut frame.input, true),
        "output" => (&mut frame.output, true),
        "value" => (&mut frame.value, true),
        "gas" => (&mut frame.gas, true),
        "gasUsed" => (&mut frame.gas_used, true),
        "error" => (&mut frame.error, false),
        _ => return None,
    })
}

fn is_hex_or_empty(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn push_address(out: &mut Vec<u8>, lead: &str, text: &str) {
    push_member(out, lead, &text.to_ascii_lowercase());
}

/// Appends hex as bytes: lower-case, an even number of digits.
fn push_bytes(out: &mut Vec<u8>, lead: &str, text: &str) {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    out.extend_from_slice(lead.as_bytes());
    out.extend_from_slice(b"\"0x");
    if digits.len() % 2 == 1 {
        out.push(b'0');
    }
    let hex = digits.bytes().filter(u8::is_ascii_hexdigit);
    out.extend(hex.map(|digit| digit.to_ascii_lowercase()));
    out.push(b'"');
}

fn hash_text(hash: &Hash) -> String {
    format!("0x{}", hex::encode(hash))
}
