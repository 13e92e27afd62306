//! The page of an account: what it holds, now and earlier, and what moved.

use schema::ledger::LEDGER;
use schema::packets::PACKETS;
use serde_json::Value;

use crate::site::Site;

/// The sender of the newest EVM transaction that has one.
fn sender(site: &Site) -> String {
    let page = site.json("/indexer/tx/v1/evm-txs?pagination.limit=50");
    let from = page["txs"].as_array().unwrap().iter().map(|tx| tx["from"].as_str().unwrap());
    from.into_iter().find(|from| !from.ends_with("000000")).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_are_those_of_the_json_at_any_height_and_at_the_end_of_a_day() {
    let site = Site::indexed("evm-scenario", &[&LEDGER]).await;
    let account = sender(&site);
    let of = |query: &str| site.json(&format!("/indexer/ledger/v1/balances/by_account/{account}{query}"));
    let plain = |text: &str| text.replace('\u{202f}', "");
    let shows = |body: &str, balances: &Value| {
        for balance in balances["balances"].as_array().unwrap() {
            let amount = format!("title=\"{} ", balance["amount"].as_str().unwrap());
            assert!(balance["known"] == false || body.contains(&amount), "{amount}: {body}");
        }
    };
    shows(&plain(&site.get(&format!("/account/{account}")).await.body), &of("?pagination.limit=8"));
    let page = site.get(&format!("/account/{account}?tab=balances&height=50")).await;
    assert_eq!(page.status, 200);
    shows(&plain(&page.body), &of("?height=50"));
    // At the end of the day of its last block, the balances are those of now.
    let last = site.json("/indexer/block/v1/blocks?pagination.limit=1")["blocks"][0].take();
    let day = &last["timestamp"].as_str().unwrap()[..10];
    let page = site.get(&format!("/account/{account}?tab=balances&day={day}")).await;
    assert_eq!(page.status, 200, "{}", page.body);
    shows(&plain(&page.body), &of(""));
    let before = site.get(&format!("/account/{account}?tab=balances&day=2001-02-03")).await;
    assert!(before.body.contains("No movement of a token is indexed up to that day"), "{}", before.body);
    let wrong = site.get(&format!("/account/{account}?tab=balances&day=yesterday")).await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("yesterday"), "{}", wrong.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_are_filtered_as_their_csv_is() {
    let site = Site::indexed("evm-scenario", &[&LEDGER]).await;
    let account = sender(&site);
    let page = format!("/account/{account}?tab=transfers");
    for (filter, request) in
        [("", ""), ("&direction=in", "direction=in"), ("&kind=transfer&direction=&token=", "kind=transfer")]
    {
        let answer = site.get(&format!("{page}{filter}")).await;
        assert_eq!(answer.status, 200, "{filter}: {}", answer.body);
        let document = answer.document();
        let links = document.links();
        let csv = links.iter().find(|link| link.ends_with("format=csv")).expect(filter);
        assert!(csv.contains(request), "{filter}: {csv}");
        let csv = site.get(csv).await;
        assert!(csv.header("content-type").starts_with("text/csv"), "{filter}");
        let json = site.json(&format!(
            "/indexer/ledger/v1/transfers/by_account/{account}?{request}&pagination.limit=25"
        ));
        for transfer in json["transfers"].as_array().unwrap() {
            let hash = transfer["txhash"].as_str().unwrap();
            assert!(links.contains(&format!("/tx/{hash}")), "{filter}: no {hash}");
        }
        assert!(!json["transfers"].as_array().unwrap().is_empty(), "{filter}");
    }
    let unknown = site.get(&format!("{page}&token=no-such-token")).await;
    assert_eq!(unknown.status, 200);
    assert!(unknown.body.contains("no-such-token"), "{}", unknown.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_not_indexed_says_what_is_missing() {
    let site = Site::indexed("evm-scenario", &[&PACKETS]).await;
    let account = sender(&site);
    for (tab, index) in [("balances", "ledger"), ("transfers", "ledger"), ("bridge", "bridge")] {
        let answer = site.get(&format!("/account/{account}?tab={tab}")).await;
        assert_eq!(answer.status, 200, "{tab}");
        assert!(answer.document().text.contains(&format!("`{index}`")), "{tab}: {}", answer.body);
    }
    let packets = site.get(&format!("/account/{account}?tab=packets")).await;
    assert!(packets.body.contains("There are no such packets"), "{}", packets.body);
    assert!(site.get("/tokens").await.body.contains("`tokens`"));
}
