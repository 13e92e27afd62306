//! Calls by an ABI that somebody gave: any data has few values or none.

use std::sync::LazyLock;

use ::etherscan::abi::Abi;
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};

use crate::input::Input;

/// Types of one argument.
const TYPES: &[&str] = &[
    "uint256",
    "int8",
    "bool",
    "address",
    "bytes4",
    "function",
    "bytes",
    "string",
    "uint256[]",
    "bytes[]",
    "string[3]",
    "uint8[2][]",
    "uint256[][][]",
    "bytes[][]",
    "address[2]",
];

/// Bytes of the arguments as JSON: those of the values that are shown, their quotes, escapes, names and types.
const MOST: usize = 1 << 20;

/// A function of each type, of a tuple and of several arguments, with its selector.
static FUNCTIONS: LazyLock<Vec<(Abi, [u8; 4])>> = LazyLock::new(|| {
    let input = |kind: &str| json!({ "type": kind, "name": "a" });
    let tuple = json!({ "type": "tuple[]", "name": "t", "components": [input("bytes"), input("uint256[]")] });
    let one = TYPES.iter().map(|kind| (format!("f({kind})"), vec![input(kind)]));
    let several = [
        ("f((bytes,uint256[])[])".to_owned(), vec![tuple]),
        ("f(bool,string,bytes)".to_owned(), vec![input("bool"), input("string"), input("bytes")]),
    ];
    let function = |(signature, inputs): (String, Vec<Value>)| {
        let abi = Abi::new(&json!([{ "type": "function", "name": "f", "inputs": inputs }]));
        let hash = Keccak256::digest(signature);
        (abi, [hash[0], hash[1], hash[2], hash[3]])
    };
    one.chain(several).map(function).collect()
});

/// Input: the number of a function, and the data of its arguments; or an ABI in JSON.
pub fn run(data: &[u8]) -> bool {
    if let Ok(abi) = serde_json::from_slice::<Value>(data) {
        let abi = Abi::new(&abi);
        return abi.function(data).is_none();
    }
    let mut input = Input::new(data);
    let (abi, selector) = &FUNCTIONS[usize::from(input.byte()) % FUNCTIONS.len()];
    let call = [&selector[..], input.rest()].concat();
    let function = abi.function(&call).unwrap();
    let Some(arguments) = function.arguments(&call) else { return false };
    assert!(arguments.to_string().len() < MOST);
    true
}

/// Data of each function: small words, which are numbers, offsets and lengths.
pub fn seeds() -> Vec<Vec<u8>> {
    let word = |number: u8| {
        let mut word = [0; 32];
        word[31] = number;
        word
    };
    let words = [32, 2, 64, 96, 1, 7, 1, 9].map(word).concat();
    let mut seeds: Vec<_> = (0..FUNCTIONS.len())
        .filter_map(|number| Some([&[u8::try_from(number).ok()?][..], &words].concat()))
        .collect();
    seeds.push(
        br#"[{"type":"event","name":"E","inputs":[{"type":"tuple","components":[{"type":"uint8"}]}]}]"#
            .to_vec(),
    );
    seeds
}
