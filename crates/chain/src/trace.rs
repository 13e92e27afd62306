//! EVM internal transactions: the call trees of `debug_traceBlockByNumber`, flattened, and the JSON made of them.
//!
//! Frames are numbered depth-first in pre-order from the synthetic frame 0 that MiniEVM puts around every transaction
//! (indexing 7, T33). Call trees nest up to a thousand deep, so nothing here recurses: the tree is walked by hand, one
//! member at a time, in time and memory linear in the answer.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::account_set::AccountSet;
use crate::address::Account;
use crate::hash::{Hash, parse_hash};
use crate::json::{push_hex_lower, push_member, push_number};
use crate::serde_lenient::{Text, optional_text, text};

/// Deepest nesting that is read. The EVM stops at 1,024 calls; Cosmos messages called from contracts add a few.
pub const MAX_DEPTH: usize = 8_192;

/// What the tracer says of one transaction.
#[derive(Debug)]
pub struct TxTrace<'a> {
    /// The Ethereum hash.
    pub hash: Hash,
    /// The frames in pre-order; empty if there is an error.
    pub frames: Vec<Frame<'a>>,
    /// Why this transaction could not be traced, such as `execution timeout`; the others of the block may be fine (T5).
    pub error: Option<Cow<'a, str>>,
}

/// One call. Hex members are `0x` and hex digits, or empty if the tracer gave none.
#[derive(Debug, Clone, Default)]
pub struct Frame<'a> {
    /// The calling frame; −1 for frame 0.
    pub parent_index: i64,
    /// Position in pre-order, from 0.
    pub index: u64,
    /// `CALL`, `CREATE`, …
    pub kind: Cow<'a, str>,
    /// The caller.
    pub from: Cow<'a, str>,
    /// The called or created address; empty for a failed creation.
    pub to: Cow<'a, str>,
    /// The call data.
    pub input: Cow<'a, str>,
    /// What came back.
    pub output: Cow<'a, str>,
    /// The value sent; not given for static calls and for frame 0.
    pub value: Cow<'a, str>,
    /// The gas given.
    pub gas: Cow<'a, str>,
    /// The gas used.
    pub gas_used: Cow<'a, str>,
}

/// Why a trace cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The answer is no list of traces.
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
        /// What stood there.
        text: String,
    },
    /// A call tree is no tree of frames.
    #[error("the trace of {hash} is malformed at byte {at}: expected {expected}")]
    Malformed {
        /// The transaction.
        hash: String,
        /// Where in its `result`.
        at: usize,
        /// What belongs there.
        expected: &'static str,
    },
    /// A call tree nests too deep.
    #[error("the trace of {hash} nests deeper than {MAX_DEPTH} calls")]
    TooDeep {
        /// The transaction.
        hash: String,
    },
    /// `from` or `to` of a frame is no address.
    #[error("{text:?} in frame {index} of a trace is not an address")]
    BadAddress {
        /// The frame.
        index: u64,
        /// What stood there.
        text: String,
    },
}

/// Reads the `result` of `debug_traceBlockByNumber` with the call tracer.
pub fn parse_traces(answer: &[u8]) -> Result<Vec<TxTrace<'_>>, Error> {
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_slice(answer).map_err(Error::Shape)?;
    entries.ok_or(Error::NotReady)?.into_iter().map(trace).collect()
}

/// Reads one call tree: the `result` of `debug_traceTransaction`, or of one entry of a block's traces.
pub fn parse_frames<'a>(hash: &Hash, tree: &'a str) -> Result<Vec<Frame<'a>>, Error> {
    Walk { text: tree, at: 0, frames: Vec::new(), open: Vec::new() }.run().map_err(|fault| {
        let hash = hash_text(hash);
        match fault {
            Fault::TooDeep => Error::TooDeep { hash },
            Fault::Expected { at, expected } => Error::Malformed { hash, at, expected },
        }
    })
}

impl Frame<'_> {
    /// Adds the accounts that the call is listed under: `from` and `to`.
    pub fn accounts(&self, out: &mut AccountSet) -> Result<(), Error> {
        for text in [&self.from, &self.to].into_iter().filter(|text| !text.is_empty()) {
            let bad = || Error::BadAddress { index: self.index, text: text.to_string() };
            out.insert(Account::from_hex_literal(text).ok_or_else(bad)?);
        }
        Ok(())
    }
}

