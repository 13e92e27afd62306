//! What a contract's ABI has besides functions that only read.

use maud::{Markup, html};
use serde_json::Value;

use crate::format::pre;
use crate::layout::section;
use crate::views::messages::pretty;

/// Functions and events that a page shows of each kind.
const SHOWN: usize = 200;

/// Functions that write, events and errors, or why the ABI cannot be read.
pub(super) fn others(known: &Result<Value, String>) -> Markup {
    let contract = match known {
        Ok(contract) => contract,
        Err(error) => return html! { section.card { p.empty { bdi { (chain::truncated(error, 400)) } } } },
    };
    let entries = contract["abi"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |kind: &str| entries.iter().filter(|entry| entry["type"] == kind).collect::<Vec<_>>();
    let is_read = |entry: &Value| matches!(entry["stateMutability"].as_str(), Some("view" | "pure"));
    let writes: Vec<_> = of("function").into_iter().filter(|entry| !is_read(entry)).collect();
    let list = |title: &str, entries: &[&Value]| {
        html! {
            @if !entries.is_empty() {
                (section(&format!("{title} ({})", entries.len()), &html! {
                    ul.signatures { @for entry in entries.iter().take(SHOWN) { li.mono { bdi { (signature(entry)) } } } }
                    @if entries.len() > SHOWN { p.dim { "The first " (SHOWN) "; the ABI below has all." } }
                }))
            }
        }
    };
    html! {
        (list("Functions that write", &writes))
        (list("Events", &of("event")))
        (list("Errors", &of("error")))
        section.card { details { summary { "ABI as JSON" } (pre(&pretty(contract["abi"].to_string().as_bytes()))) } }
    }
}

/// `balanceOf(address owner) → uint256`.
fn signature(entry: &Value) -> String {
    let list = |name: &str| {
        let parameter = |of: &Value| {
            let (kind, name) =
                (of["type"].as_str().unwrap_or_default(), of["name"].as_str().unwrap_or_default());
            if name.is_empty() { kind.to_owned() } else { format!("{kind} {name}") }
        };
        let parameters = entry[name].as_array().map(Vec::as_slice).unwrap_or_default();
        parameters.iter().map(parameter).collect::<Vec<_>>().join(", ")
    };
    let (name, outputs) = (entry["name"].as_str().unwrap_or_default(), list("outputs"));
    let returns = if outputs.is_empty() { String::new() } else { format!(" → {outputs}") };
    chain::truncated(&format!("{name}({}){returns}", list("inputs")), 300)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn functions_are_listed_by_what_they_do() {
        let input = |kind: &str, name: &str| json!({ "type": kind, "name": name });
        let entries = json!([
            { "type": "function", "name": "balanceOf", "stateMutability": "view", "inputs": [input("address", "owner")],
              "outputs": [input("uint256", "")] },
            { "type": "function", "name": "mint", "inputs": [input("address", "to")], "outputs": [] },
            { "type": "event", "name": "Minted", "inputs": [] },
            { "type": 7 }, "x",
        ]);
        let shown = others(&Ok(json!({ "name": "T", "abi": entries }))).into_string();
        let place = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text}: {shown}"));
        assert!(place("that write (1)") < place("mint(address to)"));
        assert!(place("Events (1)") < place("Minted()"));
        assert!(!shown.contains("that write (2)"), "balanceOf only reads");
        assert!(others(&Err("broken file".to_owned())).into_string().contains("broken file"));
    }
}
