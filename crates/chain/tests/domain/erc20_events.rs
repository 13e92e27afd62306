//! ERC-20 events of recorded blocks: replayed, they must give the recorded replies of `balanceOf`.

use std::collections::{HashMap, HashSet};

use crate::recorded::{heights, states};
use chain::comet::{ResultsResponse, parse_results};
use chain::evm::erc20::{Erc20Event, events};
use chain::{U256, evm::abi};
use serde_json::json;

const NOBODY: [u8; 20] = [0; 20];
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/// Balances by contract and holder.
#[derive(Default)]
struct Ledger {
    balances: HashMap<([u8; 20], [u8; 20]), U256>,
    /// Contracts that were created within the recording.
    whole: HashSet<[u8; 20]>,
}

impl Ledger {
    fn apply(&mut self, event: Erc20Event) {
        match event {
            Erc20Event::Contract { contract } => assert!(self.whole.insert(contract)),
            Erc20Event::Transfer { contract, from, to, amount } if self.whole.contains(&contract) => {
                if from != NOBODY {
                    let balance = self.balances.get_mut(&(contract, from)).unwrap();
                    *balance = balance.checked_sub(amount).unwrap();
                }
                if to != NOBODY {
                    let balance = self.balances.entry((contract, to)).or_default();
                    *balance = balance.checked_add(amount).unwrap();
                }
            }
            _ => {}
        }
    }
}

#[test]
fn replayed_transfers_give_every_balance_that_the_contracts_report() {
    for (chain, expected) in [("evm-scenario", 203), ("l1-l2/l2", 118)] {
        let mut asked: Vec<_> = states(chain).filter(|state| state.data.starts_with("0x70a08231")).collect();
        asked.sort_by_key(|state| state.height);
        let (mut ledger, mut lines, mut compared) = (Ledger::default(), heights(chain).peekable(), 0);
        for state in asked {
            while let Some(line) = lines.next_if(|line| Some(line.height) <= state.height) {
                let results = parse_results(line.block_results.get().as_bytes()).unwrap();
                for event in events(&results) {
                    ledger.apply(event);
                }
            }
            let contract = address(&state.to);
            if !ledger.whole.contains(&contract) {
                continue;
            }
            let holder = abi::read_address(&hex::decode(&state.data[10..]).unwrap()).unwrap();
            assert_eq!(state.data, format!("0x{}", hex::encode(abi::balance_of(holder))));
            let answer = hex::decode(&state.result.unwrap().as_str().unwrap()[2..]).unwrap();
            let balance = ledger.balances.get(&(contract, holder)).copied().unwrap_or_default();
            assert_eq!(
                balance,
                abi::read_uint(&answer).unwrap(),
                "{chain} {:?} {}",
                state.height,
                state.data
            );
            compared += 1;
        }
        assert_eq!(compared, expected, "{chain}");
    }
}

fn address(text: &str) -> [u8; 20] {
    let mut address = [0; 20];
    hex::decode_to_slice(&text[2..], &mut address).unwrap();
    address
}

#[test]
fn every_recorded_denom_has_the_contract_that_the_node_reports() {
    let mut denoms: Vec<(String, [u8; 20])> = Vec::new();
    for line in heights("l1-l2/l2") {
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        denoms.extend(events(&results).into_iter().filter_map(|event| match event {
            Erc20Event::Denom { denom, contract } => Some((denom, contract)),
            _ => None,
        }));
    }
    assert_eq!(denoms.len(), 3);
    for (denom, contract) in denoms {
        let path = format!("/minievm/evm/v1/denoms/0x{}", hex::encode(contract));
        let answer = states("l1-l2/l2").find(|state| state.path == path).unwrap().answer.unwrap();
        assert_eq!(answer.get(), json!({ "denom": denom }).to_string());
    }
}

fn evm(logs: &[serde_json::Value]) -> serde_json::Value {
    let logs: Vec<_> = logs.iter().map(|log| json!({ "key": "log", "value": log.to_string() })).collect();
    json!({ "type": "evm", "attributes": logs })
}

fn log(topics: &[&str], data: &str) -> serde_json::Value {
    json!({ "address": format!("0x{}", "Aa".repeat(20)), "topics": topics, "data": data })
}

