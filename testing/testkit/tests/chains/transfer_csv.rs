//! An account's movements as CSV, against the JSON of the same list.

use std::collections::HashMap;

use http::header::{CONTENT_TYPE, LINK};
use query::Indexer;
use serde_json::Value;
use web::app::App;

use super::transfers::{ROOT, all, app, is_fee, text};

const HEADER: &str = "timestamp,height,txhash,direction,kind,amount,decimals,amount_decimal,symbol,denom,counterparty,\
                      fee_amount,fee_denom,msg_index";

/// The lines of a target without the names of the columns, and the target of the next page.
fn page(app: &App<Indexer>, target: &str) -> (Vec<Vec<String>>, Option<String>) {
    let response = app.get(target);
    assert_eq!(response.status().as_u16(), 200, "{target}");
    assert_eq!(response.headers()[CONTENT_TYPE], "text/csv; charset=utf-8");
    let next = response.headers().get(LINK).map(|link| {
        let link = link.to_str().unwrap();
        link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")).unwrap().to_owned()
    });
    let body = String::from_utf8(response.into_body().to_vec()).unwrap();
    let lines = body.strip_suffix("\r\n").unwrap().split("\r\n");
    // No text of these chains needs quotes.
    let mut lines = lines.map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(lines.next().unwrap().join(","), HEADER);
    (lines.collect(), next)
}

fn pages(app: &App<Indexer>, target: &str) -> Vec<Vec<String>> {
    let (mut rows, mut next) = page(app, target);
    while let Some(target) = next {
        let (more, following) = page(app, &target);
        rows.extend(more);
        next = following;
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_an_account_are_its_movements_with_each_fee_once() {
    for (chain, reverse, limit) in [
        ("evm-fees", false, 10_000),
        ("evm-fees", true, 7),
        ("move-ledger", true, 3),
        ("wasm-ledger", false, 1),
        ("l1-l2/l1", true, 50),
    ] {
        let app = app(chain).await;
        let every = all(&app, ROOT, 1000);
        let payer: HashMap<&str, &str> = every
            .iter()
            .filter(|it| text(it, "kind") == "fee")
            .map(|it| (text(it, "txhash"), text(it, "from")))
            .collect();
        // The account that has moved most in transactions that it has paid for.
        let mut payers: HashMap<&str, usize> = HashMap::new();
        for record in every.iter().filter(|it| !is_fee(it)) {
            let account = payer.get(text(record, "txhash")).filter(|it| **it == text(record, "from"));
            *payers.entry(account.unwrap_or(&"")).or_default() += 1;
        }
        payers.remove("");
        let account = *payers.iter().max_by_key(|(_, fees)| **fees).unwrap().0;
        let mut of_account = all(&app, &format!("{ROOT}/by_account/{account}"), 1000);
        if reverse {
            of_account.reverse();
        }
        let target = format!(
            "{ROOT}/by_account/{account}?format=csv&pagination.limit={limit}&pagination.reverse={reverse}"
        );
        let rows = pages(&app, &target);
        assert_eq!(rows.len(), of_account.len(), "{chain}");
        let mut seen: Vec<&str> = Vec::new();
        for (row, record) in rows.iter().zip(&of_account) {
            let (gave, got) = (text(record, "from") == account, text(record, "to") == account);
            let direction = match (gave, got) {
                (true, true) => "self",
                (true, false) => "out",
                _ => "in",
            };
            let token = &record["token"];
            let name =
                if text(token, "denom").is_empty() { text(token, "address") } else { text(token, "denom") };
            let name = match text(record, "token_id") {
                "" => name.to_owned(),
                id => format!("{name}/{id}"),
            };
            let message = record["msg_index"].as_u64().map_or_else(String::new, |index| index.to_string());
            let expected = [
                text(record, "timestamp"),
                text(record, "height"),
                text(record, "txhash"),
                direction,
                text(record, "kind"),
                text(record, "amount"),
            ];
            assert_eq!(row[..6], expected, "{chain}");
            assert_eq!(
                row[9..11],
                [name.as_str(), text(record, if gave { "to" } else { "from" })],
                "{chain}"
            );
            assert_eq!(row[13], message, "{chain}");
            let (paid, denom) = fee(&every, account, text(record, "txhash"));
            let hash = text(record, "txhash");
            if paid == 0 || seen.contains(&hash) {
                assert_eq!(row[11..13], ["", ""], "{chain} {hash}");
            } else {
                assert_eq!(row[11..13], [paid.to_string(), denom], "{chain} {hash}");
                seen.push(hash);
            }
        }
        assert!(!seen.is_empty(), "{chain}");
    }
}

/// What an account has paid for a transaction, less what it was given back.
fn fee(every: &[Value], account: &str, hash: &str) -> (u128, String) {
    let (mut paid, mut denom) = (0, String::new());
    for record in every.iter().filter(|it| !hash.is_empty() && text(it, "txhash") == hash) {
        let amount: u128 = text(record, "amount").parse().unwrap_or_default();
        match text(record, "kind") {
            "fee" if text(record, "from") == account => {
                paid += amount;
                text(&record["token"], "denom").clone_into(&mut denom);
            }
            "fee_refund" if text(record, "to") == account => paid -= amount,
            _ => {}
        }
    }
    (paid, denom)
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_filtered_as_the_list_is_and_an_account_without_movements_has_only_the_names() {
    let app = app("evm-fees").await;
    let target = |account: &str, query: &str| format!("{ROOT}/by_account/{account}?format=csv{query}");
    let (rows, next) = page(&app, &target("0x00000000000000000000000000000000000000ff", ""));
    assert_eq!((rows.len(), next), (0, None));
    let zero = "0x0000000000000000000000000000000000000000";
    let rows = pages(&app, &target(zero, "&kind=transfer&pagination.limit=1"));
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row[3] == "in" && row[11].is_empty()), "the sender has paid");
}
