//! The functions of a contract that only read: their arguments from texts, and what they return.

use std::sync::LazyLock;

use alloy_dyn_abi::DynSolValue;
use alloy_json_abi::AbiItem;
use serde::Deserialize as _;
use serde_json::{Value, json};
use sha3::{Digest as _, Keccak256};

use crate::abi::{Entry, MAX_SHOWN, Parameter, canonical, json_of, type_of, values};

/// Arguments that a call may have, and characters of one.
const MAX_ARGUMENTS: usize = 16;
const MAX_TEXT: usize = 4096;

/// Functions that only read of tokens and of contracts with an owner (ERC-20, 165, 173, 721 and 4626).
const USUAL: [&str; 15] = [
    "function name() view returns (string)",
    "function symbol() view returns (string)",
    "function decimals() view returns (uint8)",
    "function totalSupply() view returns (uint256)",
    "function balanceOf(address account) view returns (uint256)",
    "function allowance(address owner, address spender) view returns (uint256)",
    "function owner() view returns (address)",
    "function supportsInterface(bytes4 interfaceId) view returns (bool)",
    "function ownerOf(uint256 tokenId) view returns (address)",
    "function tokenURI(uint256 tokenId) view returns (string)",
    "function getApproved(uint256 tokenId) view returns (address)",
    "function isApprovedForAll(address owner, address operator) view returns (bool)",
    "function asset() view returns (address)",
    "function totalAssets() view returns (uint256)",
    "function paused() view returns (bool)",
];

/// The ABI of functions that usual contracts have.
pub fn usual() -> &'static Value {
    static ABI: LazyLock<Value> = LazyLock::new(|| {
        let items = USUAL.iter().filter_map(|line| AbiItem::parse(line).ok());
        items.filter_map(|item| serde_json::to_value(item).ok()).collect::<Vec<_>>().into()
    });
    &ABI
}

/// The functions of an ABI that only read: of each an object with `selector`, `shown`, and `inputs` with `name` and `type`.
pub fn functions(abi: &Value) -> Vec<Value> {
    let row = |entry: Entry| {
        let (kinds, selector) = (kinds(&entry.inputs)?, selector(&entry)?);
        let pair = |(kind, of): (&String, &Parameter)| json!({ "name": of.name, "type": kind });
        let inputs: Vec<_> = kinds.iter().zip(&entry.inputs).map(pair).collect();
        let outputs = self::kinds(&entry.outputs)?.join(", ");
        let named = kinds.iter().zip(&entry.inputs).map(|(kind, of)| match &*of.name {
            "" => kind.clone(),
            name => format!("{kind} {name}"),
        });
        let shown = format!("{}({}) → {outputs}", entry.name, named.collect::<Vec<_>>().join(", "));
        Some(json!({ "selector": selector, "shown": shown, "inputs": inputs }))
    };
    reads(abi).filter_map(row).collect()
}

/// The input of a call of the function with this selector, in hex.
///
/// # Errors
/// If the ABI has no such function, or an argument is none of its type: the text names it.
pub fn input(abi: &Value, selector: &str, arguments: &[String]) -> Result<String, String> {
    let entry = find(abi, selector)
        .ok_or_else(|| format!("the ABI has no function with the selector `{selector}`"))?;
    let kinds = kinds(&entry.inputs).unwrap_or_default();
    if arguments.len() != kinds.len() || arguments.len() > MAX_ARGUMENTS {
        return Err(format!(
            "`{}` takes {} arguments (a call here at most {MAX_ARGUMENTS}), but {} are given",
            entry.name,
            kinds.len(),
            arguments.len()
        ));
    }
    let mut values = Vec::with_capacity(arguments.len());
    for ((kind, of), text) in kinds.iter().zip(&entry.inputs).zip(arguments) {
        let name = if of.name.is_empty() { kind } else { &of.name };
        if text.len() > MAX_TEXT {
            return Err(format!(
                "the argument `{name}` has {} bytes, more than the {MAX_TEXT} that a call here may have",
                text.len()
            ));
        }
        let invalid = || {
            format!(
                "the argument `{name}` is `{}`, but must be a value of the type {kind}",
                chain::truncated(text, 80)
            )
        };
        let value = type_of(kind).and_then(|kind| match (&kind, text.trim()) {
            (alloy_dyn_abi::DynSolType::String, _) => Some(DynSolValue::String(text.clone())),
            (_, text) => kind.coerce_str(text).ok(),
        });
        values.push(value.ok_or_else(invalid)?);
    }
    Ok(format!("{selector}{}", hex::encode(DynSolValue::Tuple(values).abi_encode_params())))
}

