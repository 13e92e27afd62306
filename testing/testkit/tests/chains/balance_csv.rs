//! Histories of balances as CSV and by times, against the JSON of the same lists.

use chain::U256;
use http::header::{CONTENT_TYPE, LINK};
use query::Indexer;
use serde_json::Value;
use web::app::App;

use super::held::app;
use super::transfers::{all, text};

const ROOT: &str = "/indexer/ledger/v1/balances/history";

const COLUMNS: &str = "timestamp,height,amount,increase,decrease,exact,decimals,amount_decimal,symbol,denom";

/// The rows of all pages of `target`, each as its cells.
fn rows(app: &App<Indexer>, target: &str) -> Vec<Vec<String>> {
    let (mut rows, mut next) = (Vec::new(), Some(target.to_owned()));
    while let Some(target) = next {
        let response = app.get(&target);
        assert_eq!(response.status().as_u16(), 200, "{target}");
        assert_eq!(response.headers()[CONTENT_TYPE], "text/csv; charset=utf-8");
        next = response.headers().get(LINK).map(|link| {
            let link = link.to_str().unwrap();
            link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).unwrap().to_owned()
        });
        let body = String::from_utf8(response.into_body().to_vec()).unwrap();
        let mut lines = body.strip_suffix("\r\n").unwrap().split("\r\n");
        assert_eq!(lines.next(), Some(COLUMNS));
        rows.extend(lines.map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>()));
    }
    rows
}

fn json(app: &App<Indexer>, target: &str) -> Vec<Value> {
    let mut records = Vec::new();
    let mut key = String::new();
    loop {
        let reply = app.read(&format!("{target}&pagination.limit=7{key}")).ok().unwrap();
        let page: Value = serde_json::from_slice(&reply.body).unwrap();
        records.extend(page["balances"].as_array().unwrap().iter().cloned());
        match page["pagination"]["next_key"].as_str() {
            Some(next) => key = format!("&pagination.key={next}"),
            None => return records,
        }
    }
}

