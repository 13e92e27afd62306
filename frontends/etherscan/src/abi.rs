//! The functions, events and errors of a contract's ABI (docs.soliditylang.org, ABI specification), and the calls, logs and
//! reverts that they explain.
//!
//! # Invariants
//! * Data that nobody vouches for is read by types that somebody gave: what may come of both has a bound before any of it is read.

use std::collections::HashMap;

use alloy_dyn_abi::{DynSolType, DynSolValue};
use serde::Deserialize;
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};

/// Deepest nesting of tuples that is read.
const MAX_DEPTH: usize = 16;

/// Longest type that is read.
const MAX_TYPE: usize = 1024;

/// Values that data may come to. Offsets of lists may point at the same place, so that each level of lists multiplies them.
const MAX_VALUES: usize = 1 << 18;

/// Bytes of the values that are shown.
pub(crate) const MAX_SHOWN: usize = 64 << 10;

/// Bytes of a word.
const WORD: usize = 32;

/// An entry of an ABI.
#[derive(Deserialize)]
pub(crate) struct Entry {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    anonymous: bool,
    #[serde(rename = "stateMutability", default)]
    pub(crate) mutability: String,
    #[serde(default)]
    pub(crate) inputs: Vec<Parameter>,
    #[serde(default)]
    pub(crate) outputs: Vec<Parameter>,
}

#[derive(Deserialize)]
pub(crate) struct Parameter {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    indexed: bool,
    #[serde(default)]
    components: Vec<Parameter>,
}

/// A function, an event or an error.
#[derive(Debug)]
pub struct Signature {
    /// As explorers show it, `transfer(address to, uint256 value)`.
    pub shown: String,
    inputs: Vec<Input>,
}

#[derive(Debug)]
struct Input {
    name: String,
    /// The type, where a tuple is the list of its components.
    kind: String,
    indexed: bool,
}

/// An ABI.
#[derive(Debug, Default)]
pub struct Abi {
    functions: HashMap<[u8; 4], Signature>,
    /// By the first topic, and by the number of arguments in further ones.
    events: HashMap<([u8; 32], usize), Signature>,
    errors: HashMap<[u8; 4], Signature>,
}

impl Abi {
    /// Reads an ABI; entries of other kinds are skipped.
    pub fn new(abi: &Value) -> Self {
        let mut read = Self::default();
        let entries = abi.as_array().into_iter().flatten();
        for entry in entries.filter_map(|entry| Entry::deserialize(entry).ok()) {
            let Some((hash, signature)) = signature(&entry) else { continue };
            match (&*entry.kind, hash.first_chunk::<4>()) {
                ("function", Some(selector)) => _ = read.functions.insert(*selector, signature),
                ("error", Some(selector)) => _ = read.errors.insert(*selector, signature),
                ("event", _) if !entry.anonymous => {
                    let indexed = signature.inputs.iter().filter(|input| input.indexed).count();
                    read.events.insert((hash, indexed), signature);
                }
                _ => {}
            }
        }
        read
    }

    /// How many functions, events and errors it has.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.functions.len(), self.events.len(), self.errors.len())
    }

    /// The function that a call with this input calls.
    pub fn function(&self, input: &[u8]) -> Option<&Signature> {
        self.functions.get(input.first_chunk::<4>()?)
    }

    /// The error that a call with this output reverted with.
    pub fn error(&self, output: &[u8]) -> Option<&Signature> {
        self.errors.get(output.first_chunk::<4>()?)
    }

    /// The event that a log with these topics reports.
    pub fn event(&self, topics: &[[u8; 32]]) -> Option<&Signature> {
        let (first, indexed) = topics.split_first()?;
        self.events.get(&(*first, indexed.len()))
    }
}

impl Signature {
    /// The arguments of a call with this input, or of an error with this output, each with name, type and value. `None` if it has
    /// others, or they are too many.
    pub fn arguments(&self, input: &[u8]) -> Option<Value> {
        self.decoded(&[], input.get(4..)?)
    }

    /// Those of a log. Of an indexed argument that is no word there is only the hash.
    pub fn of_log(&self, topics: &[[u8; 32]], data: &[u8]) -> Option<Value> {
        self.decoded(topics.get(1..)?, data)
    }

    fn decoded(&self, topics: &[[u8; 32]], data: &[u8]) -> Option<Value> {
        let (mut topics, mut shown) = (topics.iter(), MAX_SHOWN);
        let in_data = self.inputs.iter().filter(|input| !input.indexed);
        let mut values = values(in_data.map(|input| &*input.kind), data)?.into_iter();
        let mut arguments = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            let value = if input.indexed {
                let topic = topics.next()?;
                match DynSolType::parse(&input.kind).ok()? {
                    kind if is_word(&kind) => json_of(&kind.abi_decode(topic).ok()?, &mut shown)?,
                    _ => hex_of(topic),
                }
            } else {
                json_of(&values.next()?, &mut shown)?
            };
            arguments.push(json!({ "name": input.name, "type": input.kind, "value": value }));
        }
        Some(arguments.into())
    }
}