/// What the function with this selector returned, each value with `name`, `type` and `value`; `None` if the data is something else.
pub fn returned(abi: &Value, selector: &str, output: &str) -> Option<Value> {
    let entry = find(abi, selector)?;
    let (kinds, data) = (kinds(&entry.outputs)?, hex::decode(output.strip_prefix("0x")?).ok()?);
    let mut shown = MAX_SHOWN;
    let mut rows = Vec::with_capacity(kinds.len());
    for ((kind, of), value) in
        kinds.iter().zip(&entry.outputs).zip(values(kinds.iter().map(String::as_str), &data)?)
    {
        rows.push(json!({ "name": of.name, "type": kind, "value": json_of(&value, &mut shown)? }));
    }
    Some(rows.into())
}

fn reads(abi: &Value) -> impl Iterator<Item = Entry> {
    let entries = abi.as_array().into_iter().flatten().filter_map(|entry| Entry::deserialize(entry).ok());
    entries.filter(|entry| entry.kind == "function" && matches!(&*entry.mutability, "view" | "pure"))
}

fn find(abi: &Value, wanted: &str) -> Option<Entry> {
    reads(abi).find(|entry| selector(entry).as_deref() == Some(wanted))
}

fn kinds(of: &[Parameter]) -> Option<Vec<String>> {
    of.iter().map(|parameter| canonical(parameter, 0)).collect()
}

/// The first four bytes of the hash of the signature.
fn selector(entry: &Entry) -> Option<String> {
    let hash = Keccak256::digest(format!("{}({})", entry.name, kinds(&entry.inputs)?.join(",")));
    Some(format!("0x{}", hex::encode(&hash[..4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_usual_function_has_a_selector_of_its_own() {
        let functions = functions(usual());
        let selectors: std::collections::BTreeSet<_> =
            functions.iter().map(|of| of["selector"].as_str().unwrap()).collect();
        assert_eq!((functions.len(), selectors.len()), (USUAL.len(), USUAL.len()));
        assert!(selectors.contains("0x70a08231"), "balanceOf");
        assert_eq!(functions[4]["shown"], "balanceOf(address account) → uint256");
    }

    #[test]
    fn arguments_are_read_by_their_types_and_refused_by_name() {
        let input = |selector: &str, arguments: &[&str]| {
            input(usual(), selector, &arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
        };
        let address = "0x00000000000000000000000000000000000000aB";
        assert_eq!(input("0x70a08231", &[address]), Ok(format!("0x70a08231{:064x}", 0xab)));
        assert_eq!(input("0x6352211e", &[" 7 "]), Ok(format!("0x6352211e{:064x}", 7)));
        assert_eq!(input("0x06fdde03", &[]), Ok("0x06fdde03".to_owned()));
        for (selector, arguments, error) in [
            (
                "0x70a08231",
                vec!["7"],
                "the argument `account` is `7`, but must be a value of the type address",
            ),
            ("0x70a08231", vec![], "takes 1 arguments"),
            ("0x6352211e", vec!["-1"], "the argument `tokenId` is `-1`"),
            ("0xa9059cbb", vec![address, "1"], "no function with the selector `0xa9059cbb`"),
            ("x", vec![], "no function with the selector `x`"),
        ] {
            let found = input(selector, &arguments).unwrap_err();
            assert!(found.contains(error), "{found}");
        }
        let long = "1".repeat(MAX_TEXT + 1);
        assert!(input("0x6352211e", &[&long]).unwrap_err().contains("more than the 4096"));
    }

    #[test]
    fn returned_data_is_read_by_the_types_of_the_outputs() {
        let text = format!("0x{:064x}{:064x}{}{}", 32, 2, "6869", "0".repeat(60));
        let value =
            |selector: &str, output: &str| Some(returned(usual(), selector, output)?[0]["value"].clone());
        assert_eq!(value("0x06fdde03", &text), Some(json!("hi")));
        assert_eq!(value("0x313ce567", &format!("0x{:064x}", 18)), Some(json!("18")));
        for output in ["0x", "0x12", "", &text[..100]] {
            assert_eq!(value("0x06fdde03", output), None, "{output}");
        }
    }
}
