//! The charts of the overview: hours and days.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use query::activity::Period;
use schema::activity::ACTIVITY;
use serde_json::Value;

use crate::site::Site;

const HOUR: i64 = 3_600_000_000_000;

/// Blocks and transactions of each hour that has any, from the list of all blocks.
fn by_hour(site: &Site) -> BTreeMap<String, (u64, u64)> {
    let (mut hours, mut offset) = (BTreeMap::new(), 0);
    loop {
        let page =
            site.json(&format!("/indexer/block/v1/blocks?pagination.limit=1000&pagination.offset={offset}"));
        let blocks = page["blocks"].as_array().unwrap();
        for block in blocks {
            let text = |name: &str| block[name].as_str().unwrap().to_owned();
            let hour: &mut (u64, u64) = hours.entry(text("timestamp")[..13].to_owned()).or_default();
            hour.0 += 1;
            hour.1 += text("tx_count").parse::<u64>().unwrap();
        }
        offset += blocks.len();
        if blocks.is_empty() {
            return hours;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_and_days_add_up_to_the_blocks_of_the_json() {
    for name in ["evm-scenario", "wasm-scenario", "l1-l2/l1"] {
        let site = Site::recorded(name).await;
        let hours = by_hour(&site);
        let index = site.app.state();
        let of = |periods: &[Period]| {
            let busy = periods.iter().filter(|period| period.blocks > 0);
            let named = busy.map(|period| {
                let time = chain::Timestamp::from_unix_nanos(period.from).seconds();
                (time[..13].to_owned(), (period.blocks, period.txs))
            });
            named.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(of(&index.periods(HOUR, 10_000).unwrap()), hours, "{name}");
        let days = index.periods(24 * HOUR, 400).unwrap();
        let sum = |number: fn(&Period) -> u64| days.iter().map(number).sum::<u64>();
        let all = site.json("/status");
        assert_eq!(sum(|day| day.txs), all_txs(&site), "{name}: {all}");
        assert_eq!(sum(|day| day.blocks), hours.values().map(|(blocks, _)| blocks).sum::<u64>(), "{name}");
        // Nothing comes before the first block.
        assert!(days.first().is_some_and(|day| day.blocks > 0), "{name}: {days:?}");
        let two = index.periods(HOUR, 2).unwrap();
        let last = hours.iter().next_back().unwrap();
        assert_eq!(of(&two).get(last.0), Some(last.1), "{name}");
        let page = site.get("/").await;
        let text = page.document().text.replace('\u{202f}', "");
        let (blocks, txs) = last.1;
        assert!(text.contains(&format!("{txs} transactions in {blocks} blocks")), "{name}: {text}");
    }
}

/// Gas and the accounts that signed, by the first `length` characters of the time, from the lists of all blocks and transactions.
fn signed(site: &Site, length: usize) -> BTreeMap<String, (u64, BTreeSet<String>)> {
    let mut periods: BTreeMap<String, (u64, BTreeSet<String>)> = BTreeMap::new();
    let mut offset = 0;
    loop {
        let page = site.json(&format!("/indexer/tx/v1/txs?pagination.limit=1000&pagination.offset={offset}"));
        let txs = page["txs"].as_array().unwrap();
        for tx in txs {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let (gas, accounts) = periods.entry(text(&tx["timestamp"])[..length].to_owned()).or_default();
            *gas += text(&tx["gas_used"]).parse::<u64>().unwrap();
            let events = tx["events"].as_array().unwrap().iter().filter(|event| event["type"] == "tx");
            let attributes = events.flat_map(|event| event["attributes"].as_array().unwrap());
            let sequences = attributes.filter(|attribute| attribute["key"] == "acc_seq");
            accounts.extend(sequences.map(|of| text(&of["value"]).rsplit_once('/').unwrap().0.to_owned()));
            // Of cosmos/evm: the sender, which no sequence names.
            let messages = tx["tx"]["body"]["messages"].as_array().into_iter().flatten();
            let senders = messages.filter(|message| message["@type"] == "/cosmos.evm.vm.v1.MsgEthereumTx");
            accounts.extend(senders.map(|message| {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text(&message["from"])).unwrap();
                chain::Account::from_bytes(&bytes).unwrap().to_bech32("cosmos")
            }));
        }
        offset += txs.len();
        if txs.is_empty() {
            return periods;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gas_and_accounts_are_those_of_the_transactions_of_the_json() {
    for (name, accounts) in
        [("evm-load", 30), ("cosmos-evm", 5), ("wasm-scenario", 3), ("move-scenario", 3), ("l1-l2/l1", 5)]
    {
        let site = Site::indexed(name, &[&ACTIVITY]).await;
        for (length, characters, title) in [(HOUR, 13, "per hour"), (24 * HOUR, 10, "per day")] {
            let expected = signed(&site, characters);
            let periods = site.app.state().periods(length, 10_000).unwrap();
            let mut seen = BTreeSet::new();
            for period in &periods {
                let time = chain::Timestamp::from_unix_nanos(period.from).seconds();
                let (gas, signers) = expected.get(&time[..characters]).cloned().unwrap_or_default();
                let new = signers.difference(&seen).count() as u64;
                let found = period.activity.unwrap();
                let found = (found.gas, found.accounts, found.new_accounts);
                assert_eq!(found, (gas, signers.len() as u64, new), "{name} {time} {title}");
                seen.extend(signers);
            }
            assert!(seen.len() >= accounts, "{name}: {}", seen.len());
            let text = site.get("/").await.document().text;
            for chart in ["Gas used", "Accounts that signed"] {
                assert!(text.contains(&format!("{chart} {title}")), "{name}: {text}");
            }
        }
    }
    // Without the index there is no chart of what is not known.
    let text = Site::recorded("evm-scenario").await.get("/").await.document().text;
    assert!(text.contains("Transactions per hour") && !text.contains("Gas used per hour"), "{text}");
}

fn all_txs(site: &Site) -> u64 {
    let count: Value = site.json("/indexer/tx/v1/txs/count");
    count["count"].as_str().unwrap().parse().unwrap()
}
