//! The charts of the overview: hours and days.

use std::collections::BTreeMap;

use query::activity::Period;
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

fn all_txs(site: &Site) -> u64 {
    let count: Value = site.json("/indexer/tx/v1/txs/count");
    count["count"].as_str().unwrap().parse().unwrap()
}
