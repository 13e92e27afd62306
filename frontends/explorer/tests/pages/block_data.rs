//! Rows of the L1 that are not transactions: the votes that its proposers put into blocks.

use crate::dom::Document;
use crate::site::Site;

/// Links of a page to transactions.
fn txs(document: &Document) -> usize {
    document.links().iter().filter(|link| link.starts_with("/tx/")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn block_data_is_left_out_of_pages_counted_and_shown_on_request() {
    let site = Site::recorded("l1-l2/l1").await;
    let total =
        |target: &str| -> u64 { site.json(target)["pagination"]["total"].as_str().unwrap().parse().unwrap() };
    let (all, real) = (total("/indexer/tx/v1/txs"), total("/indexer/tx/v1/txs?msgs=*"));
    assert!(real > 50 && all > real + 50, "{all} rows, {real} with messages");
    // By cursors, every transaction is on one page.
    let (mut path, mut seen) = ("/txs".to_owned(), 0);
    let hidden = format!("is not listed ({})", all - real);
    loop {
        let document = site.get(&path).await.document();
        let text = document.text.replace('\u{202f}', "");
        assert!(!text.contains("(no transaction)"), "{path}: {text}");
        assert!(text.contains(&format!("{real} in total")) && text.contains(&hidden), "{path}: {text}");
        seen += txs(&document);
        let next = document.all("a").find(|link| link.get("rel") == Some("next"));
        let Some(next) = next.and_then(|next| next.get("href")) else { break };
        path = next.to_owned();
    }
    assert_eq!(seen as u64, real);

    let first = site.get("/txs").await.document();
    let shown = first.links().into_iter().find(|link| link.contains("block_data")).unwrap();
    let document = site.get(&shown).await.document();
    assert!(document.text.contains("Block data (no transaction)"), "{}", document.text);
    assert!(document.text.replace('\u{202f}', "").contains(&format!("{all} in total")));
    let overview = site.get("/").await.document().text;
    assert!(!overview.contains("(no transaction)") && overview.replace('\u{202f}', "").contains(&hidden));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_block_data_is_no_failed_transaction() {
    let site = Site::recorded("l1-l2/l1").await;
    let page = site.json("/indexer/tx/v1/txs?pagination.limit=100");
    let is_block_data = |tx: &&serde_json::Value| tx["code"] == 18;
    let tx = page["txs"].as_array().unwrap().iter().find(is_block_data).unwrap();
    for path in [format!("/tx/{}", tx["txhash"].as_str().unwrap()), "/txs?block_data=true".to_owned()] {
        let text = site.get(&path).await.document().text;
        assert!(text.contains("Block data"), "{path}: {text}");
        assert!(!path.starts_with("/tx/") || !text.contains("Failed"), "{path}: {text}");
    }
    // A block of nothing else has an empty list that says why.
    let block = site.get(&format!("/block/{}", tx["height"].as_str().unwrap())).await.document().text;
    assert!(block.contains("Block data that is not a transaction is not listed"), "{block}");
}
