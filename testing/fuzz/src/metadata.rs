//! Replies about tokens: whatever strangers say is short and visible, or is marked.

use chain::metadata::{self, MAX_BYTES, Metadata, Said};
use serde_json::{Value, json};

use crate::edit;
use crate::input::Input;

/// Members of replies, and texts that hide or turn around.
pub const WORDS: &[&str] = &[
    "\"decimals\":",
    "\"symbol\":",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\r\n",
    "\0",
    "18446744073709551615",
];

/// Input: a kind, and edits of a reply of that kind or, for contracts of an EVM, the reply.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let kind = input.byte() % 6;
    let Some(found) = read(kind, &mut input) else { return false };
    for text in [&found.name, &found.symbol] {
        if let Said::Value(text) = text {
            assert!(text.len() <= MAX_BYTES, "{text:?}");
            let hides = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
            assert!(!text.contains(hides), "{text:?}");
        }
    }
    if let Said::Value(decimals) = found.decimals {
        assert!(decimals <= 255, "{decimals}");
    }
    [found.name, found.symbol].iter().any(|text| matches!(text, Said::Value(_)))
}

fn read(kind: u8, input: &mut Input<'_>) -> Option<Metadata> {
    if kind == 0 {
        let reply = input.rest();
        let (name, decimals) = (metadata::evm_text(Some(reply)), metadata::evm_decimals(Some(reply)));
        return Some(Metadata { symbol: name.clone(), name, decimals, ..Metadata::default() });
    }
    let mut replies = recorded(kind);
    edit::apply(&mut replies, input);
    let bytes = |place: usize| replies[place].to_string().into_bytes();
    match kind {
        1 => metadata::cw20(&bytes(0)),
        2 => metadata::bank(&bytes(0)),
        4 => metadata::cw721(&bytes(0)),
        5 => metadata::collection(&bytes(0)),
        _ => {
            let extra = bytes(1);
            metadata::fungible_asset(
                &[7; 32],
                &bytes(0),
                Some(&extra).filter(|_| !replies[1].is_null()).map(|it| &**it),
            )
        }
    }
}

/// Replies in the form in which the recorded chains `wasm-ledger` and `move-ledger` gave them.
fn recorded(kind: u8) -> Value {
    let resource = |name: &str, symbol: &str| {
        let data =
            json!({ "decimals": 6, "icon_uri": "", "name": name, "project_uri": "", "symbol": symbol });
        let resource = json!({ "type": "0x1::fungible_asset::Metadata", "data": data });
        json!({ "resource": { "address": "0x7", "move_resource": resource.to_string() } })
    };
    match kind {
        1 => {
            json!([{ "data": { "name": "=Evil,\"Name\"", "symbol": "UMIN", "decimals": 0, "total_supply": "1000" } }])
        }
        2 => json!([{ "metadata": {
            "denom_units": [
                { "denom": "umin", "exponent": 0, "aliases": [] },
                { "denom": "min", "exponent": 6, "aliases": [] },
            ],
            "base": "umin", "display": "min", "name": "umin Coin", "symbol": "umin",
        } }]),
        4 => json!([{ "data": { "name": "ledger", "symbol": "LNFT" } }]),
        5 => {
            let resource = json!({ "type": "", "data": { "creator": "0x1", "name": "cats", "nfts": {} } });
            json!([{ "resource": { "address": "0x7", "move_resource": resource.to_string() } }])
        }
        _ => json!([resource("\"; DROP,\r\n<b>x</b>", "=1+1"), resource("Renamed", "umin")]),
    }
}

/// A text of a contract in both encodings, and each other kind with and without edits.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut string = vec![0; 97];
    (string[32], string[64]) = (32, 4);
    string[65..69].copy_from_slice(b"MKR\x0a");
    let mut bare = vec![0; 33];
    bare[1..4].copy_from_slice(b"MKR");
    let of_kinds = (0..20_u8).map(|number| {
        let edit = [0, number, 2, 3, b'a', 0xe2, 0x80];
        let kind = [1 + number % 5];
        if number < 10 { kind.to_vec() } else { [&kind[..], &edit].concat() }
    });
    [string, bare].into_iter().chain(of_kinds).collect()
}