/// The hash of a signature, and what is known of it.
fn signature(entry: &Entry) -> Option<([u8; 32], Signature)> {
    let kinds = entry.inputs.iter().map(|input| canonical(input, 0)).collect::<Option<Vec<_>>>()?;
    let hash = Keccak256::digest(format!("{}({})", entry.name, kinds.join(",")));
    let inputs = entry.inputs.iter().map(|Parameter { kind, name, .. }| match &**name {
        "" => kind.clone(),
        name => format!("{kind} {name}"),
    });
    let shown = format!("{}({})", entry.name, inputs.collect::<Vec<_>>().join(", "));
    let is_event = entry.kind == "event";
    let input = |(kind, of): (String, &Parameter)| Input {
        name: of.name.clone(),
        kind,
        indexed: of.indexed && is_event,
    };
    let inputs = kinds.into_iter().zip(&entry.inputs).map(input).collect();
    Some((hash.into(), Signature { shown, inputs }))
}

/// The type in a signature: a tuple is the list of its components.
pub(crate) fn canonical(parameter: &Parameter, depth: usize) -> Option<String> {
    let Some(array) = parameter.kind.strip_prefix("tuple") else { return Some(parameter.kind.clone()) };
    if depth == MAX_DEPTH {
        return None;
    }
    let components = parameter.components.iter().map(|component| canonical(component, depth + 1));
    Some(format!("({}){array}", components.collect::<Option<Vec<_>>>()?.join(",")))
}

/// A type that values are read of; `None` for none. A list of nothing has any length.
pub(crate) fn type_of(kind: &str) -> Option<DynSolType> {
    let is_read = kind.len() <= MAX_TYPE && !kind.contains("[0]") && !kind.contains("()");
    if is_read { DynSolType::parse(kind).ok() } else { None }
}

/// The values of these types in data.
pub(crate) fn values<'k>(kinds: impl Iterator<Item = &'k str>, data: &[u8]) -> Option<Vec<DynSolValue>> {
    let kinds = kinds.map(type_of).collect::<Option<Vec<_>>>()?;
    if kinds.is_empty() {
        return Some(Vec::new());
    }
    let levels = kinds.iter().map(levels).max().unwrap_or_default();
    if (data.len() / WORD + 1).checked_pow(levels).is_none_or(|values| values > MAX_VALUES) {
        return None;
    }
    match DynSolType::Tuple(kinds).abi_decode_sequence(data).ok()? {
        DynSolValue::Tuple(values) => Some(values),
        _ => None,
    }
}

