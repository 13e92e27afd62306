//! The explorer explains transactions by the contracts of the setting `abi`.

use serde_json::{Value, json};

use crate::support::{Cairn, Played, get, get_text, refused};

/// `Deposit(address,uint256)`.
const DEPOSIT: &str = "0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c";

#[test]
fn the_page_of_a_transaction_names_function_events_and_arguments_once_the_abi_is_known() {
    let (dir, abi) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let played = Played::start("evm-weth-rebase", &[]);
    let data = dir.path().join("data");
    let own = ["--evm-listen", "127.0.0.1:0", "--abi", abi.path().to_str().unwrap()];
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &own].concat());
    let url = cairn.url();
    cairn.logged("caught up");
    let (_, page) = get(&format!("{url}/indexer/tx/v1/evm-txs?pagination.limit=1000"));
    let is_deposit = |log: &&Value| log["topics"][0] == DEPOSIT;
    let mut deposits = page["txs"].as_array().unwrap().iter().filter_map(|tx| {
        let log = tx["logs"].as_array()?.iter().find(is_deposit)?;
        (tx["to"] == log["address"]).then_some((tx, log))
    });
    let (tx, log) = deposits.next_back().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(get_text(&format!("{url}/evm-tx/{}", text(&tx["transactionHash"]))).0, 303);
    // Its page is that of the Cosmos transaction that carries it, one of its block.
    let height = u64::from_str_radix(&text(&tx["blockNumber"])[2..], 16).unwrap();
    let (_, block) = get(&format!("{url}/indexer/tx/v1/txs/by_height/{height}"));
    let mut pages =
        block["txs"].as_array().unwrap().iter().map(|of| format!("{url}/tx/{}", text(&of["txhash"])));
    let page = pages.find(|page| get_text(page).1.contains(&text(&tx["transactionHash"]))).unwrap();
    let (code, guessed) = get_text(&page);
    assert_eq!(code, 200);
    for part in ["deposit()", "Deposit(address dst, uint256 wad)", "probably"] {
        assert!(guessed.contains(part), "{part}: {guessed}");
    }

    let entries = json!([
        { "type": "function", "name": "deposit", "inputs": [] },
        { "type": "event", "name": "Deposit", "inputs": [
            { "type": "address", "name": "whose", "indexed": true }, { "type": "uint256", "name": "much" },
        ] },
    ]);
    let file = abi.path().join(format!("{}.json", log["address"].as_str().unwrap()));
    std::fs::write(&file, entries.to_string()).unwrap();
    let (code, explained) = get_text(&page);
    let value = u128::from_str_radix(&log["data"].as_str().unwrap()[2..], 16).unwrap();
    assert_eq!(code, 200);
    for part in ["deposit()", "Deposit(address whose, uint256 much)", "whose", &value.to_string()] {
        assert!(explained.contains(part), "{part}: {explained}");
    }
    // The wrapper calls a token of which no ABI is known.
    let guesses = explained.matches("probably").count();
    assert_eq!(guesses, explained.matches("probably transfer(").count(), "{explained}");

    std::fs::write(&file, "no JSON").unwrap();
    assert_eq!(get_text(&page), (200, guessed), "a damaged file takes nothing away");
}

#[test]
fn a_folder_of_contracts_that_does_not_exist_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let played = Played::start("evm-weth-rebase", &[]);
    let (data, missing) = (dir.path().join("data"), dir.path().join("abis"));
    let own = ["--evm-listen", "127.0.0.1:0", "--abi", missing.to_str().unwrap()];
    let (_, text) = refused(&[&played.flags("run", &data)[..], &own].concat());
    assert!(text.contains("`abi`: there is no folder") && text.contains("cairn abi pull"), "{text}");
}