/// The account with most movements of a token, and the name of the token.
fn busiest(app: &App<Indexer>) -> (String, String) {
    let mut counts = std::collections::BTreeMap::<(String, String), usize>::new();
    for record in all(app, "/indexer/ledger/v1/transfers", 1000) {
        let token = &record["token"];
        if matches!(text(token, "type"), "erc20" | "fa" | "bank") && !text(&record, "from").is_empty() {
            let pair = (text(&record, "from").to_owned(), text(token, "denom").replace('/', "%2F"));
            *counts.entry(pair).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, n)| *n).unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_as_csv_has_the_rows_of_its_json_also_within_times() {
    for chain in ["evm-fees", "move-ledger", "wasm-ledger"] {
        let app = app(chain).await;
        let (account, token) = busiest(&app);
        for (reverse, limit) in [(true, 10_000), (false, 3)] {
            let target = format!("{ROOT}/{account}/{token}?pagination.reverse={reverse}");
            let records = json(&app, &target);
            assert!(records.len() > 20, "{chain} {}", records.len());
            let rows = rows(&app, &format!("{target}&format=csv&pagination.limit={limit}"));
            assert_eq!(rows.len(), records.len(), "{chain}");
            for (row, record) in rows.iter().zip(&records) {
                assert_eq!(row[..3], ["timestamp", "height", "amount"].map(|name| text(record, name)));
                let change = text(record, "change");
                let (increase, decrease) = change.strip_prefix('-').map_or((change, ""), |less| ("", less));
                assert_eq!([row[3].as_str(), row[4].as_str()], [increase, decrease], "{record}");
                assert_eq!(row[5], record["exact"].to_string());
                assert_eq!(row[9], token.replace("%2F", "/"));
                let decimals: u32 = row[6].parse().unwrap_or(0);
                assert!(decimals == 0 || row[7].parse::<f64>().is_ok(), "{row:?}");
            }
            // From the second to the last but one block by time are the same as by height.
            let mut heights: Vec<&Value> = records.iter().collect();
            heights.sort_by_key(|record| text(record, "height").parse::<u64>().unwrap());
            let (second, last) = (heights[1], heights[heights.len() - 2]);
            let [since, until] = [second, last].map(|record| text(record, "timestamp").replace('+', "%2B"));
            let [from, to] = [second, last].map(|record| text(record, "height"));
            let by_time = json(&app, &format!("{target}&from_time={since}&to_time={until}"));
            assert_eq!(by_time, json(&app, &format!("{target}&from_height={from}&to_height={to}")));
            assert_eq!(by_time.len(), records.len() - 2, "{chain}");
            // Each change leads from one balance to the next.
            for pair in heights.windows(2).filter(|pair| pair[1]["known"] == true) {
                let number = |record: &Value| U256::from_str_radix(text(record, "amount"), 10).unwrap();
                let change = text(pair[1], "change");
                let size = U256::from_str_radix(change.trim_start_matches('-'), 10).unwrap();
                let expected =
                    if change.starts_with('-') { number(pair[0]) - size } else { number(pair[0]) + size };
                assert_eq!(number(pair[1]), expected);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_indexed_is_not_found_and_never_shown_as_nothing() {
    for chain in ["move-ledger", "wasm-ledger"] {
        let app = app(chain).await;
        let (account, _) = busiest(&app);
        let balances = "/indexer/ledger/v1/balances/by_account";
        for target in [format!("{ROOT}/{account}/nothing"), format!("{balances}/{account}?token=nothing")] {
            let error = app.read(&target).err().unwrap_or_else(|| panic!("{target} is answered"));
            assert_eq!(error.status().as_u16(), 404, "{target}: {}", error.message());
            assert!(error.message().contains("token not found: nothing"), "{}", error.message());
        }
    }
    let app = app("evm-scenario").await;
    let (account, _) = busiest(&app);
    let collection = "0xa3c1690099b8db2b564fdcc3b79ffe9c4252d6bb";
    let target = format!("/indexer/ledger/v1/balances/by_account/{account}?token={collection}");
    let error = app.read(&target).err().unwrap();
    assert_eq!(error.status().as_u16(), 404);
    assert!(error.message().contains("NFTs have no balances"), "{}", error.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_balances_that_ask_for_something_else_are_refused() {
    let app = app("evm-fees").await;
    let (account, token) = busiest(&app);
    let root = "/indexer/ledger/v1";
    for (target, status, words) in [
        (format!("{ROOT}/{account}/{token}?heigth=5"), 400, "unknown query parameter `heigth`"),
        (format!("{ROOT}/{account}/{token}?from_time=yesterday"), 400, "RFC 3339"),
        (format!("{ROOT}/{account}/{token}?format=xml"), 400, "one of json, csv"),
        (format!("{ROOT}/{account}/{token}?pagination.limit=10001"), 400, "10000"),
        (format!("{ROOT}/{account}/nothing"), 404, "nothing"),
        (format!("{root}/balances/by_account/{account}?heigth=5"), 400, "unknown query parameter `heigth`"),
        (format!("{root}/balances/by_account/{account}?type=erc"), 400, "erc1155"),
        (format!("{root}/balances/by_account/{account}?height=9999999"), 400, "above the indexed height"),
        (format!("{root}/balances/by_account/{account}?height=-1"), 400, "height"),
        (format!("{root}/holders/{token}?order_by=size"), 400, "one of amount, account"),
        (format!("{root}/holders/{token}?limit=5"), 400, "unknown query parameter `limit`"),
        (format!("{root}/holders/{token}?pagination.key=AQ"), 400, "AQ"),
        (format!("{root}/balances/by_account/{account}?token=nothing"), 404, "token not found: nothing"),
        (format!("{root}/transfers/by_height/9999999"), 400, "height 9999999 is above the indexed height"),
        (format!("{root}/tokens?searched=a"), 400, "unknown query parameter `searched`"),
    ] {
        let error = app.read(&target).err().unwrap_or_else(|| panic!("{target} is answered"));
        assert_eq!(error.status().as_u16(), status, "{target}: {}", error.message());
        assert!(error.message().contains(words), "{target}: {}", error.message());
    }
}