fn word(number: u64) -> String {
    format!("0x{number:064x}")
}

fn read(answer: &serde_json::Value) -> Vec<Erc20Event> {
    let text = answer.to_string();
    let results: ResultsResponse<'_> = parse_results(text.as_bytes()).unwrap();
    events(&results)
}

fn amounts(answer: &serde_json::Value) -> Vec<u64> {
    let transfer = |event| match event {
        Erc20Event::Transfer { amount, .. } => Some(amount.try_into().unwrap()),
        _ => None,
    };
    read(answer).into_iter().filter_map(transfer).collect()
}

#[test]
fn every_log_of_failed_transactions_and_of_the_block_counts_in_chain_order() {
    let [a, b] = [word(1), word(2)];
    let moved = |amount| log(&[TRANSFER, &a, &b], &word(amount));
    let of_block = |mode: &str, amount| {
        let mut event = evm(&[moved(amount)]);
        let attributes = event["attributes"].as_array_mut().unwrap();
        // The emitter's own attribute: the chain's comes after it.
        attributes
            .insert(0, json!({ "key": "mode", "value": if amount < 6 { "EndBlock" } else { "BeginBlock" } }));
        attributes.push(json!({ "key": "mode", "value": mode }));
        attributes.push(json!({ "key": "event_index", "value": "0" }));
        event
    };
    let answer = json!({ "height": "5",
        "txs_results": [{ "code": 0, "events": [evm(&[moved(2), moved(3)]), evm(&[moved(4)])] },
                        { "code": 7, "events": [evm(&[moved(5)])] }],
        "finalize_block_events": [of_block("EndBlock", 6), of_block("PreBlock", 0), of_block("EndBlock", 7),
                                  of_block("BeginBlock", 1)] });
    assert_eq!(amounts(&answer), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn logs_of_other_forms_name_the_accounts_to_ask() {
    let topic = |signature: &str| format!("0x{}", hex::encode(alloy::primitives::keccak256(signature)));
    let (a, b, zero, amount) = (word(0xa << 20), word(0xb << 20), word(0), word(3));
    let address = |text: &str| address(&format!("0x{}", &text[26..]));
    let data = |values: &[&String]| {
        let values: Vec<_> = values.iter().map(|value| &value[2..]).collect();
        format!("0x{}", values.concat())
    };
    let touched = |logs: &[serde_json::Value]| -> Vec<([u8; 20], bool)> {
        let found = read(&json!({ "txs_results": [{ "events": [evm(logs)] }] }));
        let touched = |event| match event {
            Erc20Event::Touched { account, like_nft, .. } => (account, like_nft),
            other => panic!("{other:?}"),
        };
        found.into_iter().map(touched).collect()
    };
    let plain = |accounts: &[&String]| accounts.iter().map(|it| (address(it), false)).collect::<Vec<_>>();
    let (deposit, withdrawal) = (topic("Deposit(address,uint256)"), topic("Withdrawal(address,uint256)"));
    for (topics, values, expected) in [
        (vec![&deposit, &a], vec![&amount], vec![&a]),
        (vec![&deposit], vec![&a, &amount], vec![&a]),
        (vec![&withdrawal, &a, &amount], vec![], vec![&a]),
        (vec![&TRANSFER.to_owned()], vec![&a, &b, &amount], vec![&a, &b]),
        (vec![&TRANSFER.to_owned(), &a], vec![&b, &amount], vec![&a, &b]),
        (vec![&TRANSFER.to_owned(), &a, &b], vec![&amount, &amount], vec![&a, &b]),
        (vec![&TRANSFER.to_owned(), &zero], vec![&b, &amount], vec![&b]),
        (vec![&TRANSFER.to_owned(), &a], vec![&zero, &amount], vec![&a, &zero]),
        (
            vec![&topic("Sent(address,address,address,uint256,bytes,bytes)"), &zero, &a, &b],
            vec![&amount],
            vec![&a, &b],
        ),
        (vec![&topic("Minted(address,address,uint256,bytes,bytes)"), &zero, &a], vec![&amount], vec![&a]),
        (vec![&topic("Minted(address,uint256)"), &a], vec![&amount], vec![&a]),
        (vec![&topic("Burn(address,uint256)"), &a], vec![&amount], vec![&a]),
    ] {
        let topics: Vec<_> = topics.iter().map(|topic| topic.as_str()).collect();
        assert_eq!(touched(&[log(&topics, &data(&values))]), plain(&expected), "{topics:?} {values:?}");
    }
    let nft = log(&[TRANSFER, &a, &b, &amount], "0x");
    assert_eq!(touched(&[nft]), [(address(&a), true), (address(&b), true)]);
}

#[test]
fn a_contract_that_is_called_or_logs_something_else_is_active_once_in_a_block() {
    let called = json!({ "type": "call", "attributes": [{ "key": "contract", "value": format!("0x{}", "Aa".repeat(20)) }] });
    let other = log(&[&word(9)], "0x");
    let found = read(
        &json!({ "txs_results": [{ "events": [called, evm(&[other.clone(), other, log(&[], "0x")])] }] }),
    );
    assert_eq!(found, [Erc20Event::Active { contract: [0xaa; 20] }]);
}

#[test]
fn malformed_transfers_are_skipped() {
    let [a, b, amount] = [word(1), word(2), word(3)];
    let long = format!("{amount}00");
    let wide = format!("0x1{}", &word(1)[3..]);
    let invalid: Vec<serde_json::Value> = vec![
        log(&[TRANSFER, &a, &b, &amount], "0x"),
        log(&[TRANSFER, &a, &b, &amount], &amount),
        log(&[TRANSFER, &a], &amount),
        log(&[TRANSFER, &a, &b], "0x"),
        log(&[TRANSFER, &a, &b], &long),
        log(&[TRANSFER, &a, &b], &amount[..64]),
        log(&[TRANSFER, &wide, &b], &amount),
        log(&[TRANSFER, &a, "0x2"], &amount),
        log(&[&a, TRANSFER, &b], &amount),
        json!({ "address": "0x12", "topics": [TRANSFER, a, b], "data": amount }),
        json!({ "address": TRANSFER }),
        json!(TRANSFER),
    ];
    let mut renamed = evm(&[log(&[TRANSFER, &a, &b], &amount)]);
    renamed["type"] = json!("ibccallbackerror-evm");
    let mut other_key = evm(&[log(&[TRANSFER, &a, &b], &amount)]);
    other_key["attributes"][0]["key"] = json!("ibccallbackerror-log");
    let broken = json!({ "type": "evm", "attributes": [{ "key": "log", "value": TRANSFER }] });
    let good = evm(&[log(&[TRANSFER, &a, &b], &word(9))]);
    let events = [evm(&invalid), renamed, other_key, broken, good];
    assert_eq!(amounts(&json!({ "txs_results": [{ "events": events }] })), [9]);
}

#[test]
fn denoms_keep_their_case_and_contracts_must_be_addresses() {
    let event = |kind: &str, attributes: &[(&str, &str)]| {
        let attributes: Vec<_> = attributes.iter().map(|(k, v)| json!({ "key": k, "value": v })).collect();
        json!({ "type": kind, "attributes": attributes })
    };
    let contract = format!("0x{}", "Ab".repeat(20));
    let bytecode = format!("0x{}", "60".repeat(10_000));
    let denoms =
        ["factory/init1xyz/MyToken", "evm/5df1e34Bf0DdF66c7933Fa0B0C8dE2cACb52a19A", "ibc/37A3FB", "GAS"];
    let mut found: Vec<_> = denoms
        .iter()
        .map(|denom| event("erc20_created", &[("denom", denom), ("contract", &contract)]))
        .collect();
    found.extend([
        event("contract_created", &[("contract", &contract)]),
        event("contract_created", &[("contract", &bytecode)]),
        event("contract_created", &[]),
        event("erc721_created", &[("class_id", "ibc/1"), ("contract", &contract)]),
        event("erc20_created", &[("denom", ""), ("contract", &contract)]),
        event("erc20_created", &[("denom", "x"), ("contract", "0x1")]),
    ]);
    let contract = [0xab; 20];
    let mut expected: Vec<_> =
        denoms.iter().map(|denom| Erc20Event::Denom { denom: (*denom).to_owned(), contract }).collect();
    expected.push(Erc20Event::Contract { contract });
    assert_eq!(read(&json!({ "txs_results": [{ "events": found }] })), expected);
}