/// Levels of lists in a value of a type, texts included.
fn levels(kind: &DynSolType) -> u32 {
    match kind {
        DynSolType::Bytes | DynSolType::String => 1,
        DynSolType::Array(of) | DynSolType::FixedArray(of, _) => 1 + levels(of),
        DynSolType::Tuple(of) => of.iter().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

fn is_word(kind: &DynSolType) -> bool {
    levels(kind) == 0 && !matches!(kind, DynSolType::Tuple(_))
}

fn hex_of(bytes: &[u8]) -> Value {
    format!("0x{}", hex::encode(bytes)).into()
}

/// A value as JSON: numbers as decimal texts, bytes as hex. `None` for more bytes than `shown` has left.
pub(crate) fn json_of(value: &DynSolValue, shown: &mut usize) -> Option<Value> {
    let json = match value {
        DynSolValue::Bool(is) => json!(is),
        DynSolValue::Int(number, _) => number.to_string().into(),
        DynSolValue::Uint(number, _) => number.to_string().into(),
        DynSolValue::FixedBytes(word, size) => hex_of(word.get(..*size)?),
        DynSolValue::Address(address) => hex_of(address.as_slice()),
        DynSolValue::Function(function) => hex_of(function.as_slice()),
        DynSolValue::Bytes(bytes) if bytes.len() <= *shown => hex_of(bytes),
        DynSolValue::String(text) if text.len() <= *shown => json!(text),
        DynSolValue::Bytes(_) | DynSolValue::String(_) => return None,
        DynSolValue::Array(all) | DynSolValue::FixedArray(all) | DynSolValue::Tuple(all) => {
            all.iter().map(|value| json_of(value, shown)).collect::<Option<Vec<_>>>()?.into()
        }
    };
    let bytes = json.as_str().map_or(WORD, str::len);
    *shown = shown.checked_sub(bytes)?;
    Some(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(kind: &str, name: &str) -> Value {
        json!({ "type": kind, "name": name })
    }

    fn word(number: u8) -> [u8; 32] {
        let mut word = [0; 32];
        word[31] = number;
        word
    }

    #[test]
    fn a_call_is_named_by_its_selector_tuples_included() {
        let order = json!({
            "type": "tuple[]",
            "name": "orders",
            "components": [input("address", "a"), { "type": "tuple", "name": "b", "components": [input("uint256", "c")] }],
        });
        let abi = Abi::new(&json!([
            { "type": "function", "name": "transfer", "inputs": [input("address", "to"), input("uint256", "value")] },
            { "type": "function", "name": "fill", "inputs": [order, input("bool", "")] },
            { "type": "event", "name": "Transfer", "inputs": [] },
            { "type": 7 },
        ]));
        let shown = |input: &[u8]| abi.function(input).map(|function| function.shown.as_str());
        assert_eq!(shown(&[0xa9, 0x05, 0x9c, 0xbb, 1]), Some("transfer(address to, uint256 value)"));
        let selector = Keccak256::digest("fill((address,(uint256))[],bool)");
        assert_eq!(shown(&selector), Some("fill(tuple[] orders, bool)"));
        assert_eq!((shown(&[1, 2, 3, 4]), shown(&[0xa9])), (None, None));
        // One order, (0x…01, (7)), and true.
        let data = [word(64), word(1), word(1), word(1), word(7)].concat();
        let arguments = abi.function(&selector).unwrap().arguments(&[&selector[..4], &data].concat());
        let address = format!("0x{:040x}", 1);
        assert_eq!(
            arguments,
            Some(json!([
                { "name": "orders", "type": "(address,(uint256))[]", "value": [[address, ["7"]]] },
                { "name": "", "type": "bool", "value": true },
            ]))
        );
        assert_eq!(abi.function(&selector).unwrap().arguments(&selector[..8]), None, "cut");
    }

    #[test]
    fn a_log_is_read_by_the_event_with_its_number_of_topics() {
        let indexed = |kind: &str, name: &str| json!({ "type": kind, "name": name, "indexed": true });
        let [from, to] = [indexed("address", "from"), indexed("address", "to")];
        let abi = Abi::new(&json!([
            { "type": "event", "name": "Transfer", "inputs": [from, to, input("uint256", "value")] },
            { "type": "event", "name": "Transfer", "inputs": [from, to, indexed("uint256", "id")] },
            { "type": "event", "name": "Note", "inputs": [indexed("string", "topic"), input("string", "text")] },
            { "type": "event", "name": "Hidden", "anonymous": true, "inputs": [] },
        ]));
        let hash = |text: &str| -> [u8; 32] { Keccak256::digest(text).into() };
        let value = |topics: &[[u8; 32]], data: &[u8], place: usize| {
            abi.event(topics)?.of_log(topics, data).map(|arguments| arguments[place]["value"].clone())
        };
        let transfer = hash("Transfer(address,address,uint256)");
        assert_eq!(value(&[transfer, word(1), word(2)], &word(9), 2), Some(json!("9")));
        assert_eq!(value(&[transfer, word(1), word(2), word(8)], &[], 2), Some(json!("8")));
        assert_eq!(value(&[transfer, word(1)], &word(9), 2), None);
        let note = [hash("Note(string,string)"), [0xab; 32]];
        let text = [word(32).to_vec(), word(2).to_vec(), b"hi".to_vec(), vec![0; 30]].concat();
        assert_eq!(value(&note, &text, 0), Some(json!(format!("0x{}", "ab".repeat(32)))));
        assert_eq!(value(&note, &text, 1), Some(json!("hi")));
        assert!(abi.event(&[hash("Hidden()")]).is_none() && abi.event(&[]).is_none());
    }

    /// Lists whose offsets all point at one place.
    #[test]
    fn data_that_would_come_to_more_than_its_bound_is_not_read() {
        let nested = Abi::new(
            &json!([{ "type": "function", "name": "f", "inputs": [input("uint256[][][][][]", "a")] }]),
        );
        let texts =
            Abi::new(&json!([{ "type": "function", "name": "f", "inputs": [input("bytes[]", "a")] }]));
        for (abi, kind) in [(nested, "uint256[][][][][]"), (texts, "bytes[]")] {
            let selector = Keccak256::digest(format!("f({kind})"));
            let function = abi.function(&selector).unwrap();
            for words in [3, 30, 300, 3000, 30_000] {
                let mut data = word(32).to_vec();
                let mut length = [0; 32];
                length[24..].copy_from_slice(&(words as u64).to_be_bytes());
                data.extend(length);
                data.extend(vec![0; words * WORD]);
                let arguments = function.arguments(&[&selector[..4], &data].concat());
                assert!(
                    arguments.is_none_or(|arguments| arguments.to_string().len() < 4 * MAX_SHOWN),
                    "{kind} {words}"
                );
            }
        }
        for kind in ["uint256[0][99999999999]", "()[99999999999]", "uint999", "uint256[", &"u".repeat(9999)] {
            let abi = Abi::new(&json!([{ "type": "function", "name": "f", "inputs": [input(kind, "a")] }]));
            let selector = Keccak256::digest(format!("f({kind})"));
            assert_eq!(
                abi.function(&selector).unwrap().arguments(&[&selector[..4], &[0; 64]].concat()),
                None
            );
        }
    }
}