/// Appends the JSON of an internal transaction (indexer-api 4.11).
///
/// Quantities are shown as bytes, so with an even number of digits, and `0x` if there is none. The output of frame 0 is
/// never shown, as on the deployed server.
pub fn write_internal_tx(out: &mut Vec<u8>, height: u64, hash: &Hash, frame: &Frame<'_>) {
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
    push_bytes(out, r#","output":"#, if frame.index == 0 { "" } else { &frame.output });
    push_bytes(out, r#","value":"#, &frame.value);
    push_bytes(out, r#","gas":"#, &frame.gas);
    push_bytes(out, r#","gasUsed":"#, &frame.gas_used);
    out.push(b'}');
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, deserialize_with = "text")]
    tx_hash: Cow<'a, str>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "optional_text")]
    error: Option<Cow<'a, str>>,
}

fn trace(entry: Entry<'_>) -> Result<TxTrace<'_>, Error> {
    let Ok(Some(hash)) = parse_hash(&entry.tx_hash) else {
        return Err(Error::BadHash { text: entry.tx_hash.into_owned() });
    };
    let error = entry.error.filter(|error| !error.is_empty());
    let frames = match entry.result {
        _ if error.is_some() => Vec::new(),
        Some(tree) => parse_frames(&hash, tree.get())?,
        None => return Err(Error::Empty { hash: hash_text(&hash) }),
    };
    Ok(TxTrace { hash, frames, error })
}

enum Fault {
    Expected { at: usize, expected: &'static str },
    TooDeep,
}

/// A walk over the text of one call tree.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    frames: Vec<Frame<'a>>,
    /// The frames whose closing brace is still to come, outermost first, as positions in `frames`.
    open: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn run(mut self) -> Result<Vec<Frame<'a>>, Fault> {
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

    fn open_frame(&mut self) -> Result<(), Fault> {
        self.take(b'{', "a frame")?;
        if self.open.len() == MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        let index = self.frames.len();
        let parent_index = self.open.last().map_or(-1, |&parent| parent.try_into().unwrap_or(i64::MAX));
        self.open.push(index);
        let index = index.try_into().unwrap_or(u64::MAX);
        self.frames.push(Frame { parent_index, index, ..Frame::default() });
        Ok(())
    }

    /// Steps out of a frame: into its next sibling, or over the end of its parent's list of calls.
    fn close_frame(&mut self) -> Result<(), Fault> {
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

    fn member(&mut self, frame: usize) -> Result<(), Fault> {
        let key: Text<'a> = self.value("a key")?;
        self.take(b':', "a colon")?;
        if key.0 == "calls" && self.next_byte() == Some(b'[') {
            self.at += 1;
            return if self.next_byte() == Some(b']') {
                self.at += 1;
                Ok(())
            } else {
                self.open_frame()
            };
        }
        let Some((member, is_hex)) = member_of(&mut self.frames[frame], &key.0) else {
            return self.value::<serde::de::IgnoredAny>("a value").map(drop);
        };
        let at = self.at;
        let text: Text<'a> = value_at(self.text, &mut self.at, "a string")?;
        if is_hex && !is_hex_or_empty(&text.0) {
            return Err(Fault::Expected { at, expected: "0x and hex digits" });
        }
        *member = text.0;
        Ok(())
    }

    fn value<T: Deserialize<'a>>(&mut self, expected: &'static str) -> Result<T, Fault> {
        value_at(self.text, &mut self.at, expected)
    }

    fn take(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault> {
        if self.next_byte() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is no white space, not taken.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.at += space;
        rest.get(space).copied()
    }

    fn expected(&self, expected: &'static str) -> Fault {
        Fault::Expected { at: self.at, expected }
    }
}

/// Reads one JSON value that is no call tree; serde skips unknown ones without recursion.
fn value_at<'a, T: Deserialize<'a>>(
    text: &'a str,
    at: &mut usize,
    expected: &'static str,
) -> Result<T, Fault> {
    let mut values = serde_json::Deserializer::from_str(&text[*at..]).into_iter::<T>();
    let value = values.next();
    let end = values.byte_offset();
    match value {
        Some(Ok(value)) => {
            *at += end;
            Ok(value)
        }
        _ => Err(Fault::Expected { at: *at, expected }),
    }
}

/// Where a member belongs, and whether it must be hex.
fn member_of<'f, 'a>(frame: &'f mut Frame<'a>, key: &str) -> Option<(&'f mut Cow<'a, str>, bool)> {
    Some(match key {
        "type" => (&mut frame.kind, false),
        "from" => (&mut frame.from, true),
        "to" => (&mut frame.to, true),
        "input" => (&mut frame.input, true),
        "output" => (&mut frame.output, true),
        "value" => (&mut frame.value, true),
        "gas" => (&mut frame.gas, true),
        "gasUsed" => (&mut frame.gas_used, true),
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

/// Appends hex as the bytes that it stands for: lower-case, an even number of digits.
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
