//! Balances of the workload's recorded senders after the recording, as far as they were recorded.

use std::collections::BTreeMap;

use alloy::primitives::U256;
use chain::Vm;
use replay::Recording;
use replay::recording::Outcome;
use serde_json::Value;

use crate::workload::Workload;

/// The balances, by asset and address.
pub(crate) fn starting_balances(
    recording: &Recording,
    vm: Vm,
    workload: &Workload,
) -> BTreeMap<(String, [u8; 20]), u128> {
    let last = recording.heights().last().map_or(0, |height| height.height);
    let mut balances = BTreeMap::new();
    for asset in workload.assets() {
        for account in workload.fixed_accounts() {
            let balance = if vm == Vm::Evm {
                let data = format!("0x70a08231{:0>64}", account.hex);
                match recording.state().eth_call(asset, &data, last) {
                    Some(Outcome::Result(raw)) => {
                        let text: Option<&str> = serde_json::from_slice(raw).ok();
                        text.and_then(|text| U256::from_str_radix(text.strip_prefix("0x")?, 16).ok())
                    }
                    _ => None,
                }
            } else {
                let path = format!("/cosmos/bank/v1beta1/balances/{}?pagination.limit=1000", account.bech32);
                let answer = recording.state().rest("GET", &path, Some(last), None);
                answer.and_then(|answer| coin(&answer.body, asset))
            };
            if let Some(balance) = balance.and_then(|balance| u128::try_from(balance).ok()) {
                balances.insert((asset.to_owned(), account.address), balance);
            }
        }
    }
    balances
}

/// The amount of a denomination in a reply of the bank.
fn coin(answer: &[u8], denom: &str) -> Option<U256> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let mut coins = answer["balances"].as_array()?.iter();
    let coin = coins.find(|coin| coin["denom"] == denom)?;
    U256::from_str_radix(coin["amount"].as_str()?, 10).ok()
}
