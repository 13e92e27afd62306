//! The functions of a contract's ABI (docs.soliditylang.org, ABI specification), by their selectors.

use std::collections::HashMap;

use serde::Deserialize;
use sha3::{Digest as _, Keccak256};

/// Deepest nesting of tuples that is read.
const MAX_DEPTH: usize = 16;

/// An entry of an ABI.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    inputs: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    components: Vec<Parameter>,
}

/// Functions as explorers show them, `transfer(address to, uint256 value)`, by the first four bytes of their calls.
#[derive(Debug, Default)]
pub(crate) struct Functions(HashMap<[u8; 4], String>);

impl Functions {
    /// Those of an ABI; entries that are no functions are skipped.
    pub(crate) fn of(abi: &serde_json::Value) -> Self {
        let entries = abi.as_array().into_iter().flatten();
        let entries = entries.filter_map(|entry| Entry::deserialize(entry).ok());
        Self(entries.filter(|entry| entry.kind == "function").filter_map(|entry| function(&entry)).collect())
    }

    /// The function that a call with this input calls.
    pub(crate) fn of_call(&self, input: &[u8]) -> Option<&str> {
        self.0.get(input.first_chunk::<4>()?).map(String::as_str)
    }
}

fn function(entry: &Entry) -> Option<([u8; 4], String)> {
    let types = entry.inputs.iter().map(|input| canonical(input, 0)).collect::<Option<Vec<_>>>()?;
    let hash = Keccak256::digest(format!("{}({})", entry.name, types.join(",")));
    let inputs = entry.inputs.iter().map(|Parameter { kind, name, .. }| match &**name {
        "" => kind.clone(),
        name => format!("{kind} {name}"),
    });
    let shown = format!("{}({})", entry.name, inputs.collect::<Vec<_>>().join(", "));
    Some((*hash.first_chunk::<4>()?, shown))
}

/// The type in a signature: a tuple is the list of its components.
fn canonical(parameter: &Parameter, depth: usize) -> Option<String> {
    let Some(array) = parameter.kind.strip_prefix("tuple") else { return Some(parameter.kind.clone()) };
    if depth == MAX_DEPTH {
        return None;
    }
    let components = parameter.components.iter().map(|component| canonical(component, depth + 1));
    Some(format!("({}){array}", components.collect::<Option<Vec<_>>>()?.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_named_by_its_selector_tuples_included() {
        let input = |kind: &str, name: &str| json!({ "type": kind, "name": name });
        let order = json!({
            "type": "tuple[]",
            "name": "orders",
            "components": [input("address", "a"), { "type": "tuple", "name": "b", "components": [input("uint256", "c")] }],
        });
        let functions = Functions::of(&json!([
            { "type": "function", "name": "transfer", "inputs": [input("address", "to"), input("uint256", "value")] },
            { "type": "function", "name": "fill", "inputs": [order, input("bool", "")] },
            { "type": "event", "name": "Transfer", "inputs": [] },
            { "type": 7 },
        ]));
        assert_eq!(
            functions.of_call(&[0xa9, 0x05, 0x9c, 0xbb, 1]),
            Some("transfer(address to, uint256 value)")
        );
        let selector = Keccak256::digest("fill((address,(uint256))[],bool)");
        assert_eq!(functions.of_call(&selector), Some("fill(tuple[] orders, bool)"));
        assert_eq!((functions.of_call(&[1, 2, 3, 4]), functions.of_call(&[0xa9])), (None, None));
    }
}
